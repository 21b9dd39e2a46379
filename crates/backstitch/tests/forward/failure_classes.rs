//! Lists of failures in a policy: they decide the class, and the journal has what they decided.

use backstitch::core::event::Event;
use backstitch::{
    Class, Ctx, Effect, Failure, FailureExt, FnWorkflow, OnExhausted, Origin, Result, Retry,
    Status, StepCtx, Undo, UndoOn, msg, workflow_fn,
};

use crate::journal::{Journal, Soon, journal, seen_by};
use crate::world::{Effects, World, until};

/// As an error of the type `Declined` becomes.
fn declined() -> Failure {
    let mut failure = msg("the card was declined");
    failure.type_name = "Declined".into();
    failure
}

fn lists() -> Retry {
    Retry::constant("1s")
        .max_attempts(4)
        .permanent_on(["Declined", "no_such_card"])
        .attention_on(["Unauthorized"])
        .transient_on(["locked"])
}

/// A workflow of one step that fails with `failure` under the policy.
fn fails(retry: Retry, failure: fn() -> Failure) -> FnWorkflow<(), ()> {
    workflow_fn("fails", move |ctx: Ctx, (): ()| {
        let retry = retry.clone();
        async move { ctx.step("call", async move |_s| Err::<(), _>(failure())).retry(retry).await }
    })
}

async fn journal_of(retry: Retry, failure: fn() -> Failure, ends_in: Status) -> Journal {
    let world = World::new();
    let workflow = fails(retry, failure);
    let app = world.open(|b| b.register(workflow.clone())).await;
    let handle = app.start(workflow, "t", ()).await.unwrap();
    world.advance_until(&handle, ends_in).await;
    journal(&handle).await
}

/// The classes in the journal, attempt by attempt.
fn classes(journal: &Journal) -> Vec<Class> {
    journal.failures(1).iter().map(|(_, failure)| failure.class()).collect()
}

#[tokio::test]
async fn b04_a_list_makes_an_ordinary_error_permanent_by_type_or_code() {
    let by_code: fn() -> Failure = || msg("no").with_code("no_such_card");
    for failure in [declined, by_code] {
        let journal = journal_of(lists(), failure, Status::Failed).await;
        assert_eq!(classes(&journal), [Class::Permanent]);
        let outcome = journal.run.step(1).unwrap().failure.clone().unwrap();
        assert_eq!((outcome.class(), outcome.effect()), (Class::Permanent, Effect::Possible));
        assert_eq!(outcome.origin(), Origin::Body);
    }
}

#[tokio::test]
async fn b04_a_list_makes_what_the_body_called_permanent_transient() {
    let failure = || msg("try later").permanent().with_code("locked");
    let journal = journal_of(lists(), failure, Status::Failed).await;
    assert_eq!(classes(&journal), [Class::Transient; 4]);
    let effects = journal.failures(1).iter().map(|(_, f)| f.effect()).collect::<Vec<_>>();
    assert_eq!(effects, [Effect::None; 4], "what the body said of its effect stays");
    assert_eq!(journal.delays_us(1), [1_000_000; 3]);
}

#[tokio::test]
async fn b04_a_list_blocks_the_step_for_a_person() {
    let failure = || declined().permanent().with_code("Unauthorized");
    let retry = Retry::none().attention_on(["Unauthorized"]);
    let journal = journal_of(retry, failure, Status::Blocked).await;
    assert_eq!(classes(&journal), [Class::Attention]);
    assert_eq!(journal.run.blocks[0].failure.class(), Class::Attention);
}

#[tokio::test]
async fn b04_failures_that_no_list_names_keep_their_class() {
    let journal = journal_of(lists(), || msg("no").permanent(), Status::Failed).await;
    assert_eq!(classes(&journal), [Class::Permanent]);
    let journal = journal_of(lists(), || msg("no"), Status::Failed).await;
    assert_eq!(classes(&journal), [Class::Transient; 4]);
}

