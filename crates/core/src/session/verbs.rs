//! Copying inbox rows into the journal, and what each verb does.

use std::collections::BTreeSet;

use prost::Message;

use crate::attention::AttentionKind;
use crate::attribute::AttributeChange;
use crate::event::{
    AttributeOrigin, AttributesSet, CancelRequested, CancelVerb, CauseKind, EventReceived,
    ExecutionKilled, PauseRequested, Resumed, RollbackCause, StepRetryRequested,
    UndoRetryRequested, UndoWaived, VerbRefused,
};
use crate::id::Ordinal;
use crate::inbox::{EventMessage, InboxKind, InboxRow, Verb};
use crate::limits::ATTRIBUTES_MAX;
use crate::run::{Ending, Phase, Run};
use crate::session::{Command, Session};
use crate::status::Status;
use crate::step::{Step, StepPhase};
use crate::undo::UndoPhase;

/// What a verb does to a run as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// What it says.
    Changes,
    /// Nothing but a note in the journal, and why.
    NoChange(String),
    /// It does not apply, and why.
    Refused(String),
}

impl Verdict {
    fn of(refusal: Option<String>) -> Verdict {
        refusal.map_or(Verdict::Changes, Verdict::Refused)
    }
}

/// Judges a verb, or an event, for the run as it stands (the table in docs/verbs.md).
///
/// The same rule answers the caller at the door and is applied again when the row is copied.
pub fn judge(run: &Run, kind: InboxKind, ord: Ordinal) -> Verdict {
    let refused = |why: &str| Verdict::Refused(why.to_owned());
    let no_change = |why: &str| Verdict::NoChange(why.to_owned());
    match (kind, &run.phase) {
        (InboxKind::Event, Phase::Forward) => Verdict::Changes,
        (InboxKind::Event, Phase::RollingBack) => refused(
            "the execution is rolling back, and takes no events any more; start another one, or \
                 restart it when it is closed",
        ),
        (InboxKind::SetAttributes, _) => Verdict::Changes,
        (InboxKind::Cancel | InboxKind::Terminate | InboxKind::Rollback, Phase::Forward) => {
            Verdict::Changes
        }
        (InboxKind::Cancel | InboxKind::Terminate | InboxKind::Rollback, Phase::RollingBack) => {
            no_change("the execution is rolling back; this is added to the causes")
        }
        (InboxKind::Kill, Phase::Forward | Phase::RollingBack) => Verdict::Changes,
        (InboxKind::Pause, Phase::Forward | Phase::RollingBack) if run.pause.is_some() => {
            no_change("the execution is paused already")
        }
        (InboxKind::Pause, Phase::RollingBack) if run.status(true) == Status::Stuck => refused(
            "the execution is stuck, so there is nothing to pause; retry or waive its failed \
                 undos",
        ),
        (InboxKind::Pause, Phase::Forward | Phase::RollingBack) => Verdict::Changes,
        (InboxKind::Resume, Phase::Forward | Phase::RollingBack) => match &run.pause {
            Some(_) => Verdict::Changes,
            None => no_change("the execution is not paused"),
        },
        (InboxKind::RetryStep, Phase::Forward) => Verdict::of(step_refusal(run, ord)),
        (InboxKind::RetryStep, Phase::RollingBack) => refused(
            "the execution is rolling back, so no step is tried again; restart it when it is \
                 closed",
        ),
        (InboxKind::RetryUndo | InboxKind::WaiveUndo, _) if run.step(ord).is_none() => {
            Verdict::Refused(format!("there is no step {ord}"))
        }
        (InboxKind::RetryUndo, Phase::RollingBack) => Verdict::of(undo_refusal(run, ord)),
        (InboxKind::RetryUndo, Phase::Forward) => refused(FORWARD),
        (InboxKind::WaiveUndo, _) => Verdict::of(waiver_refusal(run, ord)),
        (InboxKind::Rollback, Phase::Closed(ending)) => after_close(run, ending),
        (
            InboxKind::Event
            | InboxKind::Cancel
            | InboxKind::Terminate
            | InboxKind::Kill
            | InboxKind::Pause
            | InboxKind::Resume
            | InboxKind::RetryStep
            | InboxKind::RetryUndo,
            Phase::Closed(ending),
        ) => refused(match ending {
            Ending::Succeeded(_) => {
                "the execution is closed; roll it back to undo what it did, or restart it"
            }
            Ending::Failed(_) | Ending::Cancelled | Ending::Terminated | Ending::Killed { .. } => {
                "the execution is closed; restart it to do it over"
            }
        }),
    }
}

