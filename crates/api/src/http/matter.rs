//! Open matters.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What only a person can settle, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Matters {
    /// The open matters.
    pub attention: Vec<Matter>,
    /// What to ask with (`cursor`) for the next page; absent when there is none.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// An open matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Matter {
    /// The namespace of the execution.
    pub namespace: String,
    /// Its business id.
    pub id: String,
    /// The run.
    pub run_id: String,
    /// The number of the step that it is about; absent if it is the run itself.
    pub step: Option<u32>,
    /// `step_blocked`, `mismatch`, `foreign_wait`, `unreadable`, `undo_failed`, `did_not_yield` or
    /// `killed`.
    pub kind: String,
    /// A sentence for people.
    pub message: String,
    /// Since when; absent where that is not known (a run that could not be loaded).
    #[schema(value_type = Option<String>, format = DateTime)]
    pub opened_at: Option<Timestamp>,
}
