//! Many workflows that wait for something far away: the memory that each of them takes.

use std::time::{Duration, Instant};

use backstitch::store::RunNo;
use backstitch::{App, Ctx, Status, workflow};

use crate::closed_loop::{self, Laps};
use crate::receipt::Receipt;
use crate::report::Measured;
use crate::store_dir::Place;
use crate::{Result, process};

/// They make the files and fill the caches, and finish.
const WARM_UP: u64 = 500;

/// Executions that are looked at together: few, so that looking needs no memory to speak of.
const PAGE: usize = 64;

/// How often it is looked whether they are parked. Then once more so long, in which the engine drops
/// what it no longer needs.
const LOOK: Duration = Duration::from_millis(200);

/// Longer than it takes; only a hang gets there.
const HANG: Duration = Duration::from_secs(60);

#[workflow]
async fn sleeps_after_a_step(ctx: Ctx, sleep_s: u64) -> backstitch::Result<u64> {
    let receipt = ctx.step("reserve", async move |_s| Ok(Receipt::new(sleep_s))).await?;
    ctx.sleep(Duration::from_secs(sleep_s)).await?;
    Ok(receipt.number)
}

/// The latencies are those of the starts.
pub async fn measure(name: &str, place: Place<'_>, n: u64, in_flight: usize) -> Result<Measured> {
    let app = place.open()?.register(sleeps_after_a_step).run().await?;
    // A server may have those of an earlier measurement.
    let (starter, pid) = (app.clone(), std::process::id());
    let start = move |number, sleep_s| {
        let app = starter.clone();
        async move { app.start(sleeps_after_a_step, format!("order-{pid}-{number}"), sleep_s).await }
    };
    let finish = {
        let start = start.clone();
        move |number| {
            let started = start(n + number, 0);
            async move { Ok(started.await?.result().await?) }
        }
    };
    let park = move |number| {
        let started = start(number, 3_600);
        async move {
            let began = Instant::now();
            started.await?;
            Ok(began.elapsed())
        }
    };
    closed_loop::each(0..WARM_UP, in_flight, &finish).await?;
    let rss_before = process::rss_bytes()?;
    let (server_before, parked_before) = (place.server_rss_bytes()?, count_parked(&app).await?);
    let before = process::usage()?;
    let began = Instant::now();
    let latencies = closed_loop::each(0..n, in_flight, &park).await?;
    let elapsed = began.elapsed();
    when_the_last_are_parked(&app).await?;
    let (rss_after, server_after) = (process::rss_bytes()?, place.server_rss_bytes()?);
    let usage = process::usage()?.since(&before);
    let parked = count_parked(&app).await? - parked_before;
    if parked != n {
        return Err(format!("{parked} of {n} were parked when the memory was measured").into());
    }
    app.shutdown().await?;
    let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    let each = (rss_after as f64 - rss_before as f64) / n as f64;
    let laps = Laps::new(n, elapsed, latencies, usage);
    let measured = Measured::of_laps(name, "latency: of a start", &laps)?
        .with_amount("rss_per_parked_bytes", "memory per parked one, bytes", each)
        .with_amount("rss_before_mib", "memory before, MiB", mib(rss_before))
        .with_amount("rss_after_mib", "memory with all parked, MiB", mib(rss_after));
    Ok(match (server_before, server_after) {
        (Some(before), Some(after)) => measured
            .with_amount("server_rss_before_mib", "the server's before, MiB", mib(before))
            .with_amount("server_rss_after_mib", "the server's with them, MiB", mib(after)),
        _ => measured,
    })
}

/// Looks at the newest ones only: reading all of them takes memory of its own.
async fn when_the_last_are_parked(app: &App) -> Result<()> {
    let began = Instant::now();
    loop {
        tokio::time::sleep(LOOK).await;
        if app.list(PAGE).await?.iter().all(|one| one.status == Status::Suspended) {
            break;
        }
        if began.elapsed() > HANG {
            return Err("the workflows do not come to rest".into());
        }
    }
    tokio::time::sleep(LOOK).await;
    Ok(())
}

async fn count_parked(app: &App) -> Result<u64> {
    let (mut parked, mut before) = (0, RunNo(i64::MAX));
    loop {
        let page = app.engine().runs(before, PAGE).await?;
        let Some(last) = page.last() else { return Ok(parked) };
        before = last.run;
        parked += page.iter().filter(|run| run.update.status == Status::Suspended).count() as u64;
    }
}
