//! The deadline of a run: when it passes, the run is rolled back for lateness (B72).

mod owner;

use backstitch_core::event::{CauseKind, EndKind, Event, ExecutionStarted, RollbackStarted};
use backstitch_core::failure::{Class, Origin};
use backstitch_core::inbox::{InboxKind, Verb};
use backstitch_core::row::RowKind;
use backstitch_core::run::{Ending, Phase};
use backstitch_core::session::{Command, Report};
use backstitch_core::status::Status;
use owner::*;

const DEADLINE: i64 = T0 + 100;

/// A run that may take 100 µs.
fn begun() -> Owner {
    Owner::begin_with(ExecutionStarted { deadline_at_us: Some(DEADLINE), ..Default::default() })
}

/// As [`begun`], after a step that succeeded; its code sleeps beyond the deadline.
fn sleeping() -> Owner {
    let mut owner = begun();
    owner.row(script(vec![asks(vec![step("s")])])).expect("the first turn");
    owner.returned(1);
    let sleeps = asks(vec![sleep("z", T0 + 1_000), wait("w", "a", None)]);
    owner.row(script(vec![Report::default(), sleeps])).expect("it sleeps");
    owner
}

fn decision(owner: &Owner) -> &RollbackStarted {
    let events = &owner.rows.last().expect("a row").events;
    let decisions = events.iter().filter_map(|event| match event {
        Event::RollbackStarted(decision) => Some(decision.as_ref()),
        _ => None,
    });
    decisions.last().unwrap_or_else(|| panic!("no decision in {events:?}"))
}

#[test]
fn b72_a_deadline_that_passes_rolls_back_what_was_done() {
    let mut owner = sleeping();
    owner.now_us = DEADLINE - 1;
    assert!(owner.idle().is_none(), "never early");
    assert_eq!(owner.session.wake_at_us(), Some(DEADLINE));
    owner.now_us = DEADLINE;
    let out = owner.idle().expect("it is late");
    assert!(out.decides);
    assert_eq!(
        (owner.last(), owner.last_kind()),
        (vec!["RollbackStarted", "UndoStarted"], RowKind::Engine)
    );
    let RollbackStarted { causes, plan, ends_in, .. } = decision(&owner).clone();
    let failure = ends_in.failure.clone().expect("it fails");
    assert_eq!(
        (causes[0].kind(), ends_in.kind(), plan),
        (CauseKind::Deadline, EndKind::Failed, vec![1])
    );
    assert_eq!((failure.class(), failure.origin()), (Class::Permanent, Origin::Timeout));
    assert_eq!(
        (failure.type_name.as_str(), causes[0].failure.as_ref()),
        ("DeadlinePassed", Some(&failure))
    );
    owner.undone(1);
    owner.idle().expect("it ends");
    let ending = Phase::Closed(Ending::Failed(failure));
    assert_eq!(format!("{:?}", owner.session.run().phase), format!("{ending:?}"));
    assert_eq!(owner.session.wake_at_us(), None);
}

#[test]
fn b72_a_deadline_passes_although_nobody_has_the_code() {
    let mut owner = sleeping();
    owner.crash_without_code();
    assert_eq!(owner.session.wake_at_us(), Some(DEADLINE), "and not the sleep");
    owner.now_us = DEADLINE + 7;
    owner.idle().expect("it is late");
    assert_eq!(owner.last(), ["RollbackStarted"], "the undo waits for its handler");
    assert!(owner.idle().is_none());
    owner.attach().expect("the code fits");
    owner.idle().expect("the handler is at hand");
    assert_eq!(owner.last(), ["UndoStarted"]);
}

#[test]
fn b72_a_run_that_never_began_and_is_late_owes_nothing_and_ends() {
    let mut owner = begun();
    owner.crash_without_code();
    owner.now_us = DEADLINE;
    let out = owner.idle().expect("it is late");
    assert_eq!((owner.last(), out.decides), (vec!["ExecutionFailed"], true));
    assert_eq!(owner.status(), Status::Failed);
    assert!(owner.idle().is_none());
}

#[test]
fn b72_a_deadline_passes_while_the_run_is_blocked() {
    let mut owner = sleeping();
    blocks(&mut owner);
    let out = owner.idle().expect("it is blocked");
    assert_eq!(out.update, Some((Status::Blocked, Some(DEADLINE))));
    assert_eq!(owner.session.wake_at_us(), Some(DEADLINE));
    owner.now_us = DEADLINE;
    let out = owner.idle().expect("it is late");
    assert_eq!(owner.last()[0], "RollbackStarted");
    assert_eq!(out.attention.len(), 1, "the block is no longer of interest");
    assert!(owner.session.run().attention.is_empty());
}

