//! The bounds of the way forward: exceeding one fails the run for good and rolls back what it did
//! before; nothing of the way back is bounded (P12).

mod owner;
mod story;

use backstitch_core::event::Event;
use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::inbox::InboxKind;
use backstitch_core::limits::{
    ASKS_PER_GROUP_MAX, ATTRIBUTES_MAX, PATCHES_MAX, PUBLISHED_KEYS_MAX, RunLimits,
};
use backstitch_core::session::{Asked, AttemptEnd, Note, Report};
use backstitch_core::status::Status;
use owner::*;
use story::attribute;

/// A run that has done one step, with an undo, waits for the event `go`, and then does what `report`
/// says.
fn after_a_step(limits: RunLimits, report: Report) -> Owner {
    let mut owner = Owner::begin();
    owner.limit(limits);
    owner.row(script(vec![asks(vec![step("s"), wait("w", "go", None)])])).expect("the first turn");
    owner.returned(1);
    owner.row(script(vec![Report::default(), report])).expect("the second turn");
    owner
}

fn failure(owner: &Owner) -> &Failure {
    let rollback = owner.session.run().rollback.as_ref().expect("it is rolled back");
    rollback.ends_in.failure.as_ref().expect("it fails")
}

fn sleeps(count: usize) -> Vec<Asked> {
    (0..count).map(|i| sleep(&i.to_string(), T0 + 1)).collect()
}

fn waits(count: usize) -> Vec<Asked> {
    (0..count).map(|i| wait(&i.to_string(), "a", None)).collect()
}

fn notes(count: usize, note: impl Fn(String) -> Note) -> Report {
    says((0..count).map(|i| note(i.to_string())).collect())
}

fn patches(count: usize) -> Report {
    Report { patched: (0..count).map(|i| i.to_string()).collect(), ..Report::default() }
}

fn set(name: String) -> Note {
    sets(attribute(&name, Some(1)))
}

fn take_away(name: String) -> Note {
    sets(attribute(&name, None))
}

fn few_asks() -> RunLimits {
    RunLimits { asks_max: 6, ..RunLimits::default() }
}

fn few_waits() -> RunLimits {
    RunLimits { waits_open_max: 4, ..RunLimits::default() }
}

/// Every bound: what is just within it, what is beyond, and its name.
fn bounds() -> Vec<(RunLimits, Report, Report, &'static str)> {
    let many = RunLimits::default();
    vec![
        (
            many,
            asks(sleeps(ASKS_PER_GROUP_MAX)),
            asks(sleeps(ASKS_PER_GROUP_MAX + 1)),
            "AsksPerTurn",
        ),
        (few_asks(), asks(sleeps(4)), asks(sleeps(5)), "AsksPerRun"),
        (few_waits(), asks(waits(3)), asks(waits(4)), "WaitsOpen"),
        (
            many,
            notes(PUBLISHED_KEYS_MAX, |key| publishes(&key)),
            notes(PUBLISHED_KEYS_MAX + 1, |key| publishes(&key)),
            "PublishedKeys",
        ),
        (many, notes(ATTRIBUTES_MAX, set), notes(ATTRIBUTES_MAX + 1, set), "Attributes"),
        (many, patches(PATCHES_MAX), patches(PATCHES_MAX + 1), "Patches"),
    ]
}

#[test]
fn p12_every_bound_fails_the_run_for_good_and_rolls_back_what_it_did_before() {
    for (limits, _, beyond, name) in bounds() {
        let mut owner = after_a_step(limits, beyond);
        let said = failure(&owner).clone();
        let (class, origin) = (said.class(), said.origin());
        assert_eq!((class, origin), (Class::Permanent, Origin::Limit), "{name}");
        assert_eq!(said.type_name, name);
        assert!(said.message.contains("at most") && said.message.contains(": "), "{said}");
        let last = ["StepSucceeded", "RollbackStarted", "UndoStarted"];
        assert_eq!(owner.last(), last, "{name}: nothing of what was too much is written down");
        owner.undone(1);
        owner.idle().expect("it ends");
        assert_eq!(owner.last(), ["UndoSucceeded", "RollbackFinished", "ExecutionFailed"]);
    }
}

