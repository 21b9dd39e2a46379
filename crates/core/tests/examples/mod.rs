//! One example of every kind of event, with every field set to something that is not its default,
//! so that the golden files freeze the number and the wire type of each.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;

use backstitch_core::attribute::{AttributeChange, AttributeValue};
use backstitch_core::event::*;
use backstitch_core::failure::{Cause, Class, Effect, Failure, FailureData, Origin};
use backstitch_core::id::{Key, KeyKind};
use backstitch_core::payload::Payload;
use backstitch_core::retry::{
    Backoff, ClassLists, Jitter, OnAbandon, OnExhausted, OnUndoFailure, Retry, StepPolicy, UndoOn,
    UndoPolicy,
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
        ..Retry::step_default()
    }
}

/// As [`retry`], with what was added to policies later.
pub fn retry_with_lists() -> Retry {
    Retry {
        backoff: Backoff::Computed as i32,
        lists: Some(Box::new(ClassLists {
            transient: vec!["Timeout".into()],
            permanent: vec!["CardDeclined".into(), "402".into()],
            attention: vec!["Unauthorized".into()],
        })),
        ..retry()
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
        deadline_at_us: Some(AT_US + 1),
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

fn waits() -> Vec<Event> {
    let (ord, inbox) = (7, 9);
    let key = Key { kind: KeyKind::Wait as i32, ..key() };
    let types = vec!["paid".to_owned(), "cancelled".to_owned()];
    let (until_us, place) = (Some(AT_US + 6), "src/a.rs:3:4".to_owned());
    vec![
        WaitStarted { ord, key, types, until_us, place }.into(),
        EventReceived {
            inbox,
            event_id: "e-1".into(),
            event_type: "paid".into(),
            payload: payload("42"),
            accepted_at_us: AT_US + 7,
            by: "ada".into(),
        }
        .into(),
        WaitSatisfied { ord, inbox }.into(),
        WaitTimedOut { ord }.into(),
        WaitCancelled { ord }.into(),
    ]
}

/// A value of every type, and one that is taken away.
fn attributes() -> Vec<AttributeChange> {
    let values = [
        ("Customer", Some(AttributeValue::Text("c-7".into()))),
        ("Balance", Some(AttributeValue::Integer(-300))),
        ("Weight", Some(AttributeValue::Real(1.5))),
        ("Express", Some(AttributeValue::Flag(true))),
        ("Due", Some(AttributeValue::Instant(AT_US + 8))),
        ("Region", None),
    ];
    values.map(|(name, value)| AttributeChange { name: name.into(), value }).to_vec()
}

fn notes() -> Vec<Event> {
    vec![
        MarkerRecorded { name: "fraud-check".into(), payload: Some(payload("1")) }.into(),
        ValuePublished { key: "progress".into(), value: payload("0.5") }.into(),
        AttributesSet {
            changes: attributes(),
            origin: AttributeOrigin::Verb as i32,
            by: "ada".into(),
            reason: "a typing error".into(),
            inbox: 9,
        }
        .into(),
    ]
}

/// One of every kind, in the order of their numbers.
pub fn events() -> Vec<Event> {
    [execution(), steps(), waits(), control(), notes(), way_back()].concat()
}

/// Who asks, and why.
fn somebody() -> (String, String) {
    ("ada".into(), "the bank is back".into())
}

fn execution() -> Vec<Event> {
    let ((by, reason), left) = (somebody(), vec![300, 7]);
    vec![
        started().into(),
        ExecutionSucceeded { output: payload("42") }.into(),
        ExecutionFailed { failure: failure() }.into(),
        ExecutionCancelled {}.into(),
        ExecutionTerminated {}.into(),
        ExecutionKilled { by, reason, left, inbox: 9 }.into(),
    ]
}

fn steps() -> Vec<Event> {
    let (ord, attempt, finished_us) = (7, 4, AT_US + 3);
    let ((by, reason), retry_at_us) = (somebody(), Some(AT_US + 4));
    vec![
        scheduled().into(),
        StepStarted { ord, attempt, policy: Some(step_policy()) }.into(),
        StepSucceeded { ord, attempt, output: payload("42"), finished_us }.into(),
        StepAttemptFailed { ord, attempt, failure: failure(), retry_at_us, finished_us }.into(),
        StepFailed { ord, failure: failure() }.into(),
        StepCancelRequested { ord }.into(),
        abandoned().into(),
        StepRetryRequested { ord, by, reason, inbox: 9 }.into(),
        TimerStarted { ord, key: key(), fire_at_us: AT_US + 5, place: "src/a.rs:1:2".into() }
            .into(),
        TimerFired { ord }.into(),
        TimerCancelled { ord }.into(),
    ]
}

/// An attempt of which only the dropping is known has no end; this one has.
fn abandoned() -> StepAbandoned {
    let why = AbandonWhy::DidNotYield as i32;
    StepAbandoned { ord: 7, why, attempt: 4, finished_us: Some(AT_US + 3) }
}

/// No row has both a step and an event; the example has, so that each field is seen.
fn verb_refused() -> VerbRefused {
    let (by, reason) = somebody();
    VerbRefused {
        inbox: 9,
        verb: "retry step".into(),
        by,
        why: "it runs".into(),
        reason,
        ord: Some(7),
        event_type: "shipped".into(),
        event_id: "e-1".into(),
    }
}

fn control() -> Vec<Event> {
    let (ord, inbox, (by, reason)) = (7, 9, somebody());
    let verb = CancelVerb::Rollback as i32;
    vec![
        Shown { ord }.into(),
        CancelRequested { verb, by: by.clone(), reason: reason.clone(), inbox }.into(),
        PauseRequested { at_us: Some(AT_US), by: by.clone(), reason, inbox }.into(),
        Resumed { by, shift_us: 5_000_000, inbox, reason: "found it".into() }.into(),
        Blocked { what: BlockKind::ForeignWait as i32, ord: Some(ord), failure: failure() }.into(),
        Unblocked { what: BlockKind::Mismatch as i32, ord: Some(ord), by: "ada".into() }.into(),
        verb_refused().into(),
    ]
}

fn way_back() -> Vec<Event> {
    let (ord, attempt, inbox, finished_us) = (7, 4, 9, AT_US + 3);
    let ((by, reason), retry_at_us) = (somebody(), Some(AT_US + 4));
    vec![
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
