//! Steps that the code dropped: the loser of a race must not stay charged (R13).

use std::time::Duration;

use backstitch::core::run::Run;
use backstitch::{
    CauseKind, Ctx, Failure, OnAbandon, Result, Retry, RollbackOutcome, Status, join, msg, race,
    select, workflow,
};

use crate::stage::{Gates, Stage, a_while, booking, checked, gated, refusal, undone, undos};
use crate::world::{Effects, events, until};

/// The causes of the last rollback.
fn causes(run: &Run) -> Vec<CauseKind> {
    run.rollback.iter().flat_map(|r| r.causes.iter().map(|cause| cause.kind())).collect()
}

/// Where an event of that name stands among the names of a journal.
fn at(names: &[&str], name: &str) -> usize {
    names.iter().position(|n| *n == name).unwrap_or_else(|| panic!("no {name} in {names:?}"))
}

#[workflow]
async fn hedged(ctx: Ctx, (): ()) -> Result<String> {
    let (_, winner) = race([booking(&ctx, "quick"), gated(&ctx, "slow")]).await;
    winner
}

#[tokio::test]
async fn b88_w36_the_loser_of_a_race_is_undone_before_success_is_recorded() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(hedged)).await;
    let handle = app.start(hedged, "t", ()).await.unwrap();
    stage.sees("begin slow").await;
    let status = until(&handle, Status::RollingBack).await;
    assert_eq!((status.rollback.done, status.rollback.of), (0, 1));
    stage.gates.open("slow");
    assert_eq!(handle.result().await.unwrap(), "ticket quick");
    assert_eq!(undos(&stage.effects()), ["undo slow: succeeded"], "with its real output");
    let names = events(&handle).await;
    assert!(at(&names, "StepCancelRequested") < at(&names, "RollbackStarted"));
    assert!(at(&names, "UndoSucceeded") < at(&names, "ExecutionSucceeded"));
    let run = checked(&handle).await;
    assert_eq!(causes(&run), [CauseKind::Dropped]);
    assert_eq!(run.rollback_outcome(), RollbackOutcome::Complete);
    assert_eq!(handle.status().await.unwrap().status, Status::Succeeded);
}

#[workflow]
async fn both_done(ctx: Ctx, (): ()) -> Result<String> {
    let (_, winner) = race([booking(&ctx, "first"), booking(&ctx, "second")]).await;
    winner
}

#[tokio::test]
async fn r13_a_step_whose_outcome_is_on_its_way_when_it_is_dropped_is_undone_with_it() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(both_done)).await;
    let handle = app.start(both_done, "t", ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "ticket first");
    assert_eq!(undos(&stage.effects()), ["undo second: succeeded"]);
    // Its end stands in a row of the engine, and was never shown.
    let run = checked(&handle).await;
    assert!(!run.step(2).unwrap().shown);
}

#[workflow]
async fn keeps(ctx: Ctx, (): ()) -> Result<String> {
    let slow = gated(&ctx, "slow").keep_when_dropped();
    let (_, winner) = race([booking(&ctx, "quick"), slow]).await;
    winner
}

#[tokio::test]
async fn b88_with_keep_when_dropped_it_is_not_undone_but_success_waits_for_its_end() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(keeps)).await;
    let handle = app.start(keeps, "t", ()).await.unwrap();
    stage.sees("begin slow").await;
    a_while().await;
    let status = handle.status().await.unwrap().status;
    assert_eq!(status, Status::Running, "it is in flight (P7)");
    stage.gates.open("slow");
    assert_eq!(handle.result().await.unwrap(), "ticket quick");
    assert_eq!(stage.effects(), ["do quick", "begin slow", "do slow"]);
    assert!(!events(&handle).await.contains(&"RollbackStarted"));
    checked(&handle).await;
}

#[tokio::test]
async fn r13_a_kept_step_is_undone_when_the_run_is_cancelled_after_all() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(keeps)).await;
    let handle = app.start(keeps, "t", ()).await.unwrap();
    stage.sees("begin slow").await;
    until(&handle, Status::Running).await;
    handle.cancel().await.unwrap();
    stage.gates.open("slow");
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(undos(&stage.effects()), ["undo slow: succeeded", "undo quick: succeeded"]);
    checked(&handle).await;
}

#[tokio::test]
async fn r13_a_return_that_waits_for_a_dropped_step_survives_a_crash() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(keeps)).await;
    let handle = app.start(keeps, "t", ()).await.unwrap();
    stage.sees("begin slow").await;
    until(&handle, Status::Running).await;
    let app = stage.open(|b| b.register(keeps)).await;
    let handle = app.handle::<String>("t").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "ticket quick");
    assert_eq!(stage.effects(), ["do quick", "begin slow"], "no further attempt starts");
    checked(&handle).await;
}

/// Begins, and says so when it is dropped.
fn plain(ctx: &Ctx, name: &str) -> backstitch::Step<String> {
    struct Dropped(Effects, String);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.add(format!("dropped {}", self.1));
        }
    }
    ctx.step(name, async |s| {
        let (effects, name) = (s.state::<Effects>().clone(), s.name().to_owned());
        effects.add(format!("begin {name}"));
        let _dropped = Dropped(effects, name.clone());
        s.state::<Gates>().pass(&name).await;
        Ok(format!("ticket {name}"))
    })
}

#[workflow]
async fn drops_one_without_undo(ctx: Ctx, (): ()) -> Result<String> {
    let (_, winner) = race([plain(&ctx, "slow"), booking(&ctx, "quick")]).await;
    winner
}

