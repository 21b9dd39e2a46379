//! Clocks. Everything that waits, waits for one of these, so that tests need not.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::program::BoxFuture;

/// A source of time.
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since 1970. May jump.
    fn now_us(&self) -> i64;

    /// Completes as soon as `now_us` is at or after `at_us`, also when the clock was set forward.
    fn sleep_until(&self, at_us: i64) -> BoxFuture<()>;

    /// Completes after `duration` of steady time, whatever becomes of `now_us`.
    fn sleep(&self, duration: Duration) -> BoxFuture<()>;

    /// As [`Clock::sleep`], before a chore that nobody waits for: a clock that moves by itself to
    /// the next instant that somebody waits for leaves it out.
    fn chore(&self, duration: Duration) -> BoxFuture<()> {
        self.sleep(duration)
    }
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// How long a sleep may go on without a look at the wall clock, which somebody may have set.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Clock for SystemClock {
    fn now_us(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    fn sleep_until(&self, at_us: i64) -> BoxFuture<()> {
        Box::pin(async move {
            loop {
                let left_us = at_us.saturating_sub(SystemClock.now_us());
                let Ok(left_us @ 1..) = u64::try_from(left_us) else { return };
                tokio::time::sleep(Duration::from_micros(left_us).min(LOOK_AGAIN)).await;
            }
        })
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A clock that stands still until it is told to move. For tests. Clones are the same clock.
#[derive(Clone, Debug)]
pub struct ManualClock {
    now_us: watch::Sender<i64>,
    awaited: Arc<Mutex<Awaited>>,
}

/// The instants that somebody waits for, each under a number of its own.
#[derive(Debug, Default)]
struct Awaited {
    next: u64,
    instants: BTreeSet<(i64, u64)>,
}

impl ManualClock {
    /// A clock that shows `now_us`.
    pub fn new(now_us: i64) -> ManualClock {
        ManualClock { now_us: watch::Sender::new(now_us), awaited: Arc::default() }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let by_us = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.now_us.send_modify(|now_us| *now_us = now_us.saturating_add(by_us));
    }

    /// Sets the clock, also back.
    pub fn set(&self, now_us: i64) {
        self.now_us.send_replace(now_us);
    }

    /// The first instant that somebody waits for; chores do not count.
    pub fn next_us(&self) -> Option<i64> {
        self.lock().instants.first().map(|(at_us, _)| *at_us)
    }

    fn lock(&self) -> MutexGuard<'_, Awaited> {
        self.awaited.lock().expect("no code runs under this lock")
    }

    fn wait_until(&self, at_us: i64) -> impl Future<Output = ()> + Send + 'static {
        let mut now_us = self.now_us.subscribe();
        async move {
            if now_us.wait_for(|now_us| *now_us >= at_us).await.is_err() {
                // Nobody is left who could move the clock.
                std::future::pending::<()>().await;
            }
        }
    }

    fn after(&self, duration: Duration) -> i64 {
        let us = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        self.now_us().saturating_add(us)
    }
}

/// An instant is awaited as long as this lives.
struct Waiter {
    clock: ManualClock,
    place: (i64, u64),
}

impl Waiter {
    fn new(clock: &ManualClock, at_us: i64) -> Waiter {
        let mut awaited = clock.lock();
        awaited.next += 1;
        let place = (at_us, awaited.next);
        awaited.instants.insert(place);
        drop(awaited);
        Waiter { clock: clock.clone(), place }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.clock.lock().instants.remove(&self.place);
    }
}

impl Clock for ManualClock {
    fn now_us(&self) -> i64 {
        *self.now_us.borrow()
    }

    fn sleep_until(&self, at_us: i64) -> BoxFuture<()> {
        let (waiter, wait) = (Waiter::new(self, at_us), self.wait_until(at_us));
        Box::pin(async move {
            wait.await;
            drop(waiter);
        })
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        self.sleep_until(self.after(duration))
    }

    fn chore(&self, duration: Duration) -> BoxFuture<()> {
        Box::pin(self.wait_until(self.after(duration)))
    }
}
