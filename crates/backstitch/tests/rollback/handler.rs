//! What an undo handler gets, and how it is tried again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch::core::event::Event;
use backstitch::{
    CauseKind, Ctx, FailureExt, Jitter, Origin, Result, Retry, Reuse, RollbackCause, Status,
    StepInfo, Undo, UndoOutcome, msg, workflow,
};

use crate::stage::{Stage, assert_refused, booking, checked, refusal, undone, undos};
use crate::world::{Effects, events};

/// Everything that one attempt of an undo was told.
#[derive(Clone, Debug)]
struct Told {
    step: StepInfo,
    outcome: UndoOutcome,
    output: Option<String>,
    causes: Vec<RollbackCause>,
    attempt: u32,
    key: String,
    execution: String,
}

/// What the attempts of undos were told, and the keys that the bodies saw.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<Told>>>, Arc<Mutex<Vec<String>>>);

impl Notes {
    fn take(&self, u: &Undo<String>) {
        self.0.lock().unwrap().push(Told {
            step: u.step(),
            outcome: u.outcome().clone(),
            output: u.output().cloned(),
            causes: u.causes().to_vec(),
            attempt: u.attempt(),
            key: u.idempotency_key(),
            execution: u.execution_id().to_owned(),
        });
    }

    fn told(&self) -> Vec<Told> {
        self.0.lock().unwrap().clone()
    }
}

/// Notes what it is told, and fails as often as `failures` says.
fn noting(ctx: &Ctx, name: &str, failures: u32) -> backstitch::Step<String> {
    ctx.step(name, async move |s| {
        s.state::<Notes>().1.lock().unwrap().push(s.idempotency_key());
        Ok(format!("ticket {}", s.name()))
    })
    .rollback(async move |u| {
        u.state::<Notes>().take(&u);
        if u.attempt() <= failures { Err(msg("try again")) } else { Ok(()) }
    })
}

#[workflow]
async fn noted_twice(ctx: Ctx, failures: u32) -> Result<()> {
    noting(&ctx, "book", failures).await?;
    noting(&ctx, "book", 0).await?;
    refusal(&ctx).await
}

#[tokio::test]
async fn b53_w19_w27_the_handler_is_told_what_happened_and_keeps_its_key() {
    let (stage, notes) = (Stage::new(), Notes::default());
    let app = stage.open(|b| b.state(notes.clone()).register(noted_twice)).await;
    let handle = app.start(noted_twice, "t", 2).await.unwrap();
    stage.world.advance_until(&handle, Status::Failed).await;
    let told = notes.told();
    let attempts: Vec<_> = told.iter().map(|t| (t.step.count, t.attempt)).collect();
    assert_eq!(attempts, [(2, 1), (1, 1), (1, 2), (1, 3)]);
    for t in &told {
        assert_eq!((t.step.name.as_str(), t.step.attempts), ("book", 1));
        assert_eq!(t.outcome, UndoOutcome::Succeeded);
        assert_eq!(t.output.as_deref(), Some("ticket book"));
        assert_eq!(t.execution, "t");
        assert_eq!(t.causes.len(), 1);
        assert_eq!(t.causes[0].kind(), CauseKind::Failed);
        assert_eq!(t.causes[0].failure.as_ref().unwrap().code, "refused");
    }
    let body_keys = notes.1.lock().unwrap().clone();
    assert_eq!(told[1].step.idempotency_key, body_keys[0], "the step's key is that of its body");
    assert_eq!(told[0].step.idempotency_key, body_keys[1]);
    assert!(told[1..].iter().all(|t| t.key == told[1].key), "one key over all attempts");
    let mut keys = vec![&told[0].key, &told[1].key, &body_keys[0], &body_keys[1]];
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 4, "keys of steps and undos differ");
    checked(&handle).await;
}

#[workflow]
async fn b53_keys_over_retries(ctx: Ctx, failures: u32) -> Result<()> {
    noting(&ctx, "book", failures).rollback_retry(Retry::none()).await?;
    refusal(&ctx).await
}

