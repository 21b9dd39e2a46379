//! What the engine needs of a workflow's code. The crate `backstitch` implements it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use backstitch_core::event::RollbackCause;
use backstitch_core::failure::Failure;
use backstitch_core::id::{Key, Ordinal, RunId};
use backstitch_core::payload::Payload;
use backstitch_core::retry::StepPolicy;
use backstitch_core::step::StepOutcome;
use tokio::sync::Notify;

pub use crate::delays::Delays;
use crate::desk::Desk;

/// A boxed future.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// A workflow that can be run.
pub trait Program: Send + Sync + 'static {
    /// Its name.
    fn name(&self) -> &str;

    /// Its version.
    fn version(&self) -> &str;

    /// The types of the events that it takes; empty if it does not say.
    fn event_types(&self) -> &[String];

    /// Calls the workflow function. Its future talks to the engine through `desk` alone.
    ///
    /// # Errors
    /// When the input does not decode as the type that the function takes.
    fn start(
        &self,
        desk: Desk,
        input: &Payload,
    ) -> Result<BoxFuture<Result<Payload, Failure>>, Failure>;
}

/// Stands between the engine and the code of attempts. For tests, which let bodies and undos fail,
/// hang, run twice or not at all.
pub trait Intercept: fmt::Debug + Send + Sync + 'static {
    /// Makes the future of one attempt of a step, with or without its body.
    fn step(&self, call: Arc<StepCall>, body: &Body) -> BoxFuture<Result<Payload, Failure>>;

    /// Makes the future of one attempt of an undo.
    fn undo(&self, call: Arc<UndoCall>, handler: &Handler) -> BoxFuture<Result<(), Failure>>;
}

/// Which execution something belongs to.
#[derive(Clone, Debug)]
pub struct ExecutionFacts {
    /// The namespace of the id.
    pub namespace: String,
    /// The business id.
    pub id: String,
    /// The id of the run.
    pub run_id: RunId,
    /// The workflow.
    pub workflow: String,
    /// Its version.
    pub version: String,
}

/// Told to a body when it is no longer wanted. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<TokenState>);

#[derive(Debug, Default)]
struct TokenState {
    /// One of the four below: where the body stands before its first poll.
    place: AtomicU8,
    cancelled: AtomicBool,
    notify: Notify,
}

/// It begins when it is first polled.
const READY: u8 = 0;
/// Its first poll waits: a decision to roll back is on its way.
const HELD: u8 = 1;
/// It has begun, and nobody holds it back any more.
const BEGUN: u8 = 2;
/// It never begins.
const WITHDRAWN: u8 = 3;

impl CancelToken {
    /// Tells everybody who holds the token. A body that has not begun never does.
    pub fn cancel(&self) {
        self.step(READY, WITHDRAWN);
        self.step(HELD, WITHDRAWN);
        self.0.cancelled.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    /// Cancels a body that has not begun, and lets one go on that has.
    pub(crate) fn withdraw(&self) {
        if self.step(READY, WITHDRAWN) || self.step(HELD, WITHDRAWN) {
            self.cancel();
        }
    }

    /// Holds a body back that has not begun.
    pub(crate) fn hold(&self) {
        self.step(READY, HELD);
    }

    /// Lets a body begin that was held back.
    pub(crate) fn release(&self) {
        if self.step(HELD, READY) {
            self.0.notify.notify_waiters();
        }
    }

    /// Whether the body may begin; asked once, and answered when it is not held.
    pub(crate) async fn begin(&self) -> bool {
        loop {
            let notified = self.0.notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.step(READY, BEGUN) {
                return true;
            }
            if self.0.place.load(Ordering::SeqCst) == WITHDRAWN {
                return false;
            }
            notified.await;
        }
    }

    /// Whoever is first decides: the body that begins, or the one who does not want it to.
    fn step(&self, from: u8, to: u8) -> bool {
        self.0.place.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Whether the body is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Completes when the body is no longer wanted.
    pub async fn cancelled(&self) {
        loop {
            let notified = self.0.notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.is_cancelled() {
                return;
            }
            notified.await;
        }
    }
}

/// One attempt of a step's body.
#[derive(Clone, Debug)]
pub struct StepCall {
    /// Of which execution.
    pub execution: Arc<ExecutionFacts>,
    /// The step's ordinal.
    pub ord: Ordinal,
    /// The step's identity.
    pub key: Key,
    /// From 1.
    pub attempt: u32,
    /// The policy of the attempt.
    pub policy: StepPolicy,
    /// The number of the ownership under which it runs.
    pub fence: u64,
    /// Told when the body is no longer wanted.
    pub cancel: CancelToken,
}

/// One attempt of an undo.
#[derive(Clone, Debug)]
pub struct UndoCall {
    /// Of which execution.
    pub execution: Arc<ExecutionFacts>,
    /// The ordinal of the step that is undone.
    pub ord: Ordinal,
    /// Its identity.
    pub key: Key,
    /// What is known of its effect.
    pub outcome: StepOutcome,
    /// How many attempts the step had.
    pub step_attempts: u32,
    /// Why the run is rolled back.
    pub causes: Vec<RollbackCause>,
    /// The undo's own attempt, from 1.
    pub attempt: u32,
    /// The number of the ownership under which it runs.
    pub fence: u64,
    /// Told when the handler is no longer wanted.
    pub cancel: CancelToken,
}

/// Makes the future of an attempt.
type Attempt<Call, T> = dyn Fn(Arc<Call>) -> BoxFuture<Result<T, Failure>> + Send + Sync;

/// The code of a step's attempts. Cheap to clone.
#[derive(Clone)]
pub struct Body {
    /// Makes the future of one attempt.
    pub attempt: Arc<Attempt<StepCall, Payload>>,
    /// The delay function of the retry policy, if it has one.
    pub delays: Option<Delays>,
}

/// The code of an undo's attempts. Cheap to clone.
#[derive(Clone)]
pub struct Handler {
    /// Makes the future of one attempt.
    pub attempt: Arc<Attempt<UndoCall, ()>>,
    /// The delay function of the retry policy, if it has one.
    pub delays: Option<Delays>,
}
