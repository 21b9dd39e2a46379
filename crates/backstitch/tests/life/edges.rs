//! What meets at one moment: calls, restarts, deletions, stops, and code that is mended.

use std::sync::Arc;

use backstitch::engine::Clock;
use backstitch::store::{Change, RunNo, Store};
use backstitch::{
    Backstitch, Builder, Client, Ctx, ErrorKind, FnWorkflow, Handle, NoTimeout, RunLimits, Status,
    workflow_fn,
};
use futures_util::future::join_all;

use crate::checked;
use crate::world::{World, events, eventually, until};

fn quick() -> FnWorkflow<(), u32> {
    workflow_fn("quick", |_ctx: Ctx, ()| async { Ok(1) })
}

fn sleeper() -> FnWorkflow<(), u32> {
    workflow_fn("sleeper", |ctx: Ctx, ()| async move {
        ctx.sleep("1h").await?;
        Ok(1)
    })
}

/// Somebody who talks to the world's store beside its owner.
fn guest(world: &World, store: Arc<dyn Store>) -> Client {
    Backstitch::connect_on(store, Arc::new(world.clock.clone()))
}

#[tokio::test]
async fn p1_more_calls_than_are_read_at_a_time_are_all_carried_out() {
    let world = World::new();
    let app = world.open(|b| b.register(quick())).await;
    for number in 0..1_200 {
        app.start(quick(), format!("r-{number}"), ()).await.unwrap().result().await.unwrap();
    }
    // Nobody works on the store while they are sent.
    let outside = guest(&world, Arc::new(world.reopen()));
    for number in 0..1_200 {
        let handle: Handle<u32> = outside.handle(&format!("r-{number}")).await.unwrap();
        handle.set_attributes([("Seen", true)]).await.unwrap();
    }
    let app = world.open(|b| b.register(quick())).await;
    eventually("all are carried out", async || {
        app.find("Seen", true, 2_000).await.unwrap().len() == 1_200
    })
    .await;
}

#[tokio::test]
async fn several_verbs_at_once_for_a_closed_execution_leave_no_call_behind() {
    let world = World::new();
    let store = Arc::new(world.reopen());
    let app = world.open_on(store.clone(), |b| b.register(quick())).await;
    for round in 0..100 {
        let handle = app.start(quick(), format!("r-{round}"), ()).await.unwrap();
        handle.result().await.unwrap();
        let sent = (0..4).map(|n| handle.set_attributes([(format!("K{n}"), round)]).into_future());
        assert!(join_all(sent).await.iter().all(Result::is_ok));
        eventually("the list is empty", async || {
            store.calls(RunNo(0), 1).await.unwrap().is_empty()
        })
        .await;
        assert_eq!(app.find("K3", round, 10).await.unwrap().len(), 1);
        handle.delete().await.unwrap();
    }
}

#[tokio::test]
async fn a_restart_that_is_asked_for_again_leaves_the_parked_run_alone() {
    let world = World::new();
    let app = world.open(|b| b.register(sleeper())).await;
    let handle = app.start(sleeper(), "t", ()).await.unwrap();
    handle.cancel().await.unwrap();
    handle.closed().await.unwrap();
    let again = handle.restart().request_id("r-1").await.unwrap();
    until(&again, Status::Suspended).await;
    let waiter = {
        let handle: Handle<u32> = app.handle("t").await.unwrap();
        tokio::spawn(async move { handle.result().await })
    };
    for _ in 0..20 {
        let twice = handle.restart().request_id("r-1").await.unwrap();
        assert!(!twice.created());
        assert_eq!(twice.run_id(), again.run_id());
        until(&twice, Status::Suspended).await;
    }
    world.advance(std::time::Duration::from_secs(3_600));
    assert_eq!(waiter.await.unwrap().unwrap(), 1);
    checked(&again).await;
}

