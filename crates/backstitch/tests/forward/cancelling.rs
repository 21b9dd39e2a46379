//! Cancel at each await of a small workflow (B33): what was begun is undone, and it is cancelled.

use std::time::Duration;

use backstitch::{
    App, CauseKind, Conflict, Ctx, ErrorKind, FailureExt, Handle, Result, Retry, RollbackOutcome,
    Status, StepCtx, msg, workflow,
};

use crate::gates::Gates;
use crate::journal::{Soon, journal, seen_by, until_recorded};
use crate::starting::slow;
use crate::world::{Effects, Gate, World, until};

/// Books a flight, looks at the weather, sleeps, retries the hotel and asks a person for the car.
#[workflow]
async fn trip(ctx: Ctx, (): ()) -> Result<()> {
    let undo = async |u: backstitch::Undo<()>| {
        let (name, output) = (u.step().name, u.output().is_some());
        u.state::<Effects>().add(format!("undo {name} {output}"));
        Ok(())
    };
    let body = async |s: StepCtx| {
        s.state::<Effects>().add(format!("begin {}", s.name()));
        s.state::<Gates>().pass(s.name()).await;
        s.state::<Effects>().add(format!("end {}", s.name()));
        Ok(())
    };
    ctx.step("flight", body).rollback(undo).await?;
    ctx.step("weather", body).await?;
    ctx.sleep("1h").await?;
    ctx.step("hotel", async |s: StepCtx| match s.attempt() {
        1 => Err(msg("full")),
        _ => Ok(()),
    })
    .rollback(undo)
    .retry(Retry::constant("1h"))
    .await?;
    ctx.step("car", async |s: StepCtx| match s.attempt() {
        1 => Err(msg("no licence").attention()),
        _ => Ok(()),
    })
    .rollback(undo)
    .await
}

async fn begun(world: &World, gates: &Gates) -> (App, Handle<()>) {
    let app = world.open(|b| b.register(trip).state(gates.clone())).await;
    let handle = app.start(trip, "t", ()).await.unwrap();
    (app, handle)
}

/// Cancels, and checks how it ends. With `crash` the process dies as soon as it has agreed.
async fn cancelled(world: &World, handle: Handle<()>, crash: bool, undone: &[&str]) {
    let answer = handle.cancel().by("ada").reason("it rains").await.unwrap();
    assert!(answer.changed);
    let handle = if crash {
        let app = world.open(|b| b.register(trip).state(Gates::all_open())).await;
        seen_by(&app, &handle).await
    } else {
        handle
    };
    let error = handle.result().soon().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    let status = handle.status().await.unwrap();
    assert_eq!(status.status, Status::Cancelled);
    let effects = world.effects.all();
    let undos: Vec<&str> =
        effects.iter().map(String::as_str).filter(|e| e.starts_with("undo")).collect();
    assert_eq!(undos, undone);
    let rollback = status.run.rollback.as_ref();
    if undone.is_empty() {
        assert_eq!(status.rollback.outcome, RollbackOutcome::None);
    } else {
        let cause = &rollback.expect("there was one").causes[0];
        let told = (cause.kind(), cause.by.as_str(), cause.reason.as_str());
        assert_eq!(told, (CauseKind::Cancelled, "ada", "it rains"));
        assert_eq!(status.rollback.outcome, RollbackOutcome::Complete);
    }
    let journal = journal(&handle).await;
    assert_eq!(journal.count("CancelRequested"), 1);
    assert_eq!(journal.names().last(), Some(&"ExecutionCancelled"));
    let refused = handle.cancel().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused, "it is closed");
}

#[tokio::test]
async fn b33_while_a_body_with_an_undo_runs_it_may_end_and_is_undone_with_its_output() {
    let (world, gates) = (World::new(), Gates::default());
    let (_app, handle) = begun(&world, &gates).await;
    world.effects.wait_for("begin flight", 1).await;
    handle.cancel().by("ada").reason("it rains").await.unwrap();
    until(&handle, Status::RollingBack).await;
    assert_eq!(world.effects.all(), ["begin flight"], "no undo under a running step");
    gates.open("flight");
    assert_eq!(handle.closed().soon().await.unwrap(), Status::Cancelled);
    assert_eq!(world.effects.all(), ["begin flight", "end flight", "undo flight true"]);
    journal(&handle).await;
}

