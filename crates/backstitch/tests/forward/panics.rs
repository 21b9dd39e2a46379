//! Panics in bodies are failures of their attempts (B10).

use std::time::Duration;

use backstitch::{Class, Ctx, Origin, Retry, Status, StepCtx, join, workflow_fn};

use crate::journal::{Soon, journal};
use crate::world::{Effects, World};

#[tokio::test]
async fn b10_a_panic_is_a_transient_failure_and_hurts_no_sibling() {
    let panics = workflow_fn("panics", |ctx: Ctx, (): ()| async move {
        let bad = ctx.step("bad", async |s: StepCtx| match s.attempt() {
            1 => panic!("the printer is on fire"),
            2 => std::panic::panic_any(7_u32),
            _ => Ok("mended".to_owned()),
        });
        let good = ctx.step("good", async |_s| Ok("fine".to_owned()));
        let (bad, good) = join!(bad, good);
        Ok((bad?, good?))
    });
    let world = World::new();
    let app = world.open(|b| b.register(panics.clone())).await;
    let handle = app.start(panics, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Succeeded).await;
    assert_eq!(handle.result().soon().await.unwrap(), ("mended".into(), "fine".into()));
    let journal = journal(&handle).await;
    let failures = journal.failures(1);
    assert_eq!(failures.len(), 2);
    for (_, failure) in &failures {
        assert_eq!((failure.class(), failure.origin()), (Class::Transient, Origin::Panic));
    }
    assert!(failures[0].1.message.contains("the printer is on fire"), "{}", failures[0].1);
    assert!(failures[1].1.message.contains("without a text"), "{}", failures[1].1);
    assert_eq!(journal.starts(2).len(), 1);
}

#[tokio::test]
async fn b10_a_panic_before_the_first_await_and_one_in_a_drop_are_contained() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("dropped");
            }
        }
    }
    let panics = workflow_fn("panics", |ctx: Ctx, (): ()| async move {
        ctx.step("timed-out", async |s: StepCtx| {
            let bomb = (s.attempt() == 1).then(|| Bomb);
            s.state::<Effects>().add("in flight");
            if bomb.is_some() {
                std::future::pending::<()>().await;
            }
            Ok(())
        })
        .timeout("1s")
        .retry(Retry::constant("1s"))
        .await
    });
    let world = World::new();
    let app = world.open(|b| b.register(panics.clone())).await;
    let handle = app.start(panics, "t", ()).await.unwrap();
    world.effects.wait_for("in flight", 1).await;
    world.advance(Duration::from_secs(1));
    world.advance_until(&handle, Status::Succeeded).await;
    assert_eq!(journal(&handle).await.origins(1), [Origin::Timeout]);
}
