//! How an execution came out.

use backstitch_core::failure::{Class, Effect, Failure as Told, Origin};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Rollback, Status, Value};

/// The result of an execution, as far as there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Outcome {
    /// The namespace of the id.
    pub namespace: String,
    /// The business id.
    pub id: String,
    /// The run.
    pub run_id: String,
    /// What it is doing.
    pub status: Status,
    /// Whether it is closed, or stuck in its rollback; if not, ask again.
    pub settled: bool,
    /// What it returned, if it succeeded.
    pub output: Option<Value>,
    /// Its error.
    pub failure: Option<Failure>,
    /// How its rollback came out, or stands.
    pub rollback: Rollback,
    /// A sentence for people.
    pub message: String,
}

/// Why an attempt, a step, an undo or an execution did not succeed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// `transient`, `permanent` or `attention`.
    pub class: String,
    /// `body`, `timeout`, `panic`, `lost`, `interrupted`, `limit`, `decode` or `engine`.
    pub origin: String,
    /// Whether its effect may have happened.
    pub effect_possible: bool,
    /// A short stable name of its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// A code for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// A sentence for people.
    pub message: String,
    /// What its owner wants to find again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The errors below it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

impl From<&Told> for Failure {
    fn from(told: &Told) -> Failure {
        let class = match told.class() {
            Class::Transient => "transient",
            Class::Permanent => "permanent",
            Class::Attention => "attention",
        };
        let origin = match told.origin() {
            Origin::Body => "body",
            Origin::Timeout => "timeout",
            Origin::Panic => "panic",
            Origin::Lost => "lost",
            Origin::Interrupted => "interrupted",
            Origin::Limit => "limit",
            Origin::Decode => "decode",
            Origin::Engine => "engine",
        };
        Failure {
            class: class.into(),
            origin: origin.into(),
            effect_possible: told.effect() == Effect::Possible,
            type_name: told.type_name.clone(),
            code: Some(told.code.clone()).filter(|code| !code.is_empty()),
            message: told.message.clone(),
            details: told.details.as_ref().map(Value::of),
            causes: told.causes.iter().map(|cause| cause.message.clone()).collect(),
        }
    }
}