#[tokio::test]
async fn r13_a_dropped_step_without_an_undo_is_cancelled_and_success_waits_for_its_end() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(drops_one_without_undo)).await;
    let handle = app.start(drops_one_without_undo, "t", ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "ticket quick");
    assert_eq!(stage.effects(), ["begin slow", "do quick", "dropped slow"]);
    let names = events(&handle).await;
    assert!(at(&names, "StepAbandoned") < at(&names, "ExecutionSucceeded"));
    assert!(!names.contains(&"RollbackStarted"), "nothing is owed");
    checked(&handle).await;
}

#[workflow]
async fn drops_and_goes_on(ctx: Ctx, fails: bool) -> Result<()> {
    booking(&ctx, "a").await?;
    select! {
        slow = gated(&ctx, "slow").on_abandon(OnAbandon::Cancel) => drop(slow?),
        over = ctx.sleep("1m") => over?,
    }
    gated(&ctx, "later").await?;
    if fails { refusal(&ctx).await } else { Ok(()) }
}

async fn dropped_by_a_timeout(id: &str, fails: bool) -> Vec<String> {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(drops_and_goes_on)).await;
    let handle = app.start(drops_and_goes_on, id, fails).await.unwrap();
    stage.sees("begin slow").await;
    stage.world.advance(Duration::from_secs(60));
    stage.sees("begin later").await;
    assert!(undos(&stage.effects()).is_empty(), "it is owed, and not undone while the run goes on");
    stage.gates.open("later");
    assert_eq!(handle.result().await.is_err(), fails);
    checked(&handle).await;
    undos(&stage.effects()).into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn r13_a_step_that_a_timeout_dropped_is_undone_at_the_end_and_nothing_else_is() {
    assert_eq!(dropped_by_a_timeout("good", false).await, ["undo slow: unknown"]);
}

#[tokio::test]
async fn r2_a_dropped_step_has_its_place_in_the_rollback_of_a_failure() {
    let wanted = ["undo later: succeeded", "undo slow: unknown", "undo a: succeeded"];
    assert_eq!(dropped_by_a_timeout("bad", true).await, wanted);
}

#[workflow]
async fn drops_one_that_waits(ctx: Ctx, (): ()) -> Result<()> {
    let flaky = ctx
        .step("flaky", async |s| {
            s.state::<Effects>().add(format!("attempt {}", s.attempt()));
            Err::<String, _>(msg("not now"))
        })
        .rollback(undone)
        .retry(Retry::constant("1h"));
    select! {
        flaky = flaky => flaky.map(drop),
        over = ctx.sleep("1m") => over,
    }
}

#[tokio::test]
async fn r13_a_dropped_step_that_waits_for_a_retry_is_not_tried_again() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(drops_one_that_waits)).await;
    let handle = app.start(drops_one_that_waits, "t", ()).await.unwrap();
    stage.sees("attempt 1").await;
    until(&handle, Status::Suspended).await;
    stage.world.advance(Duration::from_secs(60));
    handle.result().await.unwrap();
    stage.world.advance(Duration::from_secs(7200));
    assert_eq!(stage.effects(), ["attempt 1", "undo flaky: failed"]);
    checked(&handle).await;
}

/// Asks for a step, and in the next group of the same row drops it.
#[workflow]
async fn asks_and_drops(ctx: Ctx, (): ()) -> Result<()> {
    let chain = async {
        ctx.step("a", async |_s| Ok(())).await?;
        booking(&ctx, "never").await?;
        Ok::<(), Failure>(())
    };
    select! {
        chain = chain => chain?,
        stop = ctx.step("stop", async |_s| Ok(())) => stop?,
    }
    gated(&ctx, "then").await.map(drop)
}

#[tokio::test]
async fn r13_a_step_that_is_dropped_in_the_row_that_asked_for_it_never_runs() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(asks_and_drops)).await;
    let handle = app.start(asks_and_drops, "t", ()).await.unwrap();
    stage.sees("begin then").await;
    stage.gates.open("then");
    handle.result().await.unwrap();
    assert!(!stage.effects().contains(&"do never".to_owned()), "{:?}", stage.effects());
    assert_eq!(undos(&stage.effects()), ["undo never: unknown"], "its start is in the journal");
    checked(&handle).await;
}

#[workflow]
async fn join_after_race(ctx: Ctx, (): ()) -> Result<()> {
    let (_, first) = race([booking(&ctx, "x"), gated(&ctx, "y")]).await;
    let (a, b) = join!(booking(&ctx, "a"), gated(&ctx, "b"));
    first?;
    a?;
    b?;
    Ok(())
}

#[tokio::test]
async fn b35_w09_killed_while_losers_are_undone_everything_that_stands_is_listed() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(join_after_race)).await;
    let handle = app.start(join_after_race, "t", ()).await.unwrap();
    stage.gates.open("b");
    let status = until(&handle, Status::RollingBack).await;
    assert_eq!(status.rollback.of, 1, "only the loser is undone");
    handle.kill().by("ops").reason("enough").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Terminated);
    // The success was never recorded, so what the winners did is nobody's either.
    let names = events(&handle).await;
    assert!(!names.contains(&"ExecutionSucceeded"));
    let attention = app.attention(10).await.unwrap();
    assert_eq!(attention.len(), 1);
    assert!(attention[0].message.contains("with undos left: b#1, a#1, y#1, x#1"), "{attention:?}");
}
