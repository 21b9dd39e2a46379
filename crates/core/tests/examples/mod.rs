//! One example of every kind of event, with every field set to something that is not its default,
//! so that the golden files freeze the number and the wire type of each.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;

use backstitch_core::event::*;
use backstitch_core::failure::{Cause, Class, Effect, Failure, FailureData, Origin};
use backstitch_core::id::{Key, KeyKind};
use backstitch_core::payload::Payload;
use backstitch_core::retry::{
    Backoff, Jitter, OnAbandon, OnExhausted, OnUndoFailure, Retry, StepPolicy, UndoOn, UndoPolicy,
};
use backstitch_core::row::{Header, RowKind};

/// 2026-01-01T00:00:00Z.
pub const AT_US: i64 = 1_767_225_600_000_000;

/// A run id whose bytes are all different.
pub const RUN_ID: [u8; 16] = [
    0x01, 0x9b, 0x74, 0xa4, 0xd8, 0x00, 0x7c, 0x3e, 0x91, 0x5f, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
];

pub fn payload(text: &str) -> Payload {
    let metadata = BTreeMap::from([("encoding".to_owned(), "json".to_owned())]);
    Payload { metadata, ..Payload::json(text.to_owned()) }
}

pub fn failure() -> Failure {
    Failure::from(FailureData {
        class: Class::Permanent as i32,
        origin: Origin::Timeout as i32,
        effect: Effect::None as i32,
        type_name: "CardDeclined".into(),
        code: "declined".into(),
        message: "the bank said no 🙅".into(),
        details: Some(payload(r#"{"limit":100}"#)),
        causes: vec![Cause { type_name: "Io".into(), message: "connection reset".into() }],
        retry_after_us: Some(30_000_000),
    })
}

pub fn key() -> Key {
    Key {
        scope: vec!["visa".into(), "2".into()],
        kind: KeyKind::Timer as i32,
        name: "charge".into(),
        count: 3,
    }
}

fn retry() -> Retry {
    Retry {
        max_attempts: 5,
        backoff: Backoff::Linear as i32,
        initial_us: 250_000,
        factor: 1.5,
        cap_us: 60_000_000,
        jitter: Jitter::None as i32,
    }
}

pub fn step_policy() -> StepPolicy {
    StepPolicy {
        retry: retry(),
        timeout_us: 600_000_000,
        deadline_us: Some(3_600_000_000),
        on_exhausted: OnExhausted::Block as i32,
        undo_on: UndoOn::Succeeded as i32,
        on_abandon: OnAbandon::Cancel as i32,
        keep_when_dropped: true,
    }
}

pub fn undo_policy() -> UndoPolicy {
    UndoPolicy { retry: retry(), timeout_us: 120_000_000, on_failure: OnUndoFailure::Halt as i32 }
}

fn causes() -> Vec<RollbackCause> {
    vec![
        RollbackCause {
            kind: CauseKind::Requested as i32,
            failure: None,
            by: "ada".into(),
            reason: "a typing error".into(),
        },
        RollbackCause::failed(failure()),
    ]
}

/// The parts of an execution that later features need are written from the first format on.
fn started() -> ExecutionStarted {
    ExecutionStarted {
        namespace: "shop".into(),
        id: "order-1".into(),
        run_id: RUN_ID.to_vec(),
        workflow: "checkout".into(),
        version: "2".into(),
        semantics: 1,
        seed: 0x0123_4567_89ab_cdef,
        input: payload(r#"{"items":3}"#),
        input_digest: payload(r#"{"items":3}"#).digest().to_vec(),
        deadline_us: Some(AT_US + 1),
        queue: "gpu".into(),
        priority: -2,
        not_before_us: Some(AT_US + 2),
        started_by: "the web page".into(),
        request_id: "r-1".into(),
        parent: Some(vec![1; 16]),
        root: Some(vec![2; 16]),
        restarted_from: Some(vec![3; 16]),
        continued_from: Some(vec![4; 16]),
        schedule: Some("nightly".into()),
        limit_key: Some("customer-7".into()),
        retention_us: Some(86_400_000_000),
        extensions: BTreeMap::from([("later".to_owned(), payload("null"))]),
        after: Some(vec![5; 16]),
    }
}

fn scheduled() -> StepScheduled {
    let named = NamedUndo {
        name: "refund".into(),
        version: "1".into(),
        queue: "money".into(),
        input: Some(payload("7")),
    };
    StepScheduled {
        ord: 7,
        key: key(),
        place: "src/checkout.rs:12:9".into(),
        policy: step_policy(),
        undo: Some(UndoSpec { policy: undo_policy(), named: Some(named) }),
        input: Some(payload("[1]")),
        alias: Some("pay".into()),
        queue: Some("money".into()),
    }
}

fn rollback_started() -> RollbackStarted {
    RollbackStarted {
        no: 2,
        scope: vec!["visa".into()],
        causes: causes(),
        plan: vec![300, 7, 1],
        ends_in: EndsIn {
            kind: EndKind::Terminated as i32,
            failure: Some(failure()),
            output: Some(payload("true")),
        },
    }
}

/// One of every kind, in the order of their numbers.
pub fn events() -> Vec<Event> {
    let (ord, attempt, inbox, finished_us) = (7, 4, 9, AT_US + 3);
    let (by, reason) = ("ada".to_owned(), "the bank is back".to_owned());
    let retry_at_us = Some(AT_US + 4);
    vec![
        started().into(),
        ExecutionSucceeded { output: payload("42") }.into(),
        ExecutionFailed { failure: failure() }.into(),
        ExecutionCancelled {}.into(),
        ExecutionTerminated {}.into(),
        ExecutionKilled { by: by.clone(), reason: reason.clone(), left: vec![300, 7], inbox }
            .into(),
        scheduled().into(),
        StepStarted { ord, attempt, policy: Some(step_policy()) }.into(),
        StepSucceeded { ord, attempt, output: payload("42"), finished_us }.into(),
        StepAttemptFailed { ord, attempt, failure: failure(), retry_at_us, finished_us }.into(),
        StepFailed { ord, failure: failure() }.into(),
        StepCancelRequested { ord }.into(),
        StepAbandoned { ord, why: AbandonWhy::DidNotYield as i32 }.into(),
        StepRetryRequested { ord, by: by.clone(), reason: reason.clone(), inbox }.into(),
        TimerStarted { ord, key: key(), fire_at_us: AT_US + 5, place: "src/a.rs:1:2".into() }
            .into(),
        TimerFired { ord }.into(),
        TimerCancelled { ord }.into(),
        Shown { ord }.into(),
        CancelRequested {
            verb: CancelVerb::Rollback as i32,
            by: by.clone(),
            reason: reason.clone(),
            inbox,
        }
        .into(),
        PauseRequested { by: by.clone(), reason: reason.clone(), inbox }.into(),
        Resumed { by: by.clone(), shift_us: 5_000_000, inbox }.into(),
        Blocked { what: BlockKind::ForeignWait as i32, ord: Some(ord), failure: failure() }.into(),
        Unblocked { what: BlockKind::Mismatch as i32, ord: Some(ord), by: by.clone() }.into(),
        VerbRefused { inbox, verb: "retry step".into(), by: by.clone(), why: "it runs".into() }
            .into(),
        rollback_started().into(),
        UndoStarted { ord, attempt, policy: Some(undo_policy()) }.into(),
        UndoAttemptFailed { ord, attempt, failure: failure(), retry_at_us, finished_us }.into(),
        UndoSucceeded { ord, attempt, finished_us }.into(),
        UndoFailed { ord, failure: failure(), holds: true }.into(),
        UndoNotNeeded { ord, why: "it had no effect".into() }.into(),
        UndoRetryRequested { ord, by: by.clone(), reason: reason.clone(), inbox }.into(),
        UndoWaived { ord, by, reason, inbox }.into(),
        RollbackFinished { no: 2, outcome: RollbackOutcome::Incomplete as i32 }.into(),
    ]
}

/// The header of a row that the engine wrote.
pub fn engine_header() -> Header {
    Header {
        seq: 300,
        kind: RowKind::Engine as i32,
        at_us: 0,
        fence: 11,
        append_id: (0..16).collect(),
        now_us: None,
        worker: None,
        version: None,
    }
}

/// The header of a turn.
pub fn turn_header() -> Header {
    Header {
        kind: RowKind::Turn as i32,
        now_us: Some(AT_US - 1),
        worker: Some("pid-1".into()),
        version: Some("2".into()),
        ..engine_header()
    }
}
