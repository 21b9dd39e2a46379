//! Many runs, many steps, one id after another.

use std::time::Duration;

use backstitch::core::run::WaitsFor;
use backstitch::{App, Conflict, Ctx, Handle, Result, Reuse, RollbackOutcome, Status, workflow};
use futures_util::future::join_all;

use crate::stage::{Gates, Stage, booking, checked, gated, refusal, undone, undos};
use crate::world::{Effects, eventually, until};

#[workflow]
async fn wide(ctx: Ctx, steps: u32) -> Result<()> {
    let name = |i: u32| format!("{i:0256}");
    let steps = (0..steps).map(|i| {
        ctx.step(&name(i), async |_s| Ok(())).rollback(async |u| {
            u.state::<Effects>().add(u.step().name);
            Ok(())
        })
    });
    join_all(steps.collect::<Vec<_>>()).await.into_iter().collect::<Result<Vec<_>>>()?;
    refusal(&ctx).await
}

#[tokio::test]
async fn b92_w49_a_long_plan_with_the_longest_names_is_recorded_and_carried_out() {
    const STEPS: u32 = 10_000;
    let stage = Stage::new();
    let app = stage.open(|b| b.register(wide)).await;
    let handle = app.start(wide, "t", STEPS).await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    let rollback = handle.status().await.unwrap().rollback;
    assert_eq!((rollback.outcome, rollback.of), (RollbackOutcome::Complete, STEPS));
    let wanted: Vec<_> = (0..STEPS).rev().map(|i| format!("{i:0256}")).collect();
    assert!(stage.effects() == wanted, "each once, newest start first");
    checked(&handle).await;
}

#[workflow]
async fn held_undo(ctx: Ctx, n: u32) -> Result<String> {
    ctx.step("a", async |_s| Ok("ticket a".to_owned()))
        .rollback(async |u| {
            u.state::<Effects>().add("undoing a");
            u.state::<Gates>().pass("undo a").await;
            undone(u).await
        })
        .await?;
    gated(&ctx, &format!("b{n}")).await
}

#[tokio::test]
async fn b30_with_terminate_the_new_run_is_pending_until_the_old_one_has_rolled_back_and_closed() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(held_undo)).await;
    let old = app.start(held_undo, "t", 1).await.unwrap();
    stage.sees("begin b1").await;
    let new = app.start(held_undo, "t", 2).conflict(Conflict::Terminate).await.unwrap();
    assert!(new.created());
    assert_ne!(new.run_id(), old.run_id());
    stage.sees("undoing a").await;
    let status = new.status().await.unwrap();
    assert_eq!(status.status, Status::Pending);
    let earlier = WaitsFor::EarlierRun { run_id: old.run_id() };
    assert_eq!(status.waits_for, [earlier]);
    assert_eq!(stage.world.effects.count("begin b2"), 0);

    // Also after a restart in between.
    let app = stage.open(|b| b.register(held_undo)).await;
    stage.world.effects.wait_for("undoing a", 2).await;
    let new: Handle<String> = app.handle("t").await.unwrap();
    assert_eq!(new.status().await.unwrap().status, Status::Pending);
    stage.gates.open("undo a");
    stage.gates.open("b2");
    assert_eq!(new.result().await.unwrap(), "ticket b2");
    checked(&new).await;
}

#[tokio::test]
async fn b30_cancelled_before_the_old_one_closed_the_new_run_never_begins() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(held_undo)).await;
    app.start(held_undo, "t", 1).await.unwrap();
    stage.sees("begin b1").await;
    let new = app.start(held_undo, "t", 2).conflict(Conflict::Terminate).await.unwrap();
    stage.sees("undoing a").await;
    new.cancel().await.unwrap();
    assert_eq!(new.closed().await.unwrap(), Status::Cancelled);
    stage.gates.open("undo a");
    stage.sees("undo a: succeeded").await;
    let next = app.start(held_undo, "t", 3).reuse(Reuse::Allow).await.unwrap();
    stage.gates.open("b3");
    assert_eq!(next.result().await.unwrap(), "ticket b3");
    assert_eq!(stage.world.effects.count("begin b2"), 0);
    checked(&new).await;
}

