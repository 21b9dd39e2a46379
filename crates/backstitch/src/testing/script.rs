//! What is to happen at which attempt, and what has happened. It outlives the processes of a test.

use std::fmt;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstitch_core::failure::Failure;
use backstitch_core::id::Key;
use backstitch_core::payload::Payload;
use backstitch_engine::program::{Body, BoxFuture, Handler, Intercept, StepCall, UndoCall};
use backstitch_store::fault::FaultPlan;
use tokio::sync::Notify;

use super::mock::{Act, Mock, Side};

/// Whether a rule is about bodies or undos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Target {
    Step,
    Undo,
}

/// Something that is to happen at attempts of one step.
struct Rule {
    target: Target,
    /// The name of the step, or its key as it is printed.
    step: String,
    act: Act,
    /// At how many more attempts; at all of them, if absent.
    left: Option<u32>,
    fired: u32,
}

/// Clones are the same script.
#[derive(Clone, Default)]
pub(super) struct Script(Arc<Shared>);

#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    /// Told when a body has ended.
    ended: Notify,
    /// Told when those that are held may go on.
    released: Notify,
}

#[derive(Default)]
struct Inner {
    rules: Vec<Rule>,
    /// The keys whose attempts were made, in order.
    steps: Vec<String>,
    undos: Vec<String>,
    /// Bodies and undos of the user that run at the moment.
    at_work: u32,
    /// Those that wait to be released.
    held: u32,
    holding: bool,
    late: Vec<BoxFuture<()>>,
    plan: FaultPlan,
}

/// An attempt of either kind: its own code, as often as it is asked for.
type Own<T> = Arc<dyn Fn() -> BoxFuture<Result<T, Failure>> + Send + Sync>;

