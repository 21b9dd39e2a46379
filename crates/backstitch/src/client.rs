//! Asking a store: starting executions, finding them, looking at them and talking to them.

use backstitch_core::id::RunId;
use backstitch_core::status::Status;
use backstitch_engine::Engine;
use backstitch_store::{AttentionPlace, RunInfo, RunNo};

use crate::attribute::IntoAttribute;
use crate::error::Error;
use crate::handle::{Created, Handle};
use crate::start::StartBuilder;
use crate::workflow::Workflow;

/// The namespace of executions that name none.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// What can be asked of a store, by the process that works on it ([`App`](crate::App)) and by any
/// other one ([`Backstitch::connect`](crate::Backstitch::connect)). Cheap to clone.
#[derive(Clone)]
pub struct Client {
    engine: Engine,
}

impl Client {
    pub(crate) fn new(engine: Engine) -> Client {
        Client { engine }
    }

    /// The engine below.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Starts an execution; idempotent by its id. Awaiting the answer sends it; what is answered is
    /// durable.
    ///
    /// With the id of an open or closed run of the same workflow and input, the handle is that of
    /// the existing run and says so ([`Handle::created`]). See
    /// [`Conflict`](crate::Conflict) and [`Reuse`](crate::Reuse) for other
    /// policies.
    pub fn start<W: Workflow>(
        &self,
        workflow: W,
        id: impl Into<String>,
        input: W::Input,
    ) -> StartBuilder<W> {
        StartBuilder::new(&self.engine, workflow, id.into(), input)
    }

    /// The handle of the newest run of an execution in the namespace `default`.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn handle<T>(&self, id: &str) -> Result<Handle<T>, Error> {
        self.handle_in(DEFAULT_NAMESPACE, id).await
    }

    /// The handle of the newest run of an execution.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn handle_in<T>(&self, namespace: &str, id: &str) -> Result<Handle<T>, Error> {
        let info = self.engine.newest(namespace, id).await?;
        let (run_id, status) = (info.new.run_id, info.update.status);
        Ok(Handle::new(&self.engine, id, info.run, run_id, Created::No, status))
    }

    /// The handle of one run of an execution, the newest or an earlier one.
    ///
    /// # Errors
    /// `NotFound` when the execution has no such run.
    pub async fn handle_of_run<T>(
        &self,
        namespace: &str,
        id: &str,
        run_id: RunId,
    ) -> Result<Handle<T>, Error> {
        let info = self.engine.run_of(namespace, id, run_id).await?;
        Ok(Handle::new(&self.engine, id, info.run, run_id, Created::No, info.update.status))
    }

    /// Open matters that only a person can settle, oldest first; at most `limit`.
    ///
    /// # Errors
    /// Trouble of the store.
    pub async fn attention(&self, limit: usize) -> Result<Vec<Attention>, Error> {
        let mut items = Vec::new();
        for item in self.engine.attention(AttentionPlace::START, limit).await? {
            let new = match self.engine.info(item.run).await {
                Ok(info) => info.new,
                // Settled and deleted a moment ago.
                Err(error) if error.kind() == backstitch_engine::ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            items.push(Attention {
                namespace: new.namespace,
                id: new.id,
                run_id: new.run_id,
                run: item.run,
                ord: item.ord,
                kind: item.kind,
                message: item.message,
            });
        }
        Ok(items)
    }

    /// The handle of the run that an open matter is about, which need not be the newest of its execution.
    ///
    /// # Errors
    /// `NotFound` when it was settled and deleted meanwhile.
    pub async fn handle_of<T>(&self, matter: &Attention) -> Result<Handle<T>, Error> {
        let info = self.engine.info(matter.run).await?;
        let (id, run_id, status) = (&info.new.id, info.new.run_id, info.update.status);
        Ok(Handle::new(&self.engine, id, info.run, run_id, Created::No, status))
    }

    /// The newest executions, newest first; at most `limit`.
    ///
    /// # Errors
    /// Trouble of the store.
    pub async fn list(&self, limit: usize) -> Result<Vec<Summary>, Error> {
        let runs = self.engine.runs(RunNo(i64::MAX), limit).await?;
        Ok(runs.into_iter().map(Summary::of).collect())
    }

    /// The executions that carry a search attribute with this value, newest first; at most `limit`.
    ///
    /// # Errors
    /// Trouble of the store.
    pub async fn find(
        &self,
        name: &str,
        value: impl IntoAttribute,
        limit: usize,
    ) -> Result<Vec<Summary>, Error> {
        let value = value.into_attribute();
        let runs = self.engine.find(name, &value, RunNo(i64::MAX), limit).await?;
        Ok(runs.into_iter().map(Summary::of).collect())
    }

    /// Lets go of the store. For a client of [`Backstitch::connect`](crate::Backstitch::connect);
    /// whoever works on the store uses [`App::shutdown`](crate::App::shutdown).
    ///
    /// # Errors
    /// Trouble of the store while it is closed; nothing that was acknowledged is lost by it.
    pub async fn close(self) -> Result<(), Error> {
        Ok(self.engine.stop().await?)
    }
}

/// One run of an execution, as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The namespace of the id.
    pub namespace: String,
    /// The business id.
    pub id: String,
    /// The run.
    pub run_id: RunId,
    /// The workflow.
    pub workflow: String,
    /// The version in which it was started.
    pub version: String,
    /// The status that its owner has said last.
    pub status: Status,
    /// When it was started.
    pub created_at: jiff::Timestamp,
    /// When it was closed.
    pub closed_at: Option<jiff::Timestamp>,
}

impl Summary {
    fn of(info: RunInfo) -> Summary {
        let instant = |us| jiff::Timestamp::from_microsecond(us).unwrap_or(jiff::Timestamp::MAX);
        Summary {
            namespace: info.new.namespace,
            id: info.new.id,
            run_id: info.new.run_id,
            workflow: info.new.workflow,
            version: info.new.version,
            status: info.update.status,
            created_at: instant(info.created_at_us),
            closed_at: info.closed_at_us.map(instant),
        }
    }
}

/// An open matter that only a person can settle.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// The namespace of the execution.
    pub namespace: String,
    /// Its business id.
    pub id: String,
    /// The run.
    pub run_id: RunId,
    /// The step that it is about, or 0 for the run itself.
    pub ord: u32,
    /// A short stable name: `step_blocked`, `mismatch`, `foreign_wait`, `unreadable`, `undo_failed`,
    /// `did_not_yield`, `killed`.
    pub kind: String,
    /// A sentence for people.
    pub message: String,
    run: RunNo,
}
