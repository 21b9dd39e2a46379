//! Single steps: what a body is told, and what becomes of its outcome.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch::core::run::Ask;
use backstitch::{
    Class, Ctx, FailureExt, Origin, Result, Retry, Status, StepCtx, msg, select, workflow,
    workflow_fn,
};

use crate::journal::{Soon, journal, seen_by, until_recorded};
use crate::world::{Effects, Gate, World};

#[workflow]
async fn says_what_it_is_told(ctx: Ctx, (): ()) -> Result<(String, u32, u32, u32, String)> {
    ctx.step("charge", async move |s: StepCtx| {
        let id = s.execution_id().to_owned();
        Ok((s.name().to_owned(), s.count(), s.attempt(), s.max_attempts(), id))
    })
    .retry(Retry::exponential("1s").max_attempts(5))
    .await
}

#[tokio::test]
async fn b01_a_body_is_told_its_name_count_attempt_and_policy() {
    let world = World::new();
    let app = world.open(|b| b.register(says_what_it_is_told)).await;
    let handle = app.start(says_what_it_is_told, "one", ()).await.unwrap();
    let told = handle.result().soon().await.unwrap();
    assert_eq!(told, ("charge".into(), 1, 1, 5, "one".into()));
    let journal = journal(&handle).await;
    let wanted =
        ["ExecutionStarted", "StepScheduled", "StepStarted", "StepSucceeded", "ExecutionSucceeded"];
    assert_eq!(journal.names(), wanted);
    assert_eq!(journal.rows, 3, "n steps in a row cost n + 1 appends after the start");
    let step = journal.run.step(1).unwrap();
    assert_eq!(step.policy.retry.max_attempts, 5);
    assert_eq!(step.policy.timeout_us, 600_000_000, "what is not set is the default");
    assert!(step.place.contains("steps.rs:"), "{}", step.place);
}

#[workflow]
async fn builds_before_it_awaits(ctx: Ctx, (): ()) -> Result<Vec<String>> {
    let which = async move |s: StepCtx| Ok(format!("{}#{}", s.name(), s.count()));
    let first = ctx.step("a", which);
    let other = ctx.step("b", which);
    let second = ctx.step("a", which);
    // Awaited in another order than built.
    let second = second.await?;
    let (other, first) = (other.await?, first.await?);
    let third = ctx.step("a", which).await?;
    Ok(vec![first, second, third, other])
}

#[tokio::test]
async fn b03_counts_are_taken_when_a_step_is_built() {
    let world = World::new();
    let app = world.open(|b| b.register(builds_before_it_awaits)).await;
    let handle = app.start(builds_before_it_awaits, "t", ()).await.unwrap();
    assert_eq!(handle.result().soon().await.unwrap(), ["a#1", "a#2", "a#3", "b#1"]);
    let journal = journal(&handle).await;
    let keys: Vec<String> = journal.run.steps().map(|(_, step)| step.key.to_string()).collect();
    assert_eq!(keys, ["a#2", "b#1", "a#1", "a#3"], "ordinals follow the first polls");
}

#[workflow]
async fn sleeps_and_steps(ctx: Ctx, (): ()) -> Result<u32> {
    // A step may be called what it likes; sleeps have counts of their own.
    ctx.sleep("1s").await?;
    ctx.step("sleep", async |s: StepCtx| Ok(s.count())).await
}

#[tokio::test]
async fn b03_sleeps_do_not_count_as_steps() {
    let world = World::new();
    let app = world.open(|b| b.register(sleeps_and_steps)).await;
    let handle = app.start(sleeps_and_steps, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Succeeded).await;
    assert_eq!(handle.result().soon().await.unwrap(), 1);
    let Ask::Timer(timer) = &journal(&handle).await.run.asks[0] else { panic!("no timer") };
    assert_eq!(timer.key.to_string(), "sleep#1");
}

#[workflow]
async fn catches(ctx: Ctx, (): ()) -> Result<String> {
    let refused = ctx
        .step("pay", async |_s| Err::<(), _>(msg("no").permanent()))
        .rollback(async |u| {
            u.state::<Effects>().add("undo pay");
            Ok(())
        })
        .await;
    Ok(format!("went on without: {}", refused.unwrap_err().message))
}

