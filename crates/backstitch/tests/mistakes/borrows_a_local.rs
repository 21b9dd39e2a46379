// The body borrows a local of the workflow: `clone!(order => async move |_s| …)` is what was meant.
use backstitch::{Ctx, Result, workflow};

#[workflow]
async fn pay(ctx: Ctx, order: String) -> Result<String> {
    let paid = ctx.step("pay", async |_s| Ok(format!("paid {order}"))).await?;
    Ok(format!("{order}: {paid}"))
}

fn main() {}
