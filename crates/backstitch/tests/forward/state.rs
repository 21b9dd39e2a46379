//! Application state, failures that call for a person, and the operator's retry.

use backstitch::{
    Class, Classify, Ctx, ErrorKind, FailureExt, Origin, Result, Status, StepCtx, StepRef, join,
    msg, workflow,
};

use crate::journal::{Soon, journal, seen_by, until_recorded};
use crate::world::{Effects, World, until};

struct Bank(&'static str);

#[workflow]
async fn asks_the_bank(ctx: Ctx, (): ()) -> Result<String> {
    ctx.step("first", async |_s| Ok(())).await?;
    let asked = ctx.step("ask", async |s: StepCtx| Ok(s.state::<Bank>().0.to_owned()));
    let other = ctx.step("other", async |_s| Ok(()));
    let (asked, other) = join!(asked, other);
    other?;
    asked
}

#[tokio::test]
async fn state_that_is_missing_blocks_only_the_step_and_a_retry_mends_it() {
    let world = World::new();
    let app = world.open(|b| b.register(asks_the_bank)).await;
    let handle = app.start(asks_the_bank, "t", ()).await.unwrap();
    let status = until(&handle, Status::Blocked).await;
    until_recorded(&handle, "StepSucceeded", 2).await;
    let (_, step, failure) = &status.blocks[0];
    assert_eq!(*step, Some(StepRef::from("ask#1")));
    assert_eq!((failure.class(), failure.origin()), (Class::Attention, Origin::Engine));
    assert!(failure.message.contains("Bank") && failure.message.contains(".state("), "{failure}");
    let items = app.attention(10).await.unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!((items[0].kind.as_str(), items[0].ord), ("step_blocked", 2));
    assert!(items[0].message.contains("ask#1"), "{}", items[0].message);

    // The next process has it; nothing happens before a person says so.
    let app = world.open(|b| b.register(asks_the_bank).state(Bank("yes"))).await;
    let handle = seen_by(&app, &handle).await;
    let status = until(&handle, Status::Blocked).await;
    assert_eq!(status.blocks.len(), 1);
    assert_eq!(app.attention(10).await.unwrap().len(), 1);
    assert_eq!(journal(&handle).await.starts(2).len(), 1);
    handle.retry_step("ask").by("ada").reason("the bank is there now").await.unwrap();
    assert_eq!(handle.result().soon().await.unwrap(), "yes");
    assert!(app.attention(10).await.unwrap().is_empty());
    assert_eq!(journal(&handle).await.starts(2).len(), 2);
}

#[tokio::test]
async fn a_retry_without_the_repair_blocks_again() {
    let world = World::new();
    let app = world.open(|b| b.register(asks_the_bank)).await;
    let handle = app.start(asks_the_bank, "t", ()).await.unwrap();
    until(&handle, Status::Blocked).await;
    handle.retry_step(2).await.unwrap();
    until_recorded(&handle, "Blocked", 2).await;
    assert_eq!(app.attention(10).await.unwrap().len(), 1);
    assert_eq!(handle.status().await.unwrap().status, Status::Blocked);
}

#[tokio::test]
async fn the_last_state_of_a_type_stands() {
    let world = World::new();
    let app =
        world.open(|b| b.register(asks_the_bank).state(Bank("first")).state(Bank("second"))).await;
    let handle = app.start(asks_the_bank, "t", ()).await.unwrap();
    assert_eq!(handle.result().soon().await.unwrap(), "second");
}

#[workflow]
async fn needs_a_person(ctx: Ctx, (): ()) -> Result<u32> {
    ctx.step("call", async |s: StepCtx| {
        s.state::<Effects>().add("call");
        match s.attempt() {
            1 => Err(std::io::Error::other("401")).attention(),
            2 => Err(msg("still 401").attention()),
            attempt => Ok(attempt),
        }
    })
    .await
}

#[tokio::test]
async fn a_failure_that_calls_for_a_person_is_not_tried_again_by_itself() {
    let world = World::new();
    let app = world.open(|b| b.register(needs_a_person)).await;
    let handle = app.start(needs_a_person, "t", ()).await.unwrap();
    until(&handle, Status::Blocked).await;
    world.advance(std::time::Duration::from_secs(1_000_000));
    let app = world.open(|b| b.register(needs_a_person)).await;
    let handle = seen_by(&app, &handle).await;
    until(&handle, Status::Blocked).await;
    assert_eq!(world.effects.count("call"), 1);

    handle.retry_step("call").await.unwrap();
    until_recorded(&handle, "Blocked", 2).await;
    handle.retry_step("call#1").await.unwrap();
    assert_eq!(handle.result().soon().await.unwrap(), 3);
    let classes: Vec<Class> =
        journal(&handle).await.failures(1).iter().map(|(_, failure)| failure.class()).collect();
    assert_eq!(classes, [Class::Attention; 2]);
}

#[tokio::test]
async fn a_retry_of_what_is_not_blocked_is_refused_and_says_what_is() {
    let world = World::new();
    let app = world.open(|b| b.register(asks_the_bank)).await;
    let handle = app.start(asks_the_bank, "t", ()).await.unwrap();
    until(&handle, Status::Blocked).await;
    let refused = handle.retry_step("first").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.to_string().contains("these are: 2 (ask#1)"), "{refused}");
    let unknown = handle.retry_step("nope").await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    assert!(unknown.to_string().contains("first#1, ask#1, other#1"), "{unknown}");
}

#[tokio::test]
async fn a_request_that_is_sent_twice_is_one_request() {
    let world = World::new();
    let app = world.open(|b| b.register(needs_a_person)).await;
    let handle = app.start(needs_a_person, "t", ()).await.unwrap();
    until(&handle, Status::Blocked).await;
    let first = handle.retry_step("call").request_id("r-1").await.unwrap();
    until_recorded(&handle, "Blocked", 2).await;
    let second = handle.retry_step("call").request_id("r-1").await.unwrap();
    assert_eq!(first, second);
    assert_eq!(world.effects.count("call"), 2, "the second was the first");
}