#[test]
fn p12_what_is_just_within_a_bound_is_fine() {
    for (limits, within, _, name) in bounds() {
        let mut owner = after_a_step(limits, within);
        assert!(owner.session.is_live(), "{name}: {}", owner.status());
        owner.crash();
        assert!(owner.session.is_live(), "{name}");
    }
}

/// What goes beyond the bound, after all that is within it and the event `go`.
fn one_more(bound: &str) -> Report {
    match bound {
        "AsksPerRun" => asks(vec![sleep("z", T0 + 1)]),
        "WaitsOpen" => asks(vec![wait("y", "b", None), wait("z", "b", None)]),
        "PublishedKeys" => says(vec![publishes("z")]),
        "Attributes" => says(vec![set("z".into())]),
        "Patches" => Report { patched: vec!["z".into()], ..Report::default() },
        other => panic!("{other}"),
    }
}

#[test]
fn p12_bounds_are_counted_over_the_whole_run_also_after_a_crash() {
    for (limits, within, _, name) in bounds().into_iter().skip(1) {
        for dies in [false, true] {
            let mut owner = after_a_step(limits, within.clone());
            if dies {
                owner.crash();
            }
            owner.send("go");
            owner.row(|_| one_more(name)).expect("a turn");
            assert_eq!(failure(&owner).type_name, name);
        }
    }
}

#[test]
fn p12_what_is_over_frees_its_place() {
    let mut owner = after_a_step(few_waits(), asks(waits(3)));
    owner.send("go");
    owner.row(|_| asks(vec![wait("z", "b", None)])).expect("a turn");
    assert!(owner.session.is_live(), "four waits are open, of four");
    // Also what is let go of in the same turn.
    let mut owner = after_a_step(few_waits(), asks(waits(3)));
    owner.send("go");
    owner.row(|_| {
        let asks = asks(vec![wait("y", "b", None), wait("z", "b", None)]);
        Report { drops: vec![3], ..asks }
    });
    assert!(owner.session.is_live(), "{:?}", owner.last());
    // An attribute that is taken away makes room for another one.
    let mut owner = after_a_step(RunLimits::default(), notes(ATTRIBUTES_MAX, set));
    owner.send("go");
    owner.row(|_| says(vec![take_away("0".into()), set("z".into())])).expect("a turn");
    assert!(owner.session.is_live(), "{:?}", owner.last());
}

#[test]
fn p12_the_same_name_twice_is_one() {
    let many = RunLimits::default();
    let owner = after_a_step(many, notes(2 * PUBLISHED_KEYS_MAX, |_| publishes("progress")));
    assert!(owner.session.is_live(), "{:?}", owner.last());
    assert_eq!(owner.session.run().published.len(), 1);
    let owner = after_a_step(many, notes(2 * ATTRIBUTES_MAX, |_| set("Stage".into())));
    assert!(owner.session.is_live(), "{:?}", owner.last());
    let owner = after_a_step(many, notes(2 * ATTRIBUTES_MAX, take_away));
    assert!(owner.session.is_live(), "what is not there is taken away for nothing");
    assert!(owner.session.run().attributes.is_empty());
}

fn short_journal() -> RunLimits {
    RunLimits { journal_bytes_max: 1, ..RunLimits::default() }
}