/// How the third run of an id is begun.
#[derive(Clone, Copy, Debug)]
enum Third {
    /// The second one is still pending.
    Terminates,
    /// It has been cancelled.
    Reuses,
    Restarts,
}

#[tokio::test]
async fn b30_a_third_run_begins_after_the_first_one_although_the_second_is_closed() {
    for third in [Third::Terminates, Third::Reuses, Third::Restarts] {
        let stage = Stage::new();
        let app = stage.open(|b| b.register(held_undo)).await;
        app.start(held_undo, "t", 1).await.unwrap();
        stage.sees("begin b1").await;
        let second = app.start(held_undo, "t", 3).conflict(Conflict::Terminate).await.unwrap();
        stage.sees("undoing a").await;
        let again = app.start(held_undo, "t", 3).reuse(Reuse::Allow);
        let third = match third {
            Third::Terminates => again.conflict(Conflict::Terminate).await.unwrap(),
            Third::Reuses | Third::Restarts => {
                second.cancel().await.unwrap();
                second.closed().await.unwrap();
                match third {
                    Third::Restarts => second.restart().await.unwrap(),
                    Third::Terminates | Third::Reuses => again.await.unwrap(),
                }
            }
        };
        second.closed().await.unwrap();
        // The third run finds the first one by it.
        let refused = second.delete().await.unwrap_err();
        assert!(refused.to_string().contains("the run before it is still open"), "{refused}");
        // Also in the next process.
        let app = stage.open(|b| b.register(held_undo)).await;
        stage.world.effects.wait_for("undoing a", 2).await;
        let pending: Handle<String> = app.handle("t").await.unwrap();
        assert_eq!(pending.run_id(), third.run_id());
        assert_eq!(pending.status().await.unwrap().status, Status::Pending);
        assert_eq!(stage.world.effects.count("begin b3"), 0);
        stage.gates.open("undo a");
        stage.gates.open("b3");
        assert_eq!(pending.result().await.unwrap(), "ticket b3");
        checked(&pending).await;
    }
}

#[workflow]
async fn attempts(ctx: Ctx, name: String) -> Result<String> {
    booking(&ctx, "before").await?;
    ctx.step(&name, async |s| {
        let attempt = format!("{} {}", s.name(), s.attempt());
        s.state::<Effects>().add(attempt.clone());
        s.state::<Gates>().pass(&attempt).await;
        Ok(attempt)
    })
    .await
}

async fn crashed_twice(stage: &Stage, names: &[&str]) {
    let setup = |b: backstitch::Builder| b.register(attempts);
    let app = stage.open(setup).await;
    for name in names {
        app.start(attempts, *name, (*name).to_owned()).await.unwrap();
        stage.sees(&format!("{name} 1")).await;
    }
    let app = stage.open(setup).await;
    for name in names {
        stage.sees(&format!("{name} 2")).await;
    }
    app.start(attempts, "fresh", "fresh".to_owned()).await.unwrap();
    stage.sees("fresh 1").await;
}

async fn third_attempts(stage: &Stage) -> Vec<String> {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    stage.effects().into_iter().filter(|e| e.ends_with(" 3")).collect()
}

async fn result(app: &App, id: &str) -> String {
    app.handle::<String>(id).await.unwrap().result().await.unwrap()
}

