//! What an execution looks like.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Attribute, Failure, Matter, Value};

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Could go on, and no worker has it.
    Pending,
    /// A worker has it and something runs.
    Running,
    /// Waits for an instant, an event or a retry.
    Suspended,
    /// Held by a person.
    Paused,
    /// Waits for a person to settle a block.
    Blocked,
    /// Pays the undos it owes.
    RollingBack,
    /// Owes something, and nothing can run until a person settles it.
    Stuck,
    /// Closed: the code returned a value.
    Succeeded,
    /// Closed: the code failed.
    Failed,
    /// Closed: cancelled, or rolled back on request.
    Cancelled,
    /// Closed: terminated or killed.
    Terminated,
}

macro_rules! same_statuses {
    ($($name:ident)*) => {
        impl From<backstitch_core::status::Status> for Status {
            fn from(status: backstitch_core::status::Status) -> Status {
                match status { $(backstitch_core::status::Status::$name => Status::$name,)* }
            }
        }

        impl From<Status> for backstitch_core::status::Status {
            fn from(status: Status) -> backstitch_core::status::Status {
                match status { $(Status::$name => backstitch_core::status::Status::$name,)* }
            }
        }
    };
}

same_statuses! {
    Pending Running Suspended Paused Blocked RollingBack Stuck Succeeded Failed Cancelled Terminated
}

/// The newest run of an execution, in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Execution {
    /// The namespace of the id.
    pub namespace: String,
    /// The business id.
    pub id: String,
    /// The run.
    pub run_id: String,
    /// The workflow.
    pub workflow: String,
    /// The version that ran it last.
    pub version: String,
    /// What it is doing.
    pub status: Status,
    /// A pause was asked for, and what is in flight has not ended yet.
    pub pausing: bool,
    /// Who started it.
    pub started_by: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was closed.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub closed_at: Option<Timestamp>,
    /// When it is rolled back for lateness.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub deadline_at: Option<Timestamp>,
    /// When it is deleted, once it is closed; absent if it is kept.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// What it was given.
    pub input: Value,
    /// What it returned, also if that was rolled back later.
    pub output: Option<Value>,
    /// Its error, once it is decided: also while it is rolled back.
    pub failure: Option<Failure>,
    /// How far its rollback is.
    pub rollback: Rollback,
    /// What is held until a person (or the right code) comes.
    pub blocks: Vec<Block>,
    /// What it waits for.
    pub waits_for: Vec<WaitsFor>,
    /// Its steps, in the order in which they were asked for; of very many the newest ones.
    pub steps: Vec<Step>,
    /// How many steps there are.
    pub steps_total: u64,
    /// Its search attributes.
    pub attributes: BTreeMap<String, Attribute>,
    /// What it publishes.
    pub published: BTreeMap<String, Value>,
    /// Open matters that only a person can settle.
    pub attention: Vec<Matter>,
    /// The last row of its journal.
    pub seq: u64,
}

/// How far a rollback is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Rollback {
    /// How it came out, or stands: `none` (nothing was owed), `complete` (each undo succeeded or was
    /// not needed), `incomplete` (one was waived, or left by a kill, or the rollback is not over).
    pub outcome: String,
    /// Undos that succeeded or were not needed.
    pub done: u32,
    /// Undos in the plan.
    pub of: u32,
    /// Undos that failed for good and are still owed.
    pub failed: u32,
}

/// What is held, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Block {
    /// `step`, `mismatch`, `foreign_wait` or `unreadable`.
    pub what: String,
    /// The step, if it is one.
    pub step: Option<String>,
    /// Why.
    pub failure: Failure,
}

/// What a run that is not running waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum WaitsFor {
    /// A worker that knows this workflow in this version.
    Worker {
        /// The workflow.
        workflow: String,
        /// The version.
        version: String,
    },
    /// The run of the same id that is still open.
    EarlierRun {
        /// That run.
        run_id: String,
    },
    /// An instant: a sleep, or the retry of a step or an undo.
    Instant {
        /// The step or the sleep.
        name: String,
        /// When.
        #[schema(value_type = String, format = DateTime)]
        at: Timestamp,
    },
    /// An event of one of these types.
    Event {
        /// The wait.
        name: String,
        /// The types.
        types: Vec<String>,
        /// Until when; absent for a wait without end.
        #[schema(value_type = Option<String>, format = DateTime)]
        until: Option<Timestamp>,
    },
    /// A step whose attempt is in flight.
    Step {
        /// The step.
        name: String,
    },
    /// A person.
    Person,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Step {
    /// Its number in the run.
    pub ord: u32,
    /// Its identity, as verbs take it: `name#count`.
    pub key: String,
    /// `scheduled`, `running`, `waiting`, `blocked`, `succeeded`, `failed` or `abandoned`.
    pub phase: String,
    /// The number of its last attempt.
    pub attempts: u32,
    /// When the next attempt is due.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub retry_at: Option<Timestamp>,
    /// What it returned; left out if it is large, and then only in the journal.
    pub output: Option<Value>,
    /// How large that is, in bytes.
    pub output_bytes: Option<u64>,
    /// The last failure.
    pub failure: Option<Failure>,
    /// Its undo, if it has one.
    pub undo: Option<Undo>,
}

/// The undo of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Undo {
    /// `idle`, `due`, `running`, `waiting`, `failed`, `succeeded`, `not_needed` or `waived`.
    pub phase: String,
    /// The number of its last attempt.
    pub attempts: u32,
    /// When the next attempt is due.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub retry_at: Option<Timestamp>,
    /// The last failure.
    pub failure: Option<Failure>,
}
