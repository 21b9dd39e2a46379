//! Attempts that do not end by themselves: timeouts, crashes, orderly stops.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch::{
    App, Class, Ctx, Handle, Origin, Result, Retry, Status, StepCtx, msg, workflow, workflow_fn,
};

use crate::journal::{Soon, journal, seen_by, until_recorded};
use crate::world::{Effects, Gate, World, until};

/// Tells when it is dropped.
struct Told(Effects, &'static str);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.add(self.1);
    }
}

#[workflow]
async fn times_out_once(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.step("call", async |s: StepCtx| {
        let effects = s.state::<Effects>().clone();
        effects.add(format!("{} under {}", s.attempt(), s.idempotency_key()));
        effects.add(format!("begin {}", s.attempt()));
        if s.attempt() == 1 {
            let _told = Told(effects, "dropped");
            std::future::pending::<()>().await;
        }
        Ok(s.attempt())
    })
    .timeout("30s")
    .retry(Retry::constant("0s").max_attempts(2))
    .await
}

#[tokio::test]
async fn b08_w13_a_timeout_drops_the_body_before_the_next_attempt_starts() {
    let world = World::new();
    let app = world.open(|b| b.register(times_out_once)).await;
    let handle = app.start(times_out_once, "t", ()).await.unwrap();
    world.effects.wait_for("begin 1", 1).await;
    world.advance(Duration::from_micros(30_000_000 - 1));
    until(&handle, Status::Running).await;
    assert_eq!(world.effects.count("dropped"), 0, "never early");
    world.advance(Duration::from_micros(1));
    assert_eq!(handle.result().soon().await.unwrap(), 2);
    let effects = world.effects.all();
    let key = handle.run_id().step_key(1);
    let wanted = [
        format!("1 under {key}"),
        "begin 1".into(),
        "dropped".into(),
        format!("2 under {key}"),
        "begin 2".into(),
    ];
    assert_eq!(effects, wanted);
    let (attempt, failure) = journal(&handle).await.failures(1)[0].clone();
    assert_eq!((attempt, failure.class()), (1, Class::Transient));
    assert_eq!((failure.origin(), failure.type_name.as_str()), (Origin::Timeout, "Timeout"));
    assert!(failure.message.contains("30s"), "{failure}");
}

#[workflow]
async fn three_tries(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step("call", async |s: StepCtx| {
        s.state::<Effects>().add(format!("try {}", s.attempt()));
        s.state::<Gate>().pass().await;
        Err::<(), _>(msg("no"))
    })
    .retry(Retry::constant("0s").max_attempts(3))
    .await
}

/// The next process, with a gate of its own.
async fn three_tries_again(world: &World, handle: &Handle<()>, gate: Gate) -> (App, Handle<()>) {
    let app = world.open(|b| b.register(three_tries).state(gate)).await;
    let handle = seen_by(&app, handle).await;
    (app, handle)
}

#[tokio::test]
async fn b15_attempts_before_a_crash_count_after_it() {
    let world = World::new();
    let app = world.open(|b| b.register(three_tries).state(Gate::closed())).await;
    let handle = app.start(three_tries, "t", ()).await.unwrap();
    world.effects.wait_for("try 1", 1).await;
    let (_second, handle) = three_tries_again(&world, &handle, Gate::closed()).await;
    world.effects.wait_for("try 2", 1).await;
    let (_third, handle) = three_tries_again(&world, &handle, Gate::closed()).await;
    world.effects.wait_for("try 3", 1).await;
    let (_fourth, handle) = three_tries_again(&world, &handle, Gate::closed()).await;
    let error = handle.result().soon().await.unwrap_err();
    assert_eq!(error.failure().unwrap().origin(), Origin::Lost);
    assert_eq!(world.effects.all(), ["try 1", "try 2", "try 3"], "none past the limit");
    let journal = journal(&handle).await;
    assert_eq!(journal.origins(1), [Origin::Lost; 3]);
    assert_eq!(journal.count("StepFailed"), 1);
}

