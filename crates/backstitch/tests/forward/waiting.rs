//! Sleeps (P9): never early, after downtime at once, and passed for ever once they have passed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch::core::event::Event;
use backstitch::{
    Ctx, Failure, FnWorkflow, Handle, Result, Retry, Status, WaitsFor, select, workflow,
    workflow_fn,
};

use crate::gates::Gates;
use crate::journal::{Soon, journal, seen_by, until_recorded};
use crate::world::{EPOCH_US, Effects, Gate, World, until};

const HOUR_US: i64 = 3_600_000_000;
const HOUR: Duration = Duration::from_secs(3_600);
const TICK: Duration = Duration::from_micros(1);

#[workflow]
async fn sleeps(ctx: Ctx, (): ()) -> Result<i64> {
    ctx.sleep("1h").await?;
    Ok(ctx.now().as_microsecond())
}

async fn fire_at<T>(handle: &Handle<T>) -> i64 {
    let status = until(handle, Status::Suspended).await;
    let instants = status.waits_for.iter().filter_map(|waits| match waits {
        WaitsFor::Instant { at_us, .. } => Some(*at_us),
        _ => None,
    });
    instants.min().expect("it waits for an instant")
}

#[tokio::test]
async fn b20_p9_a_sleep_is_never_over_early() {
    let world = World::new();
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = app.start(sleeps, "t", ()).await.unwrap();
    assert_eq!(fire_at(&handle).await, EPOCH_US + HOUR_US, "the status says until when");
    world.advance(HOUR - TICK);
    fire_at(&handle).await;
    assert_eq!(journal(&handle).await.count("TimerFired"), 0);
    world.advance(TICK);
    assert_eq!(handle.result().soon().await.unwrap(), EPOCH_US + HOUR_US);
}

/// A sleep, a retry and two steps that are held, all at once.
#[workflow]
async fn sleeps_beside_steps(ctx: Ctx, (): ()) -> Result<()> {
    let held = |name: &'static str| {
        ctx.step(name, async |s: backstitch::StepCtx| {
            s.state::<Gates>().pass(s.name()).await;
            Ok(())
        })
    };
    let retried = ctx
        .step("retried", async |s: backstitch::StepCtx| match s.attempt() {
            1 => Err(backstitch::msg("not yet")),
            _ => Ok(()),
        })
        .retry(Retry::constant("1m"));
    let all = backstitch::join!(ctx.sleep("1m"), retried, held("a"), held("b"));
    all.0.and(all.1).and(all.2).and(all.3)
}

#[tokio::test]
async fn p9_what_happens_just_before_an_instant_does_not_bring_it_forward() {
    let (world, gates) = (World::new(), Gates::default());
    let app = world.open(|b| b.register(sleeps_beside_steps).state(gates.clone())).await;
    let handle = app.start(sleeps_beside_steps, "t", ()).await.unwrap();
    until_recorded(&handle, "StepAttemptFailed", 1).await;
    world.advance(Duration::from_secs(60) - TICK);
    gates.open("a");
    until_recorded(&handle, "StepSucceeded", 1).await;
    let before = journal(&handle).await;
    assert_eq!((before.count("TimerFired"), before.count("StepStarted")), (0, 3));
    world.advance(TICK);
    until_recorded(&handle, "StepSucceeded", 2).await;
    gates.open("b");
    handle.result().soon().await.unwrap();
}

#[tokio::test]
async fn b20_the_rest_of_a_sleep_is_slept_after_a_crash() {
    let world = World::new();
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = app.start(sleeps, "t", ()).await.unwrap();
    fire_at(&handle).await;
    world.advance(HOUR / 2);
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = seen_by(&app, &handle).await;
    assert_eq!(fire_at(&handle).await, EPOCH_US + HOUR_US);
    world.advance(HOUR / 2 - TICK);
    fire_at(&handle).await;
    world.advance(TICK);
    handle.result().soon().await.unwrap();
    assert_eq!(journal(&handle).await.count("TimerStarted"), 1);
}