#[tokio::test]
async fn b33_while_a_body_with_an_undo_runs_and_the_process_dies() {
    let (world, gates) = (World::new(), Gates::default());
    let (_app, handle) = begun(&world, &gates).await;
    world.effects.wait_for("begin flight", 1).await;
    cancelled(&world, handle, true, &["undo flight false"]).await;
    assert_eq!(world.effects.count("begin flight"), 1, "the body does not run again");
}

#[tokio::test]
async fn b33_while_a_body_without_an_undo_runs_it_is_dropped() {
    for crash in [false, true] {
        let (world, gates) = (World::new(), Gates::all_open_but("weather"));
        let (_app, handle) = begun(&world, &gates).await;
        world.effects.wait_for("begin weather", 1).await;
        cancelled(&world, handle, crash, &["undo flight true"]).await;
        assert_eq!(world.effects.count("end weather"), 0);
    }
}

#[tokio::test]
async fn b33_while_it_sleeps() {
    for crash in [false, true] {
        let world = World::new();
        let (_app, handle) = begun(&world, &Gates::all_open()).await;
        until(&handle, Status::Suspended).await;
        cancelled(&world, handle, crash, &["undo flight true"]).await;
    }
}

#[tokio::test]
async fn b33_while_a_step_waits_for_its_retry() {
    for crash in [false, true] {
        let world = World::new();
        let (_app, handle) = begun(&world, &Gates::all_open()).await;
        until(&handle, Status::Suspended).await;
        world.advance(Duration::from_secs(3_600));
        until_recorded(&handle, "StepAttemptFailed", 1).await;
        cancelled(&world, handle, crash, &["undo hotel false", "undo flight true"]).await;
    }
}

#[tokio::test]
async fn b33_while_a_step_is_blocked() {
    for crash in [false, true] {
        let world = World::new();
        let (_app, handle) = begun(&world, &Gates::all_open()).await;
        world.advance_until(&handle, Status::Blocked).await;
        let undone = ["undo car false", "undo hotel true", "undo flight true"];
        cancelled(&world, handle, crash, &undone).await;
        let app = world.open(|b| b.register(trip)).await;
        assert!(app.attention(10).await.unwrap().is_empty(), "the block is over");
    }
}

#[tokio::test]
async fn b33_before_the_first_turn_it_is_closed_at_once() {
    let world = World::new();
    let app = world.open(|b| b.register(slow()).state(Gate::closed())).await;
    let old = app.start(slow(), "t", "old".into()).await.unwrap();
    until(&old, Status::Suspended).await;
    let new = app.start(slow(), "t", "new".into()).conflict(Conflict::Terminate).await.unwrap();
    world.effects.wait_for("undo begins", 1).await;
    until(&new, Status::Pending).await;
    new.cancel().await.unwrap();
    assert_eq!(new.closed().soon().await.unwrap(), Status::Cancelled);
    let wanted = ["ExecutionStarted", "CancelRequested", "ExecutionCancelled"];
    assert_eq!(journal(&new).await.names(), wanted);
    assert_eq!(old.status().await.unwrap().status, Status::RollingBack, "the old one goes on");
}

#[tokio::test]
async fn b33_a_cancel_that_is_sent_twice_is_one_cancel() {
    let (world, gates) = (World::new(), Gates::default());
    let (_app, handle) = begun(&world, &gates).await;
    world.effects.wait_for("begin flight", 1).await;
    let first = handle.cancel().request_id("r").await.unwrap();
    let second = handle.cancel().request_id("r").await.unwrap();
    assert_eq!(first.number, second.number);
    gates.open("flight");
    assert_eq!(handle.closed().soon().await.unwrap(), Status::Cancelled);
    assert_eq!(journal(&handle).await.count("CancelRequested"), 1);
}
