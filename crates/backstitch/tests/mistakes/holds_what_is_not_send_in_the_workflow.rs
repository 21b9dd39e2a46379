// A workflow may go on on another thread.
use std::rc::Rc;

use backstitch::{Ctx, Result, workflow};

#[workflow]
async fn pay(ctx: Ctx, (): ()) -> Result<u32> {
    let amount = Rc::new(7_u32);
    ctx.step("pay", async |_s| Ok(())).await?;
    Ok(*amount)
}

fn main() {}