#[tokio::test]
async fn an_execution_that_is_deleted_meanwhile_is_not_found_and_its_id_is_free() {
    let world = World::new();
    let store = Arc::new(world.reopen());
    let app = world.open_on(store.clone(), |b| b.register(quick())).await;
    let handle = app.start(quick(), "t", ()).await.unwrap();
    handle.result().await.unwrap();
    let run = store.newest("default", "t").await.unwrap().unwrap().run;
    store.commit(Change::Delete(run)).await.unwrap();
    assert_eq!(handle.status().await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(handle.cancel().await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(handle.send_event("a", &1).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(app.start(quick(), "t", ()).await.unwrap().created());
}

#[tokio::test]
async fn a_store_is_let_go_when_its_owner_was_stopped() {
    let world = World::new();
    let store: Arc<dyn Store> = Arc::new(world.reopen());
    let watched = Arc::downgrade(&store);
    let app = world.open_on(store, |b| b.register(sleeper())).await;
    let handle = app.start(sleeper(), "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    drop(handle);
    app.shutdown().await.unwrap();
    eventually("nothing holds it", async || watched.strong_count() == 0).await;
}

#[tokio::test]
async fn an_alarm_of_the_time_before_it_was_fetched_wakes_nobody() {
    let world = World::new();
    let begun = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = begun.clone();
    let flow = workflow_fn("flow", move |ctx: Ctx, ()| {
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move {
            for _ in 0..5 {
                ctx.wait_event::<()>("next", "go", "24h").await?;
            }
            Ok(1_u32)
        }
    });
    let app = world.open(|b: Builder| b.register(flow.clone())).await;
    let handle = app.start(flow, "t", ()).await.unwrap();
    let times = || begun.load(std::sync::atomic::Ordering::SeqCst);
    for round in 1..5 {
        until(&handle, Status::Suspended).await;
        world.advance(std::time::Duration::from_secs(60));
        handle.send_event("go", &()).await.unwrap();
        eventually("it was taken", async || {
            handle.status().await.unwrap().run.waits.contains(&(round + 1))
        })
        .await;
    }
    world.advance(std::time::Duration::from_secs(60));
    let before = times();
    // The first four waits would have timed out; the fifth has minutes left.
    world.clock.set(crate::world::EPOCH_US + 24 * 3_600_000_000 + 4 * 60_000_000 - 1);
    assert!(world.clock.now_us() < crate::world::EPOCH_US + 25 * 3_600_000_000);
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(times(), before, "nothing was due");
    world.advance(std::time::Duration::from_secs(60));
    assert_eq!(handle.closed().await.unwrap(), Status::Failed, "now it was");
}

#[tokio::test]
async fn p12_senders_cannot_end_an_execution_by_a_flood() {
    let world = World::new();
    let flow = workflow_fn("flow", |ctx: Ctx, ()| async move {
        ctx.wait_event::<()>("go", "go", NoTimeout).await?;
        ctx.step("then", async |_s| Ok(2_u32)).await
    });
    let limits = RunLimits { journal_bytes_max: 100_000, ..RunLimits::default() };
    let app = world.open(|b| b.register(flow.clone()).limits(limits)).await;
    let handle = app.start(flow, "t", ()).await.unwrap();
    let large = "x".repeat(60_000);
    for _ in 0..5 {
        handle.send_event("noise", &large).await.unwrap();
    }
    handle.send_event("go", &()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 2);
    checked(&handle).await;
}

#[tokio::test]
async fn p12_events_that_nobody_takes_are_bounded_in_bytes() {
    let world = World::new();
    let flow = workflow_fn("flow", |ctx: Ctx, ()| async move {
        ctx.wait_event::<String>("go", "go", NoTimeout).await
    });
    let open = |b: Builder| b.register(flow.clone()).payload_bytes_max(50 * 1024 * 1024);
    let app = world.open(open).await;
    let handle = app.start(flow.clone(), "t", ()).await.unwrap();
    let large = "x".repeat(40 * 1024 * 1024);
    handle.send_event("noise", &large).await.unwrap();
    eventually("it is kept", async || {
        handle.status().await.unwrap().run.kept.bytes() > 40 * 1024 * 1024
    })
    .await;
    let error = handle.send_event("noise", &large).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
    handle.send_event("go", "on").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "on");
}

/// Blocked by something foreign after it said something, until it is mended by a patch.
fn mended(mended: bool) -> FnWorkflow<(), u32> {
    workflow_fn("flow", move |ctx: Ctx, ()| async move {
        ctx.step("one", async |_s| Ok(())).await?;
        ctx.set_attribute("By", "code")?;
        ctx.publish("part", &1_u32)?;
        if mended && ctx.patched("mended") {
            ctx.sleep("1h").await?;
        } else {
            std::future::pending::<()>().await;
        }
        Ok(1)
    })
}

#[tokio::test]
async fn mended_code_may_pass_a_patch_where_it_was_blocked_and_says_nothing_twice() {
    let world = World::new();
    let app = world.open(|b| b.register(mended(false))).await;
    let handle = app.start(mended(false), "t", ()).await.unwrap();
    until(&handle, Status::Blocked).await;
    handle.set_attributes([("By", "a person")]).await.unwrap();
    eventually("it is set", async || app.find("By", "a person", 9).await.unwrap().len() == 1).await;
    for _ in 0..3 {
        let app = world.open(|b| b.register(mended(true))).await;
        let handle: Handle<u32> = app.handle("t").await.unwrap();
        until(&handle, Status::Suspended).await;
        assert_eq!(app.find("By", "a person", 9).await.unwrap().len(), 1, "not overwritten");
        let names = events(&handle).await;
        assert_eq!(names.iter().filter(|name| **name == "ValuePublished").count(), 1);
        assert_eq!(names.iter().filter(|name| **name == "MarkerRecorded").count(), 1);
        checked(&handle).await;
    }
}
