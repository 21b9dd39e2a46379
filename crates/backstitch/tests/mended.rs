//! Code that was blocked by its own fault, mended, and deployed again under the same version.

mod world;

use std::time::Duration;

use backstitch::{App, Builder, Ctx, FailureExt, Handle, Status, msg, workflow_fn};
use world::{Effects, World, until};

async fn open(world: &World, mended: bool) -> App {
    let nap = workflow_fn("nap", move |ctx: Ctx, fail: bool| async move {
        let note = ctx.step("note", async |s| {
            s.state::<Effects>().add("note");
            Ok(())
        });
        note.rollback(async |u| {
            u.state::<Effects>().add("undo note");
            Ok(())
        })
        .await?;
        if mended {
            ctx.sleep("1h").await?;
        } else {
            std::future::pending::<()>().await;
        }
        if fail { Err(msg("too late").permanent()) } else { Ok(7_u32) }
    });
    world.open(|b: Builder| b.register(nap)).await
}

#[tokio::test]
async fn b99_mended_code_goes_on_from_the_place_where_it_was_blocked() {
    for fail in [false, true] {
        let world = World::new();
        let app = open(&world, false).await;
        let starter = workflow_fn("nap", |_ctx: Ctx, _fail: bool| async { Ok(0_u32) });
        let handle = app.start(starter, "a", fail).await.unwrap();
        until(&handle, Status::Blocked).await;

        let app = open(&world, true).await;
        let handle: Handle<u32> = app.handle("a").await.unwrap();
        until(&handle, Status::Suspended).await;
        assert!(app.attention(10).await.unwrap().is_empty(), "the block is over");

        // What it said late replays like everything else.
        let app = open(&world, true).await;
        let handle: Handle<u32> = app.handle("a").await.unwrap();
        until(&handle, Status::Suspended).await;
        world.advance(Duration::from_secs(3600));
        match handle.result().await {
            Ok(result) => assert_eq!((result, fail), (7, false)),
            Err(error) => assert!(fail, "{error}"),
        }
        assert_eq!(world.effects.count("note"), 1);
        assert_eq!(world.effects.count("undo note"), usize::from(fail));
    }
}

#[tokio::test]
async fn b82_code_that_was_not_mended_stays_blocked_without_growing_the_journal() {
    let world = World::new();
    let app = open(&world, false).await;
    let starter = workflow_fn("nap", |_ctx: Ctx, _fail: bool| async { Ok(0_u32) });
    let handle = app.start(starter, "a", false).await.unwrap();
    until(&handle, Status::Blocked).await;
    let rows = handle.journal().await.unwrap().len();
    for _ in 0..3 {
        let app = open(&world, false).await;
        let handle: Handle<u32> = app.handle("a").await.unwrap();
        until(&handle, Status::Blocked).await;
        assert_eq!(handle.journal().await.unwrap().len(), rows);
        assert_eq!(app.attention(10).await.unwrap().len(), 1);
    }
    let app = open(&world, false).await;
    let handle: Handle<u32> = app.handle("a").await.unwrap();
    handle.cancel().by("ops").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(world.effects.count("undo note"), 1);
}
