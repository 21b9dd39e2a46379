//! When a failed attempt is followed by another, and when.

use std::time::Duration;

use backstitch::{
    Class, Classify, Ctx, FailureExt, Jitter, OnExhausted, Origin, Result, Retry, Status, StepCtx,
    msg, workflow, workflow_fn,
};

use crate::journal::{Journal, Soon, journal, seen_by, until_recorded};
use crate::world::{World, until};

const S: i64 = 1_000_000;

#[workflow]
async fn always_fails(ctx: Ctx, (): ()) -> Result<String> {
    let failed = ctx
        .step("call", async |s: StepCtx| Err::<(), _>(msg(format!("refused {}", s.attempt()))))
        .retry(Retry::exponential("1s").max_attempts(3))
        .await;
    Ok(failed.unwrap_err().message.clone())
}

#[tokio::test]
async fn b02_three_attempts_then_the_error_reaches_the_code() {
    let world = World::new();
    let app = world.open(|b| b.register(always_fails)).await;
    let handle = app.start(always_fails, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Succeeded).await;
    assert_eq!(handle.result().soon().await.unwrap(), "refused 3");
    let journal = journal(&handle).await;
    let failures = journal.failures(1);
    let told: Vec<(u32, &str)> =
        failures.iter().map(|(attempt, failure)| (*attempt, failure.message.as_str())).collect();
    assert_eq!(told, [(1, "refused 1"), (2, "refused 2"), (3, "refused 3")]);
    assert_eq!(journal.starts(1).len(), 3);
    assert_eq!(journal.count("StepFailed"), 1);
}

/// What becomes of a step with four attempts whose body fails with `failure`.
async fn attempts_of(failure: fn() -> backstitch::Failure) -> Journal {
    let tries = workflow_fn("tries", move |ctx: Ctx, (): ()| async move {
        ctx.step("call", async move |_s| Err::<(), _>(failure()))
            .retry(Retry::constant("1s").max_attempts(4))
            .await
    });
    let world = World::new();
    let app = world.open(|b| b.register(tries.clone())).await;
    let handle = app.start(tries, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Failed).await;
    journal(&handle).await
}

#[tokio::test]
async fn b04_only_the_class_decides_whether_to_try_again() {
    assert_eq!(attempts_of(|| msg("no").permanent()).await.starts(1).len(), 1);
    assert_eq!(attempts_of(|| msg("").permanent()).await.starts(1).len(), 1);
    assert_eq!(attempts_of(|| msg("")).await.starts(1).len(), 4);
    let io = || std::io::Error::other("").into();
    assert_eq!(attempts_of(io).await.starts(1).len(), 4, "an ordinary error is transient");
    let refused = || {
        let answer: Result<(), std::io::Error> = Err(std::io::Error::other("no"));
        answer.permanent().unwrap_err()
    };
    let journal = attempts_of(refused).await;
    assert_eq!(journal.starts(1).len(), 1);
    let failure = &journal.failures(1)[0].1;
    assert_eq!((failure.class(), failure.origin()), (Class::Permanent, Origin::Body));
}

#[tokio::test]
async fn b09_the_last_class_counts() {
    assert_eq!(attempts_of(|| msg("no").permanent().retry_after("1s")).await.starts(1).len(), 4);
    assert_eq!(attempts_of(|| msg("no").retry_after("1s").permanent()).await.starts(1).len(), 1);
}

/// The delays of a step with the policy, whose body always fails.
async fn delays_of(retry: Retry) -> Vec<i64> {
    let fails = workflow_fn("fails", move |ctx: Ctx, (): ()| {
        let retry = retry.clone();
        async move { ctx.step("call", async |_s| Err::<(), _>(msg("no"))).retry(retry).await }
    });
    let world = World::new();
    let app = world.open(|b| b.register(fails.clone())).await;
    let handle = app.start(fails, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Failed).await;
    journal(&handle).await.delays_us(1)
}

#[tokio::test]
async fn b07_delays_are_those_of_the_policy() {
    let none = Jitter::None;
    let retry = Retry::constant("3s").max_attempts(4);
    assert_eq!(delays_of(retry).await, [3 * S; 3]);
    let retry = Retry::linear("3s").jitter(none).max_attempts(4);
    assert_eq!(delays_of(retry).await, [3 * S, 6 * S, 9 * S]);
    let retry = Retry::exponential("1s").factor(3.0).jitter(none).max_attempts(5).cap("10s");
    assert_eq!(delays_of(retry).await, [S, 3 * S, 9 * S, 10 * S]);
}

