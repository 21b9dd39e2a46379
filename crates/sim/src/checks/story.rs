//! Made-up histories: each checker finds what it is there for, and lets pass what is right.

mod answers;
mod found;

use backstitch::core::event::{
    Event, ExecutionStarted, RollbackStarted, StepScheduled, StepStarted, StepSucceeded,
    TimerFired, TimerStarted, UndoSpec, UndoStarted, WaitSatisfied, WaitStarted,
};
use backstitch::core::id::{Key, KeyKind};
use backstitch::core::inbox::InboxKind;
use backstitch::core::retry::{StepPolicy, UndoPolicy};
use backstitch::core::row::Header;
use backstitch::store::RunNo;
use backstitch::{Row, RunId, uuid::Uuid};

use super::{acknowledged, attempts, barrier, debts, delivery, held};
use crate::history::{Attempt, Entry, Kind, Listed, Moment, Told};

const RUN: RunNo = RunNo(1);

fn run_id() -> RunId {
    RunId(Uuid::from_u128(7))
}

fn at(entry: Entry) -> Moment {
    Moment { at_us: 1_000, entry }
}

fn opened(process: u32) -> Moment {
    at(Entry::Opened { process, fence: u64::from(process) })
}

fn row(events: Vec<Event>) -> Moment {
    let header = Header { seq: 1, fence: 1, ..Header::default() };
    at(Entry::Durable { run: RUN, row: Row { header, events } })
}

/// A run with the step 1 and its first attempt.
fn begun() -> Vec<Moment> {
    let started = ExecutionStarted {
        id: "e0".into(),
        run_id: run_id().to_vec(),
        ..ExecutionStarted::default()
    };
    let key = Key { scope: Vec::new(), kind: KeyKind::Step as i32, name: "s1".into(), count: 1 };
    let scheduled = StepScheduled {
        ord: 1,
        key,
        policy: StepPolicy::step_default(),
        undo: Some(UndoSpec { policy: UndoPolicy::undo_default(), named: None }),
        ..StepScheduled::default()
    };
    let first = StepStarted { ord: 1, attempt: 1, policy: None };
    vec![opened(1), row(vec![started.into(), scheduled.into(), first.into()])]
}

fn begins(kind: Kind, number: u32, token: u64) -> Moment {
    let (step_key, told) = (run_id().step_key(1), Told::Unknown);
    let key = match kind {
        Kind::Body => step_key.clone(),
        Kind::Undo => run_id().undo_key(1),
    };
    let name = "s1".to_owned();
    at(Entry::Began(Attempt {
        token,
        process: 1,
        kind,
        key,
        step_key,
        name,
        number,
        fence: 1,
        told,
    }))
}

fn with(more: impl IntoIterator<Item = Moment>) -> Vec<Moment> {
    begun().into_iter().chain(more).collect()
}

fn failure(text: &str) -> backstitch::Failure {
    backstitch::Failure::new(
        backstitch::Class::Permanent,
        backstitch::Origin::Body,
        "Failure",
        text,
    )
}

fn breaks(violations: &[String], promise: &str) -> bool {
    violations.iter().any(|violation| violation.starts_with(&format!("{promise}:")))
}

#[test]
fn p2_a_body_that_was_announced_may_begin_and_any_other_is_found() {
    assert!(attempts::check(&with([begins(Kind::Body, 1, 1)])).is_empty());
    assert!(breaks(&attempts::check(&with([begins(Kind::Body, 2, 1)])), "P2"));
    assert!(breaks(&attempts::check(&[opened(1), begins(Kind::Body, 1, 1)]), "P2"));
}

#[test]
fn p3_a_body_after_its_outcome_is_found() {
    let outcome = StepSucceeded { ord: 1, attempt: 1, ..StepSucceeded::default() };
    let story = with([row(vec![outcome.into()]), begins(Kind::Body, 1, 1)]);
    assert!(breaks(&attempts::check(&story), "P3"));
}

#[test]
fn p4_a_body_under_an_old_fence_and_one_that_begins_twice_are_found() {
    assert!(breaks(&attempts::check(&with([opened(2), begins(Kind::Body, 1, 1)])), "P4"));
    let twice = with([begins(Kind::Body, 1, 1), begins(Kind::Body, 1, 2)]);
    assert!(breaks(&attempts::check(&twice), "P4"));
}

#[test]
fn p5_a_body_after_the_decision_is_found() {
    let story = with([row(vec![RollbackStarted::default().into()]), begins(Kind::Body, 1, 1)]);
    assert!(breaks(&attempts::check(&story), "P5"));
}

#[test]
fn p7_an_undo_under_a_running_body_is_found() {
    let undo = UndoStarted { ord: 1, attempt: 1, policy: None };
    let story = with([
        begins(Kind::Body, 1, 1),
        row(vec![RollbackStarted::default().into(), undo.into()]),
        begins(Kind::Undo, 1, 2),
    ]);
    assert!(breaks(&barrier::check(&story), "P7"));
}

#[test]
fn r6_an_undo_that_is_told_less_than_is_known_is_found() {
    let outcome = StepSucceeded { ord: 1, attempt: 1, ..StepSucceeded::default() };
    let story = with([row(vec![outcome.into()]), begins(Kind::Undo, 1, 1)]);
    assert!(breaks(&debts::check(&story), "R6"));
}

#[test]
fn p8_an_event_that_overtakes_an_older_one_is_found() {
    let accepted = |number| {
        let (kind, topic) = (InboxKind::Event, "apple".to_owned());
        at(Entry::Accepted { run: RUN, number, kind, topic, at_us: 0 })
    };
    let wait = WaitStarted { ord: 1, types: vec!["apple".into()], ..WaitStarted::default() };
    let took = WaitSatisfied { ord: 1, inbox: 2 };
    let story = [accepted(1), accepted(2), row(vec![wait.into(), took.into()])];
    assert!(breaks(&delivery::check(&story), "P8"));
}

#[test]
fn p9_a_timer_that_fires_early_is_found() {
    let timer = TimerStarted { ord: 1, fire_at_us: 2_000, ..TimerStarted::default() };
    let story = [row(vec![timer.into(), TimerFired { ord: 1 }.into()])];
    assert!(breaks(&delivery::check(&story), "P9"));
}

#[test]
fn p1_a_cancel_that_is_overtaken_by_a_decision_is_found() {
    let (kind, topic) = (InboxKind::Cancel, String::new());
    let cancel = at(Entry::Accepted { run: RUN, number: 1, kind, topic, at_us: 0 });
    let story = [cancel, row(vec![RollbackStarted::default().into()])];
    let plan = crate::grow::plan(0);
    assert!(breaks(&acknowledged::check(&plan, &story), "P1"));
}
