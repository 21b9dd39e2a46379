//! Sending events.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Value;

/// An event that is to be sent. Its id is the `Idempotency-Key` of the request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendEvent {
    /// Its type; what waits ask for.
    #[serde(rename = "type")]
    pub event_type: String,
    /// What it says; `null` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// Who sends it; stands in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// The event is durable, and kept until a wait takes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventAccepted {
    /// Its number in the inbox of the run.
    pub number: u64,
    /// When it was accepted.
    #[schema(value_type = String, format = DateTime)]
    pub accepted_at: Timestamp,
    /// False when the same event had been accepted before.
    pub first: bool,
}
