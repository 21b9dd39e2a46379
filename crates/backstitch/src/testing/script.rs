//! What is to happen at which attempt, and what has happened. It outlives the processes of a test.

mod attempt;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backstitch_core::failure::Failure;
use backstitch_core::id::Key;
use backstitch_core::payload::Payload;
use backstitch_engine::program::{Body, BoxFuture, Handler, Intercept, StepCall, UndoCall};
use backstitch_store::fault::FaultPlan;
use tokio::sync::Notify;

use super::mock::{Act, Mock, Side};
use super::names::is_named;

/// Polls of code of the user before anything rests, and for how long: code that is polled more often,
/// and for longer, spins. No body that waits for something real comes near it.
const POLLS_MAX: u64 = 50_000;
const SPIN: Duration = Duration::from_millis(300);

/// Attempts before anything rests: more than one instant of a test has, and few enough to be told soon.
const TRIES_MAX: u64 = 3_000;

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
    /// So many attempts are left alone first.
    skip: u32,
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
    /// The attempts that were made, in order.
    tries: Vec<Try>,
    /// Polls of code of the user since everything rested, and since when.
    polls: u64,
    polled_since: Option<Instant>,
    /// Attempts since then.
    tried: u64,
    /// The attempt that spins.
    spins: Option<String>,
    /// The attempts whose code, the user's, runs at the moment.
    at_work: Vec<usize>,
    /// How many have ended.
    ended: u64,
    /// Those that wait to be released.
    held: u32,
    holding: bool,
    /// The keys, and what is to land.
    late: Vec<(String, BoxFuture<()>)>,
    plan: FaultPlan,
}

/// An attempt that was made.
struct Try {
    target: Target,
    key: Key,
    /// Whether the user's code ended well; absent, if it has not ended.
    good: Option<bool>,
    /// How often the user's code waited.
    awaits: u32,
}

/// What is known of the attempts of a step, or an undo.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Known {
    pub key: Key,
    /// The first attempt that ended well, from 1; the last one, if none did.
    pub good: u32,
    /// How often the code waited in that attempt.
    pub awaits: u32,
}

/// An attempt of either kind: its own code, as often as it is asked for.
type Own<T> = Arc<dyn Fn() -> BoxFuture<Result<T, Failure>> + Send + Sync>;

