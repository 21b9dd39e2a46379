//! Between the decision and the first undo (R5, P5, P7).

use std::time::Duration;

use backstitch::core::event::Event;
use backstitch::{
    Ctx, Failure, FailureExt, OnAbandon, Result, Retry, Status, Step, join, msg, select, workflow,
};

use backstitch::store::{Change, Store};

use crate::stage::{Gates, Stage, a_while, booking, checked, gated, refusal, undone, undos};
use crate::world::{Effects, events, until};
use crate::wrapped::{Wrapped, appended};

/// The first failure drops the other, as with `try_join`.
async fn both(mut a: Step<String>, mut b: Step<()>) -> Result<()> {
    select! {
        a = &mut a => { a?; b.await }
        b = &mut b => { b?; a.await.map(drop) }
    }
}

#[workflow]
async fn slow_sibling(ctx: Ctx, (): ()) -> Result<()> {
    booking(&ctx, "a").await?;
    both(gated(&ctx, "slow"), refusal(&ctx)).await
}

#[tokio::test]
async fn b62_w02_the_decision_comes_at_once_and_no_undo_before_the_sibling_has_settled() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(slow_sibling)).await;
    let handle = app.start(slow_sibling, "t", ()).await.unwrap();
    stage.sees("begin slow").await;
    let status = until(&handle, Status::RollingBack).await;
    assert_eq!((status.rollback.done, status.rollback.of), (0, 2));
    assert!(!status.run.in_flight.is_empty());
    // However long it takes: no undo starts.
    a_while().await;
    assert!(undos(&stage.effects()).is_empty());
    stage.gates.open("slow");
    handle.result().await.unwrap_err();
    let wanted = ["do a", "begin slow", "do slow", "undo slow: succeeded", "undo a: succeeded"];
    assert_eq!(stage.effects(), wanted, "its real output is handed to its undo");
    checked(&handle).await;
}

#[workflow]
async fn waits_for_a_retry(ctx: Ctx, (): ()) -> Result<()> {
    let flaky = ctx
        .step("flaky", async |s| {
            s.state::<Effects>().add(format!("attempt {}", s.attempt()));
            Err::<String, _>(msg("not now"))
        })
        .rollback(undone)
        .retry(Retry::constant("1h"));
    let later = async {
        ctx.sleep("1m").await?;
        refusal(&ctx).await
    };
    select! {
        flaky = flaky => flaky.map(drop),
        later = later => later,
    }
}

#[tokio::test]
async fn b62_a_sibling_that_waits_for_a_retry_has_ended() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(waits_for_a_retry)).await;
    let handle = app.start(waits_for_a_retry, "t", ()).await.unwrap();
    stage.sees("attempt 1").await;
    until(&handle, Status::Suspended).await;
    stage.world.advance(Duration::from_secs(60));
    handle.result().await.unwrap_err();
    stage.world.advance(Duration::from_secs(7200));
    assert_eq!(stage.effects(), ["attempt 1", "undo flaky: failed"]);
    checked(&handle).await;
}

/// Begins, and never comes to an end by itself.
fn endless(ctx: &Ctx) -> Step<String> {
    struct Dropped(Effects);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.add("dropped endless");
        }
    }
    ctx.step("endless", async |s| {
        let effects = s.state::<Effects>();
        effects.add("begin endless");
        let _dropped = Dropped(effects.clone());
        s.state::<Gates>().pass("endless").await;
        Ok("ticket endless".to_owned())
    })
}

macro_rules! sibling {
    ($workflow:ident $step:expr) => {
        #[workflow]
        async fn $workflow(ctx: Ctx, (): ()) -> Result<()> {
            let step: fn(&Ctx) -> Step<String> = $step;
            booking(&ctx, "a").await?;
            both(step(&ctx), refusal(&ctx)).await
        }
    };
}

