// A body returns a `Result`.
use backstitch::{Ctx, Result, workflow};

#[workflow]
async fn pay(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.step("pay", async |_s| 7_u32).await
}

fn main() {}
