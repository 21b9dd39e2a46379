//! Bad search attributes, deadlines and retentions.

use std::time::Duration;

use backstitch::{
    App, AttributeValue, Builder, Ctx, Error, ErrorKind, NoTimeout, Result, Status, workflow,
};

use crate::stage::checked;
use crate::world::{World, eventually, until};

#[workflow]
async fn naps(ctx: Ctx, _: ()) -> Result<()> {
    ctx.sleep("1h").await
}

fn assert_invalid(error: &Error, parts: &[&str]) {
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part:?} is missing in: {error}");
    }
}

/// Attributes that cannot be set, and what the refusal says.
fn bad_attributes() -> Vec<(String, AttributeValue, &'static str)> {
    let text = |bytes: usize| AttributeValue::Text("x".repeat(bytes));
    vec![
        (String::new(), text(1), "is empty"),
        ("x".repeat(257), text(1), "has 257 characters"),
        ("a\0".into(), text(1), "control character"),
        ("Customer".into(), text(1_025), "has 1025 bytes; at most 1024"),
        ("Price".into(), AttributeValue::Real(f64::NAN), "is not a number"),
    ]
}

#[tokio::test]
async fn bad_attributes_are_refused_at_the_start_by_the_verb_and_in_the_code() {
    #[workflow]
    async fn sets(ctx: Ctx, at: usize) -> Result<()> {
        let (name, value, _) = bad_attributes().swap_remove(at);
        ctx.set_attribute(&name, value)
    }
    let world = World::new();
    let app = world.open(|b| b.register(naps).register(sets)).await;
    let handle = app.start(naps, "t", ()).await.unwrap();
    for (at, (name, value, why)) in bad_attributes().into_iter().enumerate() {
        let error = app.start(naps, "other", ()).attribute(&name, value.clone()).await;
        assert_invalid(&error.err().unwrap(), &["search attribute", why]);
        let error = handle.set_attributes([(&name, value)]).await.unwrap_err();
        assert_invalid(&error, &["search attribute", why]);
        let failed = app.start(sets, format!("code {at}"), at).await.unwrap();
        let error = failed.result().await.unwrap_err();
        assert_eq!(error.failure().unwrap().type_name, "BadAttribute");
        assert!(error.to_string().contains(why), "{error}");
    }
    assert!(app.handle::<()>("other").await.is_err());
    assert_eq!(handle.status().await.unwrap().run.inbox_read, 0);
}

#[tokio::test]
async fn too_many_attributes_and_one_twice_are_refused() {
    let world = World::new();
    let app = world.open(|b| b.register(naps)).await;
    let handle = app.start(naps, "t", ()).await.unwrap();
    let names = |names: std::ops::Range<u32>| names.map(|name| (format!("Name{name}"), name));
    let error = handle.set_attributes(names(0..65)).await.unwrap_err();
    assert_invalid(&error, &["65 search attributes; at most 64"]);
    let error = handle.set_attributes([("A", 1), ("A", 2)]).await.unwrap_err();
    assert_invalid(&error, &["\"A\" is given twice"]);
    handle.set_attributes(names(0..64)).await.unwrap();
    eventually("they are set", async || handle.status().await.unwrap().run.attributes.len() == 64)
        .await;
    let error = handle.set_attributes(names(64..65)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("take some away first"), "{error}");
    handle.remove_attribute("Name0").await.unwrap();
    eventually("one is gone", async || handle.status().await.unwrap().run.attributes.len() == 63)
        .await;
    handle.set_attributes(names(64..65)).await.unwrap();
    // A value of another kind is another value, and nothing is found by a name alone.
    assert!(app.find("Name5", 5, 10).await.unwrap().len() == 1);
    assert!(app.find("Name5", 5.0, 10).await.unwrap().is_empty());
    assert!(app.find("Nobody", 5, 10).await.unwrap().is_empty());
    checked(&handle).await;
}

