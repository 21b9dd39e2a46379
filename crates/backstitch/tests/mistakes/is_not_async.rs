// A workflow is an async function.
use backstitch::{Ctx, Result, workflow};

#[workflow]
fn pay(_ctx: Ctx, order: String) -> Result<String> {
    Ok(order)
}

fn main() {}
