//! Workers that have nothing to do: the memory that a server has for each of them.

use std::time::{Duration, Instant};

use backstitch::{Backstitch, Ctx, workflow};

use crate::closed_loop::Laps;
use crate::report::Measured;
use crate::store_dir::Place;
use crate::{Result, process};

/// So long they are there: longer than a lease, which each of them prolongs three times meanwhile.
const STAY: Duration = Duration::from_secs(20);

#[workflow]
async fn never_started(_ctx: Ctx, number: u64) -> backstitch::Result<u64> {
    Ok(number)
}

/// The latencies are those of the connections, made one after another.
pub async fn measure(name: &str, place: Place<'_>, n: u64) -> Result<Measured> {
    let (Some(url), Some(before)) = (place.server, place.server_rss_bytes()?) else {
        return Err(format!("{name} needs --server and --server-pid").into());
    };
    let (usage, began) = (process::usage()?, Instant::now());
    let (mut workers, mut latencies) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let began = Instant::now();
        workers.push(Backstitch::open(url).register(never_started).run().await?);
        latencies.push(began.elapsed());
    }
    let elapsed = began.elapsed();
    tokio::time::sleep(STAY).await;
    let after = place.server_rss_bytes()?.ok_or("the server is gone")?;
    for worker in workers {
        worker.shutdown().await?;
    }
    let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    let each = (after as f64 - before as f64) / 1024.0 / n as f64;
    let laps = Laps::new(n, elapsed, latencies, process::usage()?.since(&usage));
    Ok(Measured::of_laps(name, "latency: of a connection", &laps)?
        .with_amount("server_rss_before_mib", "the server's memory before, MiB", mib(before))
        .with_amount("server_rss_after_mib", "the server's with them, MiB", mib(after))
        .with_amount("server_rss_each_kib", "of each, KiB", each))
}