#[test]
fn b72_bodies_in_flight_come_to_their_end_first() {
    let mut owner = begun();
    owner.row(script(vec![asks(vec![step("s")])])).expect("the first turn");
    owner.now_us = DEADLINE;
    owner.returned(1);
    owner.idle().expect("it is late, and the body has ended");
    assert_eq!(owner.last(), ["RollbackStarted", "StepSucceeded", "UndoStarted"]);
    assert_eq!(owner.shown(), [], "P5: the outcome is not shown");
    let mut owner = begun();
    owner.row(script(vec![asks(vec![step("s")])])).expect("the first turn");
    owner.now_us = DEADLINE;
    let out = owner.idle().expect("it is late");
    assert!(matches!(out.commands[..], [Command::SettleStep { ord: 1, .. }]), "{:?}", out.commands);
    assert_eq!(owner.last(), ["RollbackStarted"], "P7");
}

#[test]
fn b72_a_pause_holds_the_deadline_and_a_resume_judges_it() {
    let mut owner = sleeping();
    owner.ask(InboxKind::Pause);
    let out = owner.idle().expect("it is paused");
    assert_eq!(out.update, Some((Status::Paused, None)));
    owner.now_us = DEADLINE + 50;
    assert!(owner.idle().is_none() && owner.session.wake_at_us().is_none());
    owner.ask(InboxKind::Resume);
    owner.idle().expect("it is resumed, and late");
    assert_eq!(owner.last(), ["Resumed", "RollbackStarted", "UndoStarted"]);
}

#[test]
fn b72_a_pause_of_the_same_moment_holds_it_as_well() {
    let mut owner = sleeping();
    owner.now_us = DEADLINE;
    owner.ask(InboxKind::Pause);
    owner.idle().expect("it is paused");
    assert_eq!((owner.last(), owner.status()), (vec!["PauseRequested"], Status::Paused));
    owner.crash();
    assert!(owner.idle().is_none());
}

#[test]
fn b72_a_resume_with_shift_moves_the_deadline() {
    let mut owner = sleeping();
    owner.now_us = T0 + 40;
    owner.ask(InboxKind::Pause);
    owner.idle().expect("it is paused");
    owner.now_us = T0 + 540;
    owner.verb(InboxKind::Resume, Verb { shift_timers: true, ..Verb::default() });
    owner.idle().expect("it is resumed");
    assert_eq!(owner.last(), ["Resumed"]);
    let moved = DEADLINE + 500;
    assert_eq!(owner.session.run().deadline_at_us, Some(moved));
    owner.crash();
    assert_eq!(owner.session.wake_at_us(), Some(moved), "the sleep would end at T0 + 1500");
    owner.now_us = moved - 1;
    assert!(owner.idle().is_none());
    owner.now_us = moved;
    owner.idle().expect("it is late");
    assert_eq!(owner.last()[0], "RollbackStarted");
}

#[test]
fn b72_what_is_over_is_not_late() {
    let mut owner = begun();
    let out = owner.row(|_| ends(&[])).expect("it ends");
    assert_eq!(out.update, Some((Status::Succeeded, None)));
    owner.now_us = DEADLINE;
    assert!(owner.idle().is_none());
    // A way back that was decided before is not decided again.
    let mut owner = sleeping();
    owner.ask(InboxKind::Cancel);
    owner.idle().expect("it is cancelled");
    owner.now_us = DEADLINE;
    assert!(owner.idle().is_none());
    assert_eq!(owner.session.run().rollback.as_ref().map(|rollback| rollback.no), Some(1));
    owner.undone(1);
    owner.idle().expect("it ends");
    assert_eq!(owner.status(), Status::Cancelled);
}

#[test]
fn r10_a_cancel_of_the_same_moment_is_the_cause() {
    let mut owner = sleeping();
    owner.now_us = DEADLINE;
    owner.ask(InboxKind::Cancel);
    owner.idle().expect("it is cancelled");
    assert_eq!(decision(&owner).causes[0].kind(), CauseKind::Cancelled);
    assert_eq!(decision(&owner).causes.len(), 1);
    // Also when nothing is owed, and the end waits for the rest of the inbox.
    let mut owner = begun();
    owner.now_us = DEADLINE;
    owner.ask(InboxKind::Cancel);
    owner.send("a");
    owner.idle().expect("it is cancelled");
    assert_eq!(owner.last(), ["CancelRequested", "VerbRefused", "ExecutionCancelled"]);
}

#[test]
fn b72_an_event_that_came_before_a_late_decision_is_copied_and_not_shown() {
    let mut owner = sleeping();
    owner.now_us = DEADLINE - 1;
    owner.send("a");
    owner.now_us = DEADLINE;
    owner.idle().expect("it is late");
    assert_eq!(owner.last(), ["EventReceived", "RollbackStarted", "UndoStarted"]);
    assert_eq!(owner.shown().len(), 1, "the step alone");
}
