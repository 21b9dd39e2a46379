//! The journal of a run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Attribute, Failure, Value};

/// One page of a journal, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JournalPage {
    /// The rows.
    pub rows: Vec<JournalRow>,
    /// What to ask with (`after`) for the next page; absent when there was none at the time.
    pub next_after: Option<u64>,
}

/// One row: what was made durable at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JournalRow {
    /// 1, 2, 3 …
    pub seq: u64,
    /// When it became durable.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Whether it is a turn of the code.
    pub turn: bool,
    /// The number of the ownership under which it was written.
    pub fence: u64,
    /// The worker that ran the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The version of the workflow that ran the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What happened.
    pub events: Vec<Event>,
}

macro_rules! event {
    ($($(#[$attribute:meta])* $field:ident: $type:ty,)*) => {
        /// What happened. Besides `kind` an event has those of the fields that belong to its kind
        /// (docs/journal.md).
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
        pub struct Event {
            /// For example `step_succeeded`.
            pub kind: String,
            $(
                $(#[$attribute])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
        }
    };
}

event! {
    /// The step, the sleep or the wait, by its number.
    ord: u32,
    /// Its identity, where it is named first.
    key: String,
    /// Where in the source it was built.
    place: String,
    /// The attempt, from 1.
    attempt: u32,
    /// Whether the step has an undo.
    has_undo: bool,
    /// The input, the output, what an event says, or what was published.
    value: Value,
    /// Why it failed.
    failure: Failure,
    /// When it ended, or was accepted.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Timestamp,
    /// When it is due, or over.
    #[schema(value_type = Option<String>, format = DateTime)]
    due: Timestamp,
    /// Who.
    by: String,
    /// The reason that was given.
    reason: String,
    /// Why.
    why: String,
    /// What kind of block, verb or outcome.
    what: String,
    /// A name: of a patch, of a published value.
    name: String,
    /// The number of the inbox row.
    inbox: u64,
    /// The type of an event.
    event_type: String,
    /// The sender's id of an event.
    event_id: String,
    /// The types that a wait takes.
    types: Vec<String>,
    /// The steps to undo, in order; or those that are left.
    plan: Vec<u32>,
    /// Why a rollback began.
    causes: Vec<Cause>,
    /// How the run ends when the rollback is over.
    ends_in: String,
    /// By how many milliseconds instants move.
    shift_ms: i64,
    /// Whether the rollback does not go past it.
    holds: bool,
    /// Search attributes that were set, or taken away (`null`).
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    attributes: BTreeMap<String, Option<Attribute>>,
}

/// One reason for a rollback.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cause {
    /// `failed`, `cancelled`, `terminated`, `requested`, `deadline` or `dropped`.
    pub kind: String,
    /// The error, if the code failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Who asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why they asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
