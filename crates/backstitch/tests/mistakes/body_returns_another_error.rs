// The error of a body is `backstitch::Failure`, which `?` makes of every error.
use backstitch::{Ctx, Result, workflow};

async fn charge() -> std::io::Result<u32> {
    Ok(7)
}

#[workflow]
async fn pay(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.step("pay", async |_s| charge().await).await
}

fn main() {}