impl Script {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, target: Target, step: &str, mock: Mock) {
        let Mock { act, times: left, skip } = mock;
        let mut inner = self.lock();
        inner.holding |= matches!(act, Act::Hold(_) | Act::HoldAndCrash);
        inner.rules.push(Rule { target, step: step.to_owned(), act, skip, left, fired: 0 });
    }

    /// The plan by which the present process dies.
    pub fn obey(&self, plan: FaultPlan) {
        let mut inner = self.lock();
        (inner.plan, inner.held) = (plan, 0);
        inner.at_work.clear();
        (inner.polls, inner.polled_since, inner.tried, inner.spins) = (0, None, 0, None);
    }

    /// Everything rests.
    pub fn rests(&self) {
        let mut inner = self.lock();
        (inner.polls, inner.polled_since, inner.tried) = (0, None, 0);
    }

    /// What goes round and round without waiting for anything that happens, in words.
    pub fn spins(&self) -> Option<String> {
        self.lock().spins.clone()
    }

    /// Whether code of the user runs that is not held.
    pub fn is_at_work(&self) -> bool {
        !self.lock().at_work.is_empty()
    }

    /// The steps whose code, or whose undo, runs at the moment, by their keys.
    pub fn at_work(&self) -> Vec<(Target, Key)> {
        let inner = self.lock();
        let tries = inner.at_work.iter().map(|nth| &inner.tries[*nth]);
        tries.map(|tried| (tried.target, tried.key.clone())).collect()
    }

    /// Another number whenever some code of the user has begun or ended.
    pub fn progress(&self) -> u64 {
        let inner = self.lock();
        inner.tries.len() as u64 + inner.ended
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

    /// What was sent off by a worker that nobody believes any more, to land now, with its key.
    pub fn take_late(&self) -> Vec<(String, BoxFuture<()>)> {
        std::mem::take(&mut self.lock().late)
    }

    /// The keys of the steps, or the undone steps, whose attempts were made: each once, in order.
    pub fn seen(&self, target: Target) -> Vec<String> {
        self.lock().seen(target)
    }

    /// What is known of them.
    pub fn known(&self, target: Target) -> Vec<Known> {
        let inner = self.lock();
        let mut known: Vec<Known> = Vec::new();
        for tried in inner.tries.iter().filter(|tried| tried.target == target) {
            if known.iter().any(|known| known.key == tried.key) {
                continue;
            }
            let same = |other: &&Try| other.target == target && other.key == tried.key;
            let tries: Vec<&Try> = inner.tries.iter().filter(same).collect();
            let good = tries.iter().position(|tried| tried.good == Some(true));
            let place = good.unwrap_or(tries.len() - 1);
            let (key, awaits) = (tried.key.clone(), tries[place].awaits);
            known.push(Known { key, good: place as u32 + 1, awaits });
        }
        known
    }

    /// The names of the steps that were answered with a value by a mock.
    pub fn answered(&self) -> Vec<String> {
        let inner = self.lock();
        let rules = inner.rules.iter();
        let answered = rules.filter(|rule| rule.fired > 0 && matches!(rule.act, Act::Output(_)));
        let steps = answered.flat_map(|rule| {
            let tries = inner.tries.iter().filter(|tried| tried.target == rule.target);
            tries.filter(|tried| rule.is_for(&tried.key)).map(|tried| tried.key.name.clone())
        });
        steps.collect()
    }

    /// What never happened, in words.
    pub fn unfired(&self) -> Vec<String> {
        let inner = self.lock();
        let unfired = inner.rules.iter().filter(|rule| rule.fired == 0);
        unfired
            .map(|rule| {
                let what = match rule.target {
                    Target::Step => "step",
                    Target::Undo => "the undo of step",
                };
                let seen = inner.seen(rule.target);
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
    fn next(&self, target: Target, key: &Key, workflow: &str) -> (usize, Option<Act>) {
        let mut inner = self.lock();
        let nth = inner.tries.len();
        inner.tries.push(Try { target, key: key.clone(), good: None, awaits: 0 });
        inner.tried += 1;
        if inner.tried > TRIES_MAX {
            inner.spins.get_or_insert_with(|| {
                format!(
                    "workflow {workflow:?} goes on and on without waiting for anything: after \
                     {TRIES_MAX} attempts at one instant it comes to step \"{key}\""
                )
            });
            return (nth, Some(Act::Hang(Side::Before)));
        }
        for rule in &mut inner.rules {
            if rule.target != target || rule.left == Some(0) || !rule.is_for(key) {
                continue;
            }
            if let Some(skip) = rule.skip.checked_sub(1) {
                rule.skip = skip;
                continue;
            }
            rule.left = rule.left.map(|left| left - 1);
            if !rule.act.fires_later() {
                rule.fired += 1;
            }
            return (nth, Some(rule.act.clone()));
        }
        (nth, None)
    }

    /// The user's code of this attempt waits for the `nth` time in it.
    fn awaits(&self, attempt: usize, nth: u32) -> OnPoll {
        let mut inner = self.lock();
        inner.polls += 1;
        let since = *inner.polled_since.get_or_insert_with(Instant::now);
        let tried = &mut inner.tries[attempt];
        tried.awaits = nth;
        let key = tried.key.to_string();
        if inner.polls < POLLS_MAX || since.elapsed() < SPIN {
            return OnPoll::GoOn;
        }
        let polls = inner.polls;
        inner.spins.get_or_insert_with(|| {
            format!(
                "the code of step {key:?} was polled {polls} times at one instant and waits for \
                 nothing that happens: it spins (a loop around yield_now, for example)"
            )
        });
        OnPoll::Stop
    }

    fn ended_so(&self, attempt: usize, good: bool) {
        self.lock().tries[attempt].good = Some(good);
    }

    /// It dies at an await, as a rule wants it.
    fn fired_at_await(&self, target: Target, key: &Key) {
        let mut inner = self.lock();
        let mut rules = inner.rules.iter_mut();
        let rule =
            rules.find(|rule| rule.target == target && rule.act.fires_later() && rule.is_for(key));
        if let Some(rule) = rule {
            rule.fired += 1;
        }
    }
}

/// What becomes of code that waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnPoll {
    GoOn,
    Stop,
}

impl Rule {
    fn is_for(&self, key: &Key) -> bool {
        is_named(key, &self.step)
    }
}

impl Inner {
    fn seen(&self, target: Target) -> Vec<String> {
        let mut seen = Vec::new();
        for tried in self.tries.iter().filter(|tried| tried.target == target) {
            let key = tried.key.to_string();
            if !seen.contains(&key) {
                seen.push(key);
            }
        }
        seen
    }
}

/// The code of the user runs, at the attempt with this number, as long as this lives.
struct AtWork(Script, usize);

impl AtWork {
    fn new(script: &Script, nth: usize) -> AtWork {
        script.lock().at_work.push(nth);
        AtWork(script.clone(), nth)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        // Of a process that is dead by now it is no longer counted.
        if let Some(place) = inner.at_work.iter().position(|nth| *nth == self.1) {
            inner.at_work.swap_remove(place);
        }
        inner.ended += 1;
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
        let (nth, act) = self.next(Target::Step, &call.key, &call.execution.workflow);
        let body = body.clone();
        let own: Own<Payload> = Arc::new(move || (body.attempt)(call.clone()));
        self.attempt(nth, act, own, |output| output)
    }

    fn undo(&self, call: Arc<UndoCall>, handler: &Handler) -> BoxFuture<Result<(), Failure>> {
        let (nth, act) = self.next(Target::Undo, &call.key, &call.execution.workflow);
        let handler = handler.clone();
        let own: Own<()> = Arc::new(move || (handler.attempt)(call.clone()));
        self.attempt(nth, act, own, drop)
    }
}
