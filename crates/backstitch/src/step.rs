//! Steps: the builder, the future, and the context of a body.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::id::KeyKind;
use backstitch_core::payload::Payload;
use backstitch_core::retry::{
    OnAbandon, OnExhausted, OnUndoFailure, StepPolicy, UndoOn, UndoPolicy,
};
use backstitch_core::session::{AskedKind, Outcome};
use backstitch_engine::desk::{Request, Ticket};
use backstitch_engine::program::{Body, BoxFuture, CancelToken, Delays, Handler, StepCall};

use crate::bounds::{Data, PerAttempt};
use crate::ctx::Ctx;
use crate::duration::IntoDuration;
use crate::json;
use crate::retry::Retry;
use crate::state::StateMap;
use crate::undo::{self, Undo};

/// A step that is being built, and the future of its outcome. Made by [`Ctx::step`].
///
/// Options are chained onto it before it is first polled; an option set later makes it fail
/// permanently. Dropping it while the workflow runs (the loser of a race, a timeout around it)
/// drops the step: no further attempt starts, and its undo is owed.
///
/// # Errors
/// The failure of its last attempt, once the attempts are used up or the failure is permanent.
#[must_use = "a step does nothing unless it is awaited"]
pub struct Step<T> {
    ctx: Ctx,
    built: Built,
    plan: Option<Box<Plan>>,
    name: Box<str>,
    place: &'static Location<'static>,
    /// Kept from where the bounds of `T` were checked, so that awaiting needs none.
    decode: fn(&Payload) -> Result<T, String>,
}

/// What is handed in at the first poll.
struct Plan {
    body: Body,
    policy: StepPolicy,
    undo: Option<Handler>,
    undo_policy: UndoPolicy,
    /// Beside the handler, which may be given later than its policy.
    undo_delays: Option<Delays>,
}