/// Why no undo is retried or waived on the way forward.
const FORWARD: &str = "the execution is not rolling back; cancel it to undo what it did";

fn after_close(run: &Run, ending: &Ending) -> Verdict {
    let by_request = run.ended_by().is_some_and(|cause| cause.kind() == CauseKind::Requested);
    match ending {
        Ending::Succeeded(_) => Verdict::Changes,
        Ending::Cancelled if by_request => {
            Verdict::NoChange("the execution was rolled back on request before".into())
        }
        Ending::Failed(_) | Ending::Cancelled | Ending::Terminated => {
            let why = "the execution is closed, and its rollback is over: nothing is left to undo; \
                       restart it to do it over";
            Verdict::Refused(why.into())
        }
        Ending::Killed { .. } => {
            let why = "the execution was killed; what it left is on the list of open matters, to \
                       be settled by hand and waived";
            Verdict::Refused(why.into())
        }
    }
}

fn step_refusal(run: &Run, ord: Ordinal) -> Option<String> {
    match run.step(ord) {
        None => Some(format!("there is no step {ord}")),
        Some(step) if step.phase == StepPhase::Blocked && !step.dropped => None,
        Some(step) => {
            let blocked = listed(run, |step| step.phase == StepPhase::Blocked);
            Some(format!("step {} is not blocked; these are: {blocked}", step.key))
        }
    }
}

fn undo_refusal(run: &Run, ord: Ordinal) -> Option<String> {
    let step = run.step(ord)?;
    match step.undo.phase {
        UndoPhase::Failed => None,
        UndoPhase::Idle
        | UndoPhase::Due
        | UndoPhase::Running
        | UndoPhase::Waiting { .. }
        | UndoPhase::Succeeded
        | UndoPhase::NotNeeded
        | UndoPhase::Waived => {
            let failed = listed(run, |step| step.undo.phase == UndoPhase::Failed);
            Some(format!(
                "the undo of step {} has not failed; those of these steps have: {failed}",
                step.key
            ))
        }
    }
}

fn waiver_refusal(run: &Run, ord: Ordinal) -> Option<String> {
    let step = run.step(ord)?;
    match &run.phase {
        Phase::RollingBack if step.undo.may_be_waived() => None,
        Phase::Forward | Phase::RollingBack | Phase::Closed(_)
            if left_behind(run, ord) || run.is_left_by_kill(ord) =>
        {
            None
        }
        Phase::Forward => Some(FORWARD.into()),
        Phase::RollingBack => {
            let waivable = listed(run, |step| step.undo.may_be_waived());
            let key = &step.key;
            Some(format!(
                "the undo of step {key} neither failed nor waits to be started; those of these \
                 steps do: {waivable}"
            ))
        }
        Phase::Closed(_) => Some(format!(
            "the execution is closed, and no open matter is about step {}: nothing is left to waive",
            step.key
        )),
    }
}

fn left_behind(run: &Run, ord: u32) -> bool {
    run.attention.iter().any(|item| item.kind == AttentionKind::DidNotYield && item.ord == ord)
}