#[test]
fn p12_a_journal_that_is_too_long_fails_the_run_when_it_goes_on() {
    let mut owner = after_a_step(RunLimits::default(), asks(vec![sleep("z", T0 + 1)]));
    owner.limit(short_journal());
    owner.send("go");
    owner.row(|_| asks(vec![step("s2")])).expect("a turn");
    assert_eq!(failure(&owner).type_name, "JournalBytes");
    assert_eq!(owner.last(), ["EventReceived", "WaitSatisfied", "RollbackStarted", "UndoStarted"]);
    // Its length is known also to whoever reads it.
    for (beyond, goes_on) in [(1, false), (0, true)] {
        let mut owner = after_a_step(RunLimits::default(), asks(vec![sleep("z", T0 + 1)]));
        let events = owner.rows.iter().flat_map(|row| &row.events);
        let bytes: usize = events.map(Event::encoded_len).sum();
        let journal_bytes_max = bytes as u64 - beyond;
        owner.limit(RunLimits { journal_bytes_max, ..RunLimits::default() });
        owner.crash();
        owner.send("go");
        owner.row(|_| asks(vec![step("s2")])).expect("a turn");
        assert_eq!(owner.session.is_live(), goes_on, "{journal_bytes_max}");
    }
}

#[test]
fn p12_no_bound_keeps_a_run_from_its_end() {
    let tight = RunLimits { asks_max: 1, waits_open_max: 0, journal_bytes_max: 1 };
    for limits in [short_journal(), RunLimits { journal_bytes_max: u64::MAX, ..tight }, tight] {
        let mut owner = after_a_step(RunLimits::default(), Report::default());
        owner.limit(limits);
        owner.send("go");
        owner.row(|_| ends(&[])).expect("it ends");
        assert_eq!(owner.status(), Status::Succeeded, "{limits:?}: closing is never refused");
        let mut owner = after_a_step(RunLimits::default(), Report::default());
        owner.limit(limits);
        owner.send("go");
        owner.row(|_| fails()).expect("it fails");
        assert_eq!(failure(&owner).type_name, "Refused", "R8: its own error, {limits:?}");
    }
}

/// A run that is rolled back because it went beyond a bound, with every bound far exceeded.
fn too_much() -> Owner {
    let mut owner = after_a_step(RunLimits::default(), asks(vec![step("s2")]));
    owner.returned(3);
    owner.idle().expect("it is shown");
    owner.limit(RunLimits { asks_max: 1, waits_open_max: 0, journal_bytes_max: 1 });
    owner.send("go");
    owner.row(|_| asks(vec![sleep("z", T0 + 1), step("s3")])).expect("it is rolled back");
    assert_eq!(failure(&owner).origin(), Origin::Limit);
    assert_eq!(owner.last().last(), Some(&"UndoStarted"));
    owner
}

#[test]
fn p12_what_was_too_much_is_no_mismatch_in_replay() {
    let mut owner = too_much();
    owner.crash_without_code();
    assert_eq!(owner.attach(), Ok(()));
    owner.idle().expect("the undo was lost");
    assert_eq!(owner.last(), ["UndoAttemptFailed", "UndoStarted"]);
}

#[test]
fn p12_the_way_back_is_bounded_by_nothing() {
    let mut owner = too_much();
    let refused = || Failure::new(Class::Transient, Origin::Body, "Refused", "x".repeat(5_000));
    for attempt in 1..=10 {
        let end = AttemptEnd::Failed { failure: refused(), delay_us: Some(0) };
        owner.session.undo_ended(3, attempt, end, owner.now_us);
        owner.idle().expect("it is tried again");
    }
    assert_eq!(owner.last(), ["UndoAttemptFailed", "UndoFailed", "UndoStarted"]);
    owner.undone(1);
    owner.idle().expect("it is stuck");
    assert_eq!(owner.status(), Status::Stuck);
    owner.crash();
    owner.ask_about(InboxKind::RetryUndo, 3);
    owner.idle().expect("it is tried again");
    owner.undone(3);
    owner.idle().expect("it ends");
    assert_eq!(owner.last(), ["UndoSucceeded", "RollbackFinished", "ExecutionFailed"]);
}
