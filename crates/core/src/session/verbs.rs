//! Copying inbox rows into the journal, and what each verb does.

use prost::Message;

use crate::attention::AttentionKind;
use crate::event::{
    CancelRequested, CancelVerb, ExecutionKilled, PauseRequested, Resumed, RollbackCause,
    StepRetryRequested, UndoRetryRequested, UndoWaived, VerbRefused,
};
use crate::inbox::{InboxKind, InboxRow, Verb};
use crate::run::{Phase, Run};
use crate::session::{Command, Session};
use crate::step::StepPhase;
use crate::undo::UndoPhase;

/// Says why `verb` does not apply to the run as it stands; `None` if it does.
///
/// The same rule answers the caller at the door and is applied again when the row is copied.
pub fn refusal(run: &Run, kind: InboxKind, verb: &Verb) -> Option<String> {
    let closed = matches!(run.phase, Phase::Closed(_));
    let rolling_back = matches!(run.phase, Phase::RollingBack);
    match kind {
        _ if closed => Some("the execution is closed".into()),
        InboxKind::Cancel | InboxKind::Terminate | InboxKind::Rollback | InboxKind::Kill => None,
        InboxKind::Pause => match run.status(true) {
            crate::status::Status::Stuck => {
                Some("the execution is stuck, so there is nothing to pause".into())
            }
            _ if run.pause.is_some() => Some("the execution is paused already".into()),
            _ => None,
        },
        InboxKind::Resume if run.pause.is_none() => Some("the execution is not paused".into()),
        InboxKind::Resume => None,
        InboxKind::RetryStep => match run.step(verb.ord) {
            None => Some(format!("there is no step {}", verb.ord)),
            Some(_) if rolling_back => {
                Some("the execution is rolling back, so no step is tried again".into())
            }
            Some(step) if step.phase == StepPhase::Blocked && !step.dropped => None,
            Some(step) => Some(format!("step {} is not blocked; {}", step.key, blocked_steps(run))),
        },
        InboxKind::RetryUndo => match run.step(verb.ord) {
            None => Some(format!("there is no step {}", verb.ord)),
            Some(_) if !rolling_back => Some("the execution is not rolling back".into()),
            Some(step) if step.undo.phase == UndoPhase::Failed => None,
            Some(step) => Some(format!("the undo of step {} has not failed", step.key)),
        },
        InboxKind::WaiveUndo => match run.step(verb.ord) {
            None => Some(format!("there is no step {}", verb.ord)),
            Some(step) if rolling_back && step.undo.may_be_waived() => None,
            Some(_) if left_behind(run, verb.ord) => None,
            Some(_) if !rolling_back => Some("the execution is not rolling back".into()),
            Some(step) => Some(format!(
                "the undo of step {} neither failed nor waits to be started",
                step.key
            )),
        },
    }
}

fn left_behind(run: &Run, ord: u32) -> bool {
    run.attention.iter().any(|item| item.kind == AttentionKind::DidNotYield && item.ord == ord)
}

fn blocked_steps(run: &Run) -> String {
    let blocked = run.steps().filter(|(_, step)| step.phase == StepPhase::Blocked);
    let names: Vec<String> = blocked.map(|(ord, step)| format!("{ord} ({})", step.key)).collect();
    match names.is_empty() {
        true => "no step is".into(),
        false => format!("these are: {}", names.join(", ")),
    }
}

impl Session {
    pub(super) fn copy_inbox(&mut self, row: InboxRow) {
        let inbox = row.number;
        let verb = match Verb::decode(row.payload) {
            Ok(verb) => verb,
            Err(error) => return self.refuse(inbox, row.kind, "", error.to_string()),
        };
        if let Some(why) = refusal(&self.run, row.kind, &verb) {
            return self.refuse(inbox, row.kind, &verb.by, why);
        }
        let Verb { by, reason, ord, shift_us } = verb;
        match row.kind {
            InboxKind::Cancel => self.copy_cancel(CancelVerb::Cancel, by, reason, inbox),
            InboxKind::Terminate => {
                self.copy_cancel(CancelVerb::Terminate, by, reason, inbox);
            }
            InboxKind::Rollback => self.copy_cancel(CancelVerb::Rollback, by, reason, inbox),
            InboxKind::Kill => self.kill(by, reason, inbox),
            InboxKind::Pause => self.push(PauseRequested { by, reason, inbox }),
            InboxKind::Resume => self.push(Resumed { by, shift_us, inbox }),
            InboxKind::RetryStep => self.push(StepRetryRequested { ord, by, reason, inbox }),
            InboxKind::RetryUndo => self.push(UndoRetryRequested { ord, by, reason, inbox }),
            InboxKind::WaiveUndo => self.push(UndoWaived { ord, by, reason, inbox }),
        }
    }

    fn refuse(&mut self, inbox: u64, kind: InboxKind, by: &str, why: String) {
        // A closed run takes no rows; its inbox is left as it is.
        if !self.is_closed() {
            let verb = kind.name().to_owned();
            self.push(VerbRefused { inbox, verb, by: by.to_owned(), why });
        }
    }

    fn copy_cancel(&mut self, verb: CancelVerb, by: String, reason: String, inbox: u64) {
        let decided = !matches!(self.run.phase, Phase::Forward) || self.closes_in.is_some();
        let cause = RollbackCause::asked(verb, &by, &reason);
        self.push(CancelRequested { verb: verb as i32, by, reason, inbox });
        if !decided {
            self.cancelled(verb, cause);
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
