//! `#[workflow]` and its options.

use backstitch::{Ctx, Result, StepCtx, Workflow, workflow, workflow_fn};

use crate::journal::{Soon, journal};
use crate::world::World;

#[workflow]
async fn plain(_ctx: Ctx, (): ()) -> Result<()> {
    Ok(())
}

#[workflow(name = "Order Fulfilment ☂", version = "2025-07.b")]
async fn renamed(ctx: Ctx, n: u32) -> Result<u32> {
    ctx.step("double", async move |_s| Ok(n * 2)).await
}

#[workflow(version = "2")]
pub(crate) async fn only_a_version(
    mut ctx: Ctx,
    (a, b): (u32, String),
) -> backstitch::Result<(String, u32)> {
    ctx = ctx.branch("inner");
    let (a, b) = ctx.step("swap", backstitch::clone!(a, b => async move |_s| Ok((b, a)))).await?;
    Ok((a, b))
}

/// Keeps its documentation and other attributes.
#[workflow]
#[allow(clippy::needless_return, reason = "the attribute is passed on to the function")]
async fn with_attributes(
    _ctx: Ctx,
    _input: Option<u8>,
) -> std::result::Result<u8, backstitch::Failure> {
    return Ok(7);
}

#[test]
fn a_workflow_is_called_as_its_function_unless_it_says_otherwise() {
    let of = |w: &dyn Fn() -> (String, String)| w();
    let facts = |name: &str, version: &str| (name.to_owned(), version.to_owned());
    assert_eq!(of(&|| facts(plain.name(), plain.version())), facts("plain", "1"));
    assert_eq!(renamed.name(), "Order Fulfilment ☂");
    assert_eq!(renamed.version(), "2025-07.b");
    assert_eq!((only_a_version.name(), only_a_version.version()), ("only_a_version", "2"));
    assert_eq!(format!("{with_attributes:?}"), "with_attributes");
}

#[tokio::test]
async fn name_and_version_stand_in_the_journal() {
    let world = World::new();
    let app = world.open(|b| b.register(renamed).register(only_a_version)).await;
    let handle = app.start(renamed, "t", 21).await.unwrap();
    assert_eq!(handle.result().soon().await.unwrap(), 42);
    let status = handle.status().await.unwrap();
    assert_eq!(
        (status.workflow.as_str(), status.version.as_str()),
        ("Order Fulfilment ☂", "2025-07.b")
    );
    let rows = handle.journal().await.unwrap();
    assert_eq!(rows[1].header.version.as_deref(), Some("2025-07.b"), "who ran each turn");

    let handle = app.start(only_a_version, "u", (1, "x".into())).await.unwrap();
    assert_eq!(handle.result().soon().await.unwrap(), ("x".into(), 1));
    assert_eq!(journal(&handle).await.run.step(1).unwrap().key.to_string(), "inner/swap#1");
}

#[tokio::test]
async fn a_return_in_the_middle_and_attributes_are_fine() {
    let world = World::new();
    let app = world.open(|b| b.register(with_attributes)).await;
    let handle = app.start(with_attributes, "t", None).await.unwrap();
    assert_eq!(handle.result().soon().await.unwrap(), 7);
}

#[tokio::test]
async fn two_versions_of_one_workflow_run_side_by_side() {
    let old = workflow_fn("shared", |ctx: Ctx, (): ()| async move {
        ctx.step("old", async |s: StepCtx| Ok(s.name().to_owned())).await
    });
    let new = workflow_fn("shared", |ctx: Ctx, (): ()| async move {
        ctx.step("new", async |s: StepCtx| Ok(s.name().to_owned())).await
    })
    .version("2");
    let world = World::new();
    let app = world.open(|b| b.register(old.clone()).register(new.clone())).await;
    let first = app.start(old, "a", ()).await.unwrap();
    let second = app.start(new, "b", ()).await.unwrap();
    assert_eq!(first.result().soon().await.unwrap(), "old");
    assert_eq!(second.result().soon().await.unwrap(), "new");
}