#[tokio::test]
async fn b04_lists_leave_timeouts_and_panics_alone() {
    let world = World::new();
    let slow = workflow_fn("slow", |ctx: Ctx, (): ()| async move {
        ctx.step("call", async |s: StepCtx| match s.attempt() {
            1 => panic!("by order"),
            2 => std::future::pending().await,
            attempt => Ok(attempt),
        })
        .timeout("30s")
        .retry(Retry::constant("0s").permanent_on(["Panic", "Timeout"]))
        .await
    });
    let app = world.open(|b| b.register(slow.clone())).await;
    let handle = app.start(slow, "t", ()).await.unwrap();
    crate::world::eventually("it ends", async || {
        world.advance(std::time::Duration::from_secs(30));
        handle.status().await.unwrap().status.is_closed()
    })
    .await;
    assert_eq!(handle.result().soon().await.unwrap(), 3);
    let journal = journal(&handle).await;
    assert_eq!(classes(&journal), [Class::Transient; 2]);
    assert_eq!(journal.origins(1), [Origin::Panic, Origin::Timeout]);
}

#[tokio::test]
async fn b04_a_listed_failure_uses_up_the_attempts_like_any_other() {
    let world = World::new();
    let held = workflow_fn("held", |ctx: Ctx, (): ()| async move {
        ctx.step("call", async |_s| Err::<(), _>(msg("no").permanent().with_code("locked")))
            .retry(lists().max_attempts(2))
            .on_exhausted(OnExhausted::Block)
            .await
    });
    let app = world.open(|b| b.register(held.clone())).await;
    let handle = app.start(held, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Blocked).await;
    assert_eq!(classes(&journal(&handle).await), [Class::Transient; 2]);
}

/// Locked at first, then declined, under the policy of the process.
fn locked_then_declined(retry: Retry) -> FnWorkflow<(), ()> {
    workflow_fn("locked", move |ctx: Ctx, (): ()| {
        let retry = retry.clone();
        async move {
            ctx.step("call", async |s: StepCtx| match s.attempt() {
                1 => Err::<(), _>(msg("later").permanent().with_code("locked")),
                _ => Err(declined()),
            })
            .retry(retry)
            .await
        }
    })
}

