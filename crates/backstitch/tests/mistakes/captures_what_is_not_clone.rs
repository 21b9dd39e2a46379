// A body is cloned for each attempt.
use backstitch::{Ctx, Result, workflow};

#[workflow]
async fn pay(ctx: Ctx, (): ()) -> Result<u32> {
    let lock = std::sync::Mutex::new(7_u32);
    ctx.step("pay", async move |_s| Ok(lock.into_inner()?)).await
}

fn main() {}
