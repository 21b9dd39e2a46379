//! Executions that wait for something far away are not kept in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstitch::{Ctx, NoTimeout, Status, workflow_fn};

use crate::checked;
use crate::world::{World, eventually, until};

/// How often the function was begun: once, and once more each time it was parked and fetched.
type Begun = Arc<AtomicUsize>;

fn sleeper(begun: &Begun) -> backstitch::FnWorkflow<(), u32> {
    let begun = begun.clone();
    workflow_fn("sleeper", move |ctx: Ctx, ()| {
        begun.fetch_add(1, Ordering::SeqCst);
        async move {
            ctx.sleep("1h").await?;
            ctx.wait_event("go", "go", NoTimeout).await
        }
    })
}

#[tokio::test]
async fn a_parked_execution_is_fetched_by_its_instant_by_events_and_by_verbs() {
    let (world, begun) = (World::new(), Begun::default());
    let app = world.open(|b| b.register(sleeper(&begun))).await;
    let handle = app.start(sleeper(&begun), "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    let waiter = {
        let handle = app.handle::<u32>("t").await.unwrap();
        tokio::spawn(async move { handle.result().await })
    };
    world.advance(Duration::from_secs(3_600));
    eventually("it waits for the event", async || {
        !handle.status().await.unwrap().run.waits.is_empty()
    })
    .await;
    assert_eq!(begun.load(Ordering::SeqCst), 2, "it was parked while it slept");
    // While events may come in a row it stays; then it goes.
    world.advance(Duration::from_secs(5));
    handle.pause().await.unwrap();
    until(&handle, Status::Paused).await;
    handle.resume().await.unwrap();
    until(&handle, Status::Suspended).await;
    world.advance(Duration::from_secs(5));
    handle.send_event("go", &5).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 5);
    assert_eq!(waiter.await.unwrap().unwrap(), 5, "who waits is not forgotten");
    checked(&handle).await;
}
