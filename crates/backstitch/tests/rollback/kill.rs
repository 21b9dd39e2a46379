//! Kill: the only end without a rollback, and what it leaves.

use backstitch::{Ctx, ErrorKind, Result, RollbackOutcome, Status, workflow};

use crate::stage::{Gates, Stage, a_while, booking, checked, gated, refusal, undone, undos};
use crate::world::{Effects, events, eventually, until};

#[workflow]
async fn books_two(ctx: Ctx, (): ()) -> Result<()> {
    booking(&ctx, "a").await?;
    gated(&ctx, "b").await?;
    Ok(())
}

#[tokio::test]
async fn b35_kill_runs_no_undo_and_lists_what_is_left() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(books_two)).await;
    let handle = app.start(books_two, "t", ()).await.unwrap();
    stage.sees("begin b").await;
    handle.kill().by("ops").reason("gone wrong").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Terminated);
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Terminated);
    assert_eq!(error.rollback().unwrap().outcome, RollbackOutcome::Incomplete);
    let attention = app.attention(10).await.unwrap();
    assert_eq!((attention.len(), attention[0].kind.as_str()), (1, "killed"));
    assert!(attention[0].message.contains("by ops (gone wrong) with undos left: b#1, a#1"));
    // Its body was dropped, and no undo starts.
    stage.gates.open("b");
    a_while().await;
    assert_eq!(stage.effects(), ["do a", "begin b"]);
    assert_eq!(handle.cancel().await.unwrap_err().kind(), ErrorKind::Refused);
    checked(&handle).await;
}

#[tokio::test]
async fn p10_what_a_killed_run_has_left_is_settled_although_its_id_has_a_newer_run() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(books_two)).await;
    let handle = app.start(books_two, "t", ()).await.unwrap();
    stage.sees("begin b").await;
    handle.kill().await.unwrap();
    handle.closed().await.unwrap();
    handle.restart().await.unwrap();
    // In a process that has no handle of the first run.
    let app = stage.open(|b| b.register(books_two)).await;
    let matters = app.attention(10).await.unwrap();
    let killed = app.handle_of::<()>(&matters[0]).await.unwrap();
    assert_eq!(killed.run_id(), handle.run_id());
    assert_ne!(app.handle::<()>("t").await.unwrap().run_id(), handle.run_id());
    for step in ["b", "a"] {
        killed.waive_undo(step).by("ops").reason("done by hand").await.unwrap();
    }
    eventually("it is settled", async || app.attention(10).await.unwrap().is_empty()).await;
}

#[workflow]
async fn owes_nothing(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step("a", async |_s| Ok(())).await?;
    ctx.sleep("1h").await
}

#[tokio::test]
async fn b35_killed_without_debts_leaves_no_item() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(owes_nothing)).await;
    let handle = app.start(owes_nothing, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    handle.kill().await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Terminated);
    let rollback = handle.status().await.unwrap().rollback;
    assert_eq!(rollback.outcome, RollbackOutcome::None);
    assert!(app.attention(10).await.unwrap().is_empty());
    checked(&handle).await;
}

#[workflow]
async fn slow_undo(ctx: Ctx, (): ()) -> Result<()> {
    booking(&ctx, "a").await?;
    ctx.step("b", async |_s| Ok("ticket b".to_owned()))
        .rollback(async |u| {
            u.state::<Effects>().add("undoing b");
            u.state::<Gates>().pass("undo b").await;
            undone(u).await
        })
        .await?;
    booking(&ctx, "c").await?;
    refusal(&ctx).await
}

#[tokio::test]
async fn b68_kill_stops_a_rollback_and_lists_the_interrupted_undo_too() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(slow_undo)).await;
    let handle = app.start(slow_undo, "t", ()).await.unwrap();
    stage.sees("undoing b").await;
    handle.kill().by("ops").reason("enough").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Terminated);
    stage.gates.open("undo b");
    a_while().await;
    assert_eq!(undos(&stage.effects()), ["undo c: succeeded", "undoing b"]);
    let attention = app.attention(10).await.unwrap();
    assert!(attention[0].message.contains("with undos left: b#1, a#1"), "{attention:?}");
    let rollback = handle.status().await.unwrap().rollback;
    assert_eq!((rollback.outcome, rollback.done), (RollbackOutcome::Incomplete, 1));
    assert!(!events(&handle).await.contains(&"RollbackFinished"));
    checked(&handle).await;
    // The list outlives the process.
    let app = stage.open(|b| b.register(slow_undo)).await;
    assert_eq!(app.attention(10).await.unwrap(), attention);
}