impl Script {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, target: Target, step: &str, mock: Mock) {
        let Mock { act, times: left } = mock;
        let mut inner = self.lock();
        inner.holding |= matches!(act, Act::Hold(_));
        inner.rules.push(Rule { target, step: step.to_owned(), act, left, fired: 0 });
    }

    /// The plan by which the present process dies.
    pub fn obey(&self, plan: FaultPlan) {
        let mut inner = self.lock();
        (inner.plan, inner.at_work, inner.held) = (plan, 0, 0);
    }

    /// Whether code of the user runs that is not held.
    pub fn is_at_work(&self) -> bool {
        self.lock().at_work > 0
    }

    /// Waits until some code of the user has ended.
    pub async fn ended(&self) {
        self.0.ended.notified().await;
    }

    pub fn is_holding(&self) -> bool {
        self.lock().held > 0
    }

    /// Lets those go on that are held, and holds nobody from now on.
    pub fn release(&self) {
        self.lock().holding = false;
        self.0.released.notify_waiters();
    }

    /// What was sent off by a worker that nobody believes any more, to land now.
    pub fn take_late(&self) -> Vec<BoxFuture<()>> {
        std::mem::take(&mut self.lock().late)
    }

    /// The keys of the steps, or the undone steps, whose attempts were made: each once, in order.
    pub fn seen(&self, target: Target) -> Vec<String> {
        let inner = self.lock();
        match target {
            Target::Step => inner.steps.clone(),
            Target::Undo => inner.undos.clone(),
        }
    }

    /// What never happened, in words.
    pub fn unfired(&self) -> Vec<String> {
        let inner = self.lock();
        let unfired = inner.rules.iter().filter(|rule| rule.fired == 0);
        unfired
            .map(|rule| {
                let (what, seen) = match rule.target {
                    Target::Step => ("step", &inner.steps),
                    Target::Undo => ("the undo of step", &inner.undos),
                };
                let act = rule.act.describe();
                let there_are = match seen.as_slice() {
                    [] => "none of either kind was attempted".to_owned(),
                    seen => format!("attempted were {}", seen.join(", ")),
                };
                format!("{act} for {what} {:?} never took effect; {there_are}", rule.step)
            })
            .collect()
    }

    /// Nothing is to happen any more.
    pub fn forget(&self) {
        self.lock().rules.clear();
    }

    /// Notes an attempt, and says what is to happen at it.
    fn next(&self, target: Target, key: &Key) -> Option<Act> {
        let mut inner = self.lock();
        let printed = key.to_string();
        let seen = match target {
            Target::Step => &mut inner.steps,
            Target::Undo => &mut inner.undos,
        };
        if !seen.contains(&printed) {
            seen.push(printed.clone());
        }
        let rule = inner.rules.iter_mut().find(|rule| {
            let named = rule.step == key.name || rule.step == printed;
            named && rule.target == target && rule.left != Some(0)
        })?;
        rule.fired += 1;
        rule.left = rule.left.map(|left| left - 1);
        Some(rule.act.clone())
    }

    /// Runs the user's code, counted.
    fn work<T: Send + 'static>(&self, own: &Own<T>) -> BoxFuture<Result<T, Failure>> {
        let at_work = AtWork::new(self);
        let future = own();
        Box::pin(async move {
            let _at_work = at_work;
            future.await
        })
    }

    fn attempt<T: Send + 'static>(
        &self,
        act: Option<Act>,
        own: Own<T>,
        mocked: impl FnOnce(Payload) -> T + Send + 'static,
    ) -> BoxFuture<Result<T, Failure>> {
        let script = self.clone();
        match act {
            None => self.work(&own),
            Some(Act::Output(output)) => Box::pin(ready(output.map(mocked))),
            Some(Act::Fail(failure)) => Box::pin(ready(Err(failure))),
            Some(Act::FailAfter(failure)) => Box::pin(async move {
                let _ = script.work(&own).await;
                Err(failure)
            }),
            Some(Act::Hang) => Box::pin(pending()),
            Some(Act::Panic(text)) => Box::pin(async move { panic!("{text}") }),
            Some(Act::Repeat(times)) => Box::pin(async move {
                for _ in 1..times {
                    let _ = script.work(&own).await;
                }
                script.work(&own).await
            }),
            Some(Act::Crash) => Box::pin(async move {
                let _ = script.work(&own).await;
                script.die().await
            }),
            Some(Act::Stale) => {
                let late = Box::pin(async move { drop(own().await) });
                self.lock().late.push(late);
                Box::pin(async move { script.die().await })
            }
            Some(Act::Hold(Side::Before)) => Box::pin(async move {
                script.hold().await;
                script.work(&own).await
            }),
            Some(Act::Hold(Side::After)) => Box::pin(async move {
                let ended = script.work(&own).await;
                script.hold().await;
                ended
            }),
        }
    }

    async fn die<T>(&self) -> T {
        let plan = self.lock().plan.clone();
        plan.die();
        pending().await
    }

    async fn hold(&self) {
        let released = self.0.released.notified();
        tokio::pin!(released);
        released.as_mut().enable();
        {
            let mut inner = self.lock();
            if !inner.holding {
                return;
            }
            inner.held += 1;
        }
        let _held = Held(self.clone());
        released.await;
    }
}

/// Code of the user runs as long as this lives.
struct AtWork(Script);

impl AtWork {
    fn new(script: &Script) -> AtWork {
        script.lock().at_work += 1;
        AtWork(script.clone())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        // Of a process that is dead by now it is no longer counted.
        inner.at_work = inner.at_work.saturating_sub(1);
        drop(inner);
        self.0.0.ended.notify_one();
    }
}

struct Held(Script);

impl Drop for Held {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.held = inner.held.saturating_sub(1);
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

impl Intercept for Script {
    fn step(&self, call: Arc<StepCall>, body: &Body) -> BoxFuture<Result<Payload, Failure>> {
        let act = self.next(Target::Step, &call.key);
        let body = body.clone();
        self.attempt(act, Arc::new(move || (body.attempt)(call.clone())), |output| output)
    }

    fn undo(&self, call: Arc<UndoCall>, handler: &Handler) -> BoxFuture<Result<(), Failure>> {
        let act = self.next(Target::Undo, &call.key);
        let handler = handler.clone();
        self.attempt(act, Arc::new(move || (handler.attempt)(call.clone())), drop)
    }
}
