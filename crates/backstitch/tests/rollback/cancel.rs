//! Cancel and terminate, at every await and at the same moment as an end.

use std::time::Duration;

use backstitch::core::event::Event;
use backstitch::core::run::Run;
use backstitch::{
    App, CauseKind, Ctx, ErrorKind, FailureExt, Handle, Result, Retry, RollbackOutcome, Status,
    msg, workflow,
};

use crate::stage::{Gates, Stage, assert_refused, booking, checked, gated, refusal, undone, undos};
use crate::world::{Effects, events, until};

fn causes(run: &Run) -> Vec<CauseKind> {
    run.rollback.iter().flat_map(|r| r.causes.iter().map(|cause| cause.kind())).collect()
}

#[workflow]
async fn four_awaits(ctx: Ctx, (): ()) -> Result<()> {
    gated(&ctx, "a").await?;
    ctx.sleep("1h").await?;
    ctx.step("b", async |s| {
        s.state::<Effects>().add(format!("attempt {}", s.attempt()));
        if s.attempt() == 1 { Err(msg("once more")) } else { Ok("ticket b".to_owned()) }
    })
    .rollback(undone)
    .retry(Retry::constant("1h"))
    .await?;
    gated(&ctx, "c").await?;
    Ok(())
}

/// Brings the run to its `n`-th await.
async fn bring_to(stage: &Stage, handle: &Handle<()>, n: u32) {
    stage.sees("begin a").await;
    if n == 0 {
        return;
    }
    stage.gates.open("a");
    until(handle, Status::Suspended).await;
    if n == 1 {
        return;
    }
    stage.world.advance(Duration::from_secs(3600));
    stage.sees("attempt 1").await;
    until(handle, Status::Suspended).await;
    if n == 2 {
        return;
    }
    stage.world.advance(Duration::from_secs(3600));
    stage.sees("begin c").await;
}

/// The undos that a cancel at the `n`-th await owes. What runs may settle.
const OWED: [&[&str]; 4] = [
    &["undo a: succeeded"],
    &["undo a: succeeded"],
    &["undo b: failed", "undo a: succeeded"],
    &["undo c: succeeded", "undo b: succeeded", "undo a: succeeded"],
];

async fn open_at(stage: &Stage, n: u32) -> (App, Handle<()>) {
    let app = stage.open(|b| b.register(four_awaits)).await;
    let handle = app.start(four_awaits, "t", ()).await.unwrap();
    bring_to(stage, &handle, n).await;
    (app, handle)
}

#[tokio::test]
async fn b33_w15_w28_a_cancel_at_each_await_undoes_what_was_done() {
    for n in 0..4 {
        let stage = Stage::new();
        let (_app, handle) = open_at(&stage, n).await;
        let answer = handle.cancel().by("ops").reason("changed our mind").await.unwrap();
        assert!(answer.changed);
        stage.gates.open("a");
        stage.gates.open("c");
        assert_eq!(handle.closed().await.unwrap(), Status::Cancelled, "at {n}");
        let error = handle.result().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert_eq!(error.rollback().unwrap().outcome, RollbackOutcome::Complete);
        assert_eq!(undos(&stage.effects()), OWED[n as usize], "at {n}");
        let run = checked(&handle).await;
        let cause = &run.rollback.as_ref().unwrap().causes[0];
        assert_eq!((cause.by.as_str(), cause.reason.as_str()), ("ops", "changed our mind"));
        let late = handle.cancel().await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Refused, "closed is closed");
    }
}

#[tokio::test]
async fn b33_a_cancel_at_each_await_of_a_run_that_was_just_recovered() {
    for n in 0..4 {
        let stage = Stage::new();
        open_at(&stage, n).await;
        let app = stage.open(|b| b.register(four_awaits)).await;
        let handle = app.handle::<()>("t").await.unwrap();
        // Before its driver has had a look at it.
        handle.cancel().await.unwrap();
        assert_eq!(handle.closed().await.unwrap(), Status::Cancelled, "at {n}");
        let mut owed = OWED[n as usize].to_vec();
        match n {
            0 => owed[0] = "undo a: unknown",
            3 => owed[0] = "undo c: unknown",
            _ => {}
        }
        assert_eq!(undos(&stage.effects()), owed, "at {n}");
        checked(&handle).await;
    }
}

