//! The events of a journal, on the wire.

use std::collections::BTreeMap;

use backstitch::RollbackCause;
use backstitch::core::attribute::AttributeChange;
use backstitch::core::event::{
    AbandonWhy, BlockKind, CancelVerb, CauseKind, EndKind, Event as Told, ExecutionStarted,
    RollbackStarted, VerbRefused,
};
use backstitch_api::http::{Attribute, Cause, Event, Failure, Value};

use super::super::instant;

/// What happened, on the wire.
pub(super) fn event(told: &Told) -> Event {
    Event { kind: snake_case(told.name()), ..fields(told) }
}

/// Everything but the kind.
fn fields(told: &Told) -> Event {
    let none = Event::default;
    match told {
        Told::ExecutionStarted(e) => started(e),
        Told::ExecutionSucceeded(e) => Event { value: Some(Value::of(&e.output)), ..none() },
        Told::ExecutionFailed(e) => Event { failure: Some(Failure::from(&e.failure)), ..none() },
        Told::ExecutionCancelled(_) | Told::ExecutionTerminated(_) => none(),
        Told::ExecutionKilled(e) => {
            Event { plan: Some(e.left.clone()), ..asked(&e.by, &e.reason, e.inbox) }
        }

        Told::StepScheduled(e) => Event {
            key: Some(e.key.to_string()),
            place: said(&e.place),
            has_undo: Some(e.undo.is_some()),
            value: e.input.as_ref().map(Value::of),
            ..about(e.ord)
        },
        Told::StepStarted(e) => Event { attempt: Some(e.attempt), ..about(e.ord) },
        Told::StepSucceeded(e) => Event {
            attempt: Some(e.attempt),
            value: Some(Value::of(&e.output)),
            at: Some(instant(e.finished_us)),
            ..about(e.ord)
        },
        Told::StepAttemptFailed(e) => Event {
            attempt: Some(e.attempt),
            failure: Some(Failure::from(&e.failure)),
            due: e.retry_at_us.map(instant),
            at: Some(instant(e.finished_us)),
            ..about(e.ord)
        },
        Told::StepFailed(e) => Event { failure: Some(Failure::from(&e.failure)), ..about(e.ord) },
        Told::StepCancelRequested(e) => about(e.ord),
        Told::StepAbandoned(e) => Event {
            why: Some(abandoned(e.why()).to_owned()),
            attempt: Some(e.attempt).filter(|attempt| *attempt > 0),
            at: e.finished_us.map(instant),
            ..about(e.ord)
        },
        Told::StepRetryRequested(e) => {
            Event { ord: Some(e.ord), ..asked(&e.by, &e.reason, e.inbox) }
        }

        Told::TimerStarted(e) => Event {
            key: Some(e.key.to_string()),
            place: said(&e.place),
            due: Some(instant(e.fire_at_us)),
            ..about(e.ord)
        },
        Told::TimerFired(e) => about(e.ord),
        Told::TimerCancelled(e) => about(e.ord),

        Told::WaitStarted(e) => Event {
            key: Some(e.key.to_string()),
            place: said(&e.place),
            types: Some(e.types.clone()),
            due: e.until_us.map(instant),
            ..about(e.ord)
        },
        Told::EventReceived(e) => Event {
            event_type: Some(e.event_type.clone()),
            event_id: said(&e.event_id),
            value: Some(Value::of(&e.payload)),
            at: Some(instant(e.accepted_at_us)),
            ..asked(&e.by, "", e.inbox)
        },
        Told::WaitSatisfied(e) => Event { inbox: Some(e.inbox), ..about(e.ord) },
        Told::WaitTimedOut(e) => about(e.ord),
        Told::WaitCancelled(e) => about(e.ord),

        Told::Shown(e) => about(e.ord),
        Told::CancelRequested(e) => {
            let what = match e.verb() {
                CancelVerb::Cancel => "cancel",
                CancelVerb::Terminate => "terminate",
                CancelVerb::Rollback => "rollback",
            };
            Event { what: said(what), ..asked(&e.by, &e.reason, e.inbox) }
        }
        Told::PauseRequested(e) => {
            Event { at: e.at_us.map(instant), ..asked(&e.by, &e.reason, e.inbox) }
        }
        Told::Resumed(e) => {
            Event { shift_ms: Some(e.shift_us / 1_000), ..asked(&e.by, &e.reason, e.inbox) }
        }
        Told::Blocked(e) => Event {
            what: said(block(e.what())),
            ord: e.ord,
            failure: Some(Failure::from(&e.failure)),
            ..none()
        },
        Told::Unblocked(e) => {
            Event { what: said(block(e.what())), ord: e.ord, by: said(&e.by), ..none() }
        }
        Told::VerbRefused(e) => verb_refused(e),
        Told::MarkerRecorded(e) => {
            Event { name: said(&e.name), value: e.payload.as_ref().map(Value::of), ..none() }
        }
        Told::ValuePublished(e) => {
            Event { name: said(&e.key), value: Some(Value::of(&e.value)), ..none() }
        }
        Told::AttributesSet(e) => {
            let event = asked(&e.by, &e.reason, e.inbox);
            let inbox = event.inbox.filter(|inbox| *inbox > 0);
            Event { attributes: Some(attributes(&e.changes)), inbox, ..event }
        }

        Told::RollbackStarted(e) => rollback(e),
        Told::UndoStarted(e) => Event { attempt: Some(e.attempt), ..about(e.ord) },
        Told::UndoAttemptFailed(e) => Event {
            attempt: Some(e.attempt),
            failure: Some(Failure::from(&e.failure)),
            due: e.retry_at_us.map(instant),
            at: Some(instant(e.finished_us)),
            ..about(e.ord)
        },
        Told::UndoSucceeded(e) => {
            Event { attempt: Some(e.attempt), at: Some(instant(e.finished_us)), ..about(e.ord) }
        }
        Told::UndoFailed(e) => {
            Event { failure: Some(Failure::from(&e.failure)), holds: Some(e.holds), ..about(e.ord) }
        }
        Told::UndoNotNeeded(e) => Event { why: said(&e.why), ..about(e.ord) },
        Told::UndoRetryRequested(e) => {
            Event { ord: Some(e.ord), ..asked(&e.by, &e.reason, e.inbox) }
        }
        Told::UndoWaived(e) => Event { ord: Some(e.ord), ..asked(&e.by, &e.reason, e.inbox) },
        Told::RollbackFinished(e) => Event { what: said(e.outcome().name()), ..none() },
    }
}

