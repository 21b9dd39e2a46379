//! Starting executions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Attribute, Status, Value};

/// What is to be started.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartExecution {
    /// The business id: the same one with the same workflow and input is the same execution.
    pub id: String,
    /// The workflow.
    pub workflow: String,
    /// Its version; may be left out when the workers that are there have it in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its input; `null` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The namespace of the id, also as a query parameter; `default` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// When the id is in use by an open run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Conflict>,
    /// When the last run of the id is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse: Option<Reuse>,
    /// It is rolled back if it is not over so long after its start, for example `2 days`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// How long it is kept after it was closed, for example `90 days`, or `forever`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<String>,
    /// Its first search attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Attribute>,
    /// Who starts it; stands in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// When the id is in use by an open run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Conflict {
    /// It is the answer, if its workflow and input are the same.
    UseExisting,
    /// An error.
    Fail,
    /// It is terminated, and a new run begins when it has ended.
    Terminate,
}

/// When the last run of the id is closed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// As for an open one: the same start is answered with it.
    Reject,
    /// A new run, if the last one did not succeed.
    AllowIfFailed,
    /// A new run.
    Allow,
}

/// The execution that a start, or a restart, has made or found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Started {
    /// The namespace of the id.
    pub namespace: String,
    /// The business id.
    pub id: String,
    /// The run.
    pub run_id: String,
    /// Whether this request made it.
    pub created: bool,
    /// Its status, as it was found.
    pub status: Status,
}
