//! Events and waits.

use std::time::Duration;

use backstitch::{Ctx, ErrorKind, Handle, NoTimeout, Result, Status, WaitsFor, select, workflow};

use crate::checked;
use crate::world::{EPOCH_US, World, events, until};

const MINUTE_US: i64 = 60_000_000;

/// Takes events of type `a`, one after the other, and gives what they said.
#[workflow]
async fn takes(ctx: Ctx, count: u32) -> Result<Vec<u32>> {
    let mut taken = Vec::new();
    for _ in 0..count {
        taken.push(ctx.wait_event("next", "a", NoTimeout).await?);
    }
    Ok(taken)
}

/// Waits three times for a minute.
#[workflow]
async fn waits(ctx: Ctx, _: ()) -> Result<Vec<Option<u32>>> {
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.push(ctx.wait_event("next", "a", "1m").optional().await?);
    }
    Ok(taken)
}

async fn send<T>(handle: &Handle<T>, event_type: &str, value: u32) {
    assert!(handle.send_event(event_type, &value).await.unwrap().first);
}

#[tokio::test]
async fn b22_an_event_is_kept_until_the_wait_and_delivered_to_one_that_waits() {
    let world = World::new();
    let app = world.open(|b| b.register(takes)).await;
    let handle = app.start(takes, "t", 2).await.unwrap();
    send(&handle, "a", 1).await;
    until(&handle, Status::Suspended).await;
    send(&handle, "a", 2).await;
    assert_eq!(handle.result().await.unwrap(), [1, 2]);
    checked(&handle).await;
}

#[tokio::test]
async fn b23_a_wait_that_times_out_eats_nothing() {
    let world = World::new();
    let app = world.open(|b| b.register(waits)).await;
    let handle = app.start(waits, "t", ()).await.unwrap();
    send(&handle, "a", 1).await;
    let status = until(&handle, Status::Suspended).await;
    let waits_for =
        WaitsFor::Event { ord: 2, types: vec!["a".into()], until_us: Some(EPOCH_US + MINUTE_US) };
    assert_eq!(status.waits_for, [waits_for], "b28");
    world.advance(Duration::from_secs(60));
    crate::world::eventually("the third wait is open", async || {
        handle.status().await.unwrap().run.waits.contains(&3)
    })
    .await;
    send(&handle, "a", 3).await;
    assert_eq!(handle.result().await.unwrap(), [Some(1), None, Some(3)]);
    checked(&handle).await;
}

#[tokio::test]
async fn b24_events_of_one_type_are_taken_in_order_of_acceptance_also_after_a_crash() {
    let world = World::new();
    let app = world.open(|b| b.register(takes)).await;
    let handle = app.start(takes, "t", 25).await.unwrap();
    for value in 0..12 {
        send(&handle, "a", value).await;
    }
    // The next process takes over; what the first one took is not delivered again.
    let app = world.open(|b| b.register(takes)).await;
    let handle = app.handle::<Vec<u32>>("t").await.unwrap();
    for value in 12..25 {
        send(&handle, "a", value).await;
    }
    assert_eq!(handle.result().await.unwrap(), (0..25).collect::<Vec<_>>());
    checked(&handle).await;
}

