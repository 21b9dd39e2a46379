//! What came of a run, in one piece: small enough to be sent to whoever waits for it.

use crate::event::{CancelVerb, CauseKind, RollbackCause, RollbackOutcome};
use crate::failure::Failure;
use crate::payload::Payload;
use crate::run::{Ending, Phase, RollbackProgress, Run};
use crate::status::Status;

/// What came of a run that is closed, or stuck; of one that is neither, how far it is.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Outcome {
    /// How it stands.
    #[prost(enumeration = "Status", tag = "1")]
    pub status: i32,
    /// What the code returned, if it succeeded.
    #[prost(message, optional, tag = "2")]
    pub output: Option<Payload>,
    /// Why it failed, or why the rollback was begun that is stuck.
    #[prost(message, optional, tag = "3")]
    pub failure: Option<Failure>,
    /// Who cancelled, terminated or killed it, and why.
    #[prost(message, optional, tag = "4")]
    pub ended_by: Option<RollbackCause>,
    /// Whether it was killed, with debts left.
    #[prost(bool, tag = "5")]
    pub killed: bool,
    /// How its last rollback came out, or would with what is known now.
    #[prost(enumeration = "RollbackOutcome", tag = "6")]
    pub rollback: i32,
    /// Undos that succeeded or were not needed.
    #[prost(uint32, tag = "7")]
    pub undos_done: u32,
    /// Undos in the plan.
    #[prost(uint32, tag = "8")]
    pub undos_of: u32,
    /// Undos that failed for good and are still owed.
    #[prost(uint32, tag = "9")]
    pub undos_failed: u32,
}

impl Outcome {
    /// How far the last rollback is.
    pub fn rollback_progress(&self) -> RollbackProgress {
        RollbackProgress {
            outcome: self.rollback(),
            done: self.undos_done,
            of: self.undos_of,
            failed: self.undos_failed,
        }
    }

    /// Whether somebody has asked that it be undone.
    pub fn was_rolled_back_on_request(&self) -> bool {
        self.ended_by.as_ref().is_some_and(|by| by.kind() == CauseKind::Requested)
    }

    /// A sentence for people.
    pub fn sentence(&self, id: &str) -> String {
        let why = self.failure.as_ref().map(|failure| format!(": {failure}")).unwrap_or_default();
        let back = match self.rollback() {
            RollbackOutcome::None => "",
            RollbackOutcome::Complete => " (everything was undone)",
            RollbackOutcome::Incomplete => " (the rollback is incomplete)",
        };
        let asked = match &self.ended_by {
            Some(RollbackCause { by, reason, .. }) if reason.is_empty() => format!(" by {by}"),
            Some(RollbackCause { by, reason, .. }) => format!(" by {by} ({reason})"),
            None => String::new(),
        };
        let what = match self.status() {
            Status::Succeeded => "succeeded".to_owned(),
            Status::Failed => format!("failed{why}{back}"),
            Status::Cancelled if self.was_rolled_back_on_request() => {
                format!("was rolled back{asked}{back}")
            }
            Status::Cancelled => format!("was cancelled{asked}{back}"),
            Status::Terminated if self.killed => format!("was killed{asked}{back}"),
            Status::Terminated => format!("was terminated{asked}{back}"),
            Status::Stuck => format!(
                "is stuck{why}: {} of {} undos failed for good; retry or waive them",
                self.undos_failed, self.undos_of
            ),
            status @ (Status::Pending
            | Status::Running
            | Status::Suspended
            | Status::Paused
            | Status::Blocked
            | Status::RollingBack) => {
                format!("is not over: it is {}", status.name().replace('_', " "))
            }
        };
        format!("execution {id:?} {what}")
    }
}

impl Run {
    /// Why it failed, or why it is rolled back, if that is because of a failure.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.phase {
            Phase::Closed(Ending::Failed(failure)) => Some(failure),
            Phase::RollingBack => self.rollback.as_ref()?.causes.first()?.failure.as_ref(),
            Phase::Closed(
                Ending::Succeeded(_)
                | Ending::Cancelled
                | Ending::Terminated
                | Ending::Killed { .. },
            )
            | Phase::Forward => None,
        }
    }

    /// What came of it, when its status is `status`.
    pub fn outcome(&self, status: Status) -> Outcome {
        let RollbackProgress { outcome, done, of, failed } = self.rollback_progress();
        let mut told = Outcome {
            status: status as i32,
            failure: self.failure().cloned(),
            ended_by: self.ended_by(),
            rollback: outcome as i32,
            undos_done: done,
            undos_of: of,
            undos_failed: failed,
            ..Outcome::default()
        };
        match &self.phase {
            Phase::Closed(Ending::Succeeded(output)) => told.output = Some(output.clone()),
            Phase::Closed(Ending::Killed { by, reason, .. }) => {
                told.killed = true;
                told.ended_by = Some(RollbackCause::asked(CancelVerb::Terminate, by, reason));
            }
            Phase::Closed(Ending::Failed(_) | Ending::Cancelled | Ending::Terminated)
            | Phase::Forward
            | Phase::RollingBack => {}
        }
        told
    }
}
