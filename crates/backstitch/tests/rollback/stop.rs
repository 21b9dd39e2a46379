//! Orderly stops: what is interrupted does not count, and nothing is lost.

use std::time::Duration;

use backstitch::core::event::Event;
use backstitch::core::inbox::InboxKind;
use backstitch::{Ctx, Handle, Origin, Result, Retry, Status, msg, race, workflow};

use crate::stage::{Gates, Stage, booking, checked, gated, refusal, undone, undos};
use crate::world::{Effects, events, eventually, until};
use crate::wrapped::Wrapped;

/// Each body and each undo has a single attempt, but one that was interrupted does not count.
#[workflow]
async fn one_attempt_each(ctx: Ctx, fails: bool) -> Result<()> {
    gated(&ctx, "a").retry(Retry::none()).await?;
    ctx.sleep("1h").await?;
    ctx.step("b", async |s| {
        s.state::<Effects>().add("begin b");
        if s.attempt() == 1 { Err(msg("once more")) } else { Ok("ticket b".to_owned()) }
    })
    .retry(Retry::constant("1h").max_attempts(2))
    .rollback(async |u| {
        u.state::<Effects>().add("undoing b");
        u.state::<Gates>().pass("undo b").await;
        undone(u).await
    })
    .rollback_retry(Retry::none())
    .await?;
    if fails { refusal(&ctx).await } else { Ok(()) }
}

fn interruptions(rows: &[backstitch::Row]) -> usize {
    let interrupted = |event: &&Event| match event {
        Event::StepAttemptFailed(e) => e.failure.origin() == Origin::Interrupted,
        Event::UndoAttemptFailed(e) => e.failure.origin() == Origin::Interrupted,
        _ => false,
    };
    rows.iter().flat_map(|row| &row.events).filter(interrupted).count()
}

#[tokio::test]
async fn t17_an_orderly_stop_at_each_await_costs_no_attempt_and_no_effect() {
    let stage = Stage::new();
    let setup = |b: backstitch::Builder| b.register(one_attempt_each);
    let app = stage.open(setup).await;
    app.start(one_attempt_each, "t", true).await.unwrap();
    stage.sees("begin a").await;
    app.shutdown().await.unwrap();

    let app = stage.open(setup).await;
    stage.world.effects.wait_for("begin a", 2).await;
    stage.gates.open("a");
    let handle = app.handle::<()>("t").await.unwrap();
    until(&handle, Status::Suspended).await;
    app.shutdown().await.unwrap();

    let app = stage.open(setup).await;
    let handle = app.handle::<()>("t").await.unwrap();
    stage.world.advance(Duration::from_secs(3600));
    stage.sees("begin b").await;
    until(&handle, Status::Suspended).await;
    app.shutdown().await.unwrap();

    let app = stage.open(setup).await;
    stage.world.advance(Duration::from_secs(3600));
    stage.sees("undoing b").await;
    app.shutdown().await.unwrap();

    stage.open(setup).await;
    stage.world.effects.wait_for("undoing b", 2).await;
    stage.gates.open("undo b");
    let app = stage.open(setup).await;
    let handle = app.handle::<()>("t").await.unwrap();
    // That last one was a crash under an undo with a single attempt: a debt that is listed.
    let status = until(&handle, Status::Stuck).await;
    assert_eq!(status.rollback.failed, 1);
    handle.retry_undo("b").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    assert_eq!(interruptions(&handle.journal().await.unwrap()), 2);
    assert_eq!(stage.world.effects.count("undo a: succeeded"), 1);
    checked(&handle).await;
}

#[workflow]
async fn finishes_when_told(ctx: Ctx, (): ()) -> Result<String> {
    let polite = ctx
        .step("polite", async |s| {
            s.state::<Effects>().add("begin polite");
            s.cancel_token().cancelled().await;
            Ok("made it".to_owned())
        })
        .await?;
    booking(&ctx, "next").await?;
    Ok(polite)
}