#[tokio::test]
async fn b05_a_failure_that_is_caught_stays_in_the_journal_and_rolls_nothing_back() {
    let world = World::new();
    let app = world.open(|b| b.register(catches)).await;
    let handle = app.start(catches, "t", ()).await.unwrap();
    assert_eq!(handle.result().soon().await.unwrap(), "went on without: no");
    let journal = journal(&handle).await;
    assert_eq!((journal.count("StepFailed"), journal.count("RollbackStarted")), (1, 0));
    assert!(world.effects.all().is_empty());
}

#[workflow]
async fn catches_then_waits(ctx: Ctx, (): ()) -> Result<String> {
    let refused = ctx
        .step("pay", async |s: StepCtx| {
            s.state::<Effects>().add("pay");
            Err::<(), _>(msg("no").permanent().with_code("declined"))
        })
        .await;
    ctx.step("wait", async |s: StepCtx| {
        s.state::<Effects>().add("wait");
        s.state::<Gate>().pass().await;
        Ok(())
    })
    .await?;
    Ok(refused.unwrap_err().code.clone())
}

#[tokio::test]
async fn b06_w06_p3_a_caught_permanent_failure_is_not_tried_again_after_a_crash() {
    let world = World::new();
    let app = world.open(|b| b.register(catches_then_waits).state(Gate::closed())).await;
    let handle = app.start(catches_then_waits, "t", ()).await.unwrap();
    world.effects.wait_for("wait", 1).await;

    let gate = Gate::closed();
    gate.open();
    let app = world.open(|b| b.register(catches_then_waits).state(gate)).await;
    let handle = seen_by(&app, &handle).await;
    assert_eq!(handle.result().soon().await.unwrap(), "declined");
    assert_eq!(world.effects.count("pay"), 1);
    assert_eq!(journal(&handle).await.failures(1).len(), 1);
}

#[tokio::test]
async fn b13_a_step_inside_a_body_is_refused_by_name() {
    let nests = workflow_fn("nests", |ctx: Ctx, (): ()| async move {
        let inner = ctx.clone();
        ctx.step("outer", async move |s: StepCtx| {
            s.state::<Effects>().add("outer");
            inner.step("inner", async |_s| Ok(())).await
        })
        .await
    });
    let world = World::new();
    let app = world.open(|b| b.register(nests.clone())).await;
    let handle = app.start(nests, "t", ()).await.unwrap();
    let error = handle.result().soon().await.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!((failure.type_name.as_str(), failure.class()), ("NestedStep", Class::Permanent));
    assert_eq!(failure.origin(), Origin::Engine);
    assert!(failure.message.contains("\"inner\""), "{failure}");
    assert!(failure.message.contains("steps.rs:"), "it names the place: {failure}");
    assert_eq!(world.effects.count("outer"), 1, "it is not tried again");
    assert_eq!(journal(&handle).await.run.asks.len(), 1, "the inner step never existed");
}

#[tokio::test]
async fn b13_a_sleep_inside_a_body_is_refused_as_well() {
    let nests = workflow_fn("nests", |ctx: Ctx, (): ()| async move {
        let inner = ctx.clone();
        ctx.step("outer", async move |_s| inner.sleep("1s").await).await
    });
    let world = World::new();
    let app = world.open(|b| b.register(nests.clone())).await;
    let handle = app.start(nests, "t", ()).await.unwrap();
    let error = handle.result().soon().await.unwrap_err();
    assert_eq!(error.failure().unwrap().type_name, "NestedStep");
}

