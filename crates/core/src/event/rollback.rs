//! The way back. Undo events mirror step events in name and shape.

use crate::event::control::CancelVerb;
use crate::failure::Failure;
use crate::id::Ordinal;
use crate::payload::Payload;
use crate::retry::UndoPolicy;

/// Why a run is rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum CauseKind {
    /// The code failed.
    Failed = 0,
    /// Cancelled from outside.
    Cancelled = 1,
    /// Terminated from outside.
    Terminated = 2,
    /// A person asked for it.
    Requested = 3,
    /// Its deadline passed.
    Deadline = 4,
    /// The code succeeded and has dropped steps that are owed.
    Dropped = 5,
}

/// One reason for a rollback.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RollbackCause {
    /// Which.
    #[prost(enumeration = "CauseKind", tag = "1")]
    pub kind: i32,
    /// The error, for [`CauseKind::Failed`].
    #[prost(message, optional, tag = "2")]
    pub failure: Option<Failure>,
    /// Who asked, if somebody did.
    #[prost(string, tag = "3")]
    pub by: String,
    /// Why they asked.
    #[prost(string, tag = "4")]
    pub reason: String,
}

impl RollbackCause {
    /// The code failed with `failure`.
    pub fn failed(failure: Failure) -> RollbackCause {
        RollbackCause {
            kind: CauseKind::Failed as i32,
            failure: Some(failure),
            ..RollbackCause::default()
        }
    }

    /// Somebody asked for it.
    pub fn asked(verb: CancelVerb, by: &str, reason: &str) -> RollbackCause {
        let kind = match verb {
            CancelVerb::Cancel => CauseKind::Cancelled,
            CancelVerb::Terminate => CauseKind::Terminated,
            CancelVerb::Rollback => CauseKind::Requested,
        };
        RollbackCause { kind: kind as i32, failure: None, by: by.into(), reason: reason.into() }
    }
}

/// How the run ends when the rollback is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum EndKind {
    /// `ExecutionFailed` with the failure.
    Failed = 0,
    /// `ExecutionCancelled`.
    Cancelled = 1,
    /// `ExecutionTerminated`.
    Terminated = 2,
    /// `ExecutionSucceeded` with the output.
    Succeeded = 3,
}

/// How the run ends, with what it ends.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EndsIn {
    /// Which end.
    #[prost(enumeration = "EndKind", tag = "1")]
    pub kind: i32,
    /// The failure, for [`EndKind::Failed`].
    #[prost(message, optional, tag = "2")]
    pub failure: Option<Failure>,
    /// The output, for [`EndKind::Succeeded`].
    #[prost(message, optional, tag = "3")]
    pub output: Option<Payload>,
}

/// The decision to roll back. From here on nothing runs forward in this run.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RollbackStarted {
    /// The number of the rollback in the run, from 1.
    #[prost(uint32, tag = "1")]
    pub no: u32,
    /// The scope that is rolled back; empty for the whole run. Room for partial rollbacks.
    #[prost(string, repeated, tag = "2")]
    pub scope: Vec<String>,
    /// Why; the first one decided.
    #[prost(message, repeated, tag = "3")]
    pub causes: Vec<RollbackCause>,
    /// The steps to undo, in the order in which they are undone.
    #[prost(uint32, repeated, tag = "4")]
    pub plan: Vec<Ordinal>,
    /// How the run ends.
    #[prost(message, required, tag = "5")]
    pub ends_in: EndsIn,
}

/// An attempt of an undo begins as soon as this is durable.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UndoStarted {
    /// The step that is undone.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// From 1; goes on over operators' retries and further rollbacks.
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
    /// The policy, when it differs from the last one recorded.
    #[prost(message, optional, tag = "3")]
    pub policy: Option<UndoPolicy>,
}

/// An attempt of an undo ended without success.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UndoAttemptFailed {
    /// The step that is undone.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// The attempt.
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
    /// Why.
    #[prost(message, required, tag = "3")]
    pub failure: Failure,
    /// When the next attempt is due; absent if there is none.
    #[prost(int64, optional, tag = "4")]
    pub retry_at_us: Option<i64>,
    /// When the attempt ended.
    #[prost(int64, tag = "5")]
    pub finished_us: i64,
}

/// The step is undone.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UndoSucceeded {
    /// The step that is undone.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// The attempt that did it.
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
    /// When it ended.
    #[prost(int64, tag = "3")]
    pub finished_us: i64,
}

/// The undo failed for good: a debt that waits for a person.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UndoFailed {
    /// The step that is owed.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// Why.
    #[prost(message, required, tag = "2")]
    pub failure: Failure,
    /// The rollback does not go past this undo until it is tried again or waived.
    #[prost(bool, tag = "3")]
    pub holds: bool,
}

/// The step need not be undone.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UndoNotNeeded {
    /// The step.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// Why not.
    #[prost(string, tag = "2")]
    pub why: String,
}

/// An operator asked for a failed undo to be tried again, with a new budget.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UndoRetryRequested {
    /// The step that is owed.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// Who asked.
    #[prost(string, tag = "2")]
    pub by: String,
    /// Why.
    #[prost(string, tag = "3")]
    pub reason: String,
    /// The number of the inbox row.
    #[prost(uint64, tag = "4")]
    pub inbox: u64,
}

/// A named person took the debt off the run.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UndoWaived {
    /// The step that was owed.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// Who waived it.
    #[prost(string, tag = "2")]
    pub by: String,
    /// Why.
    #[prost(string, tag = "3")]
    pub reason: String,
    /// The number of the inbox row.
    #[prost(uint64, tag = "4")]
    pub inbox: u64,
}

/// How a rollback came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum RollbackOutcome {
    /// Nothing was owed.
    None = 0,
    /// Each undo succeeded or was not needed.
    Complete = 1,
    /// One was waived, or left by kill.
    Incomplete = 2,
}

impl RollbackOutcome {
    /// The name in JSON and tables, in snake_case.
    pub fn name(self) -> &'static str {
        match self {
            RollbackOutcome::None => "none",
            RollbackOutcome::Complete => "complete",
            RollbackOutcome::Incomplete => "incomplete",
        }
    }
}

/// Nothing is owed any more. Stands in the same row as the closing event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RollbackFinished {
    /// The number of the rollback.
    #[prost(uint32, tag = "1")]
    pub no: u32,
    /// How it came out.
    #[prost(enumeration = "RollbackOutcome", tag = "2")]
    pub outcome: i32,
}
