//! Which workflows a process knows, and what becomes of those it does not.

use std::time::Duration;

use backstitch::{Backstitch, Ctx, ErrorKind, FnWorkflow, WaitsFor, workflow_fn};

use crate::journal::{Soon, seen_by, until_recorded};
use crate::starting::{greets, kind};
use crate::world::{Gate, World};

#[tokio::test]
async fn an_unknown_workflow_is_refused_by_name() {
    let world = World::new();
    let app = world.open(|b| b.state(Gate::closed())).await;
    let (kind_of, says) = kind(app.start(greets, "t", "Ada".into()).await);
    assert_eq!(kind_of, ErrorKind::UnknownWorkflow);
    assert!(
        says.contains("\"greets\" version \"1\"") && says.contains("these are: none"),
        "{says}"
    );

    let newer: FnWorkflow<(), ()> =
        workflow_fn("greets", |_ctx: Ctx, (): ()| async move { Ok(()) });
    let newer = newer.version("2");
    let app = world.open(|b| b.register(newer)).await;
    let (_, says) = kind(app.start(greets, "t", "Ada".into()).await);
    assert!(says.contains("these are: greets \"2\""), "{says}");
}

#[tokio::test]
async fn an_execution_whose_workflow_is_not_registered_waits_for_it() {
    let world = World::new();
    let app = world.open(|b| b.register(greets).state(Gate::closed())).await;
    let handle = app.start(greets, "t", "Ada".into()).await.unwrap();
    world.effects.wait_for("waits", 1).await;

    let app = world.open(|b| b).await;
    let handle = seen_by(&app, &handle).await;
    until_recorded(&handle, "StepAttemptFailed", 1).await;
    let status = handle.status().await.unwrap();
    let wanted = WaitsFor::Worker { workflow: "greets".into(), version: "1".into() };
    assert!(status.waits_for.contains(&wanted), "{:?}", status.waits_for);
    world.advance(Duration::from_secs(3_600));
    assert_eq!(world.effects.count("waits"), 1);

    let gate = Gate::closed();
    gate.open();
    let app = world.open(|b| b.register(greets).state(gate)).await;
    assert_eq!(seen_by(&app, &handle).await.result().soon().await.unwrap(), "hello Ada");
}

#[tokio::test]
async fn a_workflow_that_is_registered_twice_is_refused() {
    let opened = Backstitch::open("memory:").register(greets).register(greets).run().await;
    let (kind_of, says) = kind(opened);
    assert_eq!(kind_of, ErrorKind::Invalid);
    assert!(says.contains("\"greets\" version \"1\" is registered twice"), "{says}");

    let one: FnWorkflow<(), ()> = workflow_fn("greets", |_ctx: Ctx, (): ()| async move { Ok(()) });
    let two = one.clone().version("2");
    Backstitch::open("memory:").register(greets).register(two).run().await.unwrap();
    let (_, says) = kind(Backstitch::open("memory:").register(greets).register(one).run().await);
    assert!(says.contains("registered twice"), "{says}");
}

#[tokio::test]
async fn a_store_that_nobody_knows_is_refused_with_what_to_write() {
    let (kind_of, says) = kind(Backstitch::open("postgresql://x").run().await);
    assert_eq!(kind_of, ErrorKind::Invalid);
    assert!(says.contains("sqlite:PATH") && says.contains("memory:"), "{says}");
}