#[tokio::test]
async fn b34_terminate_while_suspended_paused_and_blocked_undoes_what_was_done() {
    for (n, paused) in [(1, false), (1, true), (2, true), (3, true)] {
        let stage = Stage::new();
        let (_app, handle) = open_at(&stage, n).await;
        if paused {
            handle.pause().await.unwrap();
        }
        handle.terminate().await.unwrap();
        assert_eq!(handle.closed().await.unwrap(), Status::Terminated, "at {n}");
        assert_eq!(undos(&stage.effects()).len(), OWED[n as usize].len(), "at {n}");
        checked(&handle).await;
    }
    let stage = Stage::new();
    let app = stage.open(|b| b.register(blocked)).await;
    let handle = app.start(blocked, "t", ()).await.unwrap();
    until(&handle, Status::Blocked).await;
    assert_eq!(app.attention(10).await.unwrap().len(), 1);
    handle.terminate().await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Terminated);
    assert_eq!(undos(&stage.effects()), ["undo mend: failed", "undo a: succeeded"]);
    assert!(app.attention(10).await.unwrap().is_empty(), "the decision ends all blocks");
    checked(&handle).await;
}

#[workflow]
async fn blocked(ctx: Ctx, (): ()) -> Result<()> {
    booking(&ctx, "a").await?;
    let mend = ctx.step("mend", async |_s| Err::<String, _>(msg("mend me").attention()));
    mend.rollback(undone).await?;
    Ok(())
}

#[workflow]
async fn slow_undo(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step("a", async |_s| Ok("ticket a".to_owned()))
        .rollback(async |u| {
            let kinds: Vec<_> = u.causes().iter().map(|cause| cause.kind()).collect();
            u.state::<Effects>().add(format!("{kinds:?}"));
            undone(u).await
        })
        .await?;
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
async fn b68_w09_later_cancels_and_terminates_are_causes_and_stop_nothing() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(slow_undo)).await;
    let handle = app.start(slow_undo, "t", ()).await.unwrap();
    stage.sees("undoing b").await;
    for answer in [handle.cancel().await, handle.terminate().await] {
        assert!(!answer.unwrap().changed);
    }
    until(&handle, Status::RollingBack).await;
    stage.gates.open("undo b");
    assert_refused(&handle.result().await.unwrap_err());
    assert_eq!(handle.status().await.unwrap().status, Status::Failed);
    let wanted =
        ["undoing b", "undo b: succeeded", "[Failed, Cancelled, Terminated]", "undo a: succeeded"];
    assert_eq!(stage.effects(), wanted, "later undos are told of all causes, in order");
    let run = checked(&handle).await;
    let wanted = [CauseKind::Failed, CauseKind::Cancelled, CauseKind::Terminated];
    assert_eq!(causes(&run), wanted);
}

#[workflow]
async fn only_sleeps(ctx: Ctx, (): ()) -> Result<()> {
    ctx.sleep("1h").await
}

#[tokio::test]
async fn r10_verbs_that_come_together_with_the_one_that_closes_are_all_copied() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(only_sleeps)).await;
    let handle = app.start(only_sleeps, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    app.shutdown().await.unwrap();
    let outside: Handle<()> = stage.guest().handle("t").await.unwrap();
    assert!(outside.pause().by("a").await.unwrap().changed);
    assert!(outside.cancel().by("b").await.unwrap().changed);
    assert!(!outside.terminate().by("c").await.unwrap().changed);
    assert_eq!(outside.pause().await.unwrap_err().kind(), ErrorKind::Refused, "it is ending");
    assert!(!outside.cancel().by("d").await.unwrap().changed);
    let app = stage.open(|b| b.register(only_sleeps)).await;
    let handle: Handle<()> = app.handle("t").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled, "the first one decides");
    let rows = handle.journal().await.unwrap();
    let by = rows.iter().flat_map(|row| &row.events).filter_map(|event| match event {
        Event::CancelRequested(e) => Some(e.by.as_str()),
        Event::PauseRequested(e) => Some(e.by.as_str()),
        _ => None,
    });
    assert_eq!(by.collect::<Vec<_>>(), ["a", "b", "c", "d"], "what was accepted leaves a trace");
    assert!(!events(&handle).await.contains(&"RollbackStarted"));
    checked(&handle).await;
}

#[tokio::test]
async fn r10_a_repeated_request_gets_its_first_answer_also_after_the_end() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(only_sleeps)).await;
    let handle = app.start(only_sleeps, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    let first = handle.cancel().by("ops").request_id("r-1").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    let again = handle.cancel().by("ops").request_id("r-1").await.unwrap();
    assert_eq!(again, first);
    let other = handle.cancel().by("ops").request_id("r-2").await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Refused);
    let other = handle.terminate().by("ops").request_id("r-1").await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Refused, "the same id, and something else");
}