#[tokio::test]
async fn s5_runs_in_flight_at_two_crashes_in_a_row_are_recovered_last_and_one_at_a_time() {
    let stage = Stage::new();
    crashed_twice(&stage, &["x", "y", "z"]).await;
    let app = stage.open(|b| b.register(attempts)).await;
    stage.sees("fresh 2").await;
    let mut begun = Vec::new();
    for n in 1..=3 {
        let now = third_attempts(&stage).await;
        assert_eq!(now.len(), n, "one at a time: {now:?}");
        let new = now.into_iter().find(|e| !begun.contains(e)).unwrap();
        stage.gates.open(&new);
        assert_eq!(result(&app, &new[..1]).await, new);
        begun.push(new);
    }
    stage.gates.open("fresh 2");
    assert_eq!(result(&app, "fresh").await, "fresh 2");
    checked(&app.handle::<String>("x").await.unwrap()).await;
}

#[tokio::test]
async fn s5_the_longer_the_process_lives_the_more_are_tried_at_a_time() {
    let stage = Stage::new();
    crashed_twice(&stage, &["u", "v", "w", "x", "y", "z"]).await;
    let app = stage.open(|b| b.register(attempts)).await;
    stage.sees("fresh 2").await;
    for ended in 0..4 {
        let begun = third_attempts(&stage).await;
        assert_eq!(begun.len(), ended + 1, "{begun:?}");
        let newest = begun.last().unwrap();
        stage.gates.open(newest);
        assert_eq!(result(&app, &newest[..1]).await, *newest);
    }
    assert_eq!(third_attempts(&stage).await.len(), 6, "two at a time");
}

#[tokio::test]
async fn s5_a_suspect_that_is_held_lets_the_next_one_be_tried() {
    let stage = Stage::new();
    crashed_twice(&stage, &["x", "y", "z"]).await;
    // Two of the three cannot go on: one is paused, one has no code.
    let app = stage.open(|b| b).await;
    for name in ["x", "y", "z"] {
        let handle: Handle<String> = app.handle(name).await.unwrap();
        handle.pause().await.unwrap();
    }
    let app = stage.open(|b| b.register(attempts)).await;
    for name in ["x", "y", "z"] {
        let handle: Handle<String> = app.handle(name).await.unwrap();
        until(&handle, Status::Paused).await;
    }
    let handle: Handle<String> = app.handle("z").await.unwrap();
    handle.resume().await.unwrap();
    stage.sees("z 3").await;
    stage.gates.open("z 3");
    assert_eq!(handle.result().await.unwrap(), "z 3");
    checked(&handle).await;
}

#[workflow]
async fn lost_undo(ctx: Ctx, name: String) -> Result<()> {
    ctx.step(&name, async |_s| Ok(()))
        .rollback(async |u| {
            let attempt = format!("{} {}", u.step().name, u.attempt());
            u.state::<Effects>().add(attempt.clone());
            u.state::<Gates>().pass(&attempt).await;
            Ok(())
        })
        .await?;
    refusal(&ctx).await
}

#[tokio::test]
async fn s5_an_undo_that_was_in_flight_at_two_crashes_makes_its_run_a_suspect_too() {
    let stage = Stage::new();
    let setup = |b: backstitch::Builder| b.register(lost_undo);
    let app = stage.open(setup).await;
    for name in ["x", "y"] {
        app.start(lost_undo, name, name.to_owned()).await.unwrap();
        stage.sees(&format!("{name} 1")).await;
    }
    stage.open(setup).await;
    for name in ["x", "y"] {
        stage.sees(&format!("{name} 2")).await;
    }
    let app = stage.open(setup).await;
    stage.world.advance(Duration::from_secs(1));
    let first = third_attempts(&stage).await;
    assert_eq!(first.len(), 1, "one at a time: {first:?}");
    stage.gates.open(&first[0]);
    eventually("the other one follows", async || third_attempts(&stage).await.len() == 2).await;
    for name in ["x", "y"] {
        stage.gates.open(&format!("{name} 3"));
        let handle: Handle<()> = app.handle(name).await.unwrap();
        assert_eq!(handle.closed().await.unwrap(), Status::Failed);
        checked(&handle).await;
    }
    assert!(undos(&stage.effects()).is_empty());
}
