//! Workflows: named async functions.

use std::future::Future;
use std::sync::Arc;

use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::payload::Payload;
use backstitch_engine::desk::Desk;
use backstitch_engine::program::{BoxFuture, Program};

use crate::bounds::Data;
use crate::ctx::Ctx;
use crate::json;
use crate::state::StateMap;

/// A named async function with a version. The attribute [`macro@crate::workflow`] implements it for
/// a function, [`workflow_fn`] for a closure.
pub trait Workflow: Clone + Send + Sync + 'static {
    /// What it is started with.
    type Input: Data;
    /// What it returns.
    type Output: Data;

    /// The name under which executions are started and recovered.
    fn name(&self) -> &str;

    /// The version; executions are recovered by the version that ran them last.
    fn version(&self) -> &str {
        "1"
    }

    /// The types of the events that it takes: others are refused at the door. Empty (the default)
    /// to take any.
    fn events(&self) -> Vec<String> {
        Vec::new()
    }

    /// Calls the function.
    fn call(&self, ctx: Ctx, input: Self::Input) -> BoxFuture<Result<Self::Output, Failure>>;
}

type Function<I, O> = dyn Fn(Ctx, I) -> BoxFuture<Result<O, Failure>> + Send + Sync;

/// A workflow made from a closure by [`workflow_fn`].
pub struct FnWorkflow<I, O> {
    name: Arc<str>,
    version: Arc<str>,
    events: Arc<[String]>,
    function: Arc<Function<I, O>>,
}

impl<I, O> Clone for FnWorkflow<I, O> {
    fn clone(&self) -> Self {
        FnWorkflow {
            name: self.name.clone(),
            version: self.version.clone(),
            events: self.events.clone(),
            function: self.function.clone(),
        }
    }
}

/// A workflow from a closure.
///
/// ```
/// use backstitch::{Ctx, workflow_fn};
///
/// let double = workflow_fn("double", |ctx: Ctx, n: u32| async move {
///     ctx.step("multiply", async move |_s| Ok(n * 2)).await
/// });
/// # let _ = double;
/// ```
pub fn workflow_fn<I, O, F, Fut>(name: &str, function: F) -> FnWorkflow<I, O>
where
    F: Fn(Ctx, I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, Failure>> + Send + 'static,
{
    FnWorkflow {
        name: name.into(),
        version: "1".into(),
        events: Arc::new([]),
        function: Arc::new(move |ctx, input| Box::pin(function(ctx, input))),
    }
}

impl<I, O> FnWorkflow<I, O> {
    /// Sets the version (default: `1`).
    #[must_use]
    pub fn version(mut self, version: &str) -> FnWorkflow<I, O> {
        self.version = version.into();
        self
    }

    /// Names the types of the events that it takes; others are refused at the door.
    #[must_use]
    pub fn events<S: Into<String>>(mut self, types: impl IntoIterator<Item = S>) -> Self {
        self.events = types.into_iter().map(Into::into).collect();
        self
    }
}

impl<I, O> Workflow for FnWorkflow<I, O>
where
    I: Data,
    O: Data,
{
    type Input = I;
    type Output = O;

    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn events(&self) -> Vec<String> {
        self.events.to_vec()
    }

    fn call(&self, ctx: Ctx, input: I) -> BoxFuture<Result<O, Failure>> {
        (self.function)(ctx, input)
    }
}

/// A workflow as the engine sees it.
pub(crate) struct Registered<W> {
    pub workflow: W,
    pub events: Arc<[String]>,
    pub state: Arc<StateMap>,
    pub payload_bytes_max: usize,
}

impl<W: Workflow> Program for Registered<W> {
    fn name(&self) -> &str {
        self.workflow.name()
    }

    fn version(&self) -> &str {
        self.workflow.version()
    }

    fn event_types(&self) -> &[String] {
        &self.events
    }

    fn start(
        &self,
        desk: Desk,
        input: &Payload,
    ) -> Result<BoxFuture<Result<Payload, Failure>>, Failure> {
        let input: W::Input = json::decode(input).map_err(|why| {
            let message = format!(
                "the input of workflow {:?} {:?}: {why}. Deploy code that reads it, or cancel \
                 the execution",
                self.name(),
                self.version()
            );
            Failure::new(Class::Attention, Origin::Decode, "Input", message)
        })?;
        let bytes_max = self.payload_bytes_max;
        let ctx = Ctx::new(desk, self.state.clone(), bytes_max, self.events.clone());
        let workflow = self.workflow.clone();
        let called = workflow.call(ctx, input);
        Ok(Box::pin(async move {
            let output = called.await?;
            let what = format_args!("the output of workflow {:?}", workflow.name());
            json::encode_output(what, &output, bytes_max)
        }))
    }
}
