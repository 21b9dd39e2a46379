//! Pause and resume, on the way forward and on the way back (R10).

use std::time::Duration;

use backstitch::core::event::Event;
use backstitch::{Ctx, Handle, Result, Retry, Status, join, msg, race, workflow};

use crate::stage::{Gates, Stage, a_while, booking, checked, gated, refusal, undone, undos};
use crate::world::{Effects, eventually, until};

#[workflow]
async fn flaky_undo(ctx: Ctx, (): ()) -> Result<()> {
    booking(&ctx, "a").await?;
    ctx.step("b", async |_s| Ok("ticket b".to_owned()))
        .rollback(async |u| {
            u.state::<Effects>().add(format!("undo attempt {}", u.attempt()));
            if u.attempt() == 1 { Err(msg("once more")) } else { undone(u).await }
        })
        .rollback_retry(Retry::constant("1h"))
        .await?;
    refusal(&ctx).await
}

#[tokio::test]
async fn b63_w03_paused_while_an_undo_waits_for_its_retry_nothing_is_skipped() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(flaky_undo)).await;
    let handle = app.start(flaky_undo, "t", ()).await.unwrap();
    stage.sees("undo attempt 1").await;
    eventually("the retry is recorded", async || {
        handle.status().await.unwrap().run.undo_retry_at_us().is_some()
    })
    .await;
    handle.pause().by("ops").await.unwrap();
    until(&handle, Status::Paused).await;
    // The retry becomes due while it is held: nothing happens.
    stage.world.advance(Duration::from_secs(3600));
    a_while().await;
    assert_eq!(undos(&stage.effects()), ["undo attempt 1"]);
    // Also a restart changes nothing.
    let app = stage.open(|b| b.register(flaky_undo)).await;
    let handle = app.handle::<()>("t").await.unwrap();
    until(&handle, Status::Paused).await;
    handle.resume().await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    let wanted = ["undo attempt 1", "undo attempt 2", "undo b: succeeded", "undo a: succeeded"];
    assert_eq!(undos(&stage.effects()), wanted);
    checked(&handle).await;
}

#[tokio::test]
async fn b63_the_retry_clock_runs_on_while_paused() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(flaky_undo)).await;
    let handle = app.start(flaky_undo, "t", ()).await.unwrap();
    stage.sees("undo attempt 1").await;
    until(&handle, Status::RollingBack).await;
    handle.pause().await.unwrap();
    until(&handle, Status::Paused).await;
    stage.world.advance(Duration::from_secs(1800));
    handle.resume().await.unwrap();
    until(&handle, Status::RollingBack).await;
    stage.world.advance(Duration::from_secs(1799));
    a_while().await;
    assert_eq!(undos(&stage.effects()), ["undo attempt 1"], "never early");
    stage.world.advance(Duration::from_secs(1));
    assert_eq!(handle.closed().await.unwrap(), Status::Failed, "half of it had passed");
    checked(&handle).await;
}

#[workflow]
async fn gated_undo(ctx: Ctx, (): ()) -> Result<()> {
    booking(&ctx, "a").await?;
    ctx.step("b", async |_s| Ok("ticket b".to_owned()))
        .rollback(async |u| {
            u.state::<Effects>().add("undoing b");
            u.state::<Gates>().pass("undo b").await;
            undone(u).await
        })
        .await?;
    refusal(&ctx).await
}

#[tokio::test]
async fn r10_a_pause_holds_the_rollback_between_undos() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(gated_undo)).await;
    let handle = app.start(gated_undo, "t", ()).await.unwrap();
    stage.sees("undoing b").await;
    handle.pause().await.unwrap();
    eventually("it is pausing", async || handle.status().await.unwrap().pausing).await;
    assert_eq!(handle.status().await.unwrap().status, Status::RollingBack, "until it has ended");
    stage.gates.open("undo b");
    until(&handle, Status::Paused).await;
    assert_eq!(stage.effects()[1..], ["undoing b", "undo b: succeeded"]);
    assert!(!handle.pause().await.unwrap().changed, "it is paused already");
    // A cancel does not lift it: it is only added to the causes.
    assert!(!handle.cancel().await.unwrap().changed);
    eventually("it is added", async || {
        handle.status().await.unwrap().run.rollback.as_ref().unwrap().causes.len() == 2
    })
    .await;
    assert_eq!(handle.status().await.unwrap().status, Status::Paused);
    handle.resume().await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    assert_eq!(stage.effects().last().unwrap(), "undo a: succeeded");
    checked(&handle).await;
}

#[workflow]
async fn gated_then_next(ctx: Ctx, (): ()) -> Result<()> {
    let (a, b) = join!(gated(&ctx, "a"), gated(&ctx, "b"));
    a?;
    b?;
    booking(&ctx, "next").await?;
    Ok(())
}

async fn paused_with_bodies_in_flight(stage: &Stage) -> Handle<()> {
    let app = stage.open(|b| b.register(gated_then_next)).await;
    let handle = app.start(gated_then_next, "t", ()).await.unwrap();
    stage.sees("begin b").await;
    handle.pause().await.unwrap();
    eventually("it is pausing", async || handle.status().await.unwrap().pausing).await;
    handle
}