/// The steps to which the verb applies.
fn listed(run: &Run, applies: impl Fn(&Step) -> bool) -> String {
    let steps = run.steps().filter(|(_, step)| applies(step));
    let names: Vec<String> = steps.map(|(ord, step)| format!("{ord} ({})", step.key)).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

fn is_cancel(kind: InboxKind) -> bool {
    matches!(kind, InboxKind::Cancel | InboxKind::Terminate | InboxKind::Rollback)
}

/// Says why search attributes cannot be set, if they cannot.
pub fn attributes_refusal(run: &Run, changes: &[AttributeChange]) -> Option<String> {
    let mut names: BTreeSet<&str> = run.attributes.keys().map(String::as_str).collect();
    for change in changes {
        match change.value {
            Some(_) => names.insert(&change.name),
            None => names.remove(change.name.as_str()),
        };
    }
    (names.len() > ATTRIBUTES_MAX).then(|| {
        format!(
            "the execution would have {} search attributes; at most {ATTRIBUTES_MAX} are allowed: \
             take some away first",
            names.len()
        )
    })
}

/// What stands for an inbox row that cannot be read.
fn unreadable(inbox: u64, kind: InboxKind, error: &prost::DecodeError) -> VerbRefused {
    let (verb, why) = (kind.name().to_owned(), error.to_string());
    VerbRefused { inbox, verb, why, ..VerbRefused::default() }
}

impl Session {
    pub(super) fn copy_inbox(&mut self, row: InboxRow) {
        if row.kind == InboxKind::Event {
            return self.copy_event(row);
        }
        let (inbox, at_us) = (row.number, row.accepted_at_us);
        let verb = match Verb::decode(row.payload) {
            Ok(verb) => verb,
            Err(error) => return self.push(unreadable(inbox, row.kind, &error)),
        };
        let told_no_change = !row.changed && !is_cancel(row.kind);
        let refusal = match judge(&self.run, row.kind, verb.ord) {
            Verdict::Refused(why) => Some(why),
            Verdict::NoChange(why) if !is_cancel(row.kind) || self.is_closed() => Some(why),
            Verdict::Changes if told_no_change => {
                Some("it was answered that it changes nothing".to_owned())
            }
            // The bound may have been reached since the verb was accepted.
            Verdict::Changes if row.kind == InboxKind::SetAttributes => {
                attributes_refusal(&self.run, &verb.attributes)
            }
            Verdict::NoChange(_) | Verdict::Changes => None,
        };
        let Verb { by, reason, ord, shift_timers, attributes } = verb;
        if let Some(why) = refusal {
            let (verb, ord) = (row.kind.name().to_owned(), row.kind.is_about_step().then_some(ord));
            let refused = VerbRefused { inbox, verb, by, why, reason, ord, ..Default::default() };
            return self.push(refused);
        }
        match row.kind {
            InboxKind::Cancel => self.copy_cancel(CancelVerb::Cancel, by, reason, inbox),
            InboxKind::Terminate => {
                self.copy_cancel(CancelVerb::Terminate, by, reason, inbox);
            }
            InboxKind::Rollback => self.copy_cancel(CancelVerb::Rollback, by, reason, inbox),
            InboxKind::Kill => self.kill(by, reason, inbox),
            InboxKind::Pause => self.push(PauseRequested { at_us: Some(at_us), by, reason, inbox }),
            InboxKind::Resume => {
                let shift_us = if shift_timers { self.paused_us(at_us) } else { 0 };
                self.push(Resumed { by, shift_us, inbox, reason });
            }
            InboxKind::RetryStep => self.push(StepRetryRequested { ord, by, reason, inbox }),
            InboxKind::RetryUndo => self.push(UndoRetryRequested { ord, by, reason, inbox }),
            InboxKind::WaiveUndo => self.push(UndoWaived { ord, by, reason, inbox }),
            InboxKind::SetAttributes => {
                let (changes, origin) = (attributes, AttributeOrigin::Verb as i32);
                self.push(AttributesSet { changes, origin, by, reason, inbox });
            }
            InboxKind::Event => unreachable!("copied above"),
        }
    }

    fn copy_event(&mut self, row: InboxRow) {
        let InboxRow { number: inbox, kind, topic, payload, accepted_at_us, .. } = row;
        let EventMessage { by, event_id, payload } = match EventMessage::decode(payload) {
            Ok(message) => message,
            Err(error) => return self.push(unreadable(inbox, kind, &error)),
        };
        let refusal = match judge(&self.run, kind, 0) {
            Verdict::Changes if self.closes_in.is_some() => "the execution is ending".to_owned(),
            Verdict::Changes => {
                let event_type = topic;
                return self.push(EventReceived {
                    inbox,
                    event_id,
                    event_type,
                    payload,
                    accepted_at_us,
                    by,
                });
            }
            Verdict::NoChange(why) | Verdict::Refused(why) => why,
        };
        self.push(VerbRefused {
            inbox,
            verb: kind.name().to_owned(),
            by,
            why: format!("{topic:?}: {refusal}"),
            event_type: topic,
            event_id,
            ..VerbRefused::default()
        });
    }

    /// How long the run has been paused at `at_us`, in microseconds: from one acceptance to the
    /// other, whenever its owner came to read them.
    fn paused_us(&self, at_us: i64) -> i64 {
        self.run.pause.as_ref().map_or(0, |pause| at_us.saturating_sub(pause.since_us).max(0))
    }

    fn copy_cancel(&mut self, verb: CancelVerb, by: String, reason: String, inbox: u64) {
        let cause = RollbackCause::asked(verb, &by, &reason);
        self.push(CancelRequested { verb: verb as i32, by, reason, inbox });
        match &self.run.phase {
            Phase::Forward if self.closes_in.is_none() => self.cancelled(verb, cause),
            Phase::Closed(_) => self.undone_after_success(cause),
            Phase::Forward | Phase::RollingBack => {}
        }
    }

    /// Ends without a rollback; what is owed stays listed.
    fn kill(&mut self, by: String, reason: String, inbox: u64) {
        // Also what no plan holds: a run that would have succeeded is killed with all its effects.
        let left = self.run.plan();
        self.push(ExecutionKilled { by, reason, left, inbox });
        self.command(Command::DropAll);
    }
}