#[tokio::test]
async fn t17_what_a_body_returns_while_the_process_stops_is_recorded_and_nothing_new_begins() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(finishes_when_told)).await;
    app.start(finishes_when_told, "t", ()).await.unwrap();
    stage.sees("begin polite").await;
    app.shutdown().await.unwrap();
    assert_eq!(stage.effects(), ["begin polite"]);
    let app = stage.open(|b| b.register(finishes_when_told)).await;
    let handle = app.handle::<String>("t").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "made it");
    assert_eq!(stage.world.effects.count("begin polite"), 1, "recorded is final (P3)");
    checked(&handle).await;
}

#[workflow]
async fn settling(ctx: Ctx, (): ()) -> Result<()> {
    booking(&ctx, "a").await?;
    gated(&ctx, "slow").await.map(drop)
}

#[tokio::test]
async fn t17_a_sibling_that_is_interrupted_while_it_settles_is_not_tried_again() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(settling)).await;
    let handle = app.start(settling, "t", ()).await.unwrap();
    stage.sees("begin slow").await;
    handle.cancel().await.unwrap();
    until(&handle, Status::RollingBack).await;
    app.shutdown().await.unwrap();
    assert!(undos(&stage.effects()).is_empty());
    let app = stage.open(|b| b.register(settling)).await;
    let handle = app.handle::<()>("t").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    let wanted = ["do a", "begin slow", "undo slow: unknown", "undo a: succeeded"];
    assert_eq!(stage.effects(), wanted);
    checked(&handle).await;
}

#[workflow]
async fn waits_for_the_loser(ctx: Ctx, (): ()) -> Result<String> {
    let slow = gated(&ctx, "slow").keep_when_dropped();
    let (_, winner) = race([booking(&ctx, "quick"), slow]).await;
    winner
}

#[tokio::test]
async fn t17_a_row_that_is_refused_while_the_process_stops_begins_nothing_either() {
    let stage = Stage::new();
    let store = Wrapped::new(stage.world.reopen());
    let store = store.verb_before("ExecutionSucceeded", InboxKind::Cancel).shared();
    let setup = |b: backstitch::Builder| b.state(stage.gates.clone()).register(waits_for_the_loser);
    let app = stage.world.open_on(store, setup).await;
    let handle = app.start(waits_for_the_loser, "t", ()).await.unwrap();
    stage.sees("begin slow").await;
    until(&handle, Status::Running).await;
    // The stop ends the loser, for which alone the success had waited.
    app.shutdown().await.unwrap();
    assert!(undos(&stage.effects()).is_empty(), "{:?}", stage.effects());
    let app = stage.open(setup).await;
    let handle = app.handle::<()>("t").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(undos(&stage.effects()), ["undo slow: unknown", "undo quick: succeeded"]);
    checked(&handle).await;
}

#[tokio::test]
async fn t17_a_pause_and_a_stuck_rollback_outlive_an_orderly_stop() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(settling)).await;
    let handle = app.start(settling, "t", ()).await.unwrap();
    stage.sees("begin slow").await;
    handle.pause().await.unwrap();
    eventually("it is pausing", async || handle.status().await.unwrap().pausing).await;
    app.shutdown().await.unwrap();
    let app = stage.open(|b| b.register(settling)).await;
    let handle: Handle<()> = app.handle("t").await.unwrap();
    until(&handle, Status::Paused).await;
    let rows = handle.journal().await.unwrap();
    app.shutdown().await.unwrap();
    let app = stage.open(|b| b.register(settling)).await;
    let handle: Handle<()> = app.handle("t").await.unwrap();
    until(&handle, Status::Paused).await;
    assert_eq!(handle.journal().await.unwrap(), rows, "a look appends nothing (B85)");
    stage.gates.open("slow");
    handle.resume().await.unwrap();
    handle.result().await.unwrap();
    assert!(events(&handle).await.contains(&"Resumed"));
    checked(&handle).await;
}