#[tokio::test]
async fn b32_bodies_in_flight_finish_and_are_recorded_and_nothing_new_starts() {
    let stage = Stage::new();
    let handle = paused_with_bodies_in_flight(&stage).await;
    stage.gates.open("b");
    stage.sees("do b").await;
    assert_eq!(handle.status().await.unwrap().status, Status::Running, "one is still in flight");
    stage.gates.open("a");
    let status = until(&handle, Status::Paused).await;
    assert!(status.run.step(1).unwrap().is_recorded() && status.run.step(2).unwrap().is_recorded());
    assert!(!stage.effects().contains(&"do next".to_owned()));
    handle.resume().await.unwrap();
    handle.result().await.unwrap();
    checked(&handle).await;
}

#[tokio::test]
async fn b32_a_crash_while_pausing_leaves_it_paused() {
    let stage = Stage::new();
    paused_with_bodies_in_flight(&stage).await;
    let app = stage.open(|b| b.register(gated_then_next)).await;
    let handle = app.handle::<()>("t").await.unwrap();
    until(&handle, Status::Paused).await;
    assert_eq!(stage.world.effects.count("begin a"), 1, "the lost attempts are not made up for");
    stage.gates.open("a");
    stage.gates.open("b");
    handle.resume().await.unwrap();
    handle.result().await.unwrap();
    assert_eq!(stage.world.effects.count("begin a"), 2);
    checked(&handle).await;
}

/// The second one ends first while paused: it is shown first, live and on replay.
#[workflow]
async fn race_of_two(ctx: Ctx, (): ()) -> Result<usize> {
    let (first, _) =
        race([gated(&ctx, "a").keep_when_dropped(), gated(&ctx, "b").keep_when_dropped()]).await;
    gated(&ctx, "then").await?;
    Ok(first)
}

#[tokio::test]
async fn b87_an_outcome_that_arrives_while_paused_is_recorded_not_shown_and_survives_a_crash() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(race_of_two)).await;
    let handle = app.start(race_of_two, "t", ()).await.unwrap();
    stage.sees("begin b").await;
    handle.pause().await.unwrap();
    stage.gates.open("b");
    eventually("b is recorded", async || {
        handle.status().await.unwrap().run.step(2).unwrap().is_recorded()
    })
    .await;
    stage.gates.open("a");
    let status = until(&handle, Status::Paused).await;
    assert!(!status.run.step(1).unwrap().shown && !status.run.step(2).unwrap().shown);
    assert_eq!(stage.world.effects.count("begin then"), 0);

    let app = stage.open(|b| b.register(race_of_two)).await;
    let handle = app.handle::<usize>("t").await.unwrap();
    until(&handle, Status::Paused).await;
    handle.resume().await.unwrap();
    stage.sees("begin then").await;
    // Once more, now behind the place where it was shown.
    let app = stage.open(|b| b.register(race_of_two)).await;
    stage.gates.open("then");
    let handle = app.handle::<usize>("t").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 1);
    assert_eq!(stage.world.effects.count("do a"), 1, "recorded is final (P3)");
    let rows = handle.journal().await.unwrap();
    let shown = rows.iter().flat_map(|row| &row.events).filter_map(|event| match event {
        Event::Shown(e) => Some(e.ord),
        _ => None,
    });
    assert_eq!(shown.collect::<Vec<_>>(), [2]);
    checked(&handle).await;
}

#[tokio::test]
async fn r10_a_decision_ends_an_earlier_pause() {
    let stage = Stage::new();
    let handle = paused_with_bodies_in_flight(&stage).await;
    stage.gates.open("a");
    stage.gates.open("b");
    until(&handle, Status::Paused).await;
    handle.cancel().await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(undos(&stage.effects()), ["undo b: succeeded", "undo a: succeeded"]);
    checked(&handle).await;
}

#[tokio::test]
async fn r10_a_pause_asked_for_together_with_a_cancel_but_after_it_holds_the_rollback() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(gated_then_next)).await;
    let handle = app.start(gated_then_next, "t", ()).await.unwrap();
    stage.sees("begin b").await;
    let (cancel, pause) =
        tokio::join!(async { handle.cancel().await }, async { handle.pause().await });
    let _ = (cancel.unwrap(), pause.unwrap());
    stage.gates.open("a");
    stage.gates.open("b");
    until(&handle, Status::Paused).await;
    assert!(undos(&stage.effects()).is_empty());
    handle.resume().await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(undos(&stage.effects()).len(), 2);
    checked(&handle).await;
}

#[tokio::test]
async fn p10_a_pause_and_a_resume_in_a_row_leave_it_running() {
    #[workflow]
    async fn naps(ctx: Ctx, _: ()) -> Result<()> {
        ctx.sleep("1h").await
    }
    for round in 0..50 {
        let stage = Stage::new();
        let app = stage.open(|b| b.register(naps)).await;
        let handle = app.start(naps, format!("t-{round}"), ()).await.unwrap();
        assert!(handle.pause().await.unwrap().changed);
        // Whether or not its owner has read that by now.
        assert!(handle.resume().await.unwrap().changed);
        until(&handle, Status::Suspended).await;
        assert!(!handle.resume().await.unwrap().changed);
    }
}
