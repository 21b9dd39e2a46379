//! Changes inside one version, and versions side by side.

use backstitch::core::row::RowKind;
use backstitch::{Ctx, NoTimeout, Result, Status, workflow_fn};

use crate::checked;
use crate::world::{World, events, until};

type Flow = backstitch::FnWorkflow<(), Vec<String>>;

async fn step(ctx: &Ctx, name: &str) -> Result<String> {
    let said = name.to_owned();
    ctx.step(name, async move |_s| Ok(said)).await
}

fn before() -> Flow {
    workflow_fn("flow", |ctx: Ctx, ()| async move {
        let first = step(&ctx, "old").await?;
        ctx.wait_event::<()>("go", "go", NoTimeout).await?;
        Ok(vec![first, step(&ctx, "last").await?])
    })
}

fn after() -> Flow {
    workflow_fn("flow", |ctx: Ctx, ()| async move {
        let first = if ctx.patched("better") { "new" } else { "old" };
        let first = step(&ctx, first).await?;
        ctx.wait_event::<()>("go", "go", NoTimeout).await?;
        let last = if ctx.patched("better") { "new last" } else { "last" };
        Ok(vec![first, step(&ctx, last).await?])
    })
}

#[tokio::test]
async fn a_patch_takes_the_old_way_where_the_journal_went_by_and_the_new_one_elsewhere() {
    let world = World::new();
    let app = world.open(|b| b.register(before())).await;
    let old = app.start(before(), "old", ()).await.unwrap();
    until(&old, Status::Suspended).await;
    let app = world.open(|b| b.register(after())).await;
    let new = app.start(after(), "new", ()).await.unwrap();
    until(&new, Status::Suspended).await;
    // Once more from the journals.
    let app = world.open(|b| b.register(after())).await;
    let old = app.handle::<Vec<String>>("old").await.unwrap();
    let new = app.handle::<Vec<String>>("new").await.unwrap();
    for handle in [&old, &new] {
        handle.send_event("go", &()).await.unwrap();
    }
    assert_eq!(old.result().await.unwrap(), ["old", "last"], "the first answer stands");
    assert_eq!(new.result().await.unwrap(), ["new", "new last"]);
    assert!(!events(&old).await.contains(&"MarkerRecorded"));
    assert_eq!(events(&new).await.iter().filter(|name| **name == "MarkerRecorded").count(), 1);
    checked(&old).await;
    checked(&new).await;
}

#[tokio::test]
async fn b82_code_without_a_patch_that_was_recorded_blocks() {
    let world = World::new();
    let app = world.open(|b| b.register(after())).await;
    let handle = app.start(after(), "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    let app = world.open(|b| b.register(before())).await;
    let handle = app.handle::<Vec<String>>("t").await.unwrap();
    let status = until(&handle, Status::Blocked).await;
    assert!(status.blocks[0].2.message.contains("new"), "{}", status.blocks[0].2);
    let app = world.open(|b| b.register(after())).await;
    let handle = app.handle::<Vec<String>>("t").await.unwrap();
    until(&handle, Status::Suspended).await;
    handle.send_event("go", &()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), ["new", "new last"]);
}

#[tokio::test]
async fn versions_stand_side_by_side_and_each_turn_says_which_ran_it() {
    let world = World::new();
    let setup =
        |b: backstitch::Builder| b.register(before().version("1")).register(after().version("2"));
    let app = world.open(setup).await;
    let one = app.start(before().version("1"), "one", ()).await.unwrap();
    let two = app.start(after().version("2"), "two", ()).await.unwrap();
    until(&one, Status::Suspended).await;
    until(&two, Status::Suspended).await;
    let app = world.open(setup).await;
    for (id, version, wanted) in [("one", "1", ["old", "last"]), ("two", "2", ["new", "new last"])]
    {
        let handle = app.handle::<Vec<String>>(id).await.unwrap();
        handle.send_event("go", &()).await.unwrap();
        assert_eq!(handle.result().await.unwrap(), wanted);
        for row in handle.journal().await.unwrap() {
            if row.header.kind() == RowKind::Turn {
                assert_eq!(row.header.version.as_deref(), Some(version));
            }
        }
    }
}
