//! What can never succeed ends, or waits for a person; it is not tried for ever, and holds up
//! nothing else (T11).

use std::time::Duration;

use backstitch::{
    Builder, Ctx, ErrorKind, FailureExt, Retry, Status, StepCtx, WaitsFor, workflow, workflow_fn,
};
use serde::{Serialize, Serializer};

use crate::journal::{Soon, journal};
use crate::world::{Effects, World, eventually, until};

#[workflow]
async fn healthy(ctx: Ctx, name: String) -> backstitch::Result<String> {
    ctx.step("work", async move |_s| Ok(name)).await
}

/// Nothing can write it down.
struct Unspeakable;

impl Serialize for Unspeakable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no words for it"))
    }
}

/// A workflow with one step that is poison in the way that its input names.
#[workflow]
async fn poisoned(ctx: Ctx, how: String) -> backstitch::Result<()> {
    ctx.step("poison", async move |s: StepCtx| {
        s.state::<Effects>().add(format!("tried {how}"));
        match how.as_str() {
            "panics" => panic!("by order"),
            "panics in its drop" => {
                struct Bomb;
                impl Drop for Bomb {
                    fn drop(&mut self) {
                        if !std::thread::panicking() {
                            panic!("dropped");
                        }
                    }
                }
                let _bomb = Bomb;
                std::future::pending().await
            }
            "never returns" => std::future::pending().await,
            "an error that cannot be written down" => {
                Err(backstitch::msg("it has details").with_details(&Unspeakable))
            }
            other => unreachable!("{other}"),
        }
    })
    .timeout("10s")
    .retry(Retry::constant("1s").max_attempts(3))
    .await
}

const POISONS: [&str; 4] =
    ["panics", "panics in its drop", "never returns", "an error that cannot be written down"];

fn both(builder: Builder) -> Builder {
    builder.register(healthy).register(poisoned)
}

#[tokio::test]
async fn t11_poison_is_tried_as_often_as_its_policy_says_and_hurts_no_other() {
    for how in POISONS {
        let world = World::new();
        let app = world.open(both).await;
        let poison = app.start(poisoned, "poison", how.to_owned()).await.unwrap();
        world.effects.wait_for(&format!("tried {how}"), 1).await;
        let other = app.start(healthy, "other", "Ada".into()).await.unwrap();
        assert_eq!(other.result().soon().await.unwrap(), "Ada", "while {how}");
        eventually("it fails", async || {
            world.advance(Duration::from_secs(10));
            poison.status().await.unwrap().status == Status::Failed
        })
        .await;
        assert_eq!(world.effects.count(&format!("tried {how}")), 3, "{how}");
        assert_eq!(journal(&poison).await.starts(1).len(), 3, "{how}");
    }
}

#[tokio::test]
async fn t11_an_input_that_does_not_decode_waits_for_a_person_and_hurts_no_other() {
    let world = World::new();
    let app = world.open(both).await;
    // Another program thinks that it takes a number.
    let number = workflow_fn("healthy", |_ctx: Ctx, n: u32| async move { Ok(n) });
    let poison = app.start(number, "poison", 7).await.unwrap();
    until(&poison, Status::Blocked).await;
    let rows = poison.journal().await.unwrap().len();
    let other = app.start(healthy, "other", "Ada".into()).await.unwrap();
    assert_eq!(other.result().soon().await.unwrap(), "Ada");
    world.advance(Duration::from_secs(3_600));
    let app = world.open(both).await;
    let again = app.handle::<u32>("poison").await.unwrap();
    until(&again, Status::Blocked).await;
    assert_eq!(again.journal().await.unwrap().len(), rows, "nobody tries it over and over");
    again.cancel().await.unwrap();
    assert_eq!(again.closed().soon().await.unwrap(), Status::Cancelled, "a person can end it");
}

#[tokio::test]
async fn t11_a_workflow_that_nobody_knows_is_refused_by_name_and_waits_for_its_code() {
    let world = World::new();
    let app = world.open(|b| b.register(healthy)).await;
    let refused = app.start(poisoned, "poison", "panics".into()).await.err().expect("unknown");
    assert_eq!(refused.kind(), ErrorKind::UnknownWorkflow, "{refused}");
    assert!(refused.to_string().contains("poisoned"), "{refused}");
    drop(app);
    // Begun by a process that has the code, and taken over by one that has not.
    let app = world.open(both).await;
    app.start(poisoned, "poison", "never returns".into()).await.unwrap();
    world.effects.wait_for("tried never returns", 1).await;
    let app_without = world.open(|b| b.register(healthy)).await;
    let other = app_without.start(healthy, "other", "Ada".into()).await.unwrap();
    assert_eq!(other.result().soon().await.unwrap(), "Ada");
    let poison = app_without.handle::<()>("poison").await.unwrap();
    let status = poison.status().await.unwrap();
    let worker = |waits: &WaitsFor| matches!(waits, WaitsFor::Worker { workflow, .. } if workflow == "poisoned");
    assert!(status.waits_for.iter().any(worker), "{:?}", status.waits_for);
}

/// Its body has the usual timeout, of ten minutes.
#[workflow]
async fn hangs(ctx: Ctx, (): ()) -> backstitch::Result<()> {
    ctx.step("hang", async move |s: StepCtx| {
        s.state::<Effects>().add("hangs");
        std::future::pending().await
    })
    .await
}

fn hanging(builder: Builder) -> Builder {
    builder.register(hangs)
}

#[tokio::test]
async fn t11_who_waits_for_its_turn_after_two_crashes_can_be_killed_and_does_not_wait_for_ever() {
    let world = World::new();
    let app = world.open(hanging).await;
    for id in ["first", "second", "third"] {
        app.start(hangs, id, ()).await.unwrap();
    }
    world.effects.wait_for("hangs", 3).await;
    let app = world.open(hanging).await;
    world.effects.wait_for("hangs", 6).await;
    drop(app);
    // In flight at two crashes: now one at a time, and the first of them never returns.
    let app = world.open(hanging).await;
    world.effects.wait_for("hangs", 7).await;
    let tried =
        async |id: &str| journal(&app.handle::<()>(id).await.unwrap()).await.starts(1).len();
    let mut waiting = Vec::new();
    for id in ["first", "second", "third"] {
        if tried(id).await == 2 {
            waiting.push(app.handle::<()>(id).await.unwrap());
        }
    }
    assert_eq!(waiting.len(), 2);
    waiting[0].kill().await.unwrap();
    assert_eq!(waiting[0].closed().soon().await.unwrap(), Status::Terminated);
    world.advance(Duration::from_secs(30));
    eventually("the trial of the first is over", async || {
        journal(&waiting[1]).await.starts(1).len() == 3
    })
    .await;
}