sibling!(no_undo_beside | ctx | endless(ctx));
sibling!(cancels_beside | ctx | endless(ctx).rollback(undone).on_abandon(OnAbandon::Cancel));
sibling!(settles_beside | ctx | endless(ctx).on_abandon(OnAbandon::Settle));
sibling!(times_out_beside | ctx | endless(ctx).rollback(undone).timeout("1m"));

#[tokio::test]
async fn r5_a_sibling_without_an_undo_is_cancelled_before_the_first_undo() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(no_undo_beside)).await;
    let handle = app.start(no_undo_beside, "t", ()).await.unwrap();
    handle.result().await.unwrap_err();
    let wanted = ["do a", "begin endless", "dropped endless", "undo a: succeeded"];
    assert_eq!(stage.effects(), wanted);
    checked(&handle).await;
}

#[tokio::test]
async fn r5_on_abandon_cancel_drops_the_body_and_its_undo_is_told_that_nobody_knows() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(cancels_beside)).await;
    let handle = app.start(cancels_beside, "t", ()).await.unwrap();
    handle.result().await.unwrap_err();
    assert_eq!(stage.effects()[2..4], ["dropped endless", "undo endless: unknown"]);
    assert!(events(&handle).await.contains(&"StepAbandoned"));
    checked(&handle).await;
}

#[tokio::test]
async fn r5_on_abandon_settle_lets_a_step_without_an_undo_finish() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(settles_beside)).await;
    let handle = app.start(settles_beside, "t", ()).await.unwrap();
    until(&handle, Status::RollingBack).await;
    stage.gates.open("endless");
    handle.result().await.unwrap_err();
    assert!(checked(&handle).await.step(2).unwrap().output.is_some(), "it is recorded");
    assert_eq!(undos(&stage.effects()), ["undo a: succeeded"]);
}

#[tokio::test]
async fn r5_a_sibling_may_settle_up_to_the_timeout_of_its_attempt() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(times_out_beside)).await;
    let handle = app.start(times_out_beside, "t", ()).await.unwrap();
    until(&handle, Status::RollingBack).await;
    stage.world.advance(Duration::from_secs(59));
    tokio::task::yield_now().await;
    assert_eq!(stage.effects(), ["do a", "begin endless"]);
    stage.world.advance(Duration::from_secs(1));
    handle.result().await.unwrap_err();
    let wanted = ["dropped endless", "undo endless: failed", "undo a: succeeded"];
    assert_eq!(stage.effects()[2..], wanted);
    let attention = app.attention(10).await.unwrap();
    assert!(attention.is_empty(), "it yielded in time: {attention:?}");
    checked(&handle).await;
}

#[workflow]
async fn one_gated(ctx: Ctx, (): ()) -> Result<()> {
    booking(&ctx, "a").await?;
    gated(&ctx, "slow").await?;
    Ok(())
}

#[tokio::test]
async fn r1_w16_terminate_does_not_wait_for_a_body_that_would_settle() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(one_gated)).await;
    let handle = app.start(one_gated, "t", ()).await.unwrap();
    stage.sees("begin slow").await;
    handle.terminate().by("ops").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Terminated);
    let wanted = ["do a", "begin slow", "undo slow: unknown", "undo a: succeeded"];
    assert_eq!(stage.effects(), wanted);
    checked(&handle).await;
}

/// a, then b; beside them c, which fails.
#[workflow]
async fn two_ends_at_once(ctx: Ctx, (): ()) -> Result<()> {
    let first = async {
        booking(&ctx, "a").await?;
        booking(&ctx, "b").await?;
        Ok::<_, Failure>(())
    };
    let second = refusal(&ctx);
    select! {
        first = first => first,
        second = second => second,
    }
}

