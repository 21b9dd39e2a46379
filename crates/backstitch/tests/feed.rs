//! The live feed of committed rows.

mod world;

use backstitch::{Ctx, FeedEvent, Result, workflow};
use world::{World, events};

#[workflow]
async fn greet(ctx: Ctx, name: String) -> Result<String> {
    ctx.step("compose", async move |_s| Ok(format!("Hello, {name}"))).await
}

#[tokio::test]
async fn p1_the_feed_shows_each_row_of_a_run_in_order_once_it_is_durable() {
    let world = World::new();
    let app = world.open(|b| b.register(greet)).await;
    let mut feed = app.feed();
    let handle = app.start(greet, "a", "Ada".into()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "Hello, Ada");
    let mut seen = Vec::new();
    while seen.last() != Some(&"ExecutionSucceeded") {
        match feed.next().await.expect("the engine runs") {
            FeedEvent::Row(item) => {
                assert_eq!(item.execution.id, "a");
                assert!(item.row.header.at_us > 0);
                seen.extend(item.row.events.iter().map(|event| event.name()));
            }
            FeedEvent::Missed(rows) => panic!("missed {rows} rows"),
        }
    }
    assert_eq!(seen, events(&handle).await);
}
