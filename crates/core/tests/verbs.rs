//! Which verb applies to which run (P10): the same rule answers at the door and when its turn comes.

mod owner;
mod story;

use backstitch_core::event::{BlockKind, Event};
use backstitch_core::inbox::InboxKind;
use backstitch_core::row::RowKind;
use backstitch_core::run::Run;
use backstitch_core::session::{Verdict, judge};
use owner::{Owner, asks, step};
use story::*;

fn after(events: Vec<Event>) -> Run {
    let mut run = run();
    then(&mut run, RowKind::Turn, events).expect("the story is legal");
    run
}

/// A run in every state, with a step 1 that has an undo; the letters head the columns below.
fn states() -> Vec<(char, Run)> {
    let begun = || vec![scheduled(1), started(1, 1)];
    let on = |events: Vec<Event>| after([begun(), events].concat());
    let two =
        vec![scheduled(2), started(2, 1), succeeded(1, 1), succeeded(2, 1), rollback(&[2, 1])];
    let undone = |decision: Event, end: Event| {
        let paid = vec![undo_started(1, 1), undo_succeeded(1, 1), finished(), end];
        on([vec![succeeded(1, 1), decision], paid].concat())
    };
    let back = || vec![succeeded(1, 1), rollback(&[1]), undo_started(1, 1)];
    let given_up = vec![undo_attempt_failed(1, 1, None), undo_failed(1)];
    let into = backstitch_core::event::EndKind::Cancelled;
    vec![
        ('F', on(vec![])),
        ('P', on(vec![pause(1)])),
        ('B', on(vec![attempt_failed(1, 1, None), blocked(BlockKind::Step, Some(1))])),
        ('R', on(back())),
        ('D', on([two, vec![undo_started(2, 1)]].concat())),
        ('S', on([back(), given_up].concat())),
        ('+', on(vec![succeeded(1, 1), ended_well()])),
        ('X', undone(rollback(&[1]), ended_failed())),
        ('C', undone(rollback_into(into, &[1]), ended_cancelled())),
        ('K', on(vec![killed(&[1], 1)])),
    ]
}

/// c: it changes the run, n: it changes nothing, r: it is refused. The columns are FPBRDS+XCK:
/// forward, paused, blocked, rolling back, an undo that is due, stuck, succeeded, failed, cancelled,
/// killed.
const TABLE: &[(InboxKind, &str)] = &[
    (InboxKind::Cancel, "cccnnnrrrr"),
    (InboxKind::Terminate, "cccnnnrrrr"),
    (InboxKind::Rollback, "cccnnncrrr"),
    (InboxKind::Kill, "ccccccrrrr"),
    (InboxKind::Pause, "cncccrrrrr"),
    (InboxKind::Resume, "ncnnnnrrrr"),
    (InboxKind::RetryStep, "rrcrrrrrrr"),
    (InboxKind::RetryUndo, "rrrrrcrrrr"),
    (InboxKind::WaiveUndo, "rrrrccrrrc"),
    (InboxKind::Event, "cccrrrrrrr"),
    (InboxKind::SetAttributes, "cccccccccc"),
];

#[test]
fn p10_every_verb_is_judged_for_every_state() {
    let states = states();
    for (kind, wanted) in TABLE {
        let judged = states.iter().map(|(_, run)| match judge(run, *kind, 1) {
            Verdict::Changes => 'c',
            Verdict::NoChange(_) => 'n',
            Verdict::Refused(_) => 'r',
        });
        let columns: String = states.iter().map(|(state, _)| state).collect();
        assert_eq!(judged.collect::<String>(), *wanted, "{kind:?} in {columns}");
    }
}

#[test]
fn p10_in_every_state_something_can_be_done_about_the_run() {
    for (state, run) in states() {
        let verbs = TABLE.iter().filter(|(kind, _)| *kind != InboxKind::SetAttributes);
        let can = verbs.filter(|(kind, _)| judge(&run, *kind, 1) == Verdict::Changes).count();
        let over = run.status(true).is_closed();
        assert!(can > 0 || (over && run.attention.is_empty()), "{state}: {:?}", run.attention);
    }
}

#[test]
fn p10_a_verb_about_a_step_that_is_not_there_is_refused_by_name() {
    for (state, run) in states() {
        for kind in [InboxKind::RetryStep, InboxKind::RetryUndo, InboxKind::WaiveUndo] {
            let Verdict::Refused(why) = judge(&run, kind, 9) else { panic!("{state} {kind:?}") };
            assert!(!why.is_empty(), "{state} {kind:?}");
        }
    }
}

#[test]
fn p10_whoever_was_told_that_nothing_changes_changes_nothing() {
    let mut owner = Owner::begin();
    owner.row(|_| asks(vec![step("s")])).expect("the first turn");
    owner.ask(InboxKind::Pause);
    // The pause has not come to the journal, so this is answered with "not paused".
    owner.ask(InboxKind::Resume);
    assert!(!owner.inbox[1].changed);
    owner.idle().expect("they are copied");
    assert_eq!(owner.last(), ["PauseRequested", "VerbRefused"]);
    assert!(owner.session.run().pause.is_some());
}

#[test]
fn p10_a_cancel_that_came_too_late_is_added_to_the_causes() {
    let mut owner = Owner::begin();
    owner.row(|_| asks(vec![step("s")])).expect("the first turn");
    owner.ask(InboxKind::Cancel);
    owner.ask(InboxKind::Terminate);
    owner.idle().expect("they are copied");
    assert!(owner.inbox[1].changed, "it was first when it was accepted");
    let rollback = owner.session.run().rollback.clone().expect("it is under way");
    assert_eq!((rollback.no, rollback.causes.len()), (1, 2), "R10: the first decision stands");
}