#[tokio::test]
async fn b15_an_attempt_that_an_orderly_stop_interrupts_does_not_count() {
    let world = World::new();
    let app = world.open(|b| b.register(three_tries).state(Gate::closed())).await;
    let handle = app.start(three_tries, "t", ()).await.unwrap();
    world.effects.wait_for("try 1", 1).await;
    app.shutdown().await.unwrap();

    let gate = Gate::closed();
    gate.open();
    let (_app, handle) = three_tries_again(&world, &handle, gate).await;
    handle.result().soon().await.unwrap_err();
    assert_eq!(world.effects.all(), ["try 1", "try 2", "try 3", "try 4"]);
    let wanted = [Origin::Interrupted, Origin::Body, Origin::Body, Origin::Body];
    assert_eq!(journal(&handle).await.origins(1), wanted);
}

#[tokio::test]
async fn b15_a_lost_attempt_is_tried_again_at_once() {
    let world = World::new();
    let tries = || {
        workflow_fn("tries", |ctx: Ctx, (): ()| async move {
            ctx.step("call", async |s: StepCtx| {
                s.state::<Effects>().add(format!("try {}", s.attempt()));
                if s.attempt() == 1 {
                    std::future::pending::<()>().await;
                }
                Ok(s.attempt())
            })
            .retry(Retry::constant("1h"))
            .await
        })
    };
    let app = world.open(|b| b.register(tries())).await;
    let handle = app.start(tries(), "t", ()).await.unwrap();
    world.effects.wait_for("try 1", 1).await;
    let app = world.open(|b| b.register(tries())).await;
    let handle = seen_by(&app, &handle).await;
    assert_eq!(handle.result().soon().await.unwrap(), 2);
    assert_eq!(journal(&handle).await.delays_us(1), [0]);
}

/// A step whose policy is that of the process.
fn with_policy(retry: Retry, timeout: &'static str) -> backstitch::FnWorkflow<(), ()> {
    workflow_fn("with-policy", move |ctx: Ctx, (): ()| {
        let retry = retry.clone();
        async move {
            ctx.step("call", async |_s| Err::<(), _>(msg("no"))).retry(retry).timeout(timeout).await
        }
    })
}

