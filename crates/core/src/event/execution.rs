//! The begin and the ends of a run.

use std::collections::BTreeMap;

use crate::failure::Failure;
use crate::id::{Ordinal, RunId};
use crate::payload::Payload;

/// The rules of delivery under which new journals are written, and the newest that are understood.
pub const SEMANTICS: u32 = 1;

/// The first event of every journal. Fields beyond what is used today are there from format 1.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecutionStarted {
    /// The namespace of the id.
    #[prost(string, tag = "1")]
    pub namespace: String,
    /// The business id, chosen by the caller.
    #[prost(string, tag = "2")]
    pub id: String,
    /// The id of this run, 16 bytes.
    #[prost(bytes = "vec", tag = "3")]
    pub run_id: Vec<u8>,
    /// The name of the workflow.
    #[prost(string, tag = "4")]
    pub workflow: String,
    /// The version of the workflow asked for.
    #[prost(string, tag = "5")]
    pub version: String,
    /// The rules of delivery under which the journal is written and replayed ([`SEMANTICS`]).
    #[prost(uint32, tag = "6")]
    pub semantics: u32,
    /// The seed of every random number of the run.
    #[prost(fixed64, tag = "7")]
    pub seed: u64,
    /// The input.
    #[prost(message, required, tag = "8")]
    pub input: Payload,
    /// SHA-256 of the input before any codec.
    #[prost(bytes = "vec", tag = "9")]
    pub input_digest: Vec<u8>,
    /// When the run is rolled back for lateness.
    #[prost(int64, optional, tag = "10")]
    pub deadline_at_us: Option<i64>,
    /// The queue whose workers may run it.
    #[prost(string, tag = "11")]
    pub queue: String,
    /// Larger goes first.
    #[prost(sint32, tag = "12")]
    pub priority: i32,
    /// Not dispatched before.
    #[prost(int64, optional, tag = "13")]
    pub not_before_us: Option<i64>,
    /// Who started it.
    #[prost(string, tag = "14")]
    pub started_by: String,
    /// The caller's id of the request.
    #[prost(string, tag = "15")]
    pub request_id: String,
    /// The run that started this one as its child.
    #[prost(bytes = "vec", optional, tag = "16")]
    pub parent: Option<Vec<u8>>,
    /// The run at the root of the tree of children.
    #[prost(bytes = "vec", optional, tag = "17")]
    pub root: Option<Vec<u8>>,
    /// The closed run that this one does over.
    #[prost(bytes = "vec", optional, tag = "18")]
    pub restarted_from: Option<Vec<u8>>,
    /// The run that this one carries on.
    #[prost(bytes = "vec", optional, tag = "19")]
    pub continued_from: Option<Vec<u8>>,
    /// The schedule that started it.
    #[prost(string, optional, tag = "20")]
    pub schedule: Option<String>,
    /// The key under which running executions are limited.
    #[prost(string, optional, tag = "21")]
    pub limit_key: Option<String>,
    /// How long the closed run is kept.
    #[prost(uint64, optional, tag = "22")]
    pub retention_us: Option<u64>,
    /// Room for what later versions add.
    #[prost(btree_map = "string, message", tag = "23")]
    pub extensions: BTreeMap<String, Payload>,
    /// The run of the same id that has to be closed before this one is dispatched.
    #[prost(bytes = "vec", optional, tag = "24")]
    pub after: Option<Vec<u8>>,
}

impl ExecutionStarted {
    /// The id of the run.
    ///
    /// # Panics
    /// If the event holds no 16 bytes; the fold refuses such an event.
    pub fn run_id(&self) -> RunId {
        RunId::from_slice(&self.run_id).expect("the fold has checked the length")
    }
}

/// The code returned a value, and nothing is owed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecutionSucceeded {
    /// What the code returned.
    #[prost(message, required, tag = "1")]
    pub output: Payload,
}

/// The run failed, and nothing is owed any more.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecutionFailed {
    /// The error of the run: the original one, whatever the rollback did.
    #[prost(message, required, tag = "1")]
    pub failure: Failure,
}

/// The run was cancelled (or rolled back on request), and nothing is owed any more.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecutionCancelled {}

/// The run was terminated, and nothing is owed any more.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecutionTerminated {}

/// The run was ended without a rollback; an attention item lists what is left.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecutionKilled {
    /// Who did it.
    #[prost(string, tag = "1")]
    pub by: String,
    /// Why.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// The steps whose undo is owed and will not run.
    #[prost(uint32, repeated, tag = "3")]
    pub left: Vec<Ordinal>,
    /// The number of the inbox row.
    #[prost(uint64, tag = "4")]
    pub inbox: u64,
}
