//! Published values and search attributes.

use backstitch::{Ctx, NoTimeout, Result, Status, workflow};

use crate::checked;
use crate::world::{World, until};

#[workflow]
async fn works(ctx: Ctx, parts: u32) -> Result<()> {
    for part in 1..=parts {
        ctx.wait_event::<()>("part", "part", NoTimeout).await?;
        ctx.publish("progress", &part)?;
        ctx.set_attribute("Part", part)?;
    }
    ctx.remove_attribute("Part")?;
    ctx.wait_event::<()>("end", "end", NoTimeout).await
}

#[tokio::test]
async fn published_values_are_read_from_outside_and_followed_live() {
    let world = World::new();
    let app = world.open(|b| b.register(works)).await;
    let handle = app.start(works, "t", 3).await.unwrap();
    assert_eq!(handle.published::<u32>("progress").await.unwrap(), None);
    let mut follow = handle.follow::<u32>("progress");
    for part in 1..=3 {
        handle.send_event("part", &()).await.unwrap();
        assert_eq!(follow.next().await.unwrap(), Some(part));
        assert_eq!(handle.published("progress").await.unwrap(), Some(part));
    }
    // After a restart nothing is published again, and what was is there.
    let app = world.open(|b| b.register(works)).await;
    let handle = app.handle::<()>("t").await.unwrap();
    let mut again = handle.follow::<u32>("progress");
    assert_eq!(again.next().await.unwrap(), Some(3));
    until(&handle, Status::Suspended).await;
    handle.send_event("end", &()).await.unwrap();
    assert_eq!(again.next().await.unwrap(), None, "it is over");
    let run = checked(&handle).await;
    assert_eq!(run.published["progress"].value.data, "3".as_bytes());
}

#[tokio::test]
async fn attributes_find_an_execution_as_long_as_it_carries_them() {
    let world = World::new();
    let app = world.open(|b| b.register(works)).await;
    let start = app.start(works, "t", 1).attribute("CustomerId", "c-17").attribute("Vip", true);
    let handle = start.await.unwrap();
    let found =
        async |name: &str, value: &str| -> usize { app.find(name, value, 10).await.unwrap().len() };
    assert_eq!(found("CustomerId", "c-17").await, 1);
    assert_eq!(found("CustomerId", "c-18").await, 0);
    assert_eq!(app.find("Vip", true, 10).await.unwrap()[0].id, "t");
    handle.set_attributes([("CustomerId", "c-18")]).by("Ada").await.unwrap();
    crate::world::eventually("it is set", async || found("CustomerId", "c-18").await == 1).await;
    assert_eq!(found("CustomerId", "c-17").await, 0);
    handle.cancel().await.unwrap();
    handle.closed().await.unwrap();
    handle.remove_attribute("CustomerId").by("Ada").await.unwrap();
    crate::world::eventually("it is gone", async || found("CustomerId", "c-18").await == 0).await;
    checked(&handle).await;
}

#[tokio::test]
async fn nothing_is_published_from_outside_of_the_workflows_own_code() {
    #[workflow]
    async fn spawns(ctx: Ctx, _: ()) -> Result<String> {
        let elsewhere = ctx.clone();
        let told = tokio::spawn(async move {
            let published = elsewhere.publish("a", &1).unwrap_err();
            let set = elsewhere.set_attribute("A", 1).unwrap_err();
            format!("{published} {set}")
        });
        Ok(told.await.expect("it does not panic"))
    }
    let world = World::new();
    let app = world.open(|b| b.register(spawns)).await;
    let handle = app.start(spawns, "t", ()).await.unwrap();
    until(&handle, Status::Blocked).await;
    let run = handle.status().await.unwrap().run;
    assert!(run.published.is_empty() && run.attributes.is_empty());
}
