//! Time as a worker reckons with it: that of its server, and how long a lease has been going on.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use backstitch_engine::program::BoxFuture;
use backstitch_engine::{Clock, SystemClock};
use tokio::time::Instant;

/// How long a sleep may go on without a look at the clock, which the server may have set.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// An instant of this machine, by both of its clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    steady: Instant,
    wall: SystemTime,
}

impl Tick {
    pub fn now() -> Tick {
        Tick { steady: Instant::now(), wall: SystemTime::now() }
    }

    /// So much time has passed at most until `later`. The steady clock may stand still while the machine
    /// sleeps, and the other one may be set back: the one that says more is believed.
    pub fn until(self, later: Tick) -> Duration {
        let steady = later.steady.saturating_duration_since(self.steady);
        steady.max(later.wall.duration_since(self.wall).unwrap_or_default())
    }
}

/// The clock of the server, as far as its worker knows it: late by the time that a message takes, and never
/// early (P9).
#[derive(Clone, Debug, Default)]
pub(crate) struct RemoteClock(Arc<Mutex<Option<Sample>>>);

/// What the server's clock has shown, and when that was heard.
#[derive(Clone, Copy, Debug)]
struct Sample {
    now_us: i64,
    heard: Instant,
}

impl RemoteClock {
    /// The server has said what its clock shows. The newest word stands, also if it is behind what was
    /// reckoned: a clock that runs faster than the server's must not carry the worker away from it.
    pub fn heard(&self, now_us: i64) {
        let sample = Sample { now_us, heard: Instant::now() };
        *self.0.lock().expect("no code runs under this lock") = Some(sample);
    }
}

impl Clock for RemoteClock {
    fn now_us(&self) -> i64 {
        let sample = *self.0.lock().expect("no code runs under this lock");
        let Some(Sample { now_us, heard }) = sample else { return SystemClock.now_us() };
        let since_us = i64::try_from(heard.elapsed().as_micros()).unwrap_or(i64::MAX);
        now_us.saturating_add(since_us)
    }

    fn sleep_until(&self, at_us: i64) -> BoxFuture<()> {
        let clock = self.clone();
        Box::pin(async move {
            loop {
                let left_us = at_us.saturating_sub(clock.now_us());
                let Ok(left_us @ 1..) = u64::try_from(left_us) else { return };
                tokio::time::sleep(Duration::from_micros(left_us).min(LOOK_AGAIN)).await;
            }
        })
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_time_that_the_machine_sleeps_counts_and_a_clock_that_is_set_back_does_not() {
        let begin = Tick::now();
        let slept = Tick { steady: begin.steady + SECOND, wall: begin.wall + 60 * SECOND };
        assert_eq!(begin.until(slept), 60 * SECOND);
        let set_back = Tick { steady: begin.steady + SECOND, wall: begin.wall - 60 * SECOND };
        assert_eq!(begin.until(set_back), SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn p9_the_newest_word_of_the_server_stands_and_time_goes_on_from_it() {
        let clock = RemoteClock::default();
        clock.heard(1_000_000);
        tokio::time::advance(SECOND).await;
        assert_eq!(clock.now_us(), 2_000_000);
        clock.heard(1_900_000);
        assert_eq!(clock.now_us(), 1_900_000);
        let begin = Instant::now();
        clock.sleep_until(4_400_000).await;
        assert_eq!(begin.elapsed(), Duration::from_millis(2_500));
    }
}
