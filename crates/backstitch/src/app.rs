//! A running Backstitch.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use backstitch_core::id::RunId;
use backstitch_engine::Engine;
use backstitch_engine::feed::Feed;
use backstitch_engine::start::{Conflict, Reuse, StartRequest};

use crate::error::{Error, ErrorKind};
use crate::handle::{Created, Handle};
use crate::json;
use crate::workflow::Workflow;

/// The namespace of executions that name none.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// A running Backstitch. Cheap to clone.
///
/// It runs on the tokio runtime that [`Builder::run`](crate::Builder::run) was called on, whoever
/// calls its methods, until [`App::shutdown`] or the end of that runtime. Dropping every `App` does
/// not stop it, and the file stays its own; call `shutdown` before the file is opened again. The
/// end of the process, in whatever way, loses nothing.
#[derive(Clone)]
pub struct App {
    engine: Engine,
}

impl App {
    pub(crate) fn new(engine: Engine) -> App {
        App { engine }
    }

    /// Starts an execution; idempotent by its id. Awaiting the answer sends it; what is answered is
    /// durable.
    ///
    /// With the id of an open or closed run of the same workflow and input, the handle is that of
    /// the existing run and says so ([`Handle::created`]). See [`Conflict`] and [`Reuse`] for other
    /// policies.
    pub fn start<W: Workflow>(
        &self,
        workflow: W,
        id: impl Into<String>,
        input: W::Input,
    ) -> StartBuilder<W> {
        StartBuilder {
            engine: self.engine.clone(),
            workflow,
            id: id.into(),
            input,
            namespace: DEFAULT_NAMESPACE.to_owned(),
            conflict: Conflict::default(),
            reuse: Reuse::default(),
            by: "the program".to_owned(),
        }
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

    /// Open matters that only a person can settle, oldest first; at most `limit`.
    ///
    /// # Errors
    /// Trouble of the store.
    pub async fn attention(&self, limit: usize) -> Result<Vec<Attention>, Error> {
        let mut items = Vec::new();
        for item in self.engine.attention(limit).await? {
            let new = self.engine.info(item.run).await?.new;
            items.push(Attention {
                namespace: new.namespace,
                id: new.id,
                run_id: new.run_id,
                ord: item.ord,
                kind: item.kind,
                message: item.message,
            });
        }
        Ok(items)
    }

    /// Why nothing can be made durable at the moment, if that is so (a full disk, for example).
    /// Nothing is lost meanwhile, and the work goes on by itself.
    pub fn trouble(&self) -> Option<Error> {
        self.engine.trouble().map(Error::from)
    }

    /// A live feed of the rows that are committed from now on, of all executions of this process.
    pub fn feed(&self) -> Feed {
        self.engine.feed()
    }

    /// The engine below.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Stops in good order: running attempts are recorded as interrupted (they do not count), and
    /// everything goes on when the store is opened again.
    ///
    /// # Errors
    /// Trouble of the store while it is closed; nothing that was acknowledged is lost by it.
    pub async fn shutdown(self) -> Result<(), Error> {
        Ok(self.engine.stop().await?)
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
}

/// A start that is being put together; awaiting it sends it.
///
/// # Errors
/// `UnknownWorkflow`; `Invalid` for a bad id or an input that is too large; `IdInUse`;
/// `OtherInput`; trouble of the store.
#[must_use = "an execution is started when this is awaited"]
pub struct StartBuilder<W: Workflow> {
    engine: Engine,
    workflow: W,
    id: String,
    input: W::Input,
    namespace: String,
    conflict: Conflict,
    reuse: Reuse,
    by: String,
}

impl<W: Workflow> StartBuilder<W> {
    /// The namespace of the id (default: `default`). The same id in two namespaces is two
    /// executions.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// What to do when the id is in use by an open run.
    pub fn conflict(mut self, conflict: Conflict) -> Self {
        self.conflict = conflict;
        self
    }

    /// What to do when the last run of the id is closed.
    pub fn reuse(mut self, reuse: Reuse) -> Self {
        self.reuse = reuse;
        self
    }

    /// Who starts it; stands in the journal.
    pub fn by(mut self, by: impl Into<String>) -> Self {
        self.by = by.into();
        self
    }

    async fn send(self) -> Result<Handle<W::Output>, Error> {
        let input = json::encode(format_args!("the input of execution {:?}", self.id), &self.input)
            .map_err(|failure| Error::new(ErrorKind::Decode, failure.to_string()))?;
        let answer = self
            .engine
            .start(StartRequest {
                namespace: self.namespace,
                id: self.id.clone(),
                workflow: self.workflow.name().to_owned(),
                version: self.workflow.version().to_owned(),
                input,
                conflict: self.conflict,
                reuse: self.reuse,
                started_by: self.by,
            })
            .await?;
        let created = if answer.created { Created::Yes } else { Created::No };
        Ok(Handle::new(&self.engine, &self.id, answer.run, answer.run_id, created, answer.status))
    }
}

impl<W: Workflow> IntoFuture for StartBuilder<W> {
    type Output = Result<Handle<W::Output>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