#[tokio::test]
async fn b53_w39_the_key_is_the_same_over_an_operators_retry_and_a_restart() {
    let (stage, notes) = (Stage::new(), Notes::default());
    let setup = |b: backstitch::Builder| b.state(notes.clone()).register(b53_keys_over_retries);
    let app = stage.open(setup).await;
    let handle = app.start(b53_keys_over_retries, "t", 2).await.unwrap();
    handle.result().await.unwrap_err();
    handle.retry_undo("book").await.unwrap();
    crate::world::eventually("the second attempt", async || notes.told().len() == 2).await;
    crate::world::until(&handle, Status::Stuck).await;
    let app = stage.open(setup).await;
    let handle = app.handle::<()>("t").await.unwrap();
    handle.retry_undo("book").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    let told = notes.told();
    assert_eq!(told.iter().map(|t| t.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(told.iter().all(|t| t.key == told[0].key));
    checked(&handle).await;
}

#[workflow]
async fn own_policy(ctx: Ctx, (): ()) -> Result<()> {
    let retry = Retry::constant("7s").max_attempts(3);
    noting(&ctx, "own", 2).retry(Retry::none()).rollback_retry(retry).await?;
    noting(&ctx, "default", 9).retry(Retry::none()).await?;
    refusal(&ctx).await
}

#[tokio::test]
async fn b52_w33_the_undos_own_policy_is_used_else_the_default_for_undos() {
    let (stage, notes) = (Stage::new(), Notes::default());
    let app = stage.open(|b| b.state(notes.clone()).register(own_policy)).await;
    let handle = app.start(own_policy, "t", ()).await.unwrap();
    stage.world.advance_until(&handle, Status::Failed).await;
    let run = checked(&handle).await;
    let (own, default) = (run.step(1).unwrap(), run.step(2).unwrap());
    assert_eq!((own.undo.attempts, default.undo.attempts), (3, 10));
    let policy = default.undo.policy.as_ref().unwrap();
    assert_eq!((policy.retry.max_attempts, policy.retry.initial_us), (10, 1_000_000));
    assert_eq!((policy.retry.factor, policy.retry.cap_us), (2.0, 300_000_000));
    assert_eq!(policy.retry.jitter(), Jitter::Full);
    // The attempts are in the journal, with the delays of the policy.
    let rows = handle.journal().await.unwrap();
    let waits = rows.iter().flat_map(|row| &row.events).filter_map(|event| match event {
        Event::UndoAttemptFailed(e) if e.ord == 1 => Some(e.retry_at_us.unwrap() - e.finished_us),
        _ => None,
    });
    assert_eq!(waits.collect::<Vec<_>>(), [7_000_000, 7_000_000]);
    let failed = events(&handle).await.iter().filter(|e| **e == "UndoAttemptFailed").count();
    assert_eq!(failed, 2 + 9);
}

#[workflow]
async fn hangs(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step("hang", async |_s| Ok(()))
        .rollback(async |u| {
            u.state::<Effects>().add(format!("undo attempt {}", u.attempt()));
            let _traced = Dropped(u.state::<Effects>().clone(), u.attempt());
            if u.attempt() == 1 {
                std::future::pending::<()>().await;
            }
            Ok(())
        })
        .rollback_timeout("20s")
        .rollback_retry(Retry::constant("0s").max_attempts(2))
        .await?;
    refusal(&ctx).await
}

struct Dropped(Effects, u32);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add(format!("dropped {}", self.1));
    }
}

