// A workflow returns a `Result`.
use backstitch::{Ctx, workflow};

#[workflow]
async fn pay(_ctx: Ctx, order: String) -> String {
    order
}

fn main() {}