#[tokio::test]
async fn b14_a_policy_that_changed_between_crash_and_replay_applies_from_the_next_attempt() {
    let world = World::new();
    let before = with_policy(Retry::constant("10s").max_attempts(2), "1m");
    let app = world.open(|b| b.register(before.clone())).await;
    let handle = app.start(before, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;

    let after = with_policy(Retry::constant("20s").max_attempts(4), "2m");
    let app = world.open(|b| b.register(after)).await;
    let handle = seen_by(&app, &handle).await;
    until(&handle, Status::Suspended).await;
    world.advance_until(&handle, Status::Failed).await;
    let journal = journal(&handle).await;
    let second = 1_000_000;
    let wanted = [10 * second, 20 * second, 20 * second];
    assert_eq!(journal.delays_us(1), wanted, "the delay that was recorded stands");
    let starts = journal.starts(1);
    let written: Vec<Option<(u32, u64)>> = starts
        .iter()
        .map(|(_, policy)| policy.as_ref().map(|p| (p.retry.max_attempts, p.timeout_us)))
        .collect();
    assert_eq!(written, [None, Some((4, 120 * second as u64)), None, None]);
    assert_eq!(journal.run.step(1).unwrap().policy.retry.max_attempts, 4);
}

#[tokio::test]
async fn b14_fewer_attempts_than_were_used_grant_no_further_one() {
    let world = World::new();
    let before = with_policy(Retry::constant("10s").max_attempts(5), "1m");
    let app = world.open(|b| b.register(before.clone())).await;
    let handle = app.start(before, "t", ()).await.unwrap();
    until_recorded(&handle, "StepAttemptFailed", 1).await;
    world.advance(Duration::from_secs(10));
    until_recorded(&handle, "StepAttemptFailed", 2).await;

    let after = with_policy(Retry::constant("10s").max_attempts(3), "1m");
    let app = world.open(|b| b.register(after)).await;
    let handle = seen_by(&app, &handle).await;
    world.advance_until(&handle, Status::Failed).await;
    assert_eq!(journal(&handle).await.starts(1).len(), 3);
}

#[workflow]
async fn hangs(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step("call", async |s: StepCtx| {
        s.state::<Effects>().add(format!("try {}", s.attempt()));
        std::future::pending().await
    })
    .deadline("10s")
    .await
}

#[tokio::test]
async fn b09_a_deadline_cuts_the_attempt_that_is_running_also_after_a_crash() {
    for crash in [false, true] {
        let world = World::new();
        let app = world.open(|b| b.register(hangs)).await;
        let mut handle = app.start(hangs, "t", ()).await.unwrap();
        world.effects.wait_for("try 1", 1).await;
        world.advance(Duration::from_secs(6));
        if crash {
            let app = world.open(|b| b.register(hangs)).await;
            handle = seen_by(&app, &handle).await;
            world.effects.wait_for("try 2", 1).await;
        }
        world.advance(Duration::from_micros(4_000_000 - 1));
        until(&handle, Status::Running).await;
        world.advance(Duration::from_micros(1));
        let error = handle.result().soon().await.unwrap_err();
        assert_eq!(error.failure().unwrap().origin(), Origin::Timeout);
        assert_eq!(world.effects.all().len(), 1 + usize::from(crash));
    }
}

#[tokio::test]
async fn p2_an_attempt_is_durable_before_its_body_begins() {
    let seen = Arc::new(Mutex::new(None::<Handle<()>>));
    let rows = Arc::new(Mutex::new(Vec::new()));
    let looks = {
        let (seen, rows) = (seen.clone(), rows.clone());
        workflow_fn("looks", move |ctx: Ctx, (): ()| {
            let (seen, rows) = (seen.clone(), rows.clone());
            async move {
                for _ in 0..3 {
                    let (seen, rows) = (seen.clone(), rows.clone());
                    ctx.step("look", async move |s: StepCtx| {
                        s.state::<Gate>().pass().await;
                        let handle = seen.lock().unwrap().take().expect("it was put back");
                        let started = journal(&handle).await.count("StepStarted");
                        rows.lock().unwrap().push((s.count() as usize, started));
                        *seen.lock().unwrap() = Some(handle);
                        Ok(())
                    })
                    .await?;
                }
                Ok(())
            }
        })
    };
    let (world, gate) = (World::new(), Gate::closed());
    let app = world.open(|b| b.register(looks.clone()).state(gate.clone())).await;
    let handle = app.start(looks, "t", ()).await.unwrap();
    *seen.lock().unwrap() = Some(app.handle("t").await.unwrap());
    gate.open();
    handle.result().soon().await.unwrap();
    assert_eq!(*rows.lock().unwrap(), [(1, 1), (2, 2), (3, 3)]);
}

#[tokio::test]
async fn p4_every_owner_has_a_larger_fence() {
    let fences = || {
        workflow_fn("fences", |ctx: Ctx, (): ()| async move {
            let first = ctx.step("first", async |s: StepCtx| Ok(s.fence())).await?;
            ctx.step("held", async |s: StepCtx| {
                s.state::<Effects>().add("held");
                s.state::<Gate>().pass().await;
                Ok(())
            })
            .await?;
            let second = ctx.step("second", async |s: StepCtx| Ok(s.fence())).await?;
            Ok((first, second))
        })
    };
    let world = World::new();
    let app = world.open(|b| b.register(fences()).state(Gate::closed())).await;
    let handle = app.start(fences(), "t", ()).await.unwrap();
    world.effects.wait_for("held", 1).await;
    let gate = Gate::closed();
    gate.open();
    let app = world.open(|b| b.register(fences()).state(gate)).await;
    let (first, second) = seen_by(&app, &handle).await.result().soon().await.unwrap();
    assert!(first < second, "{first} {second}");
    // Below each is room for those who lease a single run from this owner.
    assert!(second - first >= 1 << 32, "{first} {second}");
}
