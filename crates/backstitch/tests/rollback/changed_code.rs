//! Code that changed while a run was open: who rebuilds the undos, and what never rolls back.

use backstitch::core::run::WaitsFor;
use backstitch::{Builder, Ctx, ErrorKind, FnWorkflow, RollbackOutcome, Status, workflow_fn};

use crate::stage::{
    Gates, Stage, a_while, assert_refused, booking, checked, gated, refusal, undone, undos,
};
use crate::world::{Effects, events, until};

/// The code of another deployment: it reaches the bookings of `reaches` only.
fn books(reaches: &'static [&'static str]) -> FnWorkflow<(), ()> {
    workflow_fn("books", move |ctx: Ctx, (): ()| async move {
        for name in reaches {
            booking(&ctx, name).await?;
        }
        refusal(&ctx).await
    })
}

const ALL: &[&str] = &["a", "b", "c", "d"];

/// Decided, and died before the first undo, because nobody knows the workflow.
async fn decided_without_code(stage: &Stage) {
    let app = stage.open(|b| b.register(held_at_first())).await;
    app.start(held_at_first(), "t", ()).await.unwrap();
    stage.sees("undoing d").await;
}

/// As `books(ALL)`, but its first undo is held.
fn held_at_first() -> FnWorkflow<(), ()> {
    workflow_fn("books", |ctx: Ctx, (): ()| async move {
        for name in ["a", "b", "c"] {
            booking(&ctx, name).await?;
        }
        ctx.step("d", async |_s| Ok("ticket d".to_owned()))
            .rollback(async |u| {
                u.state::<Effects>().add("undoing d");
                u.state::<Gates>().pass("never").await;
                undone(u).await
            })
            .await?;
        refusal(&ctx).await
    })
}

#[tokio::test]
async fn b69_w11_code_that_no_longer_reaches_a_step_holds_the_rollback_there() {
    let stage = Stage::new();
    decided_without_code(&stage).await;
    let app = stage.open(|b| b.register(books(&["a", "b"]))).await;
    let handle = app.handle::<()>("t").await.unwrap();
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stuck);
    let attention = app.attention(10).await.unwrap();
    assert_eq!(attention.len(), 1, "only the newest: the others wait behind it");
    assert!(attention[0].message.contains("HandlerMissing"), "{}", attention[0].message);
    assert!(attention[0].message.contains("books \"1\""), "{}", attention[0].message);
    assert_eq!(attention[0].ord, 4);
    assert!(undos(&stage.effects()).iter().all(|e| e.starts_with("undoing")), "none overtakes");

    // With the code back, a retry lets it and all the others go on.
    let app = stage.open(|b| b.register(books(ALL))).await;
    let handle = app.handle::<()>("t").await.unwrap();
    handle.retry_undo("d").await.unwrap();
    assert_refused(&handle.result().await.unwrap_err());
    let wanted =
        ["undo d: succeeded", "undo c: succeeded", "undo b: succeeded", "undo a: succeeded"];
    assert_eq!(undos(&stage.effects())[1..], wanted);
    let run = checked(&handle).await;
    assert_eq!(run.rollback_outcome(), RollbackOutcome::Complete);
}

#[tokio::test]
async fn b69_a_waiver_lets_the_others_go_on_one_missing_handler_at_a_time() {
    let stage = Stage::new();
    decided_without_code(&stage).await;
    let app = stage.open(|b| b.register(books(&["a", "b"]))).await;
    let handle = app.handle::<()>("t").await.unwrap();
    until(&handle, Status::Stuck).await;
    // A retry without the code changes nothing.
    handle.retry_undo("d").await.unwrap();
    crate::world::eventually("it fails again", async || {
        events(&handle).await.iter().filter(|e| **e == "UndoFailed").count() == 2
    })
    .await;
    handle.waive_undo("d").by("ops").reason("by hand").await.unwrap();
    crate::world::eventually("the next one is missing too", async || {
        app.attention(10).await.unwrap().first().is_some_and(|item| item.ord == 3)
    })
    .await;
    handle.waive_undo("c").by("ops").reason("by hand").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    assert_eq!(undos(&stage.effects())[1..], ["undo b: succeeded", "undo a: succeeded"]);
    checked(&handle).await;
}

fn version(version: &'static str) -> FnWorkflow<(), ()> {
    workflow_fn("versioned", |ctx: Ctx, (): ()| async move {
        booking(&ctx, "a").await?;
        gated(&ctx, "b").await.map(drop)
    })
    .version(version)
}

#[tokio::test]
async fn b69_w47_only_a_worker_with_the_version_that_ran_it_last_rebuilds_the_handlers() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(version("1"))).await;
    app.start(version("1"), "t", ()).await.unwrap();
    stage.sees("begin b").await;
    let app = stage.open(|b: Builder| b.register(version("2"))).await;
    let handle = app.handle::<()>("t").await.unwrap();
    handle.cancel().await.unwrap();
    let status = until(&handle, Status::RollingBack).await;
    let waits = WaitsFor::Worker { workflow: "versioned".into(), version: "1".into() };
    assert_eq!(status.waits_for.first(), Some(&waits));
    a_while().await;
    assert!(undos(&stage.effects()).is_empty());
    assert_eq!(app.attention(10).await.unwrap(), [], "it waits, and nothing has failed");

    let both = |b: Builder| b.register(version("2")).register(version("1"));
    let app = stage.open(both).await;
    let handle = app.handle::<()>("t").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(undos(&stage.effects()), ["undo b: unknown", "undo a: succeeded"]);
    checked(&handle).await;
}

