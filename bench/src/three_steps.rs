//! Three empty steps in a row: the cost of durability and nothing else.

use std::path::Path;

use backstitch::{Backstitch, Ctx, workflow};

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

pub async fn measure(
    name: &str,
    dir: &Path,
    server: Option<&str>,
    n: u64,
    in_flight: usize,
) -> Result<Measured> {
    let builder = match server {
        None => store_dir::open(dir)?,
        Some(url) => Backstitch::open(url),
    };
    let app = builder.register(three_steps).run().await?;
    // A server may have those of an earlier measurement.
    let pid = std::process::id();
    let starter = app.clone();
    let laps = closed_loop::run(n, in_flight, move |number| {
        let app = starter.clone();
        async move {
            let handle = app.start(three_steps, format!("order-{pid}-{number}"), number).await?;
            let receipt = handle.result().await?;
            assert_eq!(receipt.number, number, "each workflow gets its own result");
            Ok(())
        }
    });
    let laps = laps.await?;
    app.shutdown().await?;
    Measured::of_laps(name, "", &laps)
}
