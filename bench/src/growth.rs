//! Whether a step costs more when there are many: before it in its run, or beside it.

use std::path::Path;

use backstitch::{App, Ctx, Workflow, workflow};

use crate::parallel::side_by_side;
use crate::receipt::Receipt;
use crate::report::Measured;
use crate::{Result, closed_loop, store_dir};

const STEPS: [u64; 3] = [100, 1_000, 5_000];

#[workflow]
async fn in_a_row(ctx: Ctx, steps: u64) -> backstitch::Result<u64> {
    let mut sum = 0;
    for number in 0..steps {
        let receipt = ctx.step("parcel", async move |_s| Ok(Receipt::new(number))).await?;
        sum += receipt.number;
    }
    Ok(sum)
}

/// Each size as often as its steps add up to the same, so that the figures compare: `n` times the
/// largest.
pub async fn measure(name: &str, dir: &Path, n: u64) -> Result<Vec<Measured>> {
    let app = store_dir::open(dir)?.register(in_a_row).register(side_by_side).run().await?;
    let mut measured = Vec::new();
    for steps in STEPS {
        let times = n * STEPS[STEPS.len() - 1] / steps;
        measured.push(one(&app, in_a_row, name, "in a row", steps, times).await?);
        measured.push(one(&app, side_by_side, name, "parallel", steps, times).await?);
    }
    app.shutdown().await?;
    measured.sort_by_key(|measured| measured.detail.ends_with("parallel"));
    Ok(measured)
}

async fn one<W>(
    app: &App,
    workflow: W,
    name: &str,
    how: &str,
    steps: u64,
    times: u64,
) -> Result<Measured>
where
    W: Workflow<Input = u64, Output = u64>,
{
    let app = app.clone();
    let what = workflow.name().to_owned();
    let laps = closed_loop::run(times, 1, move |number| {
        let (app, workflow) = (app.clone(), workflow.clone());
        let id = format!("{what}-{steps}-{number}");
        async move {
            let handle = app.start(workflow, id, steps).await?;
            assert_eq!(handle.result().await?, steps * (steps - 1) / 2);
            Ok(())
        }
    });
    let measured = Measured::of_laps(name, &format!("{steps} steps {how}"), &laps.await?)?;
    Ok(measured.with_steps(steps))
}