#[tokio::test]
async fn b20_p9_a_sleep_that_passed_while_the_process_was_down_is_over_at_once() {
    let world = World::new();
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = app.start(sleeps, "t", ()).await.unwrap();
    fire_at(&handle).await;
    let down = world.reopen();
    world.advance(HOUR * 100);
    drop(down);
    let app = world.open(|b| b.register(sleeps)).await;
    let woken = seen_by(&app, &handle).await.result().soon().await.unwrap();
    assert_eq!(woken, EPOCH_US + 100 * HOUR_US, "the time is that of the wake, not of the plan");
}

/// Sleeps for a duration that is another one in every process, then waits at the gate.
fn moody(duration: Duration) -> FnWorkflow<(), ()> {
    workflow_fn("moody", move |ctx: Ctx, (): ()| async move {
        ctx.sleep(duration).await?;
        ctx.step("after", async |s: backstitch::StepCtx| {
            s.state::<Effects>().add("after");
            s.state::<Gate>().pass().await;
            Ok(())
        })
        .await
    })
}

#[tokio::test]
async fn b20_a_sleep_is_not_slept_again_although_the_code_computes_it_anew() {
    let world = World::new();
    let app = world.open(|b| b.register(moody(HOUR)).state(Gate::closed())).await;
    let handle = app.start(moody(HOUR), "t", ()).await.unwrap();
    fire_at(&handle).await;
    world.advance(HOUR);
    world.effects.wait_for("after", 1).await;

    let gate = Gate::closed();
    gate.open();
    let app = world.open(|b| b.register(moody(HOUR * 24)).state(gate)).await;
    seen_by(&app, &handle).await.result().soon().await.unwrap();
    assert_eq!(world.effects.count("after"), 2, "the lost attempt and the next");
}

#[tokio::test]
async fn b20_another_duration_does_not_move_a_sleep_that_has_begun() {
    let world = World::new();
    let gate = Gate::closed();
    gate.open();
    let app = world.open(|b| b.register(moody(HOUR)).state(gate.clone())).await;
    let handle = app.start(moody(HOUR), "t", ()).await.unwrap();
    fire_at(&handle).await;
    let app = world.open(|b| b.register(moody(HOUR * 24)).state(gate)).await;
    let handle = seen_by(&app, &handle).await;
    assert_eq!(fire_at(&handle).await, EPOCH_US + HOUR_US);
    world.advance(HOUR);
    handle.result().soon().await.unwrap();
}

/// Sleeps until an instant that is past, and says when it was over.
fn until_past(passes: Arc<Mutex<u32>>) -> FnWorkflow<i64, i64> {
    workflow_fn("until-past", move |ctx: Ctx, at_us: i64| {
        let passes = passes.clone();
        async move {
            *passes.lock().unwrap() += 1;
            let instant = jiff::Timestamp::from_microsecond(at_us).map_err(Failure::from)?;
            ctx.sleep_until(instant).await?;
            let now_us = ctx.now().as_microsecond();
            ctx.step("held", async |s: backstitch::StepCtx| {
                s.state::<Effects>().add("held");
                s.state::<Gate>().pass().await;
                Ok(())
            })
            .await?;
            Ok(now_us)
        }
    })
}

#[tokio::test]
async fn b20_sleep_until_an_instant_that_is_past_returns_at_once_live_and_in_replay() {
    for at_us in [EPOCH_US - HOUR_US, EPOCH_US, 0, -EPOCH_US] {
        let (world, passes) = (World::new(), Arc::default());
        let workflow = until_past(passes);
        let app = world.open(|b| b.register(workflow.clone()).state(Gate::closed())).await;
        let handle = app.start(workflow.clone(), "t", at_us).await.unwrap();
        world.effects.wait_for("held", 1).await;
        world.advance(HOUR);

        let gate = Gate::closed();
        gate.open();
        let app = world.open(|b| b.register(workflow.clone()).state(gate)).await;
        let handle = seen_by(&app, &handle).await;
        assert_eq!(handle.result().soon().await.unwrap(), EPOCH_US, "no time passed in it");
    }
}

