//! Short words for the events of small journals.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use backstitch_core::attribute::{AttributeChange, AttributeValue};
use backstitch_core::event::*;
use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::id::{Key, KeyKind, Ordinal};
use backstitch_core::payload::Payload;
use backstitch_core::retry::{StepPolicy, UndoPolicy};
use backstitch_core::row::{Header, Row, RowKind};
use backstitch_core::run::{IllegalEvent, Run};

/// When every row of a story is committed.
pub const NOW_US: i64 = 1_000_000;

pub fn begun() -> Event {
    ExecutionStarted {
        namespace: "default".into(),
        id: "a".into(),
        run_id: vec![7; 16],
        workflow: "w".into(),
        version: "1".into(),
        ..ExecutionStarted::default()
    }
    .into()
}

fn key(kind: KeyKind, ord: Ordinal) -> Key {
    Key { scope: Vec::new(), kind: kind as i32, name: "a".into(), count: ord }
}

/// A step with an undo.
pub fn scheduled(ord: Ordinal) -> Event {
    let undo = UndoSpec { policy: UndoPolicy::undo_default(), named: None };
    step_scheduled(ord, Some(undo)).into()
}

/// A step without an undo.
pub fn scheduled_plain(ord: Ordinal) -> Event {
    step_scheduled(ord, None).into()
}

fn step_scheduled(ord: Ordinal, undo: Option<UndoSpec>) -> StepScheduled {
    StepScheduled {
        ord,
        key: key(KeyKind::Step, ord),
        place: String::new(),
        policy: StepPolicy::step_default(),
        undo,
        input: None,
        alias: None,
        queue: None,
    }
}

pub fn started(ord: Ordinal, attempt: u32) -> Event {
    StepStarted { ord, attempt, policy: None }.into()
}

pub fn succeeded(ord: Ordinal, attempt: u32) -> Event {
    StepSucceeded { ord, attempt, output: Payload::json("1"), finished_us: NOW_US }.into()
}

pub fn failure() -> Failure {
    Failure::new(Class::Transient, Origin::Body, "Refused", "the bank said no")
}

pub fn attempt_failed(ord: Ordinal, attempt: u32, retry_at_us: Option<i64>) -> Event {
    StepAttemptFailed { ord, attempt, failure: failure(), retry_at_us, finished_us: NOW_US }.into()
}

pub fn failed(ord: Ordinal) -> Event {
    StepFailed { ord, failure: failure() }.into()
}

pub fn dropped(ord: Ordinal) -> Event {
    StepCancelRequested { ord }.into()
}

pub fn abandoned(ord: Ordinal, why: AbandonWhy) -> Event {
    StepAbandoned { ord, why: why as i32, ..Default::default() }.into()
}

/// As [`abandoned`], and says which attempt.
pub fn given_up(ord: Ordinal, attempt: u32) -> Event {
    StepAbandoned { ord, attempt, ..Default::default() }.into()
}

pub fn retry_step(ord: Ordinal, inbox: u64) -> Event {
    StepRetryRequested { ord, by: "ada".into(), reason: String::new(), inbox }.into()
}

pub fn timer(ord: Ordinal) -> Event {
    let (key, place) = (key(KeyKind::Timer, ord), String::new());
    TimerStarted { ord, key, fire_at_us: NOW_US, place }.into()
}

pub fn fired(ord: Ordinal) -> Event {
    TimerFired { ord }.into()
}

pub fn timer_dropped(ord: Ordinal) -> Event {
    TimerCancelled { ord }.into()
}

/// A wait for the types whose names are the words of `types`.
pub fn wait(ord: Ordinal, types: &str, until_us: Option<i64>) -> Event {
    let (key, place) = (key(KeyKind::Wait, ord), String::new());
    let types = types.split(' ').map(str::to_owned).collect();
    WaitStarted { ord, key, types, until_us, place }.into()
}

pub fn received(inbox: u64, event_type: &str, accepted_at_us: i64) -> Event {
    let (event_type, payload) = (event_type.to_owned(), Payload::json(inbox.to_string()));
    let (event_id, by) = (String::new(), "ada".to_owned());
    EventReceived { inbox, event_id, event_type, payload, accepted_at_us, by }.into()
}

pub fn satisfied(ord: Ordinal, inbox: u64) -> Event {
    WaitSatisfied { ord, inbox }.into()
}

pub fn timed_out(ord: Ordinal) -> Event {
    WaitTimedOut { ord }.into()
}

pub fn wait_dropped(ord: Ordinal) -> Event {
    WaitCancelled { ord }.into()
}

pub fn marker(name: &str) -> Event {
    MarkerRecorded { name: name.into(), payload: None }.into()
}

pub fn published(key: &str, value: &str) -> Event {
    ValuePublished { key: key.into(), value: Payload::json(value.to_owned()) }.into()
}

pub fn attribute(name: &str, value: Option<i64>) -> AttributeChange {
    AttributeChange { name: name.into(), value: value.map(AttributeValue::Integer) }
}

pub fn attributes_set(origin: AttributeOrigin, change: AttributeChange, inbox: u64) -> Event {
    let (by, reason) = (String::new(), String::new());
    AttributesSet { changes: vec![change], origin: origin as i32, by, reason, inbox }.into()
}

pub fn shown(ord: Ordinal) -> Event {
    Shown { ord }.into()
}

pub fn cancel(inbox: u64) -> Event {
    asked(CancelVerb::Cancel, inbox)
}

pub fn asked(verb: CancelVerb, inbox: u64) -> Event {
    let (by, reason) = ("ada".to_owned(), String::new());
    CancelRequested { verb: verb as i32, by, reason, inbox }.into()
}

