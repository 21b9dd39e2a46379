//! The handle of one execution.

use std::marker::PhantomData;
use std::sync::Arc;

use backstitch_core::event::{BlockKind, RollbackOutcome};
use backstitch_core::failure::Failure;
use backstitch_core::id::RunId;
use backstitch_core::inbox::InboxKind;
use backstitch_core::row::Row;
use backstitch_core::run::{Ending, Phase, RollbackProgress, Run, WaitsFor};
use backstitch_core::status::Status;
use backstitch_engine::Engine;
use backstitch_store::RunNo;
use serde::de::DeserializeOwned;

use crate::error::{Error, ErrorKind};
use crate::json;
use crate::step_ref::StepRef;
use crate::verb::VerbRequest;

/// One run of an execution, with the type of its result.
pub struct Handle<T> {
    engine: Engine,
    id: String,
    run: RunNo,
    run_id: RunId,
    created: Created,
    found: Status,
    output: PhantomData<fn() -> T>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Created {
    Yes,
    No,
}

/// How far a rollback is.
pub type RollbackReport = RollbackProgress;

/// What an execution is doing.
#[derive(Clone, Debug)]
pub struct ExecutionStatus {
    /// The derived status.
    pub status: Status,
    /// How far its rollback is; [`RollbackOutcome::None`] when nothing was or is owed.
    pub rollback: RollbackReport,
    /// What is held until a person (or the right code) comes, with the reasons.
    pub blocks: Vec<(BlockKind, Option<StepRef>, Failure)>,
    /// What it waits for.
    pub waits_for: Vec<WaitsFor>,
    /// A pause was asked for, and what is in flight has not ended yet.
    pub pausing: bool,
    /// The workflow.
    pub workflow: String,
    /// The version that ran it last.
    pub version: String,
    /// The folded journal.
    pub run: Arc<Run>,
}

impl<T> Handle<T> {
    pub(crate) fn new(
        engine: &Engine,
        id: &str,
        run: RunNo,
        run_id: RunId,
        created: Created,
        found: Status,
    ) -> Handle<T> {
        Handle {
            engine: engine.clone(),
            id: id.to_owned(),
            run,
            run_id,
            created,
            found,
            output: PhantomData,
        }
    }

    /// The business id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id of the run.
    pub fn run_id(&self) -> RunId {
        self.run_id
    }

    /// Whether the call that gave this handle began the run.
    pub fn created(&self) -> bool {
        self.created == Created::Yes
    }

    /// The status that the call that gave this handle found.
    pub fn found(&self) -> Status {
        self.found
    }

    /// What the execution is doing now.
    ///
    /// # Errors
    /// `Unreadable` when its journal cannot be read; trouble of the store.
    pub async fn status(&self) -> Result<ExecutionStatus, Error> {
        let view = self.engine.view(self.run).await?;
        let run = view.run;
        let step = |ord| match run.step(ord) {
            Some(step) => StepRef::Key(step.key.to_string()),
            None => StepRef::Ordinal(ord),
        };
        let blocks = run.blocks.iter();
        let status = run.status(view.owned);
        Ok(ExecutionStatus {
            status,
            rollback: run.rollback_progress(),
            blocks: blocks.map(|b| (b.what, b.ord.map(step), b.failure.clone())).collect(),
            waits_for: run.waits_for(view.owned),
            pausing: run.pause.is_some() && status != Status::Paused,
            workflow: run.started.workflow.clone(),
            version: run.version.clone(),
            run,
        })
    }

    /// The rows of the journal.
    ///
    /// # Errors
    /// As [`Handle::status`].
    pub async fn journal(&self) -> Result<Vec<Row>, Error> {
        Ok(self.engine.journal(self.run).await?)
    }

    /// Waits until the execution is closed, however often it gets stuck before.
    ///
    /// # Errors
    /// As [`Handle::status`]; `Stopped` when Backstitch is stopped meanwhile.
    pub async fn closed(&self) -> Result<Status, Error> {
        Ok(self.engine.closed(self.run).await?.status(true))
    }

