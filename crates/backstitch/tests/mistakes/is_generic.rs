// A workflow is found by its name, so it has no type parameters.
use backstitch::{Ctx, Result, workflow};

#[workflow]
async fn pay<T: Send>(_ctx: Ctx, _input: T) -> Result<()> {
    Ok(())
}

fn main() {}
