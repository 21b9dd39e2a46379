//! What is still done with closed executions.

use std::time::Duration;

use backstitch::{Ctx, ErrorKind, Result, Status, workflow};

use crate::checked;
use crate::world::{Effects, World, events, eventually, until};

#[workflow]
async fn trip(ctx: Ctx, _: ()) -> Result<u32> {
    for name in ["flight", "hotel"] {
        ctx.step(name, async move |s| {
            s.state::<Effects>().add(format!("book {}", s.name()));
            Ok(())
        })
        .rollback(async move |u| {
            u.state::<Effects>().add(format!("cancel {}", u.step().name));
            Ok(())
        })
        .await?;
    }
    Ok(7)
}

#[tokio::test]
async fn b70_a_rollback_on_request_undoes_what_had_succeeded() {
    let world = World::new();
    let app = world.open(|b| b.register(trip)).await;
    let handle = app.start(trip, "t", ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 7);
    assert!(handle.rollback().by("Ada").reason("she is ill").await.unwrap().changed);
    until(&handle, Status::Cancelled).await;
    let booked = ["book flight", "book hotel", "cancel hotel", "cancel flight"];
    assert_eq!(world.effects.all(), booked);
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RolledBack);
    assert!(error.to_string().contains("Ada (she is ill)"), "{error}");
    assert_eq!(handle.output().await.unwrap(), Some(7));
    // A second request changes nothing.
    assert!(!handle.rollback().by("Bob").await.unwrap().changed);
    eventually("it is noted", async || events(&handle).await.contains(&"VerbRefused")).await;
    assert_eq!(world.effects.all(), booked);
    assert_eq!(handle.status().await.unwrap().status, Status::Cancelled);
    checked(&handle).await;
}

#[tokio::test]
async fn b70_a_rollback_on_request_survives_a_crash_and_waits_for_the_code() {
    let world = World::new();
    let app = world.open(|b| b.register(trip)).await;
    let handle = app.start(trip, "t", ()).await.unwrap();
    handle.result().await.unwrap();
    // A process that does not have the code takes the request.
    let app = world.open(|b| b).await;
    let handle = app.handle::<u32>("t").await.unwrap();
    handle.rollback().by("Ada").await.unwrap();
    until(&handle, Status::RollingBack).await;
    assert_eq!(world.effects.count("cancel hotel"), 0);
    let app = world.open(|b| b.register(trip)).await;
    let handle = app.handle::<u32>("t").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(world.effects.all()[2..], ["cancel hotel", "cancel flight"]);
    checked(&handle).await;
}

#[tokio::test]
async fn b94_w14_what_a_kill_left_is_neither_deleted_nor_expired_until_it_is_waived() {
    #[workflow]
    async fn stays(ctx: Ctx, _: ()) -> Result<()> {
        trip.call_steps(&ctx).await?;
        ctx.sleep("1h").await
    }
    let world = World::new();
    let setup = |b: backstitch::Builder| b.register(stays).retention(Duration::from_secs(60));
    let app = world.open(setup).await;
    let handle = app.start(stays, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    handle.kill().by("Ada").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Terminated);
    let error = handle.delete().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("killed"), "{error}");
    world.advance(Duration::from_secs(600));
    handle.waive_undo("hotel").by("Ada").reason("done by phone").await.unwrap();
    eventually("one is waived", async || handle.status().await.unwrap().run.debts_of_kill() == [1])
        .await;
    assert_eq!(app.attention(10).await.unwrap().len(), 1);
    // Also by the next process, and the run stays for it.
    let app = world.open(setup).await;
    let handle = app.handle::<()>("t").await.unwrap();
    handle.waive_undo("flight").by("Ada").reason("done by phone").await.unwrap();
    eventually("the matter is settled", async || app.attention(10).await.unwrap().is_empty()).await;
    assert_eq!(handle.status().await.unwrap().rollback.outcome.name(), "incomplete");
    checked(&handle).await;
    world.advance(Duration::from_secs(60));
    eventually("it has expired", async || app.handle::<()>("t").await.is_err()).await;
}

impl trip {
    async fn call_steps(&self, ctx: &Ctx) -> Result<u32> {
        use backstitch::Workflow;
        self.call(ctx.clone(), ()).await
    }
}

#[tokio::test]
async fn a_deleted_execution_is_gone_and_its_id_is_free() {
    let world = World::new();
    let app = world.open(|b| b.register(trip)).await;
    let handle = app.start(trip, "t", ()).attribute("Customer", "c-1").await.unwrap();
    handle.result().await.unwrap();
    assert_eq!(app.find("Customer", "c-1", 10).await.unwrap().len(), 1);
    handle.delete().by("Ada").await.unwrap();
    assert_eq!(handle.status().await.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(app.find("Customer", "c-1", 10).await.unwrap().is_empty());
    assert!(app.start(trip, "t", ()).await.unwrap().created());
}

#[tokio::test]
async fn a_restart_is_a_new_run_with_new_keys() {
    let world = World::new();
    let app = world.open(|b| b.register(trip)).await;
    let handle = app.start(trip, "t", ()).attribute("Customer", "c-1").await.unwrap();
    handle.result().await.unwrap();
    let again = handle.restart().by("Ada").request_id("r-1").await.unwrap();
    assert!(again.created());
    assert_ne!(again.run_id(), handle.run_id());
    assert_eq!(again.result().await.unwrap(), 7);
    let status = again.status().await.unwrap();
    assert_eq!(status.run.started.restarted_from, Some(handle.run_id().to_vec()));
    assert_eq!(status.run.attributes.len(), 1);
    // The same request once more is the same run.
    assert_eq!(handle.restart().request_id("r-1").await.unwrap().run_id(), again.run_id());
    // Another one would do an older run over.
    assert_eq!(handle.restart().await.err().unwrap().kind(), ErrorKind::Refused);
    assert_eq!(world.effects.count("book hotel"), 2);
    checked(&again).await;
}

#[tokio::test]
async fn a_request_to_restart_is_new_when_what_it_began_is_deleted() {
    let world = World::new();
    let app = world.open(|b| b.register(trip)).await;
    let handle = app.start(trip, "t", ()).await.unwrap();
    handle.result().await.unwrap();
    let mut runs = vec![handle.run_id()];
    for _ in 0..2 {
        let again = handle.restart().request_id("r-1").await.unwrap();
        assert!(again.created());
        assert!(!handle.restart().request_id("r-1").await.unwrap().created());
        again.result().await.unwrap();
        runs.push(again.run_id());
        again.delete().await.unwrap();
    }
    runs.sort();
    runs.dedup();
    assert_eq!(runs.len(), 3, "no id is given twice");
}

#[tokio::test]
async fn closed_executions_expire_after_their_time() {
    let world = World::new();
    let app = world.open(|b| b.register(trip).retention(Duration::from_secs(3_600))).await;
    for (id, kept) in [("usual", None), ("long", Some("3h"))] {
        let start = app.start(trip, id, ());
        let start = if let Some(kept) = kept { start.retention(kept) } else { start };
        start.await.unwrap().result().await.unwrap();
    }
    let forever = app.start(trip, "forever", ()).keep_forever().await.unwrap();
    forever.result().await.unwrap();
    let gone = async |id: &str| app.handle::<u32>(id).await.is_err();
    world.advance(Duration::from_secs(3_600));
    eventually("the usual one has expired", async || gone("usual").await).await;
    assert!(!gone("long").await);
    world.advance(Duration::from_secs(7_200));
    eventually("the long one has expired", async || gone("long").await).await;
    assert!(!gone("forever").await);
}
