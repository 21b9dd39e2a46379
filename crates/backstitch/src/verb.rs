//! Verbs: what is asked of an execution from outside.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use backstitch_core::attribute::AttributeChange;
use backstitch_core::inbox::{InboxKind, Verb};
use backstitch_engine::Engine;
use backstitch_store::RunNo;

use crate::error::{Error, ErrorKind};
use crate::step_ref::StepRef;

/// The answer to a verb: it is durable, and will be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerbAnswer {
    /// The number of the inbox row.
    pub number: u64,
    /// False when the verb is only noted: a cancel during a rollback is added to its causes, a resume
    /// of what is not paused is without effect.
    pub changed: bool,
}

/// A verb that is being put together; awaiting it sends it.
///
/// # Errors
/// `Refused`, with the reason, when the verb does not apply to the execution as it stands.
#[must_use = "a verb is sent when it is awaited"]
pub struct VerbRequest {
    engine: Engine,
    run: RunNo,
    kind: InboxKind,
    step: Option<StepRef>,
    by: String,
    reason: String,
    request_id: Option<String>,
    shift_timers: bool,
    attributes: Vec<AttributeChange>,
}

impl VerbRequest {
    pub(crate) fn new(
        engine: &Engine,
        run: RunNo,
        kind: InboxKind,
        step: Option<StepRef>,
    ) -> VerbRequest {
        VerbRequest {
            engine: engine.clone(),
            run,
            kind,
            step,
            by: "the program".to_owned(),
            reason: String::new(),
            request_id: None,
            shift_timers: false,
            attributes: Vec::new(),
        }
    }

    pub(crate) fn attributes(mut self, attributes: Vec<AttributeChange>) -> VerbRequest {
        self.attributes = attributes;
        self
    }

    /// Who asks; stands in the journal.
    pub fn by(mut self, by: impl Into<String>) -> VerbRequest {
        self.by = by.into();
        self
    }

    /// Why; stands in the journal.
    pub fn reason(mut self, reason: impl Into<String>) -> VerbRequest {
        self.reason = reason.into();
        self
    }

    /// An id of the caller's own: the same request sent twice is one request.
    pub fn request_id(mut self, request_id: impl Into<String>) -> VerbRequest {
        self.request_id = Some(request_id.into());
        self
    }

    /// For resume: what the execution sleeps and waits for, and its deadline, move by the time that
    /// it was paused. Without it they stand as they were. Other verbs refuse it.
    pub fn shift_timers(mut self) -> VerbRequest {
        self.shift_timers = true;
        self
    }

    async fn send(self) -> Result<VerbAnswer, Error> {
        let ord = match &self.step {
            None => 0,
            Some(step) => step.resolve(&self.engine.view(self.run).await?.run)?,
        };
        if self.shift_timers && self.kind != InboxKind::Resume {
            let message = format!("{} moves no timers; only resume does", self.kind.name());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let VerbRequest { by, reason, shift_timers, attributes, .. } = self;
        let verb = Verb { by, reason, ord, shift_timers, attributes };
        let request_id = self.request_id.unwrap_or_else(|| self.engine.request_id());
        let sent = self.engine.send(self.run, self.kind, verb, &request_id).await?;
        Ok(VerbAnswer { number: sent.number, changed: sent.changed })
    }
}

impl IntoFuture for VerbRequest {
    type Output = Result<VerbAnswer, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
