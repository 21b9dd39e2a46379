//! One workflow of many parallel steps. Its latency counts; so it has the machine to itself.

use std::path::Path;

use backstitch::{Ctx, workflow};
use futures_util::future::try_join_all;

use crate::receipt::Receipt;
use crate::report::Measured;
use crate::{Result, closed_loop, store_dir};

const STEPS: u64 = 100;

/// Also used by the workload `growth`, with other numbers of steps.
#[workflow]
pub async fn side_by_side(ctx: Ctx, steps: u64) -> backstitch::Result<u64> {
    let step = |number| ctx.step("parcel", async move |_s| Ok(Receipt::new(number)));
    let steps: Vec<_> = (0..steps).map(step).collect();
    let receipts = try_join_all(steps).await?;
    Ok(receipts.iter().map(|receipt| receipt.number).sum())
}

pub async fn measure(name: &str, dir: &Path, n: u64, in_flight: usize) -> Result<Measured> {
    let app = store_dir::open(dir)?.register(side_by_side).run().await?;
    let starter = app.clone();
    let laps = closed_loop::run(n, in_flight, move |number| {
        let app = starter.clone();
        async move {
            let handle = app.start(side_by_side, format!("order-{number}"), STEPS).await?;
            assert_eq!(handle.result().await?, STEPS * (STEPS - 1) / 2);
            Ok(())
        }
    });
    let laps = laps.await?;
    app.shutdown().await?;
    Measured::of_laps(name, "", &laps)
}