pub fn pause(inbox: u64) -> Event {
    PauseRequested { at_us: Some(NOW_US), by: "ada".into(), reason: String::new(), inbox }.into()
}

pub fn resume(inbox: u64) -> Event {
    resume_later(0, inbox)
}

pub fn resume_later(shift_us: i64, inbox: u64) -> Event {
    Resumed { by: "ada".into(), shift_us, inbox, reason: String::new() }.into()
}

pub fn verb_refused(inbox: u64) -> Event {
    let (verb, by) = ("pause".into(), "ada".into());
    VerbRefused { inbox, verb, by, ..Default::default() }.into()
}

pub fn blocked(what: BlockKind, ord: Option<Ordinal>) -> Event {
    Blocked { what: what as i32, ord, failure: failure() }.into()
}

pub fn unblocked(what: BlockKind, ord: Option<Ordinal>) -> Event {
    Unblocked { what: what as i32, ord, by: "ada".into() }.into()
}

/// The decision to roll back `plan` and then to fail.
pub fn rollback(plan: &[Ordinal]) -> Event {
    rollback_into(EndKind::Failed, plan)
}

pub fn rollback_into(kind: EndKind, plan: &[Ordinal]) -> Event {
    let output = (kind == EndKind::Succeeded).then(|| Payload::json("1"));
    let failed = (kind == EndKind::Failed).then(failure);
    let cause = match kind {
        EndKind::Succeeded => {
            RollbackCause { kind: CauseKind::Dropped as i32, ..RollbackCause::default() }
        }
        EndKind::Failed => RollbackCause::failed(failure()),
        EndKind::Cancelled => RollbackCause::asked(CancelVerb::Cancel, "ada", ""),
        EndKind::Terminated => RollbackCause::asked(CancelVerb::Terminate, "ada", ""),
    };
    let ends_in = EndsIn { kind: kind as i32, failure: failed, output };
    let (scope, causes) = (Vec::new(), vec![cause]);
    RollbackStarted { no: 1, scope, causes, plan: plan.to_vec(), ends_in }.into()
}

/// The decision to undo `plan` because a person wants it undone.
pub fn rollback_on_request(no: u32, plan: &[Ordinal]) -> Event {
    let causes = vec![RollbackCause::asked(CancelVerb::Rollback, "ada", "")];
    let ends_in = EndsIn { kind: EndKind::Cancelled as i32, failure: None, output: None };
    RollbackStarted { no, scope: Vec::new(), causes, plan: plan.to_vec(), ends_in }.into()
}

pub fn undo_started(ord: Ordinal, attempt: u32) -> Event {
    UndoStarted { ord, attempt, policy: None }.into()
}

pub fn undo_succeeded(ord: Ordinal, attempt: u32) -> Event {
    UndoSucceeded { ord, attempt, finished_us: NOW_US }.into()
}

pub fn undo_attempt_failed(ord: Ordinal, attempt: u32, retry_at_us: Option<i64>) -> Event {
    UndoAttemptFailed { ord, attempt, failure: failure(), retry_at_us, finished_us: NOW_US }.into()
}

pub fn undo_failed(ord: Ordinal) -> Event {
    UndoFailed { ord, failure: failure(), holds: false }.into()
}

pub fn not_needed(ord: Ordinal) -> Event {
    UndoNotNeeded { ord, why: "it had no effect".into() }.into()
}

pub fn retry_undo(ord: Ordinal, inbox: u64) -> Event {
    UndoRetryRequested { ord, by: "ada".into(), reason: String::new(), inbox }.into()
}

pub fn waived(ord: Ordinal, inbox: u64) -> Event {
    UndoWaived { ord, by: "ada".into(), reason: "settled by phone".into(), inbox }.into()
}

pub fn finished() -> Event {
    RollbackFinished { no: 1, outcome: RollbackOutcome::Complete as i32 }.into()
}

pub fn ended_well() -> Event {
    ExecutionSucceeded { output: Payload::json("1") }.into()
}

pub fn ended_failed() -> Event {
    ExecutionFailed { failure: failure() }.into()
}

pub fn ended_cancelled() -> Event {
    ExecutionCancelled {}.into()
}

pub fn ended_terminated() -> Event {
    ExecutionTerminated {}.into()
}

pub fn killed(left: &[Ordinal], inbox: u64) -> Event {
    let (by, reason) = ("ada".to_owned(), "it loops".to_owned());
    ExecutionKilled { by, reason, left: left.to_vec(), inbox }.into()
}

pub fn header(seq: u64, kind: RowKind) -> Header {
    let now_us = (kind == RowKind::Turn).then_some(NOW_US);
    Header { seq, kind: kind as i32, at_us: NOW_US, now_us, ..Header::default() }
}

/// A turn that saw this time.
pub fn turn_at(seq: u64, now_us: i64, events: Vec<Event>) -> Row {
    let header = Header { at_us: now_us, now_us: Some(now_us), ..header(seq, RowKind::Turn) };
    Row { header, events }
}

pub fn row(seq: u64, kind: RowKind, events: Vec<Event>) -> Row {
    Row { header: header(seq, kind), events }
}

/// A run that has begun.
pub fn run() -> Run {
    Run::begin(&row(1, RowKind::Engine, vec![begun()])).expect("a first row folds")
}

/// Folds one more row.
pub fn then(run: &mut Run, kind: RowKind, events: Vec<Event>) -> Result<(), IllegalEvent> {
    run.apply_row(&row(run.seq + 1, kind, events))
}