impl<T: Data> Step<T> {
    pub(crate) fn build<F, Fut>(
        ctx: &Ctx,
        name: &str,
        place: &'static Location<'static>,
        body: F,
    ) -> Step<T>
    where
        F: FnOnce(StepCtx) -> Fut + PerAttempt,
        Fut: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let built = match ctx.defect() {
            Some(defect) => Err(defect.clone()),
            None => ctx.desk.build(ctx.scope(), KeyKind::Step, name, place),
        };
        let plan = Plan {
            body: erase(ctx, body),
            policy: StepPolicy::step_default(),
            undo: None,
            undo_policy: UndoPolicy::undo_default(),
            undo_delays: None,
        };
        Step {
            ctx: ctx.clone(),
            built: built.map_or_else(Built::Refused, Built::Here),
            plan: Some(Box::new(plan)),
            name: name.into(),
            place,
            decode: json::decode,
        }
    }

    /// The undo of the step: runs when the workflow fails for good, is cancelled or terminated, or
    /// when the step was dropped.
    ///
    /// It runs also when the outcome of the step is unknown (the process died), so it must ask the
    /// other system by the step's key; see [`Undo::outcome`]. It runs at least once, always under
    /// the same idempotency key.
    pub fn rollback<F, Fut>(mut self, handler: F) -> Step<T>
    where
        F: FnOnce(Undo<T>) -> Fut + PerAttempt,
        Fut: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let handler = undo::erase(self.ctx.state.clone(), handler);
        self.set("rollback", |plan| match plan.undo.replace(handler) {
            None => Ok(()),
            Some(_) => Err("it is set twice; a step has one undo".into()),
        });
        self
    }

    /// The retry policy of the step.
    pub fn retry(mut self, retry: Retry) -> Step<T> {
        self.set("retry", |plan| {
            plan.policy.retry = retry.policy;
            plan.body.delays = retry.delays;
            retry.defect.map_or(Ok(()), Err)
        });
        self
    }

    /// The longest that one attempt may take (default: 10 minutes). Then its body is dropped, and
    /// the attempt has failed with an unknown effect. A body can be dropped only where it awaits:
    /// one that blocks its thread goes on, and what it returns in the end is its outcome.
    pub fn timeout(mut self, timeout: impl IntoDuration) -> Step<T> {
        self.set("timeout", |plan| {
            plan.policy.timeout_us = positive(timeout)?;
            Ok(())
        });
        self
    }

    /// The longest that all attempts and the delays between them may take together.
    pub fn deadline(mut self, deadline: impl IntoDuration) -> Step<T> {
        self.set("deadline", |plan| {
            plan.policy.deadline_us = Some(positive(deadline)?);
            Ok(())
        });
        self
    }

    /// What happens when the attempts are used up (default: the step fails into the code).
    pub fn on_exhausted(mut self, on_exhausted: OnExhausted) -> Step<T> {
        self.set("on_exhausted", |plan| {
            plan.policy.on_exhausted = on_exhausted as i32;
            Ok(())
        });
        self
    }

    /// For which outcomes the step is undone (default: whenever it was started).
    pub fn undo_on(mut self, undo_on: UndoOn) -> Step<T> {
        self.set("undo_on", |plan| {
            plan.policy.undo_on = undo_on as i32;
            Ok(())
        });
        self
    }

    /// What becomes of a running attempt when the step is dropped or the run rolls back (default:
    /// it may finish if the step has an undo, else it is cancelled).
    pub fn on_abandon(mut self, on_abandon: OnAbandon) -> Step<T> {
        self.set("on_abandon", |plan| {
            plan.policy.on_abandon = on_abandon as i32;
            Ok(())
        });
        self
    }

    /// The step is not undone only because the workflow dropped it and then succeeded.
    pub fn keep_when_dropped(mut self) -> Step<T> {
        self.set("keep_when_dropped", |plan| {
            plan.policy.keep_when_dropped = true;
            Ok(())
        });
        self
    }

    /// The retry policy of the undo (default: 10 attempts, 1 s, factor 2, cap 5 min).
    pub fn rollback_retry(mut self, retry: Retry) -> Step<T> {
        self.set("rollback_retry", |plan| {
            plan.undo_policy.retry = retry.policy;
            plan.undo_delays = retry.delays;
            retry.defect.map_or(Ok(()), Err)
        });
        self
    }

    /// The longest that one attempt of the undo may take (default: 10 minutes).
    pub fn rollback_timeout(mut self, timeout: impl IntoDuration) -> Step<T> {
        self.set("rollback_timeout", |plan| {
            plan.undo_policy.timeout_us = positive(timeout)?;
            Ok(())
        });
        self
    }

    /// What the rollback does after this undo has failed for good (default: goes on).
    pub fn rollback_on_failure(mut self, on_failure: OnUndoFailure) -> Step<T> {
        self.set("rollback_on_failure", |plan| {
            plan.undo_policy.on_failure = on_failure as i32;
            Ok(())
        });
        self
    }

    /// Sets an option, or turns the step into one that fails with what is wrong.
    fn set(&mut self, option: &str, set: impl FnOnce(&mut Plan) -> Result<(), String>) {
        let why = match &mut self.plan {
            Some(plan) => set(plan).err(),
            None => Some("it is set after the step was first polled; set it before".into()),
        };
        if let (Some(why), Built::Here(ticket)) = (why, &self.built) {
            let message = format!("step {:?} at {}: option {option}: {why}", self.name, self.place);
            self.ctx.desk.release(ticket);
            let defect = Failure::new(Class::Permanent, Origin::Engine, "BadOption", message);
            self.built = Built::Refused(defect);
        }
    }
}

fn positive(duration: impl IntoDuration) -> Result<u64, String> {
    match duration.into_us()? {
        0 => Err("it is zero; give it some time, or leave it out for the default".into()),
        us => Ok(us),
    }
}

/// Boxes the body: decoded state in, encoded output out.
fn erase<T, F, Fut>(ctx: &Ctx, body: F) -> Body
where
    T: Data,
    F: FnOnce(StepCtx) -> Fut + PerAttempt,
    Fut: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let (state, bytes_max) = (ctx.state.clone(), ctx.payload_bytes_max);
    let attempt = move |call: Arc<StepCall>| -> BoxFuture<Result<Payload, Failure>> {
        let body = body.clone();
        let future = body(StepCtx { call: call.clone(), state: state.clone() });
        Box::pin(async move {
            let output = future.await?;
            let what = format_args!("the output of step {}", call.key);
            json::encode_output(what, &output, bytes_max)
        })
    };
    Body { attempt: Arc::new(attempt), delays: None }
}