#[tokio::test]
async fn b73_an_undo_that_never_returns_times_out_and_is_tried_again() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(hangs)).await;
    let handle = app.start(hangs, "t", ()).await.unwrap();
    stage.sees("undo attempt 1").await;
    stage.world.advance(Duration::from_secs(19));
    tokio::task::yield_now().await;
    assert_eq!(stage.effects(), ["undo attempt 1"], "not before its timeout");
    stage.world.advance(Duration::from_secs(1));
    handle.result().await.unwrap_err();
    let wanted = ["undo attempt 1", "dropped 1", "undo attempt 2", "dropped 2"];
    assert_eq!(stage.effects(), wanted, "dropped before the next attempt starts");
    let run = checked(&handle).await;
    let failure = run.step(1).unwrap().undo.failure.clone().unwrap();
    assert_eq!(failure.origin(), Origin::Timeout);
}

#[workflow]
async fn panics_once(ctx: Ctx, (): ()) -> Result<()> {
    booking(&ctx, "a").await?;
    ctx.step("b", async |_s| Ok(()))
        .rollback(async |u| {
            assert!(u.attempt() > 1, "not the first time");
            Ok(())
        })
        .await?;
    refusal(&ctx).await
}

#[tokio::test]
async fn r6_an_undo_that_panics_is_tried_again_and_hurts_nobody() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(panics_once)).await;
    let handle = app.start(panics_once, "t", ()).await.unwrap();
    stage.world.advance_until(&handle, Status::Failed).await;
    let run = checked(&handle).await;
    let failure = run.step(2).unwrap().undo.failure.clone().unwrap();
    assert_eq!(failure.origin(), Origin::Panic);
    assert!(failure.message.contains("not the first time"), "{failure}");
    assert_eq!(undos(&stage.effects()), ["undo a: succeeded"]);
}

#[workflow]
async fn step_in_undo(ctx: Ctx, (): ()) -> Result<()> {
    booking(&ctx, "a").await?;
    let inner = ctx.clone();
    ctx.step("b", async |_s| Ok(()))
        .rollback(async move |_u| inner.step("inner", async |_s| Ok(())).await)
        .await?;
    refusal(&ctx).await
}

#[tokio::test]
async fn b67_w08_a_step_inside_an_undo_is_refused_at_once_and_by_name() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(step_in_undo)).await;
    let handle = app.start(step_in_undo, "t", ()).await.unwrap();
    handle.result().await.unwrap_err();
    let run = checked(&handle).await;
    let undo = &run.step(2).unwrap().undo;
    assert_eq!(undo.attempts, 1, "not tried again");
    let failure = undo.failure.as_ref().unwrap();
    assert_eq!(failure.type_name, "StepInUndo");
    assert!(failure.message.contains("\"inner\""), "{failure}");
    assert_eq!(undos(&stage.effects()), ["undo a: succeeded"], "the others still run");
    assert_eq!(run.steps().count(), 3, "no step came into being");
}

#[workflow]
async fn fails_itself(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step("fails", async |_s| Err::<String, _>(msg("no").permanent().with_code("refused")))
        .rollback(async |u| {
            assert_eq!(u.cause_failure().unwrap().code, "refused");
            undone(u).await
        })
        .await?;
    Ok(())
}

#[tokio::test]
async fn b54_w32_the_failing_step_is_undone_without_an_output() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(fails_itself)).await;
    let handle = app.start(fails_itself, "t", ()).await.unwrap();
    assert_refused(&handle.result().await.unwrap_err());
    assert_eq!(stage.effects(), ["undo fails: failed"]);
    checked(&handle).await;
}

#[tokio::test]
async fn b93_w43_the_next_run_of_an_id_has_keys_of_its_own() {
    let (stage, notes) = (Stage::new(), Notes::default());
    let app = stage.open(|b| b.state(notes.clone()).register(noted_twice)).await;
    for _ in 0..2 {
        let start = app.start(noted_twice, "t", 0).reuse(Reuse::AllowIfFailed);
        start.await.unwrap().result().await.unwrap_err();
    }
    let mut keys = notes.1.lock().unwrap().clone();
    keys.extend(notes.told().into_iter().map(|told| told.key));
    assert_eq!(keys.len(), 2 * (2 + 2));
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 8, "no key of the first run comes back");
}
