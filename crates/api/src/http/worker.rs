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
    /// Whether it has a connection. A worker without one still has its runs until its leases end.
    pub connected: bool,
    /// Whether it takes no more runs, because it is being stopped.
    pub draining: bool,
    /// What it is written with.
    pub sdk: String,
    /// How many runs it takes at a time; absent for the worker of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<usize>,
    /// How many it has; absent for the worker of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leased: Option<usize>,
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
