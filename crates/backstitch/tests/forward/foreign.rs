//! Code that awaits what the engine does not know is reported by name (B84, B99).

use std::sync::Arc;
use std::time::Duration;

use backstitch::core::event::BlockKind;
use backstitch::{
    Class, Ctx, ExecutionStatus, FnWorkflow, Handle, Result, Status, StepCtx, join, workflow_fn,
};
use tokio::sync::{Mutex, Notify};

use crate::gates::Gates;
use crate::journal::{Soon, journal, seen_by};
use crate::world::{Effects, World, until};

fn held(ctx: &Ctx, name: &str) -> backstitch::Step<String> {
    ctx.step(name, async |s: StepCtx| {
        s.state::<Effects>().add(format!("begin {}", s.name()));
        s.state::<Gates>().pass(s.name()).await;
        Ok(s.name().to_owned())
    })
    .rollback(async |u| {
        u.state::<Effects>().add(format!("undo {}", u.step().name));
        Ok(())
    })
}

type Code = FnWorkflow<(), String>;

fn code<F, Fut>(function: F) -> Code
where
    F: Fn(Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String>> + Send + 'static,
{
    workflow_fn("strays", move |ctx: Ctx, (): ()| function(ctx))
}

async fn started(world: &World, code: &Code, gates: &Gates) -> Handle<String> {
    let app = world.open(|b| b.register(code.clone()).state(gates.clone())).await;
    app.start(code.clone(), "t", ()).await.unwrap()
}

/// Checks that the run is held because of a foreign wait, and gives its status.
async fn reported(handle: &Handle<String>, place: &str) -> ExecutionStatus {
    let status = until(handle, Status::Blocked).await;
    let (kind, step, failure) = &status.blocks[0];
    assert_eq!((*kind, step), (BlockKind::ForeignWait, &None));
    assert_eq!((failure.type_name.as_str(), failure.class()), ("ForeignWait", Class::Attention));
    assert!(failure.message.contains("the workflow strays \"1\""), "{failure}");
    assert!(failure.message.contains(place), "{failure}");
    assert_eq!(journal(handle).await.count("RollbackStarted"), 0);
    status
}

#[tokio::test]
async fn b84_b99_a_raw_timer_as_the_first_thing_is_reported() {
    let sleeps = code(async |_ctx| {
        // tidy: allow-sleep the workflow does what it must not do; nobody waits for it
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        Ok("woke".into())
    });
    let world = World::new();
    let handle = started(&world, &sleeps, &Gates::all_open()).await;
    reported(&handle, "before its first step").await;
}

#[tokio::test]
async fn b84_b99_a_raw_timer_after_a_step_is_reported_with_the_last_place() {
    let sleeps = code(async |ctx| {
        held(&ctx, "first").await?;
        // tidy: allow-sleep the workflow does what it must not do; nobody waits for it
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        Ok("woke".into())
    });
    let world = World::new();
    let handle = started(&world, &sleeps, &Gates::all_open()).await;
    reported(&handle, "foreign.rs:").await;
    assert_eq!(journal(&handle).await.count("StepSucceeded"), 1, "the outcome is recorded");

    // It is held over a restart, and can be cancelled.
    let app = world.open(|b| b.register(sleeps.clone()).state(Gates::all_open())).await;
    let handle = seen_by(&app, &handle).await;
    reported(&handle, "foreign.rs:").await;
    assert_eq!(app.attention(10).await.unwrap().len(), 1);
    assert_eq!(app.attention(10).await.unwrap()[0].kind, "foreign_wait");
    handle.cancel().await.unwrap();
    assert_eq!(handle.closed().soon().await.unwrap(), Status::Cancelled);
    assert_eq!(world.effects.all(), ["begin first", "undo first"]);
    assert!(app.attention(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn b99_the_handle_of_a_spawned_task_is_reported() {
    let spawns = code(async |ctx| {
        held(&ctx, "first").await?;
        let task = tokio::spawn(async {
            tokio::task::yield_now().await;
            "from elsewhere".to_owned()
        });
        Ok(task.await?)
    });
    let world = World::new();
    let handle = started(&world, &spawns, &Gates::all_open()).await;
    reported(&handle, "foreign.rs:").await;
}

#[tokio::test]
async fn b99_an_outside_mutex_is_reported_when_it_makes_the_code_go_on() {
    let outside = Arc::new(Mutex::new(()));
    let locks = {
        let outside = outside.clone();
        code(move |ctx| {
            let outside = outside.clone();
            async move {
                let waits = async {
                    let _guard = outside.lock().await;
                    held(&ctx, "behind the lock").await
                };
                let (first, second) = join!(held(&ctx, "first"), waits);
                Ok(format!("{} {}", first?, second?))
            }
        })
    };
    let (world, gates) = (World::new(), Gates::default());
    let guard = outside.lock().await;
    let handle = started(&world, &locks, &gates).await;
    world.effects.wait_for("begin first", 1).await;
    assert_eq!(handle.status().await.unwrap().status, Status::Running, "nothing shows it yet");
    drop(guard);
    let status = reported(&handle, "foreign.rs:").await;
    assert!(status.blocks[0].2.message.contains("made progress without being shown"));
    gates.open("first");
    crate::journal::until_recorded(&handle, "StepSucceeded", 1).await;
    assert_eq!(world.effects.all(), ["begin first"], "the body ends, and nothing begins");
    assert_eq!(journal(&handle).await.run.asks.len(), 1);
}

#[tokio::test]
async fn b99_a_foreign_wake_that_changes_nothing_is_no_harm() {
    let outside = Arc::new(Notify::new());
    let listens = {
        let outside = outside.clone();
        code(move |ctx| {
            let outside = outside.clone();
            async move {
                let mut first = held(&ctx, "first");
                loop {
                    backstitch::select! {
                        name = &mut first => return name,
                        () = outside.notified() => {}
                    }
                }
            }
        })
    };
    let (world, gates) = (World::new(), Gates::default());
    let handle = started(&world, &listens, &gates).await;
    world.effects.wait_for("begin first", 1).await;
    for _ in 0..10 {
        outside.notify_one();
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }
    gates.open("first");
    assert_eq!(handle.result().soon().await.unwrap(), "first");
}

#[tokio::test]
async fn b99_code_that_wakes_itself_without_end_is_reported() {
    let spins = code(async |_ctx| {
        std::future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            std::task::Poll::<()>::Pending
        })
        .await;
        Ok(String::new())
    });
    let world = World::new();
    let handle = started(&world, &spins, &Gates::all_open()).await;
    let status = reported(&handle, "before its first step").await;
    assert!(status.blocks[0].2.message.contains("wakes itself without end"));
}

#[tokio::test]
async fn b99_one_stray_holds_up_no_other() {
    let strays = code(async |ctx| {
        if ctx.id() == "t" {
            std::future::pending::<()>().await;
        }
        held(&ctx, "first").await
    });
    let world = World::new();
    let app = world.open(|b| b.register(strays.clone()).state(Gates::all_open())).await;
    let stray = app.start(strays.clone(), "t", ()).await.unwrap();
    let other = app.start(strays, "u", ()).await.unwrap();
    assert_eq!(other.result().soon().await.unwrap(), "first");
    reported(&stray, "before its first step").await;
}

#[tokio::test]
async fn b84_mended_code_goes_on_where_the_stray_was_held() {
    let strays = |mended: bool| {
        code(move |ctx| async move {
            held(&ctx, "first").await?;
            if mended {
                ctx.sleep("1s").await?;
            } else {
                std::future::pending::<()>().await;
            }
            held(&ctx, "second").await
        })
    };
    let world = World::new();
    let handle = started(&world, &strays(false), &Gates::all_open()).await;
    reported(&handle, "foreign.rs:").await;
    let app = world.open(|b| b.register(strays(true)).state(Gates::all_open())).await;
    let handle = seen_by(&app, &handle).await;
    world.advance_until(&handle, Status::Succeeded).await;
    assert_eq!(handle.result().soon().await.unwrap(), "second");
    assert_eq!(world.effects.all(), ["begin first", "begin second"]);
    assert!(app.attention(10).await.unwrap().is_empty());
}
