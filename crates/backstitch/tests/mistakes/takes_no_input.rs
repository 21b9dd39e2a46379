// A workflow has one input, if only `()`.
use backstitch::{Ctx, Result, workflow};

#[workflow]
async fn pay(_ctx: Ctx) -> Result<()> {
    Ok(())
}

fn main() {}
