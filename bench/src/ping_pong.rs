//! Events in a row, each answered before the next one is sent: what one round takes.

use std::path::Path;
use std::time::Instant;

use backstitch::{Ctx, NoTimeout, workflow};

use crate::report::Measured;
use crate::{Result, closed_loop, store_dir};

const ROUNDS: u64 = 100;

#[workflow]
async fn answers(ctx: Ctx, rounds: u64) -> backstitch::Result<u64> {
    let mut sum = 0;
    for _ in 0..rounds {
        let number: u64 = ctx.wait_event("turn", "ping", NoTimeout).await?;
        ctx.publish("pong", &number)?;
        sum += number;
    }
    Ok(sum)
}

/// A latency is that of one round: from sending an event until its answer is seen.
pub async fn measure(name: &str, dir: &Path, n: u64, in_flight: usize) -> Result<Measured> {
    let app = store_dir::open(dir)?.register(answers).run().await?;
    let starter = app.clone();
    let laps = closed_loop::run_of_laps(n, in_flight, move |number| {
        let app = starter.clone();
        async move {
            let handle = app.start(answers, format!("game-{number}"), ROUNDS).await?;
            let mut pongs = handle.follow::<u64>("pong");
            let mut rounds = Vec::with_capacity(ROUNDS as usize);
            for round in 1..=ROUNDS {
                let began = Instant::now();
                handle.send_event("ping", &round).await?;
                assert_eq!(pongs.next().await?, Some(round), "each event gets its own answer");
                rounds.push(began.elapsed());
            }
            assert_eq!(handle.result().await?, ROUNDS * (ROUNDS + 1) / 2);
            Ok(rounds)
        }
    });
    let laps = laps.await?;
    app.shutdown().await?;
    let detail = format!("latency: of each of {ROUNDS} rounds");
    let rounds_per_s = (n * ROUNDS) as f64 / laps.elapsed.as_secs_f64();
    Ok(Measured::of_laps(name, &detail, &laps)?.with_amount(
        "rounds_per_s",
        "rounds per second",
        rounds_per_s,
    ))
}
