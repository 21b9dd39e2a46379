//! Small traps that a newcomer steps into: each has an answer that says what is meant.

mod world;

use backstitch::{Ctx, FailureExt, IntoDuration, Result, Status, clone, msg, workflow_fn};
use world::{Effects, World, until};

/// The error of a workflow that is this one function.
async fn error_of<F, Fut>(function: F) -> String
where
    F: Fn(Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<()>> + Send + 'static,
{
    let world = World::new();
    let workflow = workflow_fn("trap", move |ctx: Ctx, (): ()| function(ctx));
    let app = world.open(|b| b.register(workflow.clone())).await;
    let handle = app.start(workflow, "a", ()).await.unwrap();
    handle.result().await.unwrap_err().to_string()
}

#[tokio::test]
async fn b93_a_step_is_found_by_its_printed_key_even_if_another_one_is_called_like_it() {
    let world = World::new();
    let workflow = workflow_fn("names", |ctx: Ctx, (): ()| async move {
        for name in ["a#2", "a", "a"] {
            let body = async move |s: backstitch::StepCtx| {
                let repaired = s.attempt() > 1;
                s.state::<Effects>().add(format!("{}#{}", s.name(), s.count()));
                let broken = name == "a" && s.count() == 2 && !repaired;
                if broken { Err(msg("no credentials").attention()) } else { Ok(()) }
            };
            ctx.step(name, body).await?;
        }
        Ok(())
    });
    let app = world.open(|b| b.register(workflow.clone())).await;
    let handle = app.start(workflow, "a", ()).await.unwrap();
    let status = until(&handle, Status::Blocked).await;
    let (_, step, _) = status.blocks.into_iter().next().unwrap();
    handle.retry_step(step.expect("a step is blocked")).await.unwrap();
    handle.result().await.unwrap();
    assert_eq!(world.effects.all(), ["a#2#1", "a#1", "a#2", "a#2"]);
    let attention = app.attention(10).await.unwrap();
    assert!(attention.is_empty(), "{attention:?}");
}

#[tokio::test]
async fn b83_a_random_number_drawn_in_a_body_is_refused_since_it_would_shift_those_of_the_code() {
    let error = error_of(|ctx| async move {
        let body = clone!(ctx => async move |_s| Ok(ctx.random_u64()));
        ctx.step("draw", body).await.map(|_| ())
    })
    .await;
    assert!(error.contains("a random number") && error.contains("inside the body"), "{error}");
}

#[tokio::test]
async fn a_step_that_is_awaited_again_after_it_ended_says_so() {
    let error = error_of(|ctx| async move {
        let mut step = ctx.step("once", async |_s| Ok(()));
        (&mut step).await?;
        (&mut step).await
    })
    .await;
    assert!(error.contains("\"once\"") && error.contains("awaited again"), "{error}");
}

#[tokio::test]
async fn a_second_undo_for_one_step_is_refused() {
    let error = error_of(|ctx| async move {
        let step = ctx.step("twice", async |_s| Ok(()));
        step.rollback(async |_u| Ok(())).rollback(async |_u| Ok(())).await
    })
    .await;
    assert!(error.contains("option rollback: it is set twice"), "{error}");
}

#[test]
fn durations_have_days_and_weeks_and_no_years() {
    let day_us = 86_400_000_000;
    for (text, us) in
        [("1d", day_us), ("2 days", 2 * day_us), ("1w", 7 * day_us), ("90s", 90_000_000)]
    {
        assert_eq!(text.into_us(), Ok(us), "{text}");
    }
    for (text, why) in [("1 year", "equally long"), ("-5s", "negative"), ("soon", "not a duration")]
    {
        let error = text.into_us().unwrap_err();
        assert!(error.contains(why) && error.contains(text), "{error}");
    }
}
