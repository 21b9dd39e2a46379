// The body changes what it captured: that would be lost in replay.
use backstitch::{Ctx, Result, workflow};

#[workflow]
async fn count(ctx: Ctx, (): ()) -> Result<u32> {
    let mut calls = 0_u32;
    ctx.step("count", async |_s| {
        calls += 1;
        Ok(())
    })
    .await?;
    Ok(calls)
}

fn main() {}
