//! `undo_on: Succeeded` passes over a step only when it is certain that it had no effect (R2).

use std::time::Duration;

use backstitch::{
    Ctx, Failure, FailureExt, OnExhausted, Result, Retry, RollbackOutcome, Status, Step, UndoOn,
    msg, workflow,
};

use crate::stage::{Stage, booking, checked, refusal, undone, undos};
use crate::world::{events, until};

/// A step that does what `how` says, attempt by attempt.
fn doomed(ctx: &Ctx, how: &'static [&'static str]) -> Step<String> {
    ctx.step("doomed", async move |s| match how[s.attempt() as usize - 1] {
        "permanent" => Err(msg("no").permanent()),
        "attention" => Err(msg("mend me").attention()),
        "ordinary" => Err(msg("hm")),
        "retry after" => Err(msg("later").retry_after("1s")),
        "panic" => panic!("by order"),
        "hang" => std::future::pending().await,
        "too large" => Ok("x".repeat(2_000_000)),
        other => unreachable!("{other}"),
    })
    .rollback(undone)
    .undo_on(UndoOn::Succeeded)
    .retry(Retry::constant("1s").max_attempts(how.len() as u32))
    .timeout("30s")
}

#[workflow]
async fn permanent_at_once(ctx: Ctx, (): ()) -> Result<String> {
    booking(&ctx, "a").await?;
    doomed(&ctx, &["permanent"]).await
}

#[tokio::test]
async fn b54_a_step_whose_body_said_no_each_time_is_passed_over() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(permanent_at_once)).await;
    let handle = app.start(permanent_at_once, "t", ()).await.unwrap();
    let error = handle.result().await.unwrap_err();
    assert_eq!(undos(&stage.effects()), ["undo a: succeeded"]);
    assert_eq!(error.rollback().unwrap().outcome, RollbackOutcome::Complete);
    checked(&handle).await;
}

macro_rules! uncertain {
    ($($name:ident $how:expr;)*) => { $(
        #[tokio::test]
        async fn $name() {
            #[workflow]
            async fn uncertain(ctx: Ctx, (): ()) -> Result<String> {
                doomed(&ctx, $how).await
            }
            let how: &[&str] = $how;
            let stage = Stage::new();
            let app = stage.open(|b| b.register(uncertain)).await;
            let handle = app.start(uncertain, "t", ()).await.unwrap();
            if how.contains(&"hang") {
                until(&handle, Status::Running).await;
                crate::world::eventually("it hangs", async || {
                    stage.world.advance(Duration::from_secs(10));
                    handle.status().await.unwrap().status.is_closed()
                })
                .await;
            } else {
                stage.world.advance_until(&handle, Status::Failed).await;
            }
            assert_eq!(undos(&stage.effects()), ["undo doomed: failed"]);
            checked(&handle).await;
        }
    )* };
}

uncertain! {
    b54_w44_undone_after_an_ordinary_error_and_a_permanent_one &["ordinary", "permanent"];
    b54_undone_when_the_attempts_are_used_up_on_ordinary_errors &["ordinary", "ordinary"];
    b54_undone_after_a_retry_that_the_other_side_asked_for &["retry after", "permanent"];
    b54_undone_after_a_panic &["panic"];
    b54_w44_undone_after_a_timeout_and_a_permanent_error &["hang", "permanent"];
    b54_undone_after_a_timeout &["hang"];
    b54_w12_b66_undone_when_its_output_cannot_be_stored &["too large"];
}

#[workflow]
async fn blocked(ctx: Ctx, (): ()) -> Result<String> {
    doomed(&ctx, &["attention"]).await
}

#[tokio::test]
async fn b54_a_step_that_waits_for_a_person_after_attention_is_passed_over_by_a_cancel() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(blocked)).await;
    let handle = app.start(blocked, "t", ()).await.unwrap();
    until(&handle, Status::Blocked).await;
    handle.cancel().await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert!(undos(&stage.effects()).is_empty());
    assert!(!events(&handle).await.contains(&"RollbackStarted"), "nothing was owed");
    checked(&handle).await;
}

#[workflow]
async fn blocked_after_panic(ctx: Ctx, (): ()) -> Result<String> {
    doomed(&ctx, &["panic"]).on_exhausted(OnExhausted::Block).await
}

#[tokio::test]
async fn b54_a_step_that_waits_for_a_person_after_a_panic_is_undone_by_a_cancel() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(blocked_after_panic)).await;
    let handle = app.start(blocked_after_panic, "t", ()).await.unwrap();
    until(&handle, Status::Blocked).await;
    handle.cancel().await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(undos(&stage.effects()), ["undo doomed: failed"]);
    checked(&handle).await;
}

#[workflow]
async fn settles_with_no(ctx: Ctx, (): ()) -> Result<()> {
    let slow = ctx
        .step("slow", async |s| {
            s.state::<crate::world::Effects>().add("begin slow");
            s.state::<crate::stage::Gates>().pass("slow").await;
            Err::<String, Failure>(msg("no").permanent())
        })
        .rollback(undone)
        .undo_on(UndoOn::Succeeded);
    let both = futures_join(slow, refusal(&ctx)).await;
    both.map(|_| ())
}

/// As `try_join`: the first failure drops the other.
async fn futures_join(a: Step<String>, b: Step<()>) -> Result<(String, ())> {
    let (mut a, mut b) = (std::pin::pin!(a), std::pin::pin!(b));
    backstitch::select! {
        a = &mut a => Ok((a?, b.await?)),
        b = &mut b => { b?; Ok((a.await?, ())) }
    }
}

#[tokio::test]
async fn r2_what_settles_after_the_decision_counts_and_the_journal_says_why_nothing_is_undone() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(settles_with_no)).await;
    let handle = app.start(settles_with_no, "t", ()).await.unwrap();
    stage.sees("begin slow").await;
    until(&handle, Status::RollingBack).await;
    assert!(handle.status().await.unwrap().rollback.of == 1, "it is owed while it runs");
    stage.gates.open("slow");
    handle.result().await.unwrap_err();
    assert!(undos(&stage.effects()).is_empty());
    assert!(events(&handle).await.contains(&"UndoNotNeeded"));
    let rollback = handle.status().await.unwrap().rollback;
    assert_eq!((rollback.outcome, rollback.done), (RollbackOutcome::Complete, 1));
    checked(&handle).await;
}
