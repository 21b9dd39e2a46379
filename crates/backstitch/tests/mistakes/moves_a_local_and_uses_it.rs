// The body takes a local that is used afterwards: `clone!(order => …)` is what was meant.
use backstitch::{Ctx, Result, workflow};

#[workflow]
async fn pay(ctx: Ctx, order: String) -> Result<String> {
    let paid = ctx.step("pay", async move |_s| Ok(format!("paid {order}"))).await?;
    Ok(format!("{order}: {paid}"))
}

fn main() {}
