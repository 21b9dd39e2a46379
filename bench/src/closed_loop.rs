//! A closed loop: so many callers, each of which waits for its workflow before it starts the next.

use std::ops::Range;
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
    /// Of each run, or each lap of it, in ascending order.
    pub latencies: Vec<Duration>,
    pub usage: Usage,
}

impl Laps {
    /// Of latencies in any order.
    pub fn new(n: u64, elapsed: Duration, mut latencies: Vec<Duration>, usage: Usage) -> Laps {
        latencies.sort_unstable();
        Laps { n, elapsed, latencies, usage }
    }

    /// The latency below which this share of the runs lies.
    pub fn quantile(&self, share: f64) -> Duration {
        quantile(&self.latencies, share)
    }
}

/// The value below which this share of them lies, which are in ascending order.
pub fn quantile<T: Copy>(sorted: &[T], share: f64) -> T {
    let at = (sorted.len() as f64 * share) as usize;
    sorted[at.min(sorted.len() - 1)]
}

/// Calls `run` with 0, 1, 2 …, never more than `in_flight` at a time: a warm-up, then `n` times
/// on the clock.
pub async fn run<F, Fut>(n: u64, in_flight: usize, run: F) -> Result<Laps>
where
    F: Fn(u64) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    let timed = move |number| {
        let run = run.clone();
        async move {
            let began = Instant::now();
            run(number).await?;
            Ok(vec![began.elapsed()])
        }
    };
    run_of_laps(n, in_flight, timed).await
}

/// The same, where a run has several laps and says how long each of them took.
pub async fn run_of_laps<F, Fut>(n: u64, in_flight: usize, run: F) -> Result<Laps>
where
    F: Fn(u64) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<Duration>>> + Send + 'static,
{
    let warm_up = (n / 10).clamp(1, WARM_UP_MAX);
    each(0..warm_up, in_flight, &run).await?;
    let before = process::usage()?;
    let began = Instant::now();
    let latencies = each(warm_up..warm_up + n, in_flight, &run).await?;
    let elapsed = began.elapsed();
    let usage = process::usage()?.since(&before);
    Ok(Laps::new(n, elapsed, latencies.into_iter().flatten().collect(), usage))
}

/// Calls `run` with each of the numbers, never more than `in_flight` at a time. What came of it is
/// in no order.
pub async fn each<T, F, Fut>(numbers: Range<u64>, in_flight: usize, run: &F) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Fn(u64) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<T>> + Send + 'static,
{
    let next = Arc::new(AtomicU64::new(numbers.start));
    let caller = |_| {
        let (next, run, end) = (next.clone(), run.clone(), numbers.end);
        tokio::spawn(async move {
            let mut answers = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return Ok(answers);
                }
                answers.push(run(number).await?);
            }
        })
    };
    let callers: Vec<_> = (0..in_flight).map(caller).collect();
    let mut answers = Vec::with_capacity((numbers.end - numbers.start) as usize);
    for caller in callers {
        let own: Result<Vec<T>> = caller.await?;
        answers.extend(own?);
    }
    Ok(answers)
}
