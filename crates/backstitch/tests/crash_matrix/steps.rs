//! Steps with effects outside, and the pieces that workflows are made of.

use backstitch::{Ctx, FailureExt, Result, Retry, Step, StepCtx, Undo, msg};

use crate::outside::Outside;

/// More attempts than there are crashes, after short delays.
pub fn patient() -> Retry {
    Retry::constant("1s").max_attempts(100)
}

/// A step that has the effect of its name after `yields` yields.
pub fn bare(ctx: &Ctx, name: &str, yields: u32) -> Step<String> {
    let step = ctx.step(name, async move |s| {
        let _at_work = s.state::<Outside>().body(&s);
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        apply(&s)
    });
    step.retry(patient()).rollback_retry(patient())
}

/// The same, with its undo.
pub fn effect(ctx: &Ctx, name: &str, yields: u32) -> Step<String> {
    bare(ctx, name, yields).rollback(reversed)
}

/// Has the effect of its name.
pub fn apply(s: &StepCtx) -> Result<String> {
    s.state::<Outside>().apply(&s.idempotency_key(), s.name())?;
    Ok(format!("ticket {}", s.name()))
}

/// The undo of an effect.
pub async fn reversed(u: Undo<String>) -> Result<()> {
    let outside = u.state::<Outside>();
    outside.undo(&u);
    outside.reverse(&u.idempotency_key(), &u.step().idempotency_key, &u.step().name);
    Ok(())
}

/// A step that has its effect once the flag is up.
pub fn bare_when(ctx: &Ctx, name: &str, flag: &'static str) -> Step<String> {
    let step = ctx.step(name, async move |s| {
        let _at_work = s.state::<Outside>().body(&s);
        s.state::<Outside>().flag(flag).await;
        apply(&s)
    });
    step.retry(patient()).rollback_retry(patient())
}

/// The same, with its undo.
pub fn when(ctx: &Ctx, name: &str, flag: &'static str) -> Step<String> {
    bare_when(ctx, name, flag).rollback(reversed)
}

/// An effect whose undo waits for the flag.
pub fn undone_when(ctx: &Ctx, name: &str, flag: &'static str) -> Step<String> {
    bare(ctx, name, 0).rollback(async move |u| {
        let outside = u.state::<Outside>().clone();
        outside.undo(&u);
        outside.flag(flag).await;
        reversed(u).await
    })
}

/// The business says no.
pub fn refusal(ctx: &Ctx) -> Step<String> {
    ctx.step("refusal", async move |s| {
        let _at_work = s.state::<Outside>().body(&s);
        Err(msg("no").permanent())
    })
    .retry(patient())
}
