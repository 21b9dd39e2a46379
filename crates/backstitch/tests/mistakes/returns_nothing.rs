// A workflow returns a `Result`, if only `Result<()>`.
use backstitch::{Ctx, workflow};

#[workflow]
async fn pay(_ctx: Ctx, _order: String) {}

fn main() {}