#[tokio::test]
async fn b25_p8_an_event_accepted_before_the_deadline_satisfies_after_downtime() {
    let world = World::new();
    let app = world.open(|b| b.register(waits)).await;
    let handle = app.start(waits, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    // The engine is gone; somebody else still accepts.
    drop(app);
    let store = world.reopen();
    let guest = backstitch::Backstitch::connect_on(
        std::sync::Arc::new(store),
        std::sync::Arc::new(world.clock.clone()),
    );
    let from_outside = guest.handle::<Vec<Option<u32>>>("t").await.unwrap();
    world.clock.set(EPOCH_US + MINUTE_US);
    send(&from_outside, "a", 7).await;
    world.clock.set(EPOCH_US + 2 * MINUTE_US);
    send(&from_outside, "a", 8).await;
    let app = world.open(|b| b.register(waits)).await;
    let handle = app.handle::<Vec<Option<u32>>>("t").await.unwrap();
    crate::world::eventually("two are taken", async || {
        handle.status().await.unwrap().run.waits.contains(&3)
    })
    .await;
    world.advance(Duration::from_secs(60));
    assert_eq!(handle.result().await.unwrap(), [Some(7), Some(8), None]);
    checked(&handle).await;
}

#[tokio::test]
async fn b26_the_same_event_twice_is_one_and_another_under_its_id_is_an_error() {
    let world = World::new();
    let app = world.open(|b| b.register(takes)).await;
    let handle = app.start(takes, "t", 2).await.unwrap();
    let first = handle.send_event("a", &1).id("e-1").by("Ada").await.unwrap();
    let again = handle.send_event("a", &1).id("e-1").by("Bob").await.unwrap();
    assert_eq!((first.number, first.first), (again.number, true));
    assert!(!again.first);
    for (event_type, value) in [("a", 2), ("b", 1)] {
        let error = handle.send_event(event_type, &value).id("e-1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("e-1"), "{error}");
    }
    send(&handle, "a", 2).await;
    assert_eq!(handle.result().await.unwrap(), [1, 2]);
    // Also when it is over.
    assert!(!handle.send_event("a", &1).id("e-1").await.unwrap().first);
    assert_eq!(handle.send_event("a", &3).await.unwrap_err().kind(), ErrorKind::Refused);
    checked(&handle).await;
}

/// Waits for two types at once, then for the one that lost.
#[workflow]
async fn races(ctx: Ctx, _: ()) -> Result<(u32, u32)> {
    let first: u32 = select! {
        a = ctx.wait_event("a", "a", NoTimeout) => a?,
        b = ctx.wait_event("b", "b", NoTimeout) => b?,
    };
    let rest = ctx.wait_any_event("rest", ["a", "b"], NoTimeout).await?;
    Ok((first, rest.decode()?))
}

#[tokio::test]
async fn b27_b89_the_event_of_the_wait_that_lost_stays_for_a_later_one() {
    let world = World::new();
    let app = world.open(|b| b.register(races)).await;
    let handle = app.start(races, "t", ()).await.unwrap();
    send(&handle, "b", 2).await;
    send(&handle, "a", 1).await;
    assert_eq!(handle.result().await.unwrap(), (2, 1));
    assert!(events(&handle).await.contains(&"WaitCancelled"));
    checked(&handle).await;
}

/// Holds a wait without polling it while something else goes on.
#[workflow]
async fn holds(ctx: Ctx, _: ()) -> Result<u32> {
    let mut held = ctx.wait_event::<u32>("held", "a", NoTimeout);
    let go = select! {
        _ = &mut held => 0,
        go = ctx.wait_event::<u32>("go", "go", NoTimeout) => go?,
    };
    let more: u32 = ctx.wait_event("more", "more", NoTimeout).await?;
    drop(held);
    let a: u32 = ctx.wait_event("after", "a", NoTimeout).await?;
    Ok(go + more + a)
}

#[tokio::test]
async fn b89_an_event_that_was_shown_to_a_wait_that_never_looked_is_there_for_another() {
    let world = World::new();
    let app = world.open(|b| b.register(holds)).await;
    let handle = app.start(holds, "t", ()).await.unwrap();
    send(&handle, "go", 1).await;
    send(&handle, "a", 10).await;
    crate::world::eventually("it was shown", async || {
        events(&handle).await.iter().filter(|name| **name == "WaitSatisfied").count() == 2
    })
    .await;
    send(&handle, "more", 100).await;
    assert_eq!(handle.result().await.unwrap(), 111);
    checked(&handle).await;
    // And the same on replay.
    let app = world.open(|b| b.register(holds)).await;
    let handle = app.handle::<u32>("t").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 111);
}

#[tokio::test]
async fn an_event_that_says_something_else_fails_the_workflow_by_name() {
    let world = World::new();
    let app = world.open(|b| b.register(takes)).await;
    let handle = app.start(takes, "t", 1).await.unwrap();
    handle.send_event("a", "no number").by("Ada").await.unwrap();
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    let failure = error.failure().unwrap();
    assert_eq!(failure.type_name, "EventPayload");
    assert!(failure.message.contains("Ada"), "{failure}");
    checked(&handle).await;
}

#[tokio::test]
async fn a_wait_that_times_out_fails_by_name_unless_it_is_optional() {
    #[workflow]
    async fn once(ctx: Ctx, _: ()) -> Result<u32> {
        ctx.wait_event("approval", "approved", "1m").await
    }
    let world = World::new();
    let app = world.open(|b| b.register(once)).await;
    let handle = app.start(once, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    world.advance(Duration::from_secs(60));
    let error = handle.result().await.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!(failure.type_name, "EventTimeout");
    assert!(failure.message.contains("approved"), "{failure}");
    checked(&handle).await;
}

#[tokio::test]
async fn p12_a_full_inbox_is_refused_to_the_sender_and_changes_nothing() {
    let world = World::new();
    let app = world.open(|b| b.register(takes).events_kept_max(3)).await;
    let handle = app.start(takes, "t", 1).await.unwrap();
    for _ in 0..3 {
        send(&handle, "b", 0).await;
    }
    crate::world::eventually("they are kept", async || {
        handle.status().await.unwrap().run.kept.len() == 3
    })
    .await;
    let rows = handle.journal().await.unwrap().len();
    let error = handle.send_event("a", &1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
    assert!(error.to_string().contains('3'), "{error}");
    assert_eq!(handle.journal().await.unwrap().len(), rows);
    // A person still gets through.
    assert!(handle.cancel().await.unwrap().changed);
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    checked(&handle).await;
}

#[tokio::test]
async fn an_event_of_a_type_that_the_workflow_does_not_take_is_refused_with_those_it_takes() {
    #[workflow(events("approved", "refused"))]
    async fn typed(ctx: Ctx, _: ()) -> Result<u32> {
        ctx.wait_event("approval", "approved", NoTimeout).await
    }
    let world = World::new();
    let app = world.open(|b| b.register(typed)).await;
    let handle = app.start(typed, "t", ()).await.unwrap();
    let error = handle.send_event("aproved", &1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("approved, refused"), "{error}");
    send(&handle, "approved", 5).await;
    assert_eq!(handle.result().await.unwrap(), 5);
}

#[tokio::test]
async fn a_wait_for_a_type_that_the_workflow_does_not_take_fails_instead_of_waiting_for_ever() {
    #[workflow(events("approved", "refused"))]
    async fn misspelt(ctx: Ctx, _: ()) -> Result<u32> {
        ctx.wait_event("approval", "aproved", NoTimeout).await
    }
    let world = World::new();
    let app = world.open(|b| b.register(misspelt)).await;
    let handle = app.start(misspelt, "t", ()).await.unwrap();
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    let text = error.to_string();
    assert!(text.contains("takes approved, refused") && text.contains("aproved"), "{text}");
}

#[tokio::test]
async fn a_sleep_and_an_event_are_shown_in_the_order_of_their_instants() {
    #[workflow]
    async fn either(ctx: Ctx, _: ()) -> Result<String> {
        Ok(select! {
            _ = ctx.sleep("1m") => "slept".to_owned(),
            event = ctx.wait_event::<String>("e", "a", NoTimeout) => event?,
        })
    }
    for (sent_after, wanted) in [(60, "event"), (61, "slept")] {
        let world = World::new();
        let app = world.open(|b| b.register(either)).await;
        let handle = app.start(either, "t", ()).await.unwrap();
        until(&handle, Status::Suspended).await;
        drop(app);
        let guest = backstitch::Backstitch::connect_on(
            std::sync::Arc::new(world.reopen()),
            std::sync::Arc::new(world.clock.clone()),
        );
        world.advance(Duration::from_secs(sent_after));
        let outside = guest.handle::<String>("t").await.unwrap();
        outside.send_event("a", "event").await.unwrap();
        let app = world.open(|b| b.register(either)).await;
        let handle = app.handle::<String>("t").await.unwrap();
        assert_eq!(handle.result().await.unwrap(), wanted);
        checked(&handle).await;
    }
}