impl<T> Future for Step<T> {
    type Output = Result<T, Failure>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let ticket = match &this.built {
            Built::Here(ticket) => ticket,
            Built::Refused(defect) => return Poll::Ready(Err(defect.clone())),
            Built::Over => return Poll::Ready(Err(this.awaited_again())),
        };
        let plan = &mut this.plan;
        let request = |_now_us| {
            let plan = *plan.take().expect("handed in once");
            let undo_policy = plan.undo.is_some().then_some(plan.undo_policy);
            let undo = plan.undo.map(|undo| Handler { delays: plan.undo_delays, ..undo });
            let what = AskedKind::Step { policy: plan.policy, undo: undo_policy };
            Request { what, body: Some(plan.body), undo }
        };
        let outcome = match this.ctx.desk.poll(ticket, cx, request) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(failure) | Ok(Outcome::Step(Err(failure)))) => Err(failure),
            Poll::Ready(Ok(Outcome::Step(Ok(output)))) => match (this.decode)(&output) {
                Ok(value) => Ok(value),
                Err(why) => {
                    let what =
                        format!("step {:?} at {}, whose output: {why}", this.name, this.place);
                    this.ctx.desk.undecodable(what);
                    return Poll::Pending;
                }
            },
            Poll::Ready(Ok(Outcome::Timer | Outcome::Event(_) | Outcome::NoEvent)) => {
                unreachable!("a step is shown the outcome of a step")
            }
        };
        this.ctx.desk.release(ticket);
        this.built = Built::Over;
        Poll::Ready(outcome)
    }
}

impl<T> Drop for Step<T> {
    fn drop(&mut self) {
        if let Built::Here(ticket) = &self.built {
            self.ctx.desk.release(ticket);
        }
    }
}

impl<T> Step<T> {
    fn awaited_again(&self) -> Failure {
        let message =
            format!("step {:?} at {} was awaited again after it had ended", self.name, self.place);
        Failure::new(Class::Permanent, Origin::Engine, "AwaitedTwice", message)
    }
}

/// What became of the building of a step or a wait.
pub(crate) enum Built {
    /// It stands on the desk.
    Here(Ticket),
    /// It was refused, and the failure says why.
    Refused(Failure),
    /// Its outcome was taken.
    Over,
}

/// What the body of a step gets.
pub struct StepCtx {
    call: Arc<StepCall>,
    state: Arc<StateMap>,
}

impl StepCtx {
    /// The name of the step.
    pub fn name(&self) -> &str {
        &self.call.key.name
    }

    /// How many steps of that name were built before it in its branch, plus one.
    pub fn count(&self) -> u32 {
        self.call.key.count
    }

    /// The number of this attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.call.attempt
    }

    /// The most attempts that the policy of this attempt allows.
    pub fn max_attempts(&self) -> u32 {
        self.call.policy.retry.max_attempts
    }

    /// The key under which another system recognises this step: the same over all its attempts,
    /// different for every other step and run. Put it into the idempotency header of the call.
    pub fn idempotency_key(&self) -> String {
        self.call.execution.run_id.step_key(self.call.ord)
    }

    /// The business id of the execution.
    pub fn execution_id(&self) -> &str {
        &self.call.execution.id
    }

    /// The number of the ownership under which the attempt runs: larger than that of every owner of the
    /// execution before, in this process or another. Give it to a system that can turn older ones away.
    pub fn fence(&self) -> u64 {
        self.call.fence
    }

    /// Whether the attempt is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        self.call.cancel.is_cancelled()
    }

    /// The token that is told when the attempt is no longer wanted; for work that does not await.
    pub fn cancel_token(&self) -> CancelToken {
        self.call.cancel.clone()
    }

    /// The application state of type `S`.
    ///
    /// # Panics
    /// When none was given; the step is then blocked with an attention item that says so.
    pub fn state<S: Send + Sync + 'static>(&self) -> &S {
        self.state.get()
    }
}
