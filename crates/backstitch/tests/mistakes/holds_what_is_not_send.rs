// A body may run on another thread than the workflow.
use std::rc::Rc;

use backstitch::{Ctx, Result, workflow};

#[workflow]
async fn pay(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.step("pay", async |_s| {
        let amount = Rc::new(7_u32);
        std::future::ready(()).await;
        Ok(*amount)
    })
    .await
}

fn main() {}
