// The attribute has two options.
use backstitch::{Ctx, Result, workflow};

#[workflow(timeout = "5s")]
async fn pay(_ctx: Ctx, (): ()) -> Result<()> {
    Ok(())
}

fn main() {}