#[tokio::test]
async fn b04_b15_lists_and_what_they_decided_survive_a_crash() {
    let world = World::new();
    let workflow = locked_then_declined(lists());
    let app = world.open(|b| b.register(workflow.clone())).await;
    let handle = app.start(workflow.clone(), "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;

    let app = world.open(|b| b.register(workflow)).await;
    let handle = seen_by(&app, &handle).await;
    let recorded = journal(&handle).await;
    let lists = recorded.run.step(1).unwrap().policy.retry.lists.clone().unwrap();
    assert_eq!(lists.permanent, ["Declined", "no_such_card"]);
    assert_eq!((lists.attention.len(), lists.transient.len()), (1, 1));
    assert_eq!(classes(&recorded), [Class::Transient]);
    world.advance_until(&handle, Status::Failed).await;
    let journal = journal(&handle).await;
    assert_eq!(classes(&journal), [Class::Transient, Class::Permanent]);
    assert_eq!(journal.starts(1).last().unwrap().1, None, "the policy is the same");
}

#[tokio::test]
async fn b15_changed_lists_are_written_down_with_the_next_attempt() {
    let world = World::new();
    let app = world.open(|b| b.register(locked_then_declined(lists()))).await;
    let handle = app.start(locked_then_declined(lists()), "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;

    let changed = Retry::constant("1s").attention_on(["Declined"]);
    let app = world.open(|b| b.register(locked_then_declined(changed))).await;
    let handle = seen_by(&app, &handle).await;
    world.advance_until(&handle, Status::Blocked).await;
    let journal = journal(&handle).await;
    assert_eq!(classes(&journal), [Class::Transient, Class::Attention]);
    let policy = journal.starts(1)[1].1.clone().unwrap();
    assert_eq!(policy.retry.lists.unwrap().attention, ["Declined"]);
}

async fn undone(u: Undo<()>) -> Result<()> {
    u.state::<Effects>().add("undone");
    Ok(())
}

/// Whether a step is undone that fails so, under the policy, with `undo_on: Succeeded`.
async fn is_undone(retry: Retry, failure: fn() -> Failure) -> bool {
    let world = World::new();
    let workflow = workflow_fn("owes", move |ctx: Ctx, (): ()| {
        let retry = retry.clone();
        async move {
            ctx.step("call", async move |_s| Err::<(), _>(failure()))
                .rollback(undone)
                .undo_on(UndoOn::Succeeded)
                .retry(retry)
                .await
        }
    });
    let app = world.open(|b| b.register(workflow.clone())).await;
    let handle = app.start(workflow, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Failed).await;
    journal(&handle).await;
    world.effects.count("undone") == 1
}

#[tokio::test]
async fn b54_r2_a_step_that_only_a_list_made_permanent_is_still_owed() {
    assert!(is_undone(lists(), declined).await, "nobody said that it had no effect");
    assert!(!is_undone(lists(), || declined().permanent()).await, "the body itself said so");
    let locked = || msg("later").permanent().with_code("locked");
    assert!(!is_undone(lists(), locked).await, "the body said so each time");
    assert!(is_undone(lists(), || msg("later").with_code("locked")).await);
}

/// The failures of the undo of a workflow's one step, in the journal.
fn undo_failures(journal: &Journal) -> Vec<Failure> {
    let failed = journal.events.iter().filter_map(|event| match event {
        Event::UndoAttemptFailed(e) => Some(e.failure.clone()),
        _ => None,
    });
    failed.collect()
}

#[tokio::test]
async fn b57_lists_decide_for_undos_as_for_steps() {
    let world = World::new();
    let undo = async |u: Undo<()>| match u.attempt() {
        1 => Err(msg("later").permanent().with_code("locked")),
        2 => Err(declined()),
        _ => Ok(()),
    };
    let refuses = workflow_fn("refuses", move |ctx: Ctx, (): ()| async move {
        ctx.step("call", async |_s| Ok(())).rollback(undo).rollback_retry(lists()).await?;
        Err::<(), _>(msg("no").permanent())
    });
    let app = world.open(|b| b.register(refuses.clone())).await;
    let handle = app.start(refuses, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Stuck).await;
    let failures = undo_failures(&journal(&handle).await);
    let classes: Vec<Class> = failures.iter().map(|failure| failure.class()).collect();
    assert_eq!(classes, [Class::Transient, Class::Permanent]);
    assert_eq!(app.attention(10).await.unwrap()[0].kind, "undo_failed");
    handle.retry_undo("call").by("ada").await.unwrap();
    assert_eq!(handle.closed().soon().await.unwrap(), Status::Failed);
}

/// The message with which a step with the policy is refused.
async fn refusal_of(retry: Retry) -> String {
    let world = World::new();
    let workflow = fails(retry, declined);
    let app = world.open(|b| b.register(workflow.clone())).await;
    let handle = app.start(workflow, "t", ()).await.unwrap();
    let error = handle.result().soon().await.unwrap_err();
    assert!(journal(&handle).await.run.asks.is_empty(), "it was never asked for");
    let failure = error.failure().unwrap();
    assert_eq!((failure.type_name.as_str(), failure.class()), ("BadOption", Class::Permanent));
    failure.message.clone()
}

fn names(count: usize) -> Vec<String> {
    (1..=count).map(|n| format!("name {n}")).collect()
}

#[tokio::test]
async fn b09_lists_that_mean_nothing_are_refused_with_the_reason() {
    let two = lists().transient_on(["Declined"]);
    let why = refusal_of(two).await;
    assert!(why.contains("option retry: \"Declined\" is in two lists"), "{why}");
    let why = refusal_of(lists().attention_on([""])).await;
    assert!(why.contains("empty name"), "{why}");
    let why = refusal_of(lists().permanent_on(["x".repeat(257)])).await;
    assert!(why.contains("257 bytes"), "{why}");
    let why = refusal_of(lists().permanent_on(names(97))).await;
    assert!(why.contains("more than 100 names"), "{why}");
    let why = refusal_of(Retry::none().permanent_on(["", "Declined"]).attention_on(["Declined"]));
    let why = why.await;
    assert!(why.contains("empty name"), "the first defect is told: {why}");
}

#[tokio::test]
async fn b09_a_name_that_is_listed_twice_and_100_names_are_legal() {
    let retry = lists().permanent_on(["Declined"]).permanent_on(names(96)).attention_on(names(0));
    let journal = journal_of(retry, declined, Status::Failed).await;
    let lists = journal.run.step(1).unwrap().policy.retry.lists.clone().unwrap();
    assert_eq!((lists.permanent.len(), classes(&journal).len()), (98, 1));
}

#[tokio::test]
async fn b09_a_policy_without_names_is_written_down_without_lists() {
    let retry = Retry::none().permanent_on(names(0));
    let journal = journal_of(retry, declined, Status::Failed).await;
    assert_eq!(journal.run.step(1).unwrap().policy.retry.lists, None);
}