fn about(ord: u32) -> Event {
    Event { ord: Some(ord), ..Event::default() }
}

fn asked(by: &str, reason: &str, inbox: u64) -> Event {
    Event { by: said(by), reason: said(reason), inbox: Some(inbox), ..Event::default() }
}

fn said(words: &str) -> Option<String> {
    Some(words.to_owned()).filter(|words| !words.is_empty())
}

fn started(e: &ExecutionStarted) -> Event {
    Event {
        name: said(&e.workflow),
        value: Some(Value::of(&e.input)),
        due: e.deadline_at_us.map(instant),
        by: said(&e.started_by),
        ..Event::default()
    }
}

fn verb_refused(e: &VerbRefused) -> Event {
    Event {
        what: said(&e.verb),
        why: said(&e.why),
        ord: e.ord,
        event_type: said(&e.event_type),
        event_id: said(&e.event_id),
        ..asked(&e.by, &e.reason, e.inbox)
    }
}

fn rollback(e: &RollbackStarted) -> Event {
    let ends_in = match e.ends_in.kind() {
        EndKind::Failed => "failed",
        EndKind::Cancelled => "cancelled",
        EndKind::Terminated => "terminated",
        EndKind::Succeeded => "succeeded",
    };
    Event {
        causes: Some(e.causes.iter().map(cause).collect()),
        plan: Some(e.plan.clone()),
        ends_in: said(ends_in),
        ..Event::default()
    }
}

fn cause(cause: &RollbackCause) -> Cause {
    let kind = match cause.kind() {
        CauseKind::Failed => "failed",
        CauseKind::Cancelled => "cancelled",
        CauseKind::Terminated => "terminated",
        CauseKind::Requested => "requested",
        CauseKind::Deadline => "deadline",
        CauseKind::Dropped => "dropped",
    };
    let failure = cause.failure.as_ref().map(Failure::from);
    Cause { kind: kind.to_owned(), failure, by: said(&cause.by), reason: said(&cause.reason) }
}

fn attributes(changes: &[AttributeChange]) -> BTreeMap<String, Option<Attribute>> {
    let change = |change: &AttributeChange| {
        (change.name.clone(), change.value.as_ref().map(Attribute::from))
    };
    changes.iter().map(change).collect()
}

fn abandoned(why: AbandonWhy) -> &'static str {
    match why {
        AbandonWhy::Cancelled => "cancelled",
        AbandonWhy::Lost => "lost",
        AbandonWhy::DidNotYield => "did_not_yield",
    }
}

fn block(what: BlockKind) -> &'static str {
    match what {
        BlockKind::Step => "step",
        BlockKind::Mismatch => "mismatch",
        BlockKind::ForeignWait => "foreign_wait",
        BlockKind::Unreadable => "unreadable",
    }
}

/// `step_succeeded` of `StepSucceeded`.
fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