#[tokio::test]
async fn b13_a_step_that_is_awaited_inside_a_body_is_refused_as_well() {
    let nests = workflow_fn("nests", |ctx: Ctx, (): ()| async move {
        let built = ctx.step("inner", async |s: StepCtx| {
            s.state::<Effects>().add("inner");
            Ok(())
        });
        let built = Arc::new(Mutex::new(Some(built)));
        ctx.step("outer", async move |_s| {
            let inner = built.lock().unwrap().take().expect("it is there");
            inner.await
        })
        .await
    });
    let world = World::new();
    let app = world.open(|b| b.register(nests.clone())).await;
    let handle = app.start(nests, "t", ()).await.unwrap();
    let error = handle.result().soon().await.unwrap_err();
    assert_eq!(error.failure().unwrap().type_name, "NestedStep");
    assert_eq!(journal(&handle).await.run.asks.len(), 1);
    assert!(world.effects.all().is_empty());
}

#[tokio::test]
async fn b13_a_step_built_in_a_spawned_task_is_refused() {
    let spawns = workflow_fn("spawns", |ctx: Ctx, (): ()| async move {
        let inner = ctx.clone();
        let elsewhere = async move |_s| {
            let task = tokio::spawn(async move { inner.step("x", async |_s| Ok(())).await });
            task.await?
        };
        ctx.step("outer", elsewhere).await
    });
    let world = World::new();
    let app = world.open(|b| b.register(spawns.clone())).await;
    let handle = app.start(spawns, "t", ()).await.unwrap();
    let error = handle.result().soon().await.unwrap_err();
    assert_eq!(error.failure().unwrap().type_name, "StepElsewhere");
}

/// Polls a step once, then awaits others while it holds the first.
#[workflow]
async fn holds_without_polling(ctx: Ctx, (): ()) -> Result<u32> {
    let mut held = ctx
        .step("held", async |s: StepCtx| {
            s.state::<Effects>().add(format!("held {}", s.attempt()));
            match s.attempt() {
                1 => std::future::pending().await,
                _ => Ok(7_u32),
            }
        })
        .timeout("10s")
        .retry(Retry::constant("1s"));
    select! {
        quick = ctx.step("quick", async |_s| Ok(0_u32)) => quick?,
        early = &mut held => early?,
    };
    ctx.sleep("1h").await?;
    held.await
}

#[tokio::test]
async fn b95_a_body_goes_on_while_the_code_holds_its_step_without_polling_it() {
    let world = World::new();
    let app = world.open(|b| b.register(holds_without_polling)).await;
    let handle = app.start(holds_without_polling, "t", ()).await.unwrap();
    world.effects.wait_for("held 1", 1).await;
    until_recorded(&handle, "TimerStarted", 1).await;
    world.advance(Duration::from_secs(10));
    until_recorded(&handle, "StepAttemptFailed", 1).await;
    world.advance(Duration::from_secs(1));
    world.effects.wait_for("held 2", 1).await;
    until_recorded(&handle, "StepSucceeded", 2).await;
    assert_eq!(handle.status().await.unwrap().status, Status::Suspended, "it still sleeps");
    let journal_before = journal(&handle).await;
    assert_eq!(journal_before.origins(2), [Origin::Timeout], "it timed out in time");
    world.advance_until(&handle, Status::Succeeded).await;
    assert_eq!(handle.result().soon().await.unwrap(), 7);
}

#[tokio::test]
async fn b95_an_outcome_that_is_never_looked_at_is_recorded() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let forgets = {
        let seen = seen.clone();
        workflow_fn("forgets", move |ctx: Ctx, (): ()| {
            let seen = seen.clone();
            async move {
                let mut held = ctx.step("held", async |_s| Ok(1_u32));
                let mut quick = ctx.step("quick", async |_s| Ok(2_u32));
                let first = select! {
                    held = &mut held => held?,
                    quick = &mut quick => quick?,
                };
                let third = ctx.step("third", async |_s| Ok(3_u32)).await?;
                seen.lock().unwrap().push((first, third));
                drop((held, quick));
                Ok(())
            }
        })
    };
    let world = World::new();
    let app = world.open(|b| b.register(forgets.clone())).await;
    let handle = app.start(forgets, "t", ()).await.unwrap();
    handle.result().soon().await.unwrap();
    let journal = journal(&handle).await;
    assert_eq!(journal.count("StepSucceeded"), 3);
    assert_eq!(journal.count("StepCancelRequested"), 1, "nobody took it, so it is dropped");
    assert_eq!(seen.lock().unwrap().len(), 1);
}
