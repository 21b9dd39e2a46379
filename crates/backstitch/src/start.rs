//! Starting executions.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use backstitch_core::attribute::AttributeChange;
use backstitch_engine::Engine;
use backstitch_engine::start::{Conflict, Retention, Reuse, StartRequest};

use crate::attribute::IntoAttribute;
use crate::client::DEFAULT_NAMESPACE;
use crate::duration::IntoDuration;
use crate::error::{Error, ErrorKind};
use crate::handle::{Created, Handle};
use crate::json;
use crate::workflow::Workflow;

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
    deadline: Option<Duration>,
    retention: Retention,
    attributes: Vec<AttributeChange>,
    request_id: String,
    defect: Option<String>,
}

impl<W: Workflow> StartBuilder<W> {
    pub(crate) fn new(engine: &Engine, workflow: W, id: String, input: W::Input) -> Self {
        StartBuilder {
            engine: engine.clone(),
            workflow,
            id,
            input,
            namespace: DEFAULT_NAMESPACE.to_owned(),
            conflict: Conflict::default(),
            reuse: Reuse::default(),
            by: "the program".to_owned(),
            deadline: None,
            retention: Retention::default(),
            attributes: Vec::new(),
            request_id: String::new(),
            defect: None,
        }
    }

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

    /// Rolls the execution back, as failed, if it is not over so long after its start. The deadline
    /// passes also while nobody runs it or it is blocked; not while it is paused.
    pub fn deadline(mut self, deadline: impl IntoDuration) -> Self {
        self.deadline = self.duration("deadline", deadline);
        self
    }

    /// How long the execution is kept after it was closed (default: as the builder says, 30 days).
    pub fn retention(mut self, kept: impl IntoDuration) -> Self {
        if let Some(kept) = self.duration("retention", kept) {
            self.retention = Retention::For(kept);
        }
        self
    }

    /// Keeps the execution until somebody deletes it.
    pub fn keep_forever(mut self) -> Self {
        self.retention = Retention::Forever;
        self
    }

    /// A search attribute, by which the execution is found.
    pub fn attribute(mut self, name: impl Into<String>, value: impl IntoAttribute) -> Self {
        let value = Some(value.into_attribute());
        self.attributes.push(AttributeChange { name: name.into(), value });
        self
    }

    /// An id of the caller's own: the same request sent twice makes one run and gets one answer, also
    /// where [`Reuse::Allow`](crate::Reuse::Allow) would begin another one. Known as long as that run
    /// is the newest of its id.
    pub fn request_id(mut self, request_id: impl Into<String>) -> Self {
        self.request_id = request_id.into();
        self
    }

    fn duration(&mut self, what: &str, duration: impl IntoDuration) -> Option<Duration> {
        match duration.into_us() {
            Ok(us) => Some(Duration::from_micros(us)),
            Err(why) => {
                self.defect.get_or_insert_with(|| format!("the {what}: {why}"));
                None
            }
        }
    }

    async fn send(self) -> Result<Handle<W::Output>, Error> {
        if let Some(defect) = self.defect {
            let message = format!("the start of execution {:?}: {defect}", self.id);
            return Err(Error::new(ErrorKind::Invalid, message));
        }
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
                deadline: self.deadline,
                retention: self.retention,
                attributes: self.attributes,
                request_id: self.request_id,
                restart: None,
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
