//! Bad events and bad verbs are refused at the door, with the reason, and leave nothing behind.

use backstitch::{Ctx, Error, ErrorKind, Handle, NoTimeout, Result, Status, workflow};
use serde::{Serialize, Serializer};

use crate::stage::checked;
use crate::world::{World, until};

#[workflow]
async fn waits(ctx: Ctx, _: ()) -> Result<u32> {
    ctx.wait_event("next", "a", NoTimeout).await
}

async fn waiting(world: &World) -> (backstitch::App, Handle<u32>) {
    let app = world.open(|b| b.register(waits)).await;
    let handle = app.start(waits, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    (app, handle)
}

/// Names that are no names, and what the refusal says.
fn bad_names() -> [(String, &'static str); 4] {
    [
        (String::new(), "is empty"),
        ("x".repeat(257), "has 257 characters; at most 256 are allowed"),
        ("a\0b".into(), "control character U+0000"),
        ("a\nb".into(), "control character U+000A"),
    ]
}

fn assert_invalid(error: &Error, parts: &[&str]) {
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part:?} is missing in: {error}");
    }
}

/// Nothing has been accepted, and it takes what is good.
async fn assert_untouched(handle: &Handle<u32>) {
    assert_eq!(handle.status().await.unwrap().run.inbox_read, 0);
    assert_eq!(handle.send_event("a", &1).await.unwrap().number, 1, "the first row of the inbox");
    assert_eq!(handle.result().await.unwrap(), 1);
    checked(handle).await;
}

#[tokio::test]
async fn events_with_a_bad_type_or_id_or_sender_are_refused() {
    let world = World::new();
    let (_app, handle) = waiting(&world).await;
    for (name, why) in bad_names() {
        let error = handle.send_event(name.clone(), &1).await.unwrap_err();
        assert_invalid(&error, &["type of the event", why]);
        let error = handle.send_event("a", &1).id(name).await.unwrap_err();
        assert_invalid(&error, &["id of the event", why]);
    }
    let error = handle.send_event("a", &1).by("x".repeat(8 * 1024 + 1)).await.unwrap_err();
    assert_invalid(&error, &["by has 8193 bytes"]);
    assert_untouched(&handle).await;
}

#[tokio::test]
async fn an_event_that_is_too_large_or_cannot_be_encoded_is_refused() {
    struct Stubborn;
    impl Serialize for Stubborn {
        fn serialize<S: Serializer>(&self, _serializer: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("I would rather not"))
        }
    }
    let world = World::new();
    let app = world.open(|b| b.register(waits).payload_bytes_max(100)).await;
    let handle = app.start(waits, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    let error = handle.send_event("a", &"x".repeat(99)).await.unwrap_err();
    assert_invalid(&error, &["\"a\" has 101 bytes", "at most 100", "raise the limit"]);
    let error = handle.send_event("a", &Stubborn).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.to_string().contains("I would rather not"), "{error}");
    assert!(error.to_string().contains("the event \"a\""), "{error}");
    assert_untouched(&handle).await;
}

#[tokio::test]
async fn what_is_sent_to_an_execution_that_is_not_there_is_not_found() {
    let world = World::new();
    let (app, handle) = waiting(&world).await;
    assert_eq!(app.handle::<u32>("nobody").await.err().unwrap().kind(), ErrorKind::NotFound);
    handle.cancel().await.unwrap();
    handle.closed().await.unwrap();
    handle.delete().await.unwrap();
    let error = handle.send_event("a", &1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    for request in [handle.cancel(), handle.rollback(), handle.set_attributes([("A", 1)])] {
        assert_eq!(request.await.unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert_eq!(handle.delete().await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(handle.restart().await.err().unwrap().kind(), ErrorKind::NotFound);
    assert_eq!(handle.result().await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(handle.closed().await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(handle.follow::<u32>("x").next().await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn request_ids_that_are_no_names_are_refused() {
    let world = World::new();
    let (_app, handle) = waiting(&world).await;
    for (name, why) in bad_names() {
        let error = handle.pause().request_id(name).await.unwrap_err();
        assert_invalid(&error, &["request id", why]);
    }
    assert_untouched(&handle).await;
    for (name, why) in bad_names() {
        let error = handle.restart().request_id(name).await.err().unwrap();
        assert_invalid(&error, &["request id", why]);
    }
    assert!(handle.restart().request_id("x".repeat(256)).await.unwrap().created());
}

#[tokio::test]
async fn a_request_id_that_was_used_for_another_verb_is_an_error() {
    let world = World::new();
    let (_app, handle) = waiting(&world).await;
    let first = handle.set_attributes([("A", 1)]).by("Ada").request_id("r").await.unwrap();
    let others = [
        handle.set_attributes([("A", 2)]).by("Ada"),
        handle.set_attributes([("A", 1)]).by("Bob"),
        handle.set_attributes([("A", 1)]).by("Ada").reason("why not"),
        handle.pause().by("Ada"),
    ];
    for other in others {
        let error = other.request_id("r").await.unwrap_err();
        assert_invalid(&error, &["\"r\" was used before", "an id of its own"]);
    }
    let again = handle.set_attributes([("A", 1)]).by("Ada").request_id("r").await.unwrap();
    assert_eq!(again, first);
    // Ids of events are apart.
    assert!(handle.send_event("a", &1).id("r").await.unwrap().first);
    assert_eq!(handle.result().await.unwrap(), 1);
}

#[tokio::test]
async fn words_that_are_too_long_are_refused_everywhere() {
    let world = World::new();
    let (app, handle) = waiting(&world).await;
    let long = "x".repeat(8 * 1024 + 1);
    let error = handle.cancel().by(&long).await.unwrap_err();
    assert_invalid(&error, &["by has 8193 bytes; at most 8192"]);
    let error = handle.cancel().reason(&long).await.unwrap_err();
    assert_invalid(&error, &["reason has 8193 bytes"]);
    assert_untouched(&handle).await;
    assert_invalid(&handle.delete().by(&long).await.unwrap_err(), &["by has"]);
    assert_invalid(&handle.delete().reason(&long).await.unwrap_err(), &["reason has"]);
    assert_invalid(&handle.restart().by(&long).await.err().unwrap(), &["by has"]);
    let start = app.start(waits, "other", ()).by(&long).await;
    assert_invalid(&start.err().unwrap(), &["by has"]);
}
