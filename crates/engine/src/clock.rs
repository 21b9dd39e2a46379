//! Clocks. Everything that waits, waits for one of these, so that tests need not.

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

/// A clock that stands still until it is told to move. For tests.
#[derive(Clone, Debug)]
pub struct ManualClock {
    now_us: watch::Sender<i64>,
}

impl ManualClock {
    /// A clock that shows `now_us`.
    pub fn new(now_us: i64) -> ManualClock {
        ManualClock { now_us: watch::Sender::new(now_us) }
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
}

impl Clock for ManualClock {
    fn now_us(&self) -> i64 {
        *self.now_us.borrow()
    }

    fn sleep_until(&self, at_us: i64) -> BoxFuture<()> {
        let mut now_us = self.now_us.subscribe();
        Box::pin(async move {
            if now_us.wait_for(|now_us| *now_us >= at_us).await.is_err() {
                // Nobody is left who could move the clock.
                std::future::pending::<()>().await;
            }
        })
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        let us = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        self.sleep_until(self.now_us().saturating_add(us))
    }
}
