//! The handle of one execution.

use std::marker::PhantomData;
use std::sync::Arc;

use backstitch_core::attribute::AttributeChange;
use backstitch_core::event::BlockKind;
use backstitch_core::failure::Failure;
use backstitch_core::id::RunId;
use backstitch_core::inbox::InboxKind;
use backstitch_core::payload::Payload;
use backstitch_core::row::Row;
use backstitch_core::run::{RollbackProgress, Run, WaitsFor};
use backstitch_core::status::Status;
use backstitch_engine::Engine;
use backstitch_engine::view::RunView;
use backstitch_store::RunNo;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::attribute::IntoAttribute;
use crate::error::{Error, ErrorKind};
use crate::events::{self, EventRequest, Follow};
use crate::json;
use crate::life::{DeleteRequest, Restart};
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
    /// How far its rollback is; [`RollbackOutcome::None`](crate::RollbackOutcome::None) when nothing was or is owed.
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

impl ExecutionStatus {
    fn of(view: RunView) -> ExecutionStatus {
        let (status, run) = (view.status(), view.run);
        let step = |ord| match run.step(ord) {
            Some(step) => StepRef::Key(step.key.to_string()),
            None => StepRef::Ordinal(ord),
        };
        let blocks = run.blocks.iter();
        ExecutionStatus {
            status,
            rollback: run.rollback_progress(),
            blocks: blocks.map(|b| (b.what, b.ord.map(step), b.failure.clone())).collect(),
            waits_for: run.waits_for(view.owned),
            pausing: run.pause.is_some() && status != Status::Paused,
            workflow: run.started.workflow.clone(),
            version: run.version.clone(),
            run,
        }
    }
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
        Ok(ExecutionStatus::of(self.engine.view(self.run).await?))
    }

    /// Waits until the execution is doing what `wanted` says; at once if it does. It looks whenever
    /// something has happened to it; what passes quickly may pass unseen.
    ///
    /// ```
    /// # use backstitch::{Handle, Status};
    /// # async fn example(handle: Handle<()>) -> Result<(), backstitch::Error> {
    /// let status = handle.until(|status| status.status == Status::Blocked).await?;
    /// println!("{:?}", status.blocks);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Handle::status`]; `Stopped` when Backstitch is stopped meanwhile.
    pub async fn until(
        &self,
        wanted: impl Fn(&ExecutionStatus) -> bool,
    ) -> Result<ExecutionStatus, Error> {
        let looks = |view: &RunView| wanted(&ExecutionStatus::of(view.clone()));
        Ok(ExecutionStatus::of(self.engine.view_until(self.run, looks).await?))
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

    /// Undoes the execution because a person wants it undone. One that has succeeded is undone as
    /// well: it ends as cancelled, [`Handle::result`] answers `RolledBack`, and what it had returned
    /// stays readable ([`Handle::output`]).
    pub fn rollback(&self) -> VerbRequest {
        self.verb(InboxKind::Rollback, None)
    }

    /// Begins nothing new; bodies in flight finish.
    pub fn pause(&self) -> VerbRequest {
        self.verb(InboxKind::Pause, None)
    }

    /// Ends a pause. Instants stand as they were, unless it says
    /// [`shift_timers`](VerbRequest::shift_timers).
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

    /// Takes an undo that failed or has not started off the debts, in the name of a person. On a
    /// closed execution it settles an open matter that is about the step.
    pub fn waive_undo(&self, step: impl Into<StepRef>) -> VerbRequest {
        self.verb(InboxKind::WaiveUndo, Some(step.into()))
    }

    /// Sets search attributes, also of a closed execution.
    pub fn set_attributes<N, V>(&self, attributes: impl IntoIterator<Item = (N, V)>) -> VerbRequest
    where
        N: Into<String>,
        V: IntoAttribute,
    {
        let set = |(name, value): (N, V)| {
            let value = Some(value.into_attribute());
            AttributeChange { name: name.into(), value }
        };
        let changes = attributes.into_iter().map(set).collect();
        self.verb(InboxKind::SetAttributes, None).attributes(changes)
    }

    /// Takes a search attribute away, also from a closed execution.
    pub fn remove_attribute(&self, name: impl Into<String>) -> VerbRequest {
        let change = AttributeChange { name: name.into(), value: None };
        self.verb(InboxKind::SetAttributes, None).attributes(vec![change])
    }

    /// Sends an event. It is kept until a wait wants it.
    pub fn send_event<P: Serialize + ?Sized>(
        &self,
        event_type: impl Into<String>,
        payload: &P,
    ) -> EventRequest {
        let event_type = event_type.into();
        let payload = json::encode(format_args!("the event {event_type:?}"), payload)
            .map_err(|failure| Error::new(ErrorKind::Decode, failure.to_string()));
        EventRequest::new(&self.engine, self.run, event_type, payload)
    }

    /// Deletes a closed execution with all that is known of it.
    pub fn delete(&self) -> DeleteRequest {
        DeleteRequest::new(&self.engine, self.run)
    }

    /// Does a closed execution over, as a new run.
    pub fn restart(&self) -> Restart<T> {
        Restart::new(&self.engine, &self.id, self.run)
    }

    /// What the execution publishes under `key`, as it stands.
    ///
    /// # Errors
    /// `Decode` when it is not a `V`; as [`Handle::status`].
    pub async fn published<V: DeserializeOwned>(&self, key: &str) -> Result<Option<V>, Error> {
        let view = self.engine.view(self.run).await?;
        let published = view.run.published.get(key);
        published.map(|published| events::decode(key, &published.value)).transpose()
    }

    /// What the execution publishes under `key`, live.
    pub fn follow<V: DeserializeOwned>(&self, key: &str) -> Follow<V> {
        Follow::new(&self.engine, self.run, key)
    }
}

impl<T: DeserializeOwned> Handle<T> {
    /// What the workflow returned, also if that was rolled back later; `None` if it has not.
    ///
    /// # Errors
    /// `Decode` when it is not of type `T`; as [`Handle::status`].
    pub async fn output(&self) -> Result<Option<T>, Error> {
        let view = self.engine.view(self.run).await?;
        view.run.output.as_ref().map(|output| self.decode(output)).transpose()
    }

    fn decode(&self, output: &Payload) -> Result<T, Error> {
        json::decode(output).map_err(|why| {
            let message = format!("the result of execution {:?}: {why}", self.id);
            Error::new(ErrorKind::Decode, message)
        })
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// `Failed` with the error of the workflow; `Cancelled`; `RolledBack`; `Terminated`; `Stuck` as
    /// soon as the
    /// rollback cannot go on without a person ([`Handle::closed`] goes on waiting); `Decode` when
    /// the result is not of type `T`; `Stopped` when Backstitch is stopped meanwhile.
    pub async fn result(&self) -> Result<T, Error> {
        let outcome = self.engine.outcome(self.run).await?;
        let kind = match outcome.status() {
            Status::Succeeded => return self.decode(&outcome.output.unwrap_or_default()),
            Status::Failed => ErrorKind::Failed,
            Status::Cancelled if outcome.was_rolled_back_on_request() => ErrorKind::RolledBack,
            Status::Cancelled => ErrorKind::Cancelled,
            Status::Terminated => ErrorKind::Terminated,
            // Nothing else is an outcome.
            Status::Stuck
            | Status::Pending
            | Status::Running
            | Status::Suspended
            | Status::Paused
            | Status::Blocked
            | Status::RollingBack => ErrorKind::Stuck,
        };
        let (message, rollback) = (outcome.sentence(&self.id), outcome.rollback_progress());
        Err(Error::of_execution(kind, message, outcome.failure, rollback))
    }
}
