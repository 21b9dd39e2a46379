//! What is done with closed executions: they are deleted, or done over.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

use backstitch_engine::Engine;
use backstitch_engine::life::RestartRequest;
use backstitch_store::RunNo;

use crate::error::Error;
use crate::handle::{Created, Handle};

/// A deletion that is being put together; awaiting it carries it out.
///
/// # Errors
/// `Refused` when the execution is not closed, or while an open matter of it is not settled.
#[must_use = "an execution is deleted when this is awaited"]
pub struct DeleteRequest {
    engine: Engine,
    run: RunNo,
    by: String,
    reason: String,
}

impl DeleteRequest {
    pub(crate) fn new(engine: &Engine, run: RunNo) -> DeleteRequest {
        let (by, reason) = ("the program".to_owned(), String::new());
        DeleteRequest { engine: engine.clone(), run, by, reason }
    }

    /// Who asks; stands in the log, since the journal is gone.
    pub fn by(mut self, by: impl Into<String>) -> DeleteRequest {
        self.by = by.into();
        self
    }

    /// Why; stands in the log.
    pub fn reason(mut self, reason: impl Into<String>) -> DeleteRequest {
        self.reason = reason.into();
        self
    }
}

impl IntoFuture for DeleteRequest {
    type Output = Result<(), Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(self.engine.delete(self.run, &self.by, &self.reason).await?) })
    }
}

/// A restart that is being put together; awaiting it begins the new run, with the same workflow and
/// input, and keys of its own.
///
/// # Errors
/// `Refused` when the execution is not closed, or has a newer run; `UnknownWorkflow` when the version
/// that ran it is not registered ([`Restart::version`] names another one).
#[must_use = "an execution is done over when this is awaited"]
pub struct Restart<T> {
    engine: Engine,
    id: String,
    run: RunNo,
    request: RestartRequest,
    output: PhantomData<fn() -> T>,
}

impl<T> Restart<T> {
    pub(crate) fn new(engine: &Engine, id: &str, run: RunNo) -> Restart<T> {
        let request = RestartRequest { by: "the program".into(), ..RestartRequest::default() };
        let (engine, id) = (engine.clone(), id.to_owned());
        Restart { engine, id, run, request, output: PhantomData }
    }

    /// Who asks; stands in the journal of the new run.
    pub fn by(mut self, by: impl Into<String>) -> Restart<T> {
        self.request.by = by.into();
        self
    }

    /// The version of the workflow (default: the one that ran the execution last).
    pub fn version(mut self, version: impl Into<String>) -> Restart<T> {
        self.request.version = Some(version.into());
        self
    }

    /// An id of the caller's own: the same request sent twice makes one run.
    pub fn request_id(mut self, request_id: impl Into<String>) -> Restart<T> {
        self.request.request_id = Some(request_id.into());
        self
    }
}

impl<T: 'static> IntoFuture for Restart<T> {
    type Output = Result<Handle<T>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let begun = self.engine.restart(self.run, self.request).await?;
            let created = if begun.created { Created::Yes } else { Created::No };
            let (run, run_id, status) = (begun.run, begun.run_id, begun.status);
            Ok(Handle::new(&self.engine, &self.id, run, run_id, created, status))
        })
    }
}
