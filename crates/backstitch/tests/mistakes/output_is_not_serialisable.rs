// What a body returns is written into the journal.
use backstitch::{Ctx, Result, workflow};

struct Receipt(u32);

#[workflow]
async fn pay(ctx: Ctx, (): ()) -> Result<u32> {
    let receipt = ctx.step("pay", async |_s| Ok(Receipt(7))).await?;
    Ok(receipt.0)
}

fn main() {}