#[tokio::test]
async fn b07_jitter_stays_between_zero_and_the_delay() {
    let delays = delays_of(Retry::constant("10s").jitter(Jitter::Full).max_attempts(40)).await;
    assert!(delays.iter().all(|delay| (0..=10 * S).contains(delay)), "{delays:?}");
    assert!(delays.iter().any(|delay| *delay < 3 * S), "{delays:?}");
    assert!(delays.iter().any(|delay| *delay > 7 * S), "{delays:?}");
}

#[tokio::test]
async fn b09_a_delay_longer_than_the_default_cap_is_waited_in_full() {
    assert_eq!(delays_of(Retry::constant("1h").max_attempts(2)).await, [3_600 * S]);
    let years = Retry::exponential(Duration::from_secs(50 * 365 * 86_400)).jitter(Jitter::None);
    let year_us = 365 * 86_400 * S;
    assert_eq!(delays_of(years.max_attempts(2)).await, [50 * year_us]);
}

#[workflow]
async fn is_asked_to_wait(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.step("call", async |s: StepCtx| match s.attempt() {
        1 => Err(msg("busy").retry_after("1h")),
        attempt => Ok(attempt),
    })
    .retry(Retry::constant("1s").cap("5m"))
    .await
}

#[tokio::test]
async fn b07_a_delay_that_the_other_side_asked_for_goes_before_the_policy() {
    let world = World::new();
    let app = world.open(|b| b.register(is_asked_to_wait)).await;
    let handle = app.start(is_asked_to_wait, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    assert_eq!(journal(&handle).await.delays_us(1), [3_600 * S]);
    world.advance(Duration::from_secs(3_600));
    assert_eq!(handle.result().soon().await.unwrap(), 2);
}

#[tokio::test]
async fn b07_what_is_left_of_a_delay_is_waited_after_a_crash() {
    let world = World::new();
    let app = world.open(|b| b.register(is_asked_to_wait)).await;
    let handle = app.start(is_asked_to_wait, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    world.advance(Duration::from_secs(1_800));

    let app = world.open(|b| b.register(is_asked_to_wait)).await;
    let handle = seen_by(&app, &handle).await;
    world.advance(Duration::from_micros(1_800_000_000 - 1));
    until(&handle, Status::Suspended).await;
    assert_eq!(journal(&handle).await.starts(1).len(), 1, "a microsecond is left");
    world.advance(Duration::from_micros(1));
    assert_eq!(handle.result().soon().await.unwrap(), 2);
    let journal = journal(&handle).await;
    assert_eq!((journal.starts(1).len(), journal.failures(1).len()), (2, 1));
}

#[tokio::test]
async fn b07_a_delay_that_passed_while_the_process_was_down_is_over() {
    let world = World::new();
    let app = world.open(|b| b.register(is_asked_to_wait)).await;
    let handle = app.start(is_asked_to_wait, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    let down = world.reopen();
    world.advance(Duration::from_secs(10_000));
    drop(down);
    let app = world.open(|b| b.register(is_asked_to_wait)).await;
    assert_eq!(seen_by(&app, &handle).await.result().soon().await.unwrap(), 2);
}

#[tokio::test]
async fn b09_one_attempt_and_no_delay_are_legal() {
    assert!(delays_of(Retry::none()).await.is_empty());
    assert!(delays_of(Retry::exponential("5s").max_attempts(1)).await.is_empty());
    assert_eq!(delays_of(Retry::constant("0s").max_attempts(3)).await, [0, 0]);
}

#[tokio::test]
async fn b09_u32_max_attempts_are_legal() {
    let patient = workflow_fn("patient", |ctx: Ctx, (): ()| async move {
        ctx.step("call", async |s: StepCtx| match s.attempt() {
            1..=50 => Err(msg("not yet")),
            _ => Ok(s.max_attempts()),
        })
        .retry(Retry::constant("0s").max_attempts(u32::MAX))
        .await
    });
    let world = World::new();
    let app = world.open(|b| b.register(patient.clone())).await;
    let handle = app.start(patient, "t", ()).await.unwrap();
    assert_eq!(handle.result().soon().await.unwrap(), u32::MAX);
}

/// The failure of a step whose options are those of `set`.
async fn refusal_of(set: fn(backstitch::Step<()>) -> backstitch::Step<()>) -> String {
    let odd = workflow_fn("odd", move |ctx: Ctx, (): ()| async move {
        set(ctx.step("odd", async |_s| Ok(()))).await
    });
    let world = World::new();
    let app = world.open(|b| b.register(odd.clone())).await;
    let handle = app.start(odd, "t", ()).await.unwrap();
    let error = handle.result().soon().await.unwrap_err();
    assert!(journal(&handle).await.run.asks.is_empty(), "it was never asked for");
    let failure = error.failure().unwrap();
    assert_eq!((failure.type_name.as_str(), failure.class()), ("BadOption", Class::Permanent));
    assert!(failure.message.contains("step \"odd\" at "), "{failure}");
    assert!(failure.message.contains("retries.rs:"), "{failure}");
    failure.message.clone()
}

#[tokio::test]
async fn b09_options_that_mean_nothing_are_refused_with_the_reason() {
    let why = refusal_of(|step| step.retry(Retry::constant("1s").max_attempts(0))).await;
    assert!(why.contains("option retry: max_attempts is 0"), "{why}");
    let why = refusal_of(|step| step.retry(Retry::exponential("1s").factor(0.5))).await;
    assert!(why.contains("factor 0.5"), "{why}");
    let why = refusal_of(|step| step.retry(Retry::exponential("1s").factor(f64::NAN))).await;
    assert!(why.contains("factor NaN"), "{why}");
    let why = refusal_of(|step| step.retry(Retry::exponential("soon"))).await;
    assert!(why.contains("\"soon\" is not a duration"), "{why}");
    let why = refusal_of(|step| step.retry(Retry::linear("1s").cap("-1s"))).await;
    assert!(why.contains("negative"), "{why}");
    let why = refusal_of(|step| step.timeout("0s")).await;
    assert!(why.contains("option timeout: it is zero"), "{why}");
    let why = refusal_of(|step| step.deadline(Duration::MAX)).await;
    assert!(why.contains("longer than 100 years"), "{why}");
    let why = refusal_of(|step| step.timeout("900000h")).await;
    assert!(why.contains("longer than 100 years"), "{why}");
    let why = refusal_of(|step| step.timeout("2 years")).await;
    assert!(why.contains("years or months"), "{why}");
}

#[workflow]
async fn holds_when_exhausted(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.step("call", async |s: StepCtx| match s.attempt() {
        1..=3 => Err(msg("down")),
        attempt => Ok(attempt),
    })
    .retry(Retry::constant("1s").max_attempts(2))
    .on_exhausted(OnExhausted::Block)
    .await
}

#[tokio::test]
async fn b15_an_operators_retry_begins_a_new_budget_and_numbers_go_on() {
    let world = World::new();
    let app = world.open(|b| b.register(holds_when_exhausted)).await;
    let handle = app.start(holds_when_exhausted, "t", ()).await.unwrap();
    let held = world.advance_until(&handle, Status::Blocked).await;
    assert_eq!(held.blocks.len(), 1);
    assert_eq!(app.attention(10).await.unwrap().len(), 1);
    handle.retry_step("call").by("ada").reason("it is up again").await.unwrap();
    until_recorded(&handle, "StepAttemptFailed", 3).await;
    world.advance_until(&handle, Status::Succeeded).await;
    assert_eq!(handle.result().soon().await.unwrap(), 4);
    let journal = journal(&handle).await;
    let starts: Vec<u32> = journal.starts(1).iter().map(|(attempt, _)| *attempt).collect();
    assert_eq!(starts, [1, 2, 3, 4]);
    assert!(app.attention(10).await.unwrap().is_empty(), "the matter is settled");
}

#[tokio::test]
async fn b09_a_deadline_bounds_all_attempts_together() {
    let late = workflow_fn("late", |ctx: Ctx, (): ()| async move {
        ctx.step("call", async |_s| Err::<(), _>(msg("no")))
            .retry(Retry::constant("4s").max_attempts(100))
            .deadline("10s")
            .await
    });
    let world = World::new();
    let app = world.open(|b| b.register(late.clone())).await;
    let handle = app.start(late, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Failed).await;
    assert_eq!(journal(&handle).await.starts(1).len(), 3, "at 0 s, 4 s and 8 s");
}
