//! Three empty steps in a row: the cost of durability and nothing else.

use backstitch::{Ctx, workflow};

use crate::receipt::Receipt;
use crate::report::Measured;
use crate::store_dir::Place;
use crate::{Result, closed_loop};

#[workflow]
async fn three_steps(ctx: Ctx, number: u64) -> backstitch::Result<Receipt> {
    let body = async move |_s| Ok(Receipt::new(number));
    ctx.step("reserve", body).await?;
    ctx.step("charge", body).await?;
    ctx.step("ship", body).await
}

pub async fn measure(name: &str, place: Place<'_>, n: u64, in_flight: usize) -> Result<Measured> {
    let app = place.open()?.register(three_steps).run().await?;
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
