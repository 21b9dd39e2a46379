//! Waiting for the result (B31).

use backstitch::{Error, ErrorKind};

use crate::journal::{Soon, seen_by};
use crate::starting::{greets, kind};
use crate::world::{Gate, World};

#[tokio::test]
async fn b31_every_waiter_gets_the_result_also_one_that_comes_after_the_end() {
    let (world, gate) = (World::new(), Gate::closed());
    let app = world.open(|b| b.register(greets).state(gate.clone())).await;
    let good = app.start(greets, "good", "Ada".into()).await.unwrap();
    let bad = app.start(greets, "bad", "nobody".into()).await.unwrap();
    let waits = |id: &'static str| {
        let app = app.clone();
        tokio::spawn(async move { app.handle::<String>(id).await.unwrap().result().soon().await })
    };
    let early: Vec<_> = (0..5).map(|i| waits(if i % 2 == 0 { "good" } else { "bad" })).collect();
    world.effects.wait_for("waits", 2).await;
    gate.open();
    let refused = |error: &Error| {
        assert_eq!(error.kind(), ErrorKind::Failed);
        assert_eq!(error.failure().unwrap().code, "nobody");
        assert!(error.to_string().contains("\"bad\" failed"), "{error}");
    };
    for (i, waiter) in early.into_iter().enumerate() {
        match waiter.await.unwrap() {
            Ok(said) => assert_eq!((i % 2, said.as_str()), (0, "hello Ada")),
            Err(error) => refused(&error),
        }
    }
    assert_eq!(good.result().soon().await.unwrap(), "hello Ada");
    refused(&bad.result().soon().await.unwrap_err());
    refused(&app.handle::<String>("bad").await.unwrap().result().soon().await.unwrap_err());
}

#[tokio::test]
async fn b31_whoever_waits_right_after_a_restart_gets_the_result() {
    let world = World::new();
    let app = world.open(|b| b.register(greets).state(Gate::closed())).await;
    let handle = app.start(greets, "t", "Ada".into()).await.unwrap();
    world.effects.wait_for("waits", 1).await;
    let gate = Gate::closed();
    gate.open();
    let app = world.open(|b| b.register(greets).state(gate)).await;
    assert_eq!(seen_by(&app, &handle).await.result().soon().await.unwrap(), "hello Ada");
}

#[tokio::test]
async fn b31_a_waiter_is_told_when_backstitch_stops() {
    let world = World::new();
    let app = world.open(|b| b.register(greets).state(Gate::closed())).await;
    let handle = app.start(greets, "t", "Ada".into()).await.unwrap();
    world.effects.wait_for("waits", 1).await;
    let waiter = tokio::spawn(async move { handle.result().soon().await });
    tokio::task::yield_now().await;
    app.shutdown().await.unwrap();
    let (kind_of, says) = kind(waiter.await.unwrap());
    assert_eq!(kind_of, ErrorKind::Stopped, "{says}");
}

#[tokio::test]
async fn b31_an_unknown_id_is_not_found() {
    let world = World::new();
    let app = world.open(|b| b.register(greets).state(Gate::closed())).await;
    let (kind_of, says) = kind(app.handle::<String>("nope").await);
    assert_eq!(kind_of, ErrorKind::NotFound);
    assert!(says.contains("\"nope\"") && says.contains("\"default\""), "{says}");
    app.start(greets, "t", "Ada".into()).await.unwrap();
    assert_eq!(kind(app.handle_in::<String>("elsewhere", "t").await).0, ErrorKind::NotFound);
}

#[tokio::test]
async fn b31_a_result_of_another_type_is_an_error_that_says_so() {
    let (world, gate) = (World::new(), Gate::closed());
    gate.open();
    let app = world.open(|b| b.register(greets).state(gate)).await;
    app.start(greets, "t", "Ada".into()).await.unwrap().result().soon().await.unwrap();
    let as_number = app.handle::<u32>("t").await.unwrap();
    let (kind_of, says) = kind(as_number.result().soon().await);
    assert_eq!(kind_of, ErrorKind::Decode);
    assert!(says.contains("the result of execution \"t\""), "{says}");
    assert!(says.contains("does not decode as u32"), "{says}");
}
