//! Three empty steps in a row: the cost of durability and nothing else.

use std::path::Path;

use backstitch::{Ctx, workflow};

use crate::receipt::Receipt;
use crate::report::Measured;
use crate::{Result, closed_loop, store_dir};

#[workflow]
async fn three_steps(ctx: Ctx, number: u64) -> backstitch::Result<Receipt> {
    let body = async move |_s| Ok(Receipt::new(number));
    ctx.step("reserve", body).await?;
    ctx.step("charge", body).await?;
    ctx.step("ship", body).await
}

pub async fn measure(name: &str, dir: &Path, n: u64, in_flight: usize) -> Result<Measured> {
    let app = store_dir::open(dir)?.register(three_steps).run().await?;
    let starter = app.clone();
    let laps = closed_loop::run(n, in_flight, move |number| {
        let app = starter.clone();
        async move {
            let handle = app.start(three_steps, format!("order-{number}"), number).await?;
            let receipt = handle.result().await?;
            assert_eq!(receipt.number, number, "each workflow gets its own result");
            Ok(())
        }
    });
    let laps = laps.await?;
    app.shutdown().await?;
    Measured::of_laps(name, "", &laps)
}
