//! Steps: asked for, started, ended.

use crate::failure::Failure;
use crate::id::{Key, Ordinal};
use crate::payload::Payload;
use crate::retry::{StepPolicy, UndoPolicy};

/// A registered undo that any worker can run without the workflow's code. Not used yet.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NamedUndo {
    /// The name under which it is registered.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version.
    #[prost(string, tag = "2")]
    pub version: String,
    /// The queue whose workers run it.
    #[prost(string, tag = "3")]
    pub queue: String,
    /// Its input, besides the output of the step.
    #[prost(message, optional, tag = "4")]
    pub input: Option<Payload>,
}

/// The undo that a step declares: a closure rebuilt by replay, or a registered one.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UndoSpec {
    /// How it is tried.
    #[prost(message, required, tag = "1")]
    pub policy: UndoPolicy,
    /// Absent for a closure.
    #[prost(message, optional, tag = "2")]
    pub named: Option<NamedUndo>,
}

/// The code asked for a step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StepScheduled {
    /// The number that later events carry.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// Its identity.
    #[prost(message, required, tag = "2")]
    pub key: Key,
    /// Where in the source it was built: `file:line:column`.
    #[prost(string, tag = "3")]
    pub place: String,
    /// The policy, in full.
    #[prost(message, required, tag = "4")]
    pub policy: StepPolicy,
    /// The undo, if it has one.
    #[prost(message, optional, tag = "5")]
    pub undo: Option<UndoSpec>,
    /// Data for a worker that has no closure.
    #[prost(message, optional, tag = "6")]
    pub input: Option<Payload>,
    /// An earlier name of the step.
    #[prost(string, optional, tag = "7")]
    pub alias: Option<String>,
    /// The queue whose workers run it.
    #[prost(string, optional, tag = "8")]
    pub queue: Option<String>,
}

/// An attempt begins as soon as this is durable.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StepStarted {
    /// The step.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// From 1; goes on over operators' retries.
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
    /// The policy, when it differs from the last one recorded.
    #[prost(message, optional, tag = "3")]
    pub policy: Option<StepPolicy>,
}

/// The outcome of a step: its output.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StepSucceeded {
    /// The step.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// The attempt that made it.
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
    /// What the body returned.
    #[prost(message, required, tag = "3")]
    pub output: Payload,
    /// When the body ended.
    #[prost(int64, tag = "4")]
    pub finished_us: i64,
}

/// An attempt ended without an output. Not an outcome by itself.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StepAttemptFailed {
    /// The step.
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

/// The outcome of a step: it failed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StepFailed {
    /// The step.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// The failure of its last attempt.
    #[prost(message, required, tag = "2")]
    pub failure: Failure,
}

/// The code dropped the step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StepCancelRequested {
    /// The step.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
}

/// Why an attempt was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum AbandonWhy {
    /// Its body was dropped on request.
    Cancelled = 0,
    /// The process died.
    Lost = 1,
    /// Its body did not yield in time; its effect may land later.
    DidNotYield = 2,
}

/// The step is no longer in flight and will have no outcome.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StepAbandoned {
    /// The step.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// Why.
    #[prost(enumeration = "AbandonWhy", tag = "2")]
    pub why: i32,
    /// The attempt that was given up. 0 in rows of versions that did not write it.
    #[prost(uint32, tag = "3")]
    pub attempt: u32,
    /// When its body ended; absent for one that never began, or whose end nobody saw.
    #[prost(int64, optional, tag = "4")]
    pub finished_us: Option<i64>,
}

/// An operator asked for a blocked step to be tried again, with a new budget.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StepRetryRequested {
    /// The step.
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