    fn verb(&self, kind: InboxKind, step: Option<StepRef>) -> VerbRequest {
        VerbRequest::new(&self.engine, self.run, kind, step)
    }

    /// Rolls the execution back; it ends as cancelled. During a rollback it is added to the causes.
    pub fn cancel(&self) -> VerbRequest {
        self.verb(InboxKind::Cancel, None)
    }

    /// Rolls the execution back without waiting for bodies; it ends as terminated.
    pub fn terminate(&self) -> VerbRequest {
        self.verb(InboxKind::Terminate, None)
    }

    /// Ends the execution without a rollback. What it owes stays listed as an open matter.
    pub fn kill(&self) -> VerbRequest {
        self.verb(InboxKind::Kill, None)
    }

    /// Begins nothing new; bodies in flight finish.
    pub fn pause(&self) -> VerbRequest {
        self.verb(InboxKind::Pause, None)
    }

    /// Ends a pause.
    pub fn resume(&self) -> VerbRequest {
        self.verb(InboxKind::Resume, None)
    }

    /// Has a blocked step tried again, with a new budget of attempts.
    pub fn retry_step(&self, step: impl Into<StepRef>) -> VerbRequest {
        self.verb(InboxKind::RetryStep, Some(step.into()))
    }

    /// Has a failed undo tried again, with a new budget of attempts.
    pub fn retry_undo(&self, step: impl Into<StepRef>) -> VerbRequest {
        self.verb(InboxKind::RetryUndo, Some(step.into()))
    }

    /// Takes an undo that failed or has not started off the debts, in the name of a person.
    pub fn waive_undo(&self, step: impl Into<StepRef>) -> VerbRequest {
        self.verb(InboxKind::WaiveUndo, Some(step.into()))
    }
}

impl<T: DeserializeOwned> Handle<T> {
    /// Waits for the result.
    ///
    /// # Errors
    /// `Failed` with the error of the workflow; `Cancelled`; `Terminated`; `Stuck` as soon as the
    /// rollback cannot go on without a person ([`Handle::closed`] goes on waiting); `Decode` when
    /// the result is not of type `T`; `Stopped` when Backstitch is stopped meanwhile.
    pub async fn result(&self) -> Result<T, Error> {
        let run = self.engine.settled(self.run).await?;
        let rollback = run.rollback_progress();
        let ended = |kind, what: &str, failure: Option<&Failure>| {
            let why = failure.map(|failure| format!(": {failure}")).unwrap_or_default();
            let back = match rollback.outcome {
                RollbackOutcome::None => String::new(),
                RollbackOutcome::Complete => " (everything was undone)".into(),
                RollbackOutcome::Incomplete => " (the rollback is incomplete)".into(),
            };
            let message = format!("execution {:?} {what}{why}{back}", self.id);
            Error::of_execution(kind, message, failure.cloned(), rollback)
        };
        match &run.phase {
            Phase::Closed(Ending::Succeeded(output)) => json::decode(output).map_err(|why| {
                let message = format!("the result of execution {:?}: {why}", self.id);
                Error::new(ErrorKind::Decode, message)
            }),
            Phase::Closed(Ending::Failed(failure)) => {
                Err(ended(ErrorKind::Failed, "failed", Some(failure)))
            }
            Phase::Closed(Ending::Cancelled) => {
                Err(ended(ErrorKind::Cancelled, "was cancelled", None))
            }
            Phase::Closed(Ending::Terminated) => {
                Err(ended(ErrorKind::Terminated, "was terminated", None))
            }
            Phase::Closed(Ending::Killed { by, reason, .. }) => {
                let what = format!("was killed by {by} ({reason})");
                Err(ended(ErrorKind::Terminated, &what, None))
            }
            Phase::Forward | Phase::RollingBack => {
                let failure = run
                    .rollback
                    .as_ref()
                    .and_then(|rollback| rollback.causes.first()?.failure.as_ref());
                let message = format!(
                    "execution {:?} is stuck: {} of {} undos failed for good; retry or waive them",
                    self.id, rollback.failed, rollback.of
                );
                Err(Error::of_execution(ErrorKind::Stuck, message, failure.cloned(), rollback))
            }
        }
    }
}