#[tokio::test]
async fn attributes_that_are_too_many_with_those_that_nobody_has_read_are_refused() {
    let world = World::new();
    let app = world.open(|b| b.register(naps)).await;
    let handle = app.start(naps, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    let clock = std::sync::Arc::new(world.clock.clone());
    let guest = backstitch::Backstitch::connect_on(std::sync::Arc::new(world.reopen()), clock);
    let outside = guest.handle::<()>("t").await.unwrap();
    let names = |names: std::ops::Range<u32>| names.map(|name| (format!("Name{name}"), name));
    assert!(outside.set_attributes(names(0..40)).await.unwrap().changed);
    let error = outside.set_attributes(names(40..80)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("80 search attributes"), "{error}");
    let app = world.open(|b| b.register(naps)).await;
    let handle = app.handle::<()>("t").await.unwrap();
    eventually("they are set", async || handle.status().await.unwrap().run.attributes.len() == 40)
        .await;
    checked(&handle).await;
}

#[tokio::test]
async fn bad_waits_and_keys_fail_in_the_code_by_name() {
    #[workflow]
    async fn asks(ctx: Ctx, what: u32) -> Result<()> {
        let types = |count: u32| (0..count).map(|number| format!("type {number}"));
        match what {
            0 => drop(ctx.wait_any_event("w", types(0), NoTimeout).await?),
            1 => drop(ctx.wait_any_event("w", types(65), NoTimeout).await?),
            2 => ctx.wait_event("w", "a\nb", NoTimeout).await?,
            3 => ctx.wait_event("", "a", NoTimeout).await?,
            4 => ctx.wait_event("w", "a", "5 parsecs").await?,
            5 => ctx.publish("", &1)?,
            _ => ctx.publish("key", &"x".repeat(100))?,
        }
        Ok(())
    }
    let world = World::new();
    let app = world.open(|b| b.register(asks).payload_bytes_max(100)).await;
    for (what, (type_name, why)) in (0..).zip([
        ("BadName", "name one at least"),
        ("BadName", "names 65 types; at most 64"),
        ("BadName", "control character"),
        ("BadName", "is empty"),
        ("BadDuration", "is not a duration"),
        ("BadName", "the key to publish under is empty"),
        ("PayloadTooLarge", "102 bytes"),
    ]) {
        let handle = app.start(asks, format!("{what}"), what).await.unwrap();
        let error = handle.result().await.unwrap_err();
        let failure = error.failure().unwrap();
        assert_eq!(failure.type_name, type_name, "{failure}");
        assert!(failure.message.contains(why), "{failure}");
        assert!(checked(&handle).await.asks.is_empty());
    }
}

#[tokio::test]
async fn deadlines_and_retentions_that_mean_nothing_are_refused() {
    let world = World::new();
    let app = world.open(|b| b.register(naps)).await;
    let nonsense = [
        ("5 parsecs", "is not a duration"),
        ("-1s", "is negative"),
        ("101 years", "years or months"),
        ("36525 days 36525 days", "is not a duration"),
        ("36601 days", "longer than 100 years"),
    ];
    for (duration, why) in nonsense {
        let error = app.start(naps, "t", ()).deadline(duration).await.err().unwrap();
        assert_invalid(&error, &["the start of execution \"t\"", "the deadline", why]);
        let error = app.start(naps, "t", ()).retention(duration).await.err().unwrap();
        assert_invalid(&error, &["the retention", why]);
    }
    assert!(app.handle::<()>("t").await.is_err(), "nothing was started");
}

#[tokio::test]
async fn a_deadline_of_no_time_rolls_back_at_once_and_the_longest_one_is_fine() {
    let world = World::new();
    let app = world.open(|b| b.register(naps)).await;
    let handle = app.start(naps, "now", ()).deadline("0s").await.unwrap();
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.failure().unwrap().type_name, "DeadlinePassed");
    checked(&handle).await;
    let handle = app.start(naps, "long", ()).deadline("36600 days").await.unwrap();
    until(&handle, Status::Suspended).await;
    world.advance(Duration::from_secs(3_600));
    handle.result().await.unwrap();
    checked(&handle).await;
}

#[tokio::test]
async fn a_retention_longer_than_anything_is_for_ever() {
    // Of the second one, in microseconds, the lower 64 bits are less than a second.
    for kept in [Duration::MAX, Duration::from_secs(18_446_744_073_710)] {
        let world = World::new();
        let app = world.open(|b: Builder| b.register(naps).retention(kept)).await;
        let handle = app.start(naps, "t", ()).await.unwrap();
        handle.cancel().await.unwrap();
        handle.closed().await.unwrap();
        let other = app.start(naps, "other", ()).retention("1s").await.unwrap();
        other.cancel().await.unwrap();
        other.closed().await.unwrap();
        world.advance(Duration::from_secs(86_400));
        expires(&app, "other").await;
        assert!(app.handle::<()>("t").await.is_ok(), "{kept:?}");
    }
}

#[tokio::test]
async fn a_retention_of_no_time_deletes_at_once() {
    let world = World::new();
    let app = world.open(|b| b.register(naps).retention(Duration::ZERO)).await;
    let handle = app.start(naps, "t", ()).await.unwrap();
    handle.cancel().await.unwrap();
    world.advance(Duration::from_secs(60));
    expires(&app, "t").await;
    // Open ones stay, however long it takes.
    let open = app.start(naps, "open", ()).await.unwrap();
    world.advance(Duration::from_secs(600));
    until(&open, Status::Suspended).await;
}

async fn expires(app: &App, id: &str) {
    eventually("it has expired", async || app.handle::<()>(id).await.is_err()).await;
}
