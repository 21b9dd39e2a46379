//! A closed loop: so many callers, each of which waits for its workflow before it starts the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Result;
use crate::process::{self, Usage};

/// Runs before the measured ones, at most: they make the files and fill the caches.
const WARM_UP_MAX: u64 = 2_000;

/// What a loop took.
pub struct Laps {
    pub n: u64,
    pub elapsed: Duration,
    /// Of each run, in ascending order.
    pub latencies: Vec<Duration>,
    pub usage: Usage,
}

impl Laps {
    /// The latency below which this share of the runs lies.
    pub fn quantile(&self, share: f64) -> Duration {
        let at = (self.latencies.len() as f64 * share) as usize;
        self.latencies[at.min(self.latencies.len() - 1)]
    }
}

/// Calls `run` with 0, 1, 2 …, never more than `in_flight` at a time: a warm-up, then `n` times
/// on the clock.
pub async fn run<F, Fut>(n: u64, in_flight: usize, run: F) -> Result<Laps>
where
    F: Fn(u64) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    let warm_up = (n / 10).clamp(1, WARM_UP_MAX);
    callers(0..warm_up, in_flight, &run).await?;
    let before = process::usage()?;
    let began = Instant::now();
    let mut latencies = callers(warm_up..warm_up + n, in_flight, &run).await?;
    let elapsed = began.elapsed();
    let usage = process::usage()?.since(&before);
    latencies.sort_unstable();
    Ok(Laps { n, elapsed, latencies, usage })
}

async fn callers<F, Fut>(
    numbers: std::ops::Range<u64>,
    in_flight: usize,
    run: &F,
) -> Result<Vec<Duration>>
where
    F: Fn(u64) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    let next = Arc::new(AtomicU64::new(numbers.start));
    let caller = |_| {
        let (next, run, end) = (next.clone(), run.clone(), numbers.end);
        tokio::spawn(async move {
            let mut latencies = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return Ok(latencies);
                }
                let began = Instant::now();
                run(number).await?;
                latencies.push(began.elapsed());
            }
        })
    };
    let callers: Vec<_> = (0..in_flight).map(caller).collect();
    let mut latencies = Vec::with_capacity((numbers.end - numbers.start) as usize);
    for caller in callers {
        let own: Result<Vec<Duration>> = caller.await?;
        latencies.extend(own?);
    }
    Ok(latencies)
}
