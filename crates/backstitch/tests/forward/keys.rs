//! Idempotency keys: what another system recognises a step or an undo by (B93).

use std::collections::HashSet;

use backstitch::{
    Classify, Ctx, FailureExt, Result, Retry, Reuse, Status, StepCtx, Undo, join, msg, workflow,
};

use crate::journal::{Soon, journal, seen_by};
use crate::world::{Effects, World, until};

fn note(effects: &Effects, what: &str, attempt: u32, key: &str) {
    effects.add(format!("{what} {attempt} {key}"));
}

/// The keys that were noted for `what`, in order of the attempts.
fn keys(effects: &Effects, what: &str) -> Vec<String> {
    let of = |line: &String| line.strip_prefix(&format!("{what} ")).map(str::to_owned);
    let noted: Vec<String> = effects.all().iter().filter_map(of).collect();
    noted.iter().filter_map(|line| line.split(' ').nth(1).map(str::to_owned)).collect()
}

#[workflow]
async fn stubborn(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step("book", async |s: StepCtx| {
        note(s.state(), "book", s.attempt(), &s.idempotency_key());
        match s.attempt() {
            1 => Err(msg("later")),
            2 => Err(std::io::Error::other("401")).attention(),
            3 => std::future::pending().await,
            _ => Ok(()),
        }
    })
    .retry(Retry::constant("1s"))
    .rollback(async |u: Undo<()>| {
        note(u.state(), "undo", u.attempt(), &u.idempotency_key());
        note(u.state(), "seen-by-undo", u.attempt(), &u.step().idempotency_key);
        match u.attempt() {
            1 => Err(msg("later")),
            2 => Err(msg("never").permanent()),
            _ => Ok(()),
        }
    })
    .rollback_retry(Retry::constant("1s"))
    .await?;
    Err(msg("no").permanent())
}

#[tokio::test]
async fn b93_w39_one_key_over_all_attempts_crashes_and_operators_retries() {
    let world = World::new();
    let app = world.open(|b| b.register(stubborn)).await;
    let handle = app.start(stubborn, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Blocked).await;
    handle.retry_step("book").await.unwrap();
    crate::world::eventually("the third attempt", || async {
        keys(&world.effects, "book").len() == 3
    })
    .await;
    let app = world.open(|b| b.register(stubborn)).await;
    let handle = seen_by(&app, &handle).await;
    world.advance_until(&handle, Status::Stuck).await;
    handle.retry_undo("book").await.unwrap();
    until(&handle, Status::Failed).await;

    let run_id = handle.run_id();
    assert_eq!(keys(&world.effects, "book"), vec![run_id.step_key(1); 4]);
    assert_eq!(keys(&world.effects, "undo"), vec![run_id.undo_key(1); 3]);
    assert_eq!(keys(&world.effects, "seen-by-undo"), vec![run_id.step_key(1); 3]);
    assert_ne!(run_id.step_key(1), run_id.undo_key(1));
    assert_eq!(run_id.step_key(1).len(), 36);
    journal(&handle).await;
}

/// Steps whose names look like keys, undos and paths of other steps.
#[workflow]
async fn lookalikes(ctx: Ctx, (): ()) -> Result<Vec<String>> {
    let key = async |s: StepCtx| Ok(s.idempotency_key());
    let branch = ctx.branch("a");
    let (first, second, third, fourth, fifth, sixth) = join!(
        ctx.step("a", key),
        ctx.step("a#1", key),
        ctx.step("a/undo", key),
        ctx.step("undo", key),
        branch.step("a", key),
        ctx.step("a/a", key),
    );
    let again = ctx.step("a", key).await?;
    Ok(vec![first?, second?, third?, fourth?, fifth?, sixth?, again])
}

#[tokio::test]
async fn b93_names_that_look_alike_have_different_keys() {
    let world = World::new();
    let app = world.open(|b| b.register(lookalikes)).await;
    let mut seen = HashSet::new();
    for _ in 0..3 {
        // The same id, run after run.
        let handle = app.start(lookalikes, "t", ()).reuse(Reuse::Allow).await.unwrap();
        assert!(handle.created());
        for (ord, key) in (1..).zip(handle.result().soon().await.unwrap()) {
            assert!(seen.insert(key), "the key of step {ord} was used before");
            assert!(seen.insert(handle.run_id().undo_key(ord)));
        }
    }
    assert_eq!(seen.len(), 3 * 7 * 2);
}