#[tokio::test]
async fn p5_a_step_that_is_asked_for_in_the_row_of_the_decision_never_runs() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(two_ends_at_once)).await;
    let handle = app.start(two_ends_at_once, "t", ()).await.unwrap();
    handle.result().await.unwrap_err();
    // Both ends were known when the row was composed, or this test shows nothing. On any number of
    // threads: its start is taken back before the row is offered.
    let rows = handle.journal().await.unwrap();
    let in_one = |events: &[Event]| {
        let has = |name| events.iter().any(|event| event.name() == name);
        has("StepScheduled") && has("RollbackStarted") && has("StepAbandoned")
    };
    assert!(rows.iter().any(|row| in_one(&row.events)));
    assert!(!stage.effects().contains(&"do b".to_owned()), "{:?}", stage.effects());
    assert_eq!(undos(&stage.effects()), ["undo b: unknown", "undo a: succeeded"]);
    checked(&handle).await;
}

#[tokio::test]
async fn p5_a_body_that_has_not_begun_at_the_decision_never_does() {
    let stage = Stage::new();
    // c ends while the row that starts b is on its way; and the answer to the decision takes a
    // while, in which b could begin.
    let gates = stage.gates.clone();
    let store = Wrapped::new(stage.world.reopen()).on_commit(move |inner, change| {
        let starts_b =
            |event: &Event| matches!(event, Event::StepScheduled(e) if e.key.name == "b");
        let Change::Append(append) = &change else { return inner.commit(change) };
        let inner = inner.clone();
        if appended(append).iter().any(starts_b) {
            gates.open("c");
            Box::pin(async move {
                a_while().await;
                inner.commit(change).await
            })
        } else {
            let answer = inner.commit(change);
            Box::pin(async move {
                a_while().await;
                answer.await
            })
        }
    });
    let setup = |b: backstitch::Builder| b.state(stage.gates.clone()).register(c_ends_later);
    let app = stage.world.open_on(store.shared(), setup).await;
    let handle = app.start(c_ends_later, "t", ()).await.unwrap();
    handle.result().await.unwrap_err();
    assert!(!stage.effects().contains(&"do b".to_owned()), "{:?}", stage.effects());
    assert_eq!(undos(&stage.effects()), ["undo b: unknown", "undo a: succeeded"]);
    checked(&handle).await;
}

/// As [`two_ends_at_once`], but c ends a moment later.
#[workflow]
async fn c_ends_later(ctx: Ctx, (): ()) -> Result<()> {
    let first = async {
        booking(&ctx, "a").await?;
        booking(&ctx, "b").await?;
        Ok::<_, Failure>(())
    };
    let second = ctx.step("c", async |s| {
        s.state::<Gates>().pass("c").await;
        Err::<(), _>(msg("no").permanent())
    });
    select! {
        first = first => first,
        second = second => second,
    }
}

#[workflow]
async fn join_of_two(ctx: Ctx, (): ()) -> Result<()> {
    let (slow, no) = join!(gated(&ctx, "slow"), refusal(&ctx));
    slow?;
    no
}

#[tokio::test]
async fn b91_w01_the_barrier_survives_a_crash() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(slow_sibling)).await;
    let handle = app.start(slow_sibling, "t", ()).await.unwrap();
    stage.sees("begin slow").await;
    until(&handle, Status::RollingBack).await;
    // The process dies with the sibling in flight. The next one runs no body.
    let app = stage.open(|b| b.register(slow_sibling)).await;
    let handle = app.handle::<()>("t").await.unwrap();
    handle.result().await.unwrap_err();
    let wanted = ["do a", "begin slow", "undo slow: unknown", "undo a: succeeded"];
    assert_eq!(stage.effects(), wanted);
    checked(&handle).await;
}

#[tokio::test]
async fn r1_a_failure_that_a_join_holds_back_decides_only_when_the_code_returns_it() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(join_of_two)).await;
    let handle = app.start(join_of_two, "t", ()).await.unwrap();
    stage.sees("begin slow").await;
    a_while().await;
    assert_eq!(handle.status().await.unwrap().status, Status::Running);
    stage.gates.open("slow");
    handle.result().await.unwrap_err();
    assert_eq!(undos(&stage.effects()), ["undo slow: succeeded"]);
    checked(&handle).await;
}
