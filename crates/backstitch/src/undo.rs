//! Undos: what a handler gets.

use std::future::Future;
use std::sync::Arc;

use backstitch_core::event::RollbackCause;
use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::step::StepOutcome;
use backstitch_engine::program::{BoxFuture, CancelToken, Handler, UndoCall};

use crate::bounds::{Data, PerAttempt};
use crate::json;
use crate::state::StateMap;

/// What is known of the step that is undone.
#[derive(Clone, Debug, PartialEq)]
pub enum UndoOutcome {
    /// It succeeded; the output is at hand.
    Succeeded,
    /// Its last attempt failed. Unless the body itself said permanent or attention each time, the
    /// effect may have happened all the same.
    Failed(Failure),
    /// It was started and nobody knows what became of it: ask the other system by the step's key.
    Unknown,
}

/// The step that is undone.
#[derive(Clone, Debug)]
pub struct StepInfo {
    /// Its name.
    pub name: String,
    /// Its count among steps of that name.
    pub count: u32,
    /// How many attempts it had.
    pub attempts: u32,
    /// The idempotency key that its attempts carried.
    pub idempotency_key: String,
}

/// What an undo handler gets.
pub struct Undo<T> {
    call: Arc<UndoCall>,
    output: Option<T>,
    outcome: UndoOutcome,
    state: Arc<StateMap>,
}

impl<T> Undo<T> {
    /// The output of the step, if it succeeded.
    pub fn output(&self) -> Option<&T> {
        self.output.as_ref()
    }

    /// What is known of the step.
    pub fn outcome(&self) -> &UndoOutcome {
        &self.outcome
    }

    /// Why the run is rolled back: first the cause that decided, then those that came later.
    pub fn causes(&self) -> &[RollbackCause] {
        &self.call.causes
    }

    /// The error that caused the rollback, if it was one.
    pub fn cause_failure(&self) -> Option<&Failure> {
        self.call.causes.first()?.failure.as_ref()
    }

    /// The step that is undone.
    pub fn step(&self) -> StepInfo {
        StepInfo {
            name: self.call.key.name.clone(),
            count: self.call.key.count,
            attempts: self.call.step_attempts,
            idempotency_key: self.call.execution.run_id.step_key(self.call.ord),
        }
    }

    /// The number of this attempt of the undo, from 1.
    pub fn attempt(&self) -> u32 {
        self.call.attempt
    }

    /// The key under which another system recognises this undo: the same over all attempts,
    /// operators' retries and further rollbacks of the run, and different from the step's key.
    pub fn idempotency_key(&self) -> String {
        self.call.execution.run_id.undo_key(self.call.ord)
    }

    /// The business id of the execution.
    pub fn execution_id(&self) -> &str {
        &self.call.execution.id
    }

    /// The number of the ownership under which the attempt runs; see [`StepCtx::fence`](crate::StepCtx::fence).
    pub fn fence(&self) -> u64 {
        self.call.fence
    }

    /// Whether the attempt is no longer wanted (the process is being stopped).
    pub fn is_cancelled(&self) -> bool {
        self.call.cancel.is_cancelled()
    }

    /// The token that is told when the attempt is no longer wanted.
    pub fn cancel_token(&self) -> CancelToken {
        self.call.cancel.clone()
    }

    /// The application state of type `S`.
    ///
    /// # Panics
    /// When none was given; the undo then fails with an attention item that says so.
    pub fn state<S: Send + Sync + 'static>(&self) -> &S {
        self.state.get()
    }
}

/// Boxes the handler: decodes the output for it.
pub(crate) fn erase<T, F, Fut>(state: Arc<StateMap>, handler: F) -> Handler
where
    T: Data,
    F: FnOnce(Undo<T>) -> Fut + PerAttempt,
    Fut: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let attempt = move |call: Arc<UndoCall>| -> BoxFuture<Result<(), Failure>> {
        let (outcome, output) = match &call.outcome {
            StepOutcome::Succeeded(output) => match json::decode(output) {
                Ok(output) => (UndoOutcome::Succeeded, Some(output)),
                Err(why) => {
                    let message = format!("the output of step {} for its undo: {why}", call.key);
                    let failure = Failure::new(Class::Attention, Origin::Decode, "Decode", message);
                    return Box::pin(std::future::ready(Err(failure)));
                }
            },
            StepOutcome::Failed(failure) => (UndoOutcome::Failed(failure.clone()), None),
            StepOutcome::Unknown => (UndoOutcome::Unknown, None),
        };
        let handler = handler.clone();
        Box::pin(handler(Undo { call, output, outcome, state: state.clone() }))
    };
    Handler { attempt: Arc::new(attempt), delays: None }
}
