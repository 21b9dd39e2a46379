// A workflow has one input.
use backstitch::{Ctx, Result, workflow};

#[workflow]
async fn pay(_ctx: Ctx, order: String, amount: u32) -> Result<String> {
    Ok(format!("{order} {amount}"))
}

fn main() {}