#[tokio::test]
async fn b82_w46_a_deploy_that_fails_early_blocks_and_rolls_nothing_back() {
    let flow = |fails_early: bool| {
        workflow_fn("deploys", move |ctx: Ctx, (): ()| async move {
            let (_, first) = backstitch::race([
                booking(&ctx, "a").keep_when_dropped(),
                gated(&ctx, "b").keep_when_dropped(),
            ])
            .await;
            first?;
            if fails_early { refusal(&ctx).await } else { Ok(()) }
        })
    };
    let returns_error = workflow_fn("deploys", |ctx: Ctx, (): ()| async move {
        let (_, first) = backstitch::race([
            booking(&ctx, "a").keep_when_dropped(),
            gated(&ctx, "b").keep_when_dropped(),
        ])
        .await;
        first?;
        Err::<(), _>(backstitch::msg("a bug"))
    });
    let stage = Stage::new();
    let app = stage.open(|b| b.register(flow(false))).await;
    let handle = app.start(flow(false), "t", ()).await.unwrap();
    stage.sees("begin b").await;
    until(&handle, Status::Running).await;
    // It has returned, and waits for b, which it dropped. The new code fails in its place.
    for bad in [returns_error, flow(true)] {
        let app = stage.open(|b| b.register(bad)).await;
        let handle = app.handle::<()>("t").await.unwrap();
        until(&handle, Status::Blocked).await;
        a_while().await;
        assert_eq!(handle.status().await.unwrap().status, Status::Blocked);
        assert!(undos(&stage.effects()).is_empty());
        assert_eq!(app.attention(10).await.unwrap()[0].kind, "mismatch");
    }
    let app = stage.open(|b| b.register(flow(false))).await;
    let handle = app.handle::<()>("t").await.unwrap();
    handle.result().await.unwrap();
    checked(&handle).await;
}

/// a beside b; the bad code fails as soon as a has ended.
fn beside(fails_early: bool) -> FnWorkflow<(), ()> {
    workflow_fn("beside", move |ctx: Ctx, (): ()| async move {
        let b = gated(&ctx, "b");
        let a = async {
            booking(&ctx, "a").await?;
            Ok::<_, backstitch::Failure>(())
        };
        let (mut a, mut b) = (std::pin::pin!(a), std::pin::pin!(b));
        backstitch::select! {
            a = &mut a => {
                a?;
                if fails_early {
                    return Err(backstitch::msg("a bug"));
                }
                b.await.map(drop)
            }
            b = &mut b => { b?; a.await }
        }
    })
}

#[tokio::test]
async fn b82_w46_a_deploy_that_fails_early_rolls_nothing_back_at_its_second_start_either() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(beside(false))).await;
    let handle = app.start(beside(false), "t", ()).await.unwrap();
    crate::world::eventually("a is recorded and shown", async || {
        let run = handle.status().await.unwrap().run;
        run.steps().any(|(_, step)| step.key.name == "a" && step.shown)
    })
    .await;
    for _ in 0..3 {
        let app = stage.open(|b| b.register(beside(true))).await;
        let handle = app.handle::<()>("t").await.unwrap();
        until(&handle, Status::Blocked).await;
        a_while().await;
        assert_eq!(handle.status().await.unwrap().status, Status::Blocked);
        assert!(undos(&stage.effects()).is_empty());
        assert!(!events(&handle).await.contains(&"RollbackStarted"));
    }
    stage.gates.open("b");
    let app = stage.open(|b| b.register(beside(false))).await;
    let handle = app.handle::<()>("t").await.unwrap();
    handle.result().await.unwrap();
    checked(&handle).await;
}

/// Its first step gives a text; other code takes it for a number.
fn typed<T>() -> FnWorkflow<(), String>
where
    T: serde::Serialize + serde::de::DeserializeOwned + Send + std::str::FromStr + 'static,
{
    workflow_fn("typed", |ctx: Ctx, (): ()| async move {
        let first = ctx.step("first", async |s| {
            s.state::<Effects>().add("begin first");
            s.state::<Gates>().pass("first").await;
            Ok("a text".parse::<T>().ok())
        });
        first.await?;
        booking(&ctx, "next").await
    })
}

#[tokio::test]
async fn b82_b87_an_outcome_that_is_first_shown_to_code_that_cannot_read_it_waits_for_the_old_code()
{
    let stage = Stage::new();
    let app = stage.open(|b| b.register(typed::<String>())).await;
    let handle = app.start(typed::<String>(), "t", ()).await.unwrap();
    stage.sees("begin first").await;
    handle.pause().await.unwrap();
    stage.gates.open("first");
    until(&handle, Status::Paused).await;
    // The outcome is recorded, and shown only now, to code that takes it for something else.
    for _ in 0..2 {
        let app = stage.open(|b| b.register(typed::<u64>())).await;
        let handle = app.handle::<String>("t").await.unwrap();
        if handle.status().await.unwrap().status == Status::Paused {
            handle.resume().await.unwrap();
        }
        until(&handle, Status::Blocked).await;
    }
    let app = stage.open(|b| b.register(typed::<String>())).await;
    let handle = app.handle::<String>("t").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "ticket next");
    checked(&handle).await;
}
