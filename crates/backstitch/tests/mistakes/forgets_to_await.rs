// A step does nothing unless it is awaited.
#![deny(unused_must_use)]
use backstitch::{Ctx, Result, workflow};

#[workflow]
async fn pay(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step("pay", async |_s| Ok(()));
    Ok(())
}

fn main() {}
