//! How an execution came out, for checks.

use std::sync::Arc;

use backstitch_core::event::RollbackOutcome;
use backstitch_core::failure::Failure;
use backstitch_core::run::{Ask, Ending, Phase, Run};
use backstitch_core::status::Status;
use backstitch_core::undo::UndoPhase;
use serde::de::DeserializeOwned;

use super::super::names::is_named;
use crate::client::Attention;
use crate::handle::ExecutionStatus;
use crate::json;

/// How an execution came out in one world of an exploration. Given to its check.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its status: closed.
    pub status: Status,
    /// Its error, if it failed.
    pub failure: Option<Failure>,
    /// How its rollback came out.
    pub rollback: RollbackOutcome,
    /// The matters that are still open.
    pub attention: Vec<Attention>,
    /// The folded journal.
    pub run: Arc<Run>,
}

impl Outcome {
    pub(super) fn new(status: &ExecutionStatus, attention: Vec<Attention>) -> Outcome {
        let failure = match &status.run.phase {
            Phase::Closed(Ending::Failed(failure)) => Some(failure.clone()),
            _ => None,
        };
        Outcome {
            status: status.status,
            failure,
            rollback: status.rollback.outcome,
            attention,
            run: status.run.clone(),
        }
    }

    /// Whether it succeeded, and was not undone afterwards.
    pub fn succeeded(&self) -> bool {
        self.status == Status::Succeeded
    }

    /// What the workflow returned, also if that was undone later; `None` if it has not, or if it is
    /// not a `T`.
    pub fn output<T: DeserializeOwned>(&self) -> Option<T> {
        self.run.output.as_ref().and_then(|output| json::decode(output).ok())
    }

    /// Whether a step (by name, with or without its branches, or by key as it is printed) was undone.
    pub fn is_undone(&self, step: &str) -> bool {
        let asks = self.run.asks.iter();
        let mut steps = asks.filter_map(|ask| match ask {
            Ask::Step(found) => Some(found),
            _ => None,
        });
        steps.any(|found| is_named(&found.key, step) && found.undo.phase == UndoPhase::Succeeded)
    }
}