#[tokio::test]
async fn b20_p9_the_clock_may_jump_back_without_harm() {
    let world = World::new();
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = app.start(sleeps, "t", ()).await.unwrap();
    fire_at(&handle).await;
    world.advance(HOUR / 2);
    world.clock.set(EPOCH_US - 10 * HOUR_US);
    fire_at(&handle).await;
    world.clock.set(EPOCH_US + HOUR_US - 1);
    fire_at(&handle).await;
    world.clock.set(EPOCH_US + HOUR_US);
    assert_eq!(handle.result().soon().await.unwrap(), EPOCH_US + HOUR_US);
}

#[tokio::test]
async fn b09_the_longest_sleep_is_a_hundred_years() {
    let long = workflow_fn("long", |ctx: Ctx, years: u64| async move {
        ctx.sleep(Duration::from_secs(years * 366 * 86_400)).await
    });
    let world = World::new();
    let app = world.open(|b| b.register(long.clone())).await;
    let handle = app.start(long.clone(), "fits", 100).await.unwrap();
    assert_eq!(fire_at(&handle).await, EPOCH_US + 100 * 366 * 24 * HOUR_US);
    let handle = app.start(long, "too-long", 101).await.unwrap();
    let error = handle.result().soon().await.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!(failure.type_name, "BadDuration");
    assert!(failure.message.contains("longer than 100 years"), "{failure}");
    assert!(failure.message.contains("waiting.rs:"), "{failure}");
}

#[workflow]
async fn patience(ctx: Ctx, (): ()) -> Result<String> {
    let answer = ctx.step("ask", async |s: backstitch::StepCtx| {
        s.state::<Gate>().pass().await;
        Ok("yes".to_owned())
    });
    select! {
        answer = answer => answer,
        slept = ctx.sleep("1h") => slept.map(|()| "no answer".to_owned()),
    }
}

#[tokio::test]
async fn b89_an_abandoned_timer_wakes_nobody() {
    let (world, gate) = (World::new(), Gate::closed());
    let app = world.open(|b| b.register(patience).state(gate.clone())).await;
    let handle = app.start(patience, "t", ()).await.unwrap();
    until_recorded(&handle, "TimerStarted", 1).await;
    gate.open();
    assert_eq!(handle.result().soon().await.unwrap(), "yes");
    let before = journal(&handle).await;
    assert_eq!(before.count("TimerCancelled"), 1);
    world.advance(HOUR * 2);
    let app = world.open(|b| b.register(patience).state(gate)).await;
    seen_by(&app, &handle).await.result().soon().await.unwrap();
    assert_eq!(journal(&handle).await.events, before.events);
}

#[tokio::test]
async fn b20_sleeps_that_end_together_are_shown_one_by_one_in_the_order_of_their_instants() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let many = {
        let order = order.clone();
        workflow_fn("many", move |ctx: Ctx, (): ()| {
            let order = order.clone();
            async move {
                let naps = (0..10_u64).map(|i| {
                    let nap = ctx.sleep(Duration::from_secs(10 - i));
                    let order = order.clone();
                    async move {
                        nap.await?;
                        order.lock().unwrap().push(i);
                        Ok::<(), Failure>(())
                    }
                });
                futures_util::future::try_join_all(naps).await?;
                Ok(())
            }
        })
    };
    let world = World::new();
    let app = world.open(|b| b.register(many.clone())).await;
    let handle = app.start(many, "t", ()).await.unwrap();
    until_recorded(&handle, "TimerStarted", 10).await;
    world.advance(HOUR);
    handle.result().soon().await.unwrap();
    assert_eq!(*order.lock().unwrap(), (0..10).rev().collect::<Vec<_>>());
    let fired = journal(&handle).await.events.into_iter().filter_map(|event| match event {
        Event::TimerFired(e) => Some(e.ord),
        _ => None,
    });
    assert_eq!(fired.collect::<Vec<_>>(), (1..=10).rev().collect::<Vec<_>>());
}
