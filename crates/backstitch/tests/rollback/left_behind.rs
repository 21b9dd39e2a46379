//! Bodies that do not yield when nobody wants them any more (R5).

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch::core::inbox::InboxKind;
use backstitch::engine::program::BoxFuture;
use backstitch::engine::{Clock, ManualClock};
use backstitch::{Builder, Ctx, OnAbandon, Result, RollbackOutcome, Status, workflow};

use crate::stage::{Gates, Stage, a_while, booking, checked, gated, undone, undos};
use crate::world::{Effects, eventually, until};
use crate::wrapped::Wrapped;

/// Blocks the thread that it runs on until the other end is dropped.
#[derive(Clone, Default)]
struct Blocker(Arc<Mutex<Option<Sender<()>>>>);

impl Blocker {
    fn block(&self) {
        let (release, released) = channel::<()>();
        *self.0.lock().unwrap() = Some(release);
        let _ = released.recv();
    }

    fn release(&self) {
        self.0.lock().unwrap().take();
    }
}

#[workflow]
async fn never_yields(ctx: Ctx, settles: bool) -> Result<()> {
    booking(&ctx, "a").await?;
    let on_abandon = if settles { OnAbandon::Settle } else { OnAbandon::Cancel };
    let stubborn = ctx
        .step("stubborn", async |s| {
            s.state::<Effects>().add("begin stubborn");
            s.state::<Blocker>().block();
            s.state::<Effects>().add("end stubborn");
            Ok("ticket stubborn".to_owned())
        })
        .rollback(undone)
        .timeout("1m")
        .on_abandon(on_abandon);
    stubborn.await?;
    Ok(())
}

async fn left_behind(id: &str, settles: bool, yields_until: Duration) {
    let (stage, blocker) = (Stage::new(), Blocker::default());
    let app = stage.open(|b| b.state(blocker.clone()).register(never_yields)).await;
    let handle = app.start(never_yields, id, settles).await.unwrap();
    stage.sees("begin stubborn").await;
    handle.cancel().await.unwrap();
    until(&handle, Status::RollingBack).await;
    stage.world.advance(yields_until - Duration::from_secs(1));
    a_while().await;
    assert_eq!(stage.effects(), ["do a", "begin stubborn"], "it has its grace");
    stage.world.advance(Duration::from_secs(1));
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(undos(&stage.effects()), ["undo stubborn: unknown", "undo a: succeeded"]);
    let attention = app.attention(10).await.unwrap();
    assert_eq!(attention.len(), 1);
    assert_eq!(attention[0].kind, "did_not_yield");
    assert!(attention[0].message.contains("stubborn"), "{}", attention[0].message);
    // Its late end changes nothing.
    let before = handle.journal().await.unwrap();
    blocker.release();
    stage.sees("end stubborn").await;
    assert_eq!(handle.journal().await.unwrap(), before);
    assert_eq!(handle.status().await.unwrap().rollback.outcome, RollbackOutcome::Complete);
    checked(&handle).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b98_w38_a_body_that_never_yields_is_left_behind_after_the_grace() {
    left_behind("stops", false, Duration::from_secs(30)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b98_one_that_may_settle_is_left_behind_after_its_timeout_and_the_grace() {
    left_behind("settles", true, Duration::from_secs(60 + 30)).await;
}

#[workflow]
async fn stubborn_loser(ctx: Ctx, (): ()) -> Result<u32> {
    let stubborn = ctx.step("stubborn", async |s| {
        s.state::<Effects>().add("begin stubborn");
        s.state::<Blocker>().block();
        s.state::<Effects>().add("end stubborn");
        Ok(0)
    });
    let quick = ctx.step("quick", async |s| {
        s.state::<Gates>().pass("quick").await;
        Ok(1)
    });
    let (_, first) = backstitch::race([stubborn, quick]).await;
    let then = gated(&ctx, "then").await?;
    assert_eq!(then, "ticket then");
    first
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b98_the_late_end_of_a_dropped_step_that_was_left_behind_disturbs_nobody() {
    let (stage, blocker) = (Stage::new(), Blocker::default());
    let app = stage.open(|b| b.state(blocker.clone()).register(stubborn_loser)).await;
    let handle = app.start(stubborn_loser, "t", ()).await.unwrap();
    stage.sees("begin stubborn").await;
    stage.gates.open("quick");
    stage.sees("begin then").await;
    stage.world.advance(Duration::from_secs(30));
    eventually("it is left behind", async || !app.attention(1).await.unwrap().is_empty()).await;
    blocker.release();
    stage.sees("end stubborn").await;
    stage.gates.open("then");
    assert_eq!(handle.result().await.unwrap(), 1);
    let run = checked(&handle).await;
    assert_eq!(run.step(1).unwrap().output, None, "recorded is final");
}

/// A wall clock that somebody sets, and time that goes on as it does.
#[derive(Clone)]
struct TwoClocks {
    wall: ManualClock,
    steady: ManualClock,
}

impl Clock for TwoClocks {
    fn now_us(&self) -> i64 {
        self.wall.now_us()
    }

    fn sleep_until(&self, at_us: i64) -> BoxFuture<()> {
        self.wall.sleep_until(at_us)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        self.steady.sleep(duration)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p7_t9_a_clock_that_is_set_forward_takes_nothing_off_the_grace() {
    let (stage, blocker) = (Stage::new(), Blocker::default());
    let clocks = TwoClocks { wall: stage.world.clock.clone(), steady: ManualClock::new(0) };
    let setup = |b: Builder| {
        b.clock(Arc::new(clocks.clone())).state(blocker.clone()).register(never_yields)
    };
    let app = stage.open(setup).await;
    let handle = app.start(never_yields, "t", false).await.unwrap();
    stage.sees("begin stubborn").await;
    handle.cancel().await.unwrap();
    until(&handle, Status::RollingBack).await;
    stage.world.advance(Duration::from_secs(78 * 60));
    a_while().await;
    assert_eq!(stage.effects(), ["do a", "begin stubborn"], "no undo under a running step");
    clocks.steady.advance(Duration::from_secs(30));
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(undos(&stage.effects()), ["undo stubborn: unknown", "undo a: succeeded"]);
    blocker.release();
    checked(&handle).await;
}

#[workflow]
async fn only_stubborn(ctx: Ctx, (): ()) -> Result<()> {
    let stubborn = ctx.step("stubborn", async |s| {
        s.state::<Effects>().add("begin stubborn");
        s.state::<Blocker>().block();
        Ok(())
    });
    stubborn.await
}

/// The row that leaves the body behind also closes the run, and is refused for a verb that came in
/// the same moment: the rebuilt session must hear again that the body is overdue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b98_a_body_is_left_behind_although_the_row_that_says_so_is_refused_once() {
    let (stage, blocker) = (Stage::new(), Blocker::default());
    let store = Wrapped::new(stage.world.reopen());
    let store = store.verb_before("ExecutionCancelled", InboxKind::Terminate).shared();
    let setup = |b: Builder| b.state(blocker.clone()).register(only_stubborn);
    let app = stage.world.open_on(store, setup).await;
    let handle = app.start(only_stubborn, "t", ()).await.unwrap();
    stage.sees("begin stubborn").await;
    handle.cancel().await.unwrap();
    until(&handle, Status::RollingBack).await;
    stage.world.advance(Duration::from_secs(30));
    assert_eq!(
        until(&handle, Status::Cancelled).await.run.rollback.as_ref().unwrap().causes.len(),
        2
    );
    assert_eq!(app.attention(10).await.unwrap()[0].kind, "did_not_yield");
    blocker.release();
    checked(&handle).await;
}
