//! Two steps with an undo each, then one that fails for good: both are undone.

use std::path::Path;

use backstitch::{Ctx, ErrorKind, FailureExt, RollbackOutcome, msg, workflow};

use crate::receipt::Receipt;
use crate::report::Measured;
use crate::{Result, closed_loop, store_dir};

#[workflow]
async fn undone(ctx: Ctx, number: u64) -> backstitch::Result<Receipt> {
    let body = async move |_s| Ok(Receipt::new(number));
    ctx.step("reserve", body).rollback(async move |_u| Ok(())).await?;
    ctx.step("charge", body).rollback(async move |_u| Ok(())).await?;
    let refuse = async move |_s| Err(msg("the carrier does not go there").permanent());
    ctx.step("ship", refuse).await
}

pub async fn measure(name: &str, dir: &Path, n: u64, in_flight: usize) -> Result<Measured> {
    let app = store_dir::open(dir)?.register(undone).run().await?;
    let starter = app.clone();
    let laps = closed_loop::run(n, in_flight, move |number| {
        let app = starter.clone();
        async move {
            let handle = app.start(undone, format!("order-{number}"), number).await?;
            let Err(error) = handle.result().await else {
                return Err("the workflow succeeded although its last step cannot".into());
            };
            let back = error.rollback().map(|rollback| (rollback.outcome, rollback.done));
            assert_eq!(error.kind(), ErrorKind::Failed);
            assert_eq!(back, Some((RollbackOutcome::Complete, 2)));
            Ok(())
        }
    });
    let laps = laps.await?;
    app.shutdown().await?;
    Measured::of_laps(name, "", &laps)
}
