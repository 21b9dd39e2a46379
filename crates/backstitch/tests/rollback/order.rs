//! What is undone, and in which order.

use backstitch::{Ctx, ErrorKind, Result, RollbackOutcome, Status, join, workflow};

use crate::stage::{Stage, assert_refused, booking, checked, gated, refusal, undos};
use crate::world::events;

#[workflow]
async fn three_then_no(ctx: Ctx, (): ()) -> Result<()> {
    for name in ["a", "b", "c"] {
        booking(&ctx, name).await?;
    }
    refusal(&ctx).await
}

#[tokio::test]
async fn b50_w29_w31_all_undos_run_in_reverse_one_at_a_time_and_the_error_is_kept() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(three_then_no)).await;
    let handle = app.start(three_then_no, "t", ()).await.unwrap();
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert_refused(&error);
    let undone = ["undo c: succeeded", "undo b: succeeded", "undo a: succeeded"];
    assert_eq!(undos(&stage.effects()), undone);
    let status = handle.status().await.unwrap();
    assert_eq!(status.status, Status::Failed);
    assert_eq!(status.rollback.outcome, RollbackOutcome::Complete);
    assert_eq!((status.rollback.done, status.rollback.of), (3, 3));
    assert_eq!(error.rollback().unwrap(), status.rollback);
    checked(&handle).await;
}

#[workflow]
async fn a_beside_b(ctx: Ctx, (): ()) -> Result<()> {
    let (a, b) = join!(gated(&ctx, "a"), booking(&ctx, "b"));
    a?;
    b?;
    refusal(&ctx).await
}

#[tokio::test]
async fn b51_the_order_is_that_of_the_starts_not_of_the_ends() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(a_beside_b)).await;
    let handle = app.start(a_beside_b, "t", ()).await.unwrap();
    stage.sees("do b").await;
    stage.gates.open("a");
    handle.result().await.unwrap_err();
    let wanted = ["begin a", "do b", "do a", "undo b: succeeded", "undo a: succeeded"];
    assert_eq!(stage.effects(), wanted);
    checked(&handle).await;
}

#[workflow]
async fn nothing_owed(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step("read", async |_s| Ok(())).await?;
    refusal(&ctx).await
}

#[workflow]
async fn one_of_two_owed(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step("read", async |_s| Ok(())).await?;
    booking(&ctx, "a").await?;
    refusal(&ctx).await
}

#[tokio::test]
async fn b55_only_steps_with_an_undo_count() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(nothing_owed).register(one_of_two_owed)).await;
    let handle = app.start(nothing_owed, "none", ()).await.unwrap();
    let error = handle.result().await.unwrap_err();
    assert_refused(&error);
    assert_eq!(error.rollback().unwrap().outcome, RollbackOutcome::None);
    let names = events(&handle).await;
    assert!(!names.iter().any(|name| name.contains("Rollback") || name.contains("Undo")));

    let handle = app.start(one_of_two_owed, "one", ()).await.unwrap();
    handle.result().await.unwrap_err();
    let rollback = handle.status().await.unwrap().rollback;
    assert_eq!((rollback.outcome, rollback.of), (RollbackOutcome::Complete, 1));
    checked(&handle).await;
}

#[workflow]
async fn catches(ctx: Ctx, fails_later: bool) -> Result<()> {
    let caught = ctx
        .step("caught", async |_s| Err::<String, _>(backstitch::msg("not today")))
        .retry(backstitch::Retry::none())
        .rollback(crate::stage::undone)
        .await;
    assert!(caught.is_err());
    booking(&ctx, "a").await?;
    if fails_later { refusal(&ctx).await } else { Ok(()) }
}

#[tokio::test]
async fn b59_a_caught_failure_is_undone_only_if_a_later_one_is_not_caught() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(catches)).await;
    let good = app.start(catches, "good", false).await.unwrap();
    good.result().await.unwrap();
    assert!(undos(&stage.effects()).is_empty());
    assert!(events(&good).await.contains(&"StepFailed"), "the failure stays in the journal");
    assert!(!events(&good).await.contains(&"RollbackStarted"));

    let bad = app.start(catches, "bad", true).await.unwrap();
    bad.result().await.unwrap_err();
    assert_eq!(undos(&stage.effects()), ["undo a: succeeded", "undo caught: failed"]);
    checked(&bad).await;
}

#[workflow]
async fn long_name(ctx: Ctx, name: String) -> Result<()> {
    booking(&ctx, &name).await?;
    refusal(&ctx).await
}

#[tokio::test]
async fn b65_w07_a_step_with_the_longest_name_is_undone_like_any_other() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(long_name)).await;
    let name = "ü".repeat(256);
    let handle = app.start(long_name, "t", name.clone()).await.unwrap();
    handle.result().await.unwrap_err();
    assert_eq!(undos(&stage.effects()), [format!("undo {name}: succeeded")]);
    checked(&handle).await;
}

#[workflow]
async fn books_thrice(ctx: Ctx, (): ()) -> Result<()> {
    for i in 1..=3_u32 {
        ctx.step("book", async move |_s| Ok(format!("ticket {i}")))
            .rollback(async move |u| {
                let (count, output) = (u.step().count, u.output().cloned());
                u.state::<crate::world::Effects>().add(format!("undo {count} {output:?}"));
                Ok(())
            })
            .await?;
    }
    refusal(&ctx).await
}

#[tokio::test]
async fn b74_w30_a_loop_that_booked_three_times_is_undone_three_times() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(books_thrice)).await;
    let handle = app.start(books_thrice, "t", ()).await.unwrap();
    handle.result().await.unwrap_err();
    let ticket = |i| format!("undo {i} Some(\"ticket {i}\")");
    assert_eq!(undos(&stage.effects()), [ticket(3), ticket(2), ticket(1)]);
    checked(&handle).await;
}
