// An undo returns `Result<()>`.
use backstitch::{Ctx, Result, workflow};

#[workflow]
async fn pay(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.step("pay", async |_s| Ok(7_u32)).rollback(async |u| Ok(u.output().copied())).await
}

fn main() {}
