// The error of a workflow is `backstitch::Failure`.
use backstitch::{Ctx, workflow};

#[workflow]
async fn pay(_ctx: Ctx, order: String) -> Result<String, std::io::Error> {
    Ok(order)
}

fn main() {}
