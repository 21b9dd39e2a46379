//! Who runs workflows, and whether all is well.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who runs workflows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Workers {
    /// The workers that are known here. Empty for a guest of a store, who knows none.
    pub workers: Vec<Worker>,
}

/// A worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Worker {
    /// Its name, as it stands in journals.
    pub name: String,
    /// Whether it is part of the server.
    pub built_in: bool,
    /// What it runs.
    pub workflows: Vec<Workflow>,
}

/// A workflow in one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Workflow {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Whether the server does its work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// Whether it does.
    pub ready: bool,
    /// Why not; empty if it does.
    pub reasons: Vec<String>,
}
