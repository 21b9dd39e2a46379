//! Delays that the code computes itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch::core::event::Event;
use backstitch::core::retry::Backoff;
use backstitch::{
    Class, Ctx, Effect, Failure, FailureExt, FnWorkflow, Handle, Jitter, OnExhausted, Origin,
    Retry, Status, StepCtx, Undo, UndoOn, msg, workflow_fn,
};

use crate::journal::{Soon, journal, seen_by};
use crate::world::{Effects, World, eventually, until};

const S: i64 = 1_000_000;

fn seconds(n: u32) -> Duration {
    Duration::from_secs(u64::from(n))
}

/// What a delay function was asked.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<String>>>);

impl Asked {
    /// A policy that waits a second more after each attempt.
    fn retry(&self) -> Retry {
        let asked = self.clone();
        Retry::delays(move |attempt, failure| {
            let question = format!("{attempt} {:?} {failure}", failure.origin());
            asked.0.lock().unwrap().push(question);
            seconds(attempt)
        })
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A workflow of one step with the policy, whose body fails with `failure` as often as it may.
fn fails(retry: Retry, failure: fn(u32) -> Failure) -> FnWorkflow<(), ()> {
    workflow_fn("fails", move |ctx: Ctx, (): ()| {
        let retry = retry.clone();
        async move {
            let body = async move |s: StepCtx| Err::<(), _>(failure(s.attempt()));
            ctx.step("call", body).retry(retry).await
        }
    })
}

/// The workflow on its way, at the end of it.
async fn ended(world: &World, workflow: FnWorkflow<(), ()>) -> Handle<()> {
    let app = world.open(|b| b.register(workflow.clone())).await;
    let handle = app.start(workflow, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Failed).await;
    handle
}

async fn delays_of(retry: Retry) -> Vec<i64> {
    let handle = ended(&World::new(), fails(retry, |_| msg("no"))).await;
    journal(&handle).await.delays_us(1)
}

#[tokio::test]
async fn b07_a_delay_function_is_asked_with_attempt_and_failure_until_the_last_attempt() {
    let asked = Asked::default();
    let failure = |attempt| msg(format!("no {attempt}"));
    let handle = ended(&World::new(), fails(asked.retry().max_attempts(4), failure)).await;
    let journal = journal(&handle).await;
    assert_eq!(journal.delays_us(1), [S, 2 * S, 3 * S]);
    assert_eq!(asked.all(), ["1 Body no 1", "2 Body no 2", "3 Body no 3"]);
    let policy = &journal.run.step(1).unwrap().policy.retry;
    assert_eq!((policy.backoff(), policy.max_attempts), (Backoff::Computed, 4));
}

#[tokio::test]
async fn b07_a_computed_delay_has_a_cap_and_jitter_only_if_asked() {
    let hours = Retry::delays(|attempt, _| seconds(3_600 * attempt)).max_attempts(4);
    assert_eq!(delays_of(hours.clone()).await, [3_600 * S, 7_200 * S, 10_800 * S]);
    assert_eq!(delays_of(hours.cap("2h")).await, [3_600 * S, 7_200 * S, 7_200 * S]);
    let spread = Retry::delays(|_, _| seconds(10)).jitter(Jitter::Full).max_attempts(40);
    let delays = delays_of(spread).await;
    assert!(delays.iter().all(|delay| (0..=10 * S).contains(delay)), "{delays:?}");
    assert!(delays.iter().any(|delay| *delay < 3 * S), "{delays:?}");
    assert!(delays.iter().any(|delay| *delay > 7 * S), "{delays:?}");
}

#[tokio::test]
async fn b07_a_delay_function_is_asked_after_panics_and_timeouts_too() {
    let (world, asked) = (World::new(), Asked::default());
    let retry = asked.retry();
    let odd = workflow_fn("odd", move |ctx: Ctx, (): ()| {
        let retry = retry.clone();
        async move {
            ctx.step("call", async |s: StepCtx| match s.attempt() {
                1 => panic!("by order"),
                2 => std::future::pending().await,
                _ => Ok(()),
            })
            .timeout("30s")
            .retry(retry)
            .await
        }
    });
    let app = world.open(|b| b.register(odd.clone())).await;
    let handle = app.start(odd, "t", ()).await.unwrap();
    eventually("it ends", async || {
        world.advance(seconds(30));
        handle.status().await.unwrap().status.is_closed()
    })
    .await;
    handle.result().soon().await.unwrap();
    let (all, origins) = (asked.all(), journal(&handle).await.origins(1));
    assert_eq!(origins, [Origin::Panic, Origin::Timeout]);
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all[0].starts_with("1 Panic Panic: the body panicked: by order"), "{all:?}");
    assert!(all[1].starts_with("2 Timeout Timeout: "), "{all:?}");
    assert_eq!(journal(&handle).await.delays_us(1), [S, 2 * S]);
}

#[tokio::test]
async fn b07_a_delay_that_the_other_side_asked_for_goes_before_the_function() {
    let asked = Asked::default();
    let failure = |attempt| match attempt {
        1 => msg("busy").retry_after("1h"),
        _ => msg("no"),
    };
    let handle = ended(&World::new(), fails(asked.retry().max_attempts(3), failure)).await;
    assert_eq!(journal(&handle).await.delays_us(1), [3_600 * S, 2 * S]);
    assert_eq!(asked.all(), ["2 Body no"]);
}

#[tokio::test]
async fn b07_after_a_loss_or_an_orderly_stop_nothing_is_asked() {
    let (world, asked) = (World::new(), Asked::default());
    let hangs = |retry: Retry| {
        workflow_fn("hangs", move |ctx: Ctx, (): ()| {
            let retry = retry.clone();
            async move {
                ctx.step("call", async |s: StepCtx| {
                    s.state::<Effects>().add(format!("try {}", s.attempt()));
                    if s.attempt() < 3 {
                        std::future::pending::<()>().await;
                    }
                    Ok(())
                })
                .retry(retry)
                .await
            }
        })
    };
    let app = world.open(|b| b.register(hangs(asked.retry()))).await;
    let handle = app.start(hangs(asked.retry()), "t", ()).await.unwrap();
    world.effects.wait_for("try 1", 1).await;
    let app = world.open(|b| b.register(hangs(asked.retry()))).await;
    world.effects.wait_for("try 2", 1).await;
    app.shutdown().await.unwrap();
    let app = world.open(|b| b.register(hangs(asked.retry()))).await;
    let handle = seen_by(&app, &handle).await;
    handle.result().soon().await.unwrap();
    let journal = journal(&handle).await;
    assert_eq!(journal.origins(1), [Origin::Lost, Origin::Interrupted]);
    assert_eq!(journal.delays_us(1), [0, 0]);
    assert!(asked.all().is_empty(), "{:?}", asked.all());
}

#[tokio::test]
async fn b07_b15_what_a_function_computed_stands_after_a_crash() {
    let (world, asked) = (World::new(), Asked::default());
    let retry = asked.retry().max_attempts(2);
    let app = world.open(|b| b.register(fails(retry.clone(), |_| msg("no")))).await;
    let handle = app.start(fails(retry, |_| msg("no")), "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;

    let other = Retry::delays(|_, _| panic!("not asked again")).max_attempts(2);
    let app = world.open(|b| b.register(fails(other, |_| msg("no")))).await;
    let handle = seen_by(&app, &handle).await;
    world.advance(Duration::from_micros(1_000_000 - 1));
    until(&handle, Status::Suspended).await;
    assert_eq!(journal(&handle).await.starts(1).len(), 1, "a microsecond is left");
    world.advance(Duration::from_micros(1));
    handle.result().soon().await.unwrap_err();
    assert_eq!(asked.all(), ["1 Body no"]);
    let journal = journal(&handle).await;
    assert_eq!(journal.starts(1).len(), 2);
    assert_eq!(journal.failures(1)[1].1.message, "no");
}

#[tokio::test]
async fn b15_a_delay_function_sees_the_numbers_go_on_after_an_operators_retry() {
    let (world, asked) = (World::new(), Asked::default());
    let retry = asked.retry().max_attempts(2);
    let held = workflow_fn("held", move |ctx: Ctx, (): ()| {
        let retry = retry.clone();
        async move {
            ctx.step("call", async |_s| Err::<(), _>(msg("no")))
                .retry(retry)
                .on_exhausted(OnExhausted::Block)
                .await
        }
    });
    let app = world.open(|b| b.register(held.clone())).await;
    let handle = app.start(held, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Blocked).await;
    handle.retry_step("call").by("ada").await.unwrap();
    crate::journal::until_recorded(&handle, "StepAttemptFailed", 3).await;
    world.advance_until(&handle, Status::Blocked).await;
    assert_eq!(asked.all(), ["1 Body no", "3 Body no"]);
}

#[tokio::test]
async fn b04_lists_decide_first_and_the_function_sees_what_they_made_of_it() {
    let classes = Arc::new(Mutex::new(Vec::new()));
    let seen = classes.clone();
    let retry = Retry::delays(move |_, failure: &Failure| {
        seen.lock().unwrap().push(failure.class());
        seconds(1)
    });
    let failure = |attempt| match attempt {
        1 => msg("later").permanent().with_code("locked"),
        _ => msg("no").with_code("declined"),
    };
    let retry = retry.transient_on(["locked"]).permanent_on(["declined"]);
    let handle = ended(&World::new(), fails(retry, failure)).await;
    assert_eq!(*classes.lock().unwrap(), [Class::Transient]);
    assert_eq!(journal(&handle).await.failures(1).len(), 2);
}

#[tokio::test]
async fn b09_a_deadline_bounds_computed_delays() {
    let late = workflow_fn("late", |ctx: Ctx, (): ()| async move {
        ctx.step("call", async |_s| Err::<(), _>(msg("no")))
            .retry(Retry::delays(|_, _| seconds(4)).max_attempts(100))
            .deadline("10s")
            .await
    });
    let handle = ended(&World::new(), late).await;
    assert_eq!(journal(&handle).await.starts(1).len(), 3, "at 0 s, 4 s and 8 s");
}

/// The failure of a step with the policy whose body fails.
async fn refused(retry: Retry) -> Failure {
    let handle = ended(&World::new(), fails(retry, |_| msg("the body said no"))).await;
    let journal = journal(&handle).await;
    let (attempt, failure) = journal.failures(1)[0].clone();
    assert_eq!((attempt, journal.starts(1).len()), (1, 1), "no further attempt");
    assert_eq!(failure.type_name, "BadDelay");
    assert_eq!((failure.class(), failure.effect()), (Class::Permanent, Effect::Possible));
    assert!(failure.message.contains("the retry policy of step call#1"), "{failure}");
    assert!(failure.message.contains("after attempt 1, which had failed"), "{failure}");
    assert!(failure.message.ends_with("the body said no"), "{failure}");
    assert_eq!(failure.causes[0].message, "the body said no");
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.failure().unwrap().message, failure.message);
    failure
}

#[tokio::test]
async fn b09_a_delay_function_that_panics_fails_the_step_and_quotes_the_attempt() {
    let failure = refused(Retry::delays(|_, _| panic!("by order"))).await;
    assert!(failure.message.contains("the delay function panicked: by order"), "{failure}");
    assert_eq!(failure.origin(), Origin::Panic);
}

#[tokio::test]
async fn b09_a_delay_of_more_than_100_years_fails_the_step_and_quotes_the_attempt() {
    for delay in [Duration::MAX, Duration::from_secs(100 * 366 * 86_400 + 1)] {
        let failure = refused(Retry::delays(move |_, _| delay).cap("1h")).await;
        assert!(failure.message.contains("more than 100 years"), "{failure}");
        assert_eq!(failure.origin(), Origin::Engine);
    }
    let most = Duration::from_secs(100 * 366 * 86_400);
    assert_eq!(delays_of(Retry::delays(move |_, _| most).cap("1h").max_attempts(2)).await.len(), 1);
}

#[tokio::test]
async fn b54_r2_a_step_whose_delay_function_panicked_is_owed() {
    let world = World::new();
    let owes = workflow_fn("owes", |ctx: Ctx, (): ()| async move {
        let retry = Retry::delays(|_, _| panic!("by order")).transient_on(["locked"]);
        ctx.step("call", async |_s| Err::<(), _>(msg("no").permanent().with_code("locked")))
            .rollback(async |u: Undo<()>| {
                u.state::<Effects>().add("undone");
                Ok(())
            })
            .undo_on(UndoOn::Succeeded)
            .retry(retry)
            .await
    });
    ended(&world, owes).await;
    assert_eq!(world.effects.count("undone"), 1);
}

/// A workflow whose one step succeeds, and whose undo fails up to its third attempt.
fn goes_back(retry: Retry) -> FnWorkflow<(), ()> {
    workflow_fn("goes-back", move |ctx: Ctx, (): ()| {
        let retry = retry.clone();
        let undo = async |u: Undo<()>| match u.attempt() {
            1..=2 => Err::<(), _>(msg(format!("not yet {}", u.attempt()))),
            _ => Ok(()),
        };
        async move {
            ctx.step("call", async |_s| Ok(())).rollback_retry(retry).rollback(undo).await?;
            Err(msg("no").permanent())
        }
    })
}

#[tokio::test]
async fn b57_undos_have_delay_functions_as_steps_do() {
    let asked = Asked::default();
    let handle = ended(&World::new(), goes_back(asked.retry())).await;
    assert_eq!(asked.all(), ["1 Body not yet 1", "2 Body not yet 2"]);
    let delays = journal(&handle).await.events.into_iter().filter_map(|event| match event {
        Event::UndoAttemptFailed(e) => Some(e.retry_at_us? - e.finished_us),
        _ => None,
    });
    assert_eq!(delays.collect::<Vec<_>>(), [S, 2 * S]);
}

#[tokio::test]
async fn b57_what_an_undos_function_computed_stands_after_a_crash() {
    let (world, asked) = (World::new(), Asked::default());
    let app = world.open(|b| b.register(goes_back(asked.retry()))).await;
    let handle = app.start(goes_back(asked.retry()), "t", ()).await.unwrap();
    eventually("the undo waits", async || {
        let run = handle.status().await.unwrap().run;
        run.rollback.is_some() && run.next_due_us().is_some()
    })
    .await;
    let app = world.open(|b| b.register(goes_back(asked.retry()))).await;
    let handle = seen_by(&app, &handle).await;
    world.advance_until(&handle, Status::Failed).await;
    assert_eq!(asked.all(), ["1 Body not yet 1", "2 Body not yet 2"]);
}

#[tokio::test]
async fn b57_b09_a_delay_function_that_panics_fails_the_undo_for_good() {
    let world = World::new();
    let workflow = goes_back(Retry::delays(|_, _| panic!("by order")));
    let app = world.open(|b| b.register(workflow.clone())).await;
    let handle = app.start(workflow, "t", ()).await.unwrap();
    until(&handle, Status::Stuck).await;
    let attention = app.attention(10).await.unwrap();
    assert_eq!((attention.len(), attention[0].kind.as_str()), (1, "undo_failed"));
    let message = &attention[0].message;
    assert!(message.contains("the retry policy of the undo of step call#1"), "{message}");
    assert!(message.contains("the delay function panicked: by order"), "{message}");
    assert!(message.contains("not yet 1"), "{message}");
    handle.waive_undo("call").by("ops").reason("by hand").await.unwrap();
    assert_eq!(handle.closed().soon().await.unwrap(), Status::Failed);
}

#[tokio::test]
async fn b09_what_belongs_to_the_workflow_is_refused_in_a_delay_function() {
    let world = World::new();
    let nested = workflow_fn("nested", |ctx: Ctx, (): ()| async move {
        let inner = ctx.clone();
        let retry = Retry::delays(move |_, _| seconds(inner.random_u64() as u32));
        ctx.step("call", async |_s| Err::<(), _>(msg("the body said no"))).retry(retry).await
    });
    let handle = ended(&world, nested).await;
    let error = handle.result().await.unwrap_err();
    let message = &error.failure().unwrap().message;
    assert!(message.contains("\"a random number\""), "{message}");
    assert!(message.ends_with("the body said no"), "{message}");
}

#[tokio::test]
async fn b07_the_policy_that_is_set_last_counts_with_its_function() {
    let world = World::new();
    let twice = workflow_fn("twice", |ctx: Ctx, (): ()| async move {
        ctx.step("call", async |_s| Err::<(), _>(msg("no")))
            .retry(Retry::delays(|_, _| panic!("not asked")))
            .retry(Retry::constant("3s").max_attempts(2))
            .await
    });
    let handle = ended(&world, twice).await;
    assert_eq!(journal(&handle).await.delays_us(1), [3 * S]);
}
