//! Verbs: what a person asks of an execution.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Attribute;

/// Who asks, and why.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Who; stands in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why; stands in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A pause ends.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resume {
    /// Sleeps, waits and the deadline move by the time of the pause.
    #[serde(default)]
    pub shift_timers: bool,
    /// Who; stands in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why; stands in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Something is asked about one step.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StepAsked {
    /// Which.
    pub step: StepName,
    /// Who; stands in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why; stands in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A step, by its number or by its key: `name`, `name#2`, `branch/name#1`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "a step is named by its number, or by its key, for example \"charge-card#1\""
)]
pub enum StepName {
    /// By number.
    Ord(u32),
    /// By key.
    Key(String),
}

/// Search attributes are set, or taken away by `null`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetAttributes {
    /// By name.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub attributes: BTreeMap<String, Option<Attribute>>,
    /// Who; stands in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why; stands in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A closed execution is done over.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// The version of the workflow; the one that ran it last, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Who; stands in the journal of the new run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// The verb is durable, and will be carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Sent {
    /// Its number in the inbox of the run.
    pub number: u64,
    /// False when it is only noted, because the execution is already where it leads.
    pub changed: bool,
}

/// A run is gone, with all that was known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Deleted {
    /// The namespace of the execution.
    pub namespace: String,
    /// Its business id.
    pub id: String,
    /// The run that is gone.
    pub run_id: String,
    /// The newest run of the id that is still there; absent if there is none, and the id is free.
    pub still_there: Option<String>,
}
