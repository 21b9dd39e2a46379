//! Executions in a list.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Status;

/// One page of executions, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Listing {
    /// The executions. A page may have fewer than were asked for, and more may follow it.
    pub executions: Vec<Summary>,
    /// What to ask with for the next page; absent on the last one.
    pub next_cursor: Option<String>,
}

/// One run of an execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// The namespace of the id.
    pub namespace: String,
    /// The business id.
    pub id: String,
    /// The run.
    pub run_id: String,
    /// The workflow.
    pub workflow: String,
    /// The version in which it was started.
    pub version: String,
    /// The status that its owner has said last.
    pub status: Status,
    /// When it was started.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was closed.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub closed_at: Option<Timestamp>,
}
