//! A crash on the way back, and code that changed meanwhile.

use backstitch::{
    Ctx, FnWorkflow, Origin, Result, Retry, RollbackOutcome, Status, workflow, workflow_fn,
};

use crate::stage::{Gates, Stage, assert_refused, booking, checked, gated, refusal, undone, undos};
use crate::world::{Effects, until};

#[workflow]
async fn one_in_flight(ctx: Ctx, (): ()) -> Result<()> {
    gated(&ctx, "a").await?;
    Ok(())
}

#[tokio::test]
async fn b56_w24_a_step_in_flight_at_the_crash_is_undone_by_a_cancel_and_does_not_run_again() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(one_in_flight)).await;
    app.start(one_in_flight, "t", ()).await.unwrap();
    stage.sees("begin a").await;
    // The next process has no worker for it; the cancel needs none, its undo does.
    let app = stage.open(|b| b).await;
    let handle = app.handle::<()>("t").await.unwrap();
    handle.cancel().await.unwrap();
    until(&handle, Status::RollingBack).await;
    let app = stage.open(|b| b.register(one_in_flight)).await;
    let handle = app.handle::<()>("t").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(stage.effects(), ["begin a", "undo a: unknown"]);
    checked(&handle).await;
}

/// Three bookings; the first attempt to undo b never comes to its end.
fn held(name: &str, ends_well: bool) -> FnWorkflow<(), ()> {
    workflow_fn(name, move |ctx: Ctx, (): ()| async move {
        booking(&ctx, "a").await?;
        ctx.step("b", async |_s| Ok("ticket b".to_owned()))
            .rollback(async |u| {
                u.state::<Effects>().add(format!("undo attempt {}", u.attempt()));
                if u.attempt() == 1 {
                    u.state::<Gates>().pass("never").await;
                }
                undone(u).await
            })
            .await?;
        booking(&ctx, "c").await?;
        if ends_well { Ok(()) } else { refusal(&ctx).await }
    })
}

#[tokio::test]
async fn b60_w23_finished_undos_do_not_run_again_and_the_interrupted_one_does() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(held("held", false))).await;
    app.start(held("held", false), "t", ()).await.unwrap();
    stage.sees("undo attempt 1").await;
    let app = stage.open(|b| b.register(held("held", false))).await;
    let handle = app.handle::<()>("t").await.unwrap();
    assert_refused(&handle.result().await.unwrap_err());
    let wanted = [
        "undo c: succeeded",
        "undo attempt 1",
        "undo attempt 2",
        "undo b: succeeded",
        "undo a: succeeded",
    ];
    assert_eq!(undos(&stage.effects()), wanted);
    assert_eq!(stage.world.effects.count("do a"), 1, "no body runs to rebuild a handler");
    checked(&handle).await;
}

#[tokio::test]
async fn b61_w01_code_that_would_now_succeed_does_not_stop_the_rollback() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(held("held", false))).await;
    app.start(held("held", false), "t", ()).await.unwrap();
    stage.sees("undo attempt 1").await;
    let app = stage.open(|b| b.register(held("held", true))).await;
    let handle = app.handle::<()>("t").await.unwrap();
    assert_refused(&handle.result().await.unwrap_err());
    let status = handle.status().await.unwrap();
    assert_eq!(status.status, Status::Failed);
    assert_eq!(status.rollback.outcome, RollbackOutcome::Complete);
    checked(&handle).await;
}

/// Each attempt has its effect, and its answer never comes.
#[workflow]
async fn answer_lost(ctx: Ctx, attempts: u32) -> Result<()> {
    booking(&ctx, "a").await?;
    ctx.step("b", async |s| {
        s.state::<Effects>().add(format!("do b {}", s.attempt()));
        s.state::<Gates>().pass("never").await;
        Ok("ticket b".to_owned())
    })
    .rollback(undone)
    .retry(Retry::constant("1s").max_attempts(attempts))
    .await
    .map(drop)
}

#[tokio::test]
async fn p2_w18_a_step_that_had_its_effect_and_lost_its_answer_is_undone() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(answer_lost)).await;
    app.start(answer_lost, "t", 6).await.unwrap();
    stage.sees("do b 1").await;
    let app = stage.open(|b| b.register(answer_lost)).await;
    let handle = app.handle::<()>("t").await.unwrap();
    handle.terminate().await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Terminated);
    assert_eq!(undos(&stage.effects()), ["undo b: unknown", "undo a: succeeded"]);
    checked(&handle).await;
}

#[tokio::test]
async fn p6_w25_a_run_that_dies_at_every_start_is_rolled_back_in_the_end_and_not_parked() {
    let stage = Stage::new();
    let setup = |b: backstitch::Builder| b.register(answer_lost);
    let app = stage.open(setup).await;
    app.start(answer_lost, "t", 3).await.unwrap();
    for attempt in 1..=3 {
        stage.sees(&format!("do b {attempt}")).await;
        stage.open(setup).await;
    }
    let handle = stage.open(setup).await.handle::<()>("t").await.unwrap();
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.failure().unwrap().origin(), Origin::Lost);
    assert_eq!(error.rollback().unwrap().outcome, RollbackOutcome::Complete);
    assert_eq!(stage.world.effects.count("undo b: failed"), 1);
    assert_eq!(stage.world.effects.count("undo a: succeeded"), 1);
    checked(&handle).await;
}
