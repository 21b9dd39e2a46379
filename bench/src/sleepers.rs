//! Many workflows that sleep at the same time: how soon all of them are started, and how late they
//! wake up.

use std::time::{Duration, Instant};

use backstitch::{Ctx, jiff, workflow};

use crate::closed_loop::{self, Laps, quantile};
use crate::report::{Measured, ms};
use crate::store_dir::Place;
use crate::{Result, process};

const SLEEP_MS: u64 = 5_000;

/// They make the files and fill the caches, and sleep for a moment.
const WARM_UP: u64 = 200;
const WARM_UP_SLEEP_MS: u64 = 1;

/// Returns how late it woke up, in microseconds. `now` is the time of the turn, from which the
/// sleep is counted; the end is read from the machine's clock on purpose: it is what is measured.
#[workflow]
async fn sleeper(ctx: Ctx, sleep_ms: u64) -> backstitch::Result<i64> {
    let sleep = Duration::from_millis(sleep_ms);
    let fire_at = ctx.now() + sleep;
    ctx.sleep(sleep).await?;
    Ok(jiff::Timestamp::now().as_microsecond() - fire_at.as_microsecond())
}

/// The latencies are those of the starts.
pub async fn measure(name: &str, place: Place<'_>, n: u64, in_flight: usize) -> Result<Measured> {
    let app = place.open()?.register(sleeper).run().await?;
    // A server may have those of an earlier measurement.
    let (starter, pid) = (app.clone(), std::process::id());
    let start = move |prefix: &'static str, sleep_ms| {
        let app = starter.clone();
        move |number| {
            let app = app.clone();
            async move {
                let began = Instant::now();
                let handle =
                    app.start(sleeper, format!("{prefix}-{pid}-{number}"), sleep_ms).await?;
                Ok((began.elapsed(), handle))
            }
        }
    };
    let warm_up = start("warm-up", WARM_UP_SLEEP_MS);
    for (_, handle) in closed_loop::each(0..WARM_UP, in_flight, &warm_up).await? {
        handle.result().await?;
    }
    let before = process::usage()?;
    let began = Instant::now();
    let started = closed_loop::each(0..n, in_flight, &start("sleeper", SLEEP_MS)).await?;
    let start_all = began.elapsed();
    let mut latencies = Vec::new();
    let mut lateness_us = Vec::new();
    for (latency, handle) in started {
        latencies.push(latency);
        let late_us = handle.result().await?;
        assert!(late_us >= 0, "a sleep never ends early");
        lateness_us.push(late_us as f64);
    }
    let usage = process::usage()?.since(&before);
    app.shutdown().await?;
    lateness_us.sort_unstable_by(f64::total_cmp);
    let laps = Laps::new(n, start_all, latencies, usage);
    Ok(Measured::of_laps(name, "latency: of a start", &laps)?
        .with_amount("start_all_ms", "all started after, ms", ms(start_all))
        .with_amount("lateness_p50_ms", "lateness p50, ms", quantile(&lateness_us, 0.5) / 1e3)
        .with_amount("lateness_p99_ms", "lateness p99, ms", quantile(&lateness_us, 0.99) / 1e3))
}
