// What a workflow is started with is written into the journal, and so is what it returns.
use backstitch::{Ctx, Result, workflow};

struct Order(u32);

#[workflow]
async fn pay(_ctx: Ctx, order: Order) -> Result<Order> {
    Ok(Order(order.0 + 1))
}

fn main() {}
