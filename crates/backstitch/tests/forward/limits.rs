//! Names, and how much may be asked for at once.

use backstitch::{
    Class, Ctx, Error, ErrorKind, Failure, FnWorkflow, Result, Status, StepCtx, Workflow, workflow,
    workflow_fn,
};
use futures_util::future::join_all;

use crate::journal::{Soon, journal};
use crate::world::{Effects, World};

/// Names that are refused, and what the refusal says.
fn bad_names() -> Vec<(String, &'static str)> {
    vec![
        (String::new(), "is empty"),
        ("x".repeat(257), "has 257 characters; at most 256 are allowed"),
        ("🧵".repeat(257), "has 257 characters; at most 256 are allowed"),
        ("a\0b".into(), "control character U+0000"),
        ("a\nb".into(), "control character U+000A"),
        ("\u{7f}".into(), "control character U+007F"),
    ]
}

fn good_names() -> Vec<String> {
    vec!["x".into(), " ".into(), "x".repeat(256), "🧵".repeat(256), "a#1/undo".into()]
}

#[workflow]
async fn named(ctx: Ctx, name: String) -> Result<String> {
    ctx.step(&name, async |s: StepCtx| Ok(s.name().to_owned())).await
}

#[workflow]
async fn branched(ctx: Ctx, name: String) -> Result<String> {
    let branch = ctx.branch(&name);
    branch.sleep("0s").await?;
    branch.branch("inner").step("x", async |s: StepCtx| Ok(s.name().to_owned())).await
}

async fn failure_of<W>(workflow: W, name: &str) -> Failure
where
    W: Workflow<Input = String, Output = String> + Copy,
{
    let world = World::new();
    let app = world.open(|b| b.register(workflow)).await;
    let handle = app.start(workflow, "t", name.to_owned()).await.unwrap();
    let error = handle.result().soon().await.unwrap_err();
    assert!(journal(&handle).await.run.asks.is_empty(), "nothing was asked for");
    error.failure().unwrap().clone()
}

#[tokio::test]
async fn p12_bad_step_names_fail_the_step_and_say_why() {
    for (name, why) in bad_names() {
        let failure = failure_of(named, &name).await;
        assert_eq!((failure.type_name.as_str(), failure.class()), ("BadName", Class::Permanent));
        assert!(failure.message.contains("the step name"), "{failure}");
        assert!(failure.message.contains(why), "{failure}");
        assert!(failure.message.contains("limits.rs:"), "it names the place: {failure}");
    }
}

#[tokio::test]
async fn p12_bad_branch_names_fail_what_is_built_in_the_branch() {
    for (name, why) in bad_names() {
        let failure = failure_of(branched, &name).await;
        assert_eq!(failure.type_name, "BadName");
        assert!(failure.message.contains("branch name"), "{failure}");
        assert!(failure.message.contains(why), "{failure}");
    }
}

#[tokio::test]
async fn p12_names_of_up_to_256_characters_are_fine_everywhere() {
    let world = World::new();
    let app = world.open(|b| b.register(named).register(branched)).await;
    for name in good_names() {
        let handle = app.start(named, &name, name.clone()).namespace(&name).await.unwrap();
        assert_eq!(handle.result().soon().await.unwrap(), name);
        let handle = app.start(branched, format!("{:.200}b", name), name.clone()).await.unwrap();
        assert_eq!(handle.result().soon().await.unwrap(), "x");
        let handle = app.handle_in::<String>(&name, &name).await.unwrap();
        assert_eq!(handle.id(), name);
    }
}

#[tokio::test]
async fn p12_bad_ids_and_namespaces_are_refused_at_the_door() {
    let world = World::new();
    let app = world.open(|b| b.register(named)).await;
    let invalid = |error: Error, what: &str, why: &str| {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    };
    for (name, why) in bad_names() {
        let refused = app.start(named, &name, "x".into()).await;
        invalid(refused.err().expect("a bad id"), "execution id", why);
        let refused = app.start(named, "t", "x".into()).namespace(&name).await;
        invalid(refused.err().expect("a bad namespace"), "namespace", why);
    }
    assert!(app.handle::<String>("t").await.is_err(), "nothing was started");
}

#[tokio::test]
async fn p12_bad_workflow_names_and_versions_are_refused_when_opening() {
    let nothing = |name: &str| -> FnWorkflow<(), ()> {
        workflow_fn(name, |_ctx: Ctx, (): ()| async move { Ok(()) })
    };
    for (name, why) in bad_names() {
        for workflow in [nothing(&name), nothing("fine").version(&name)] {
            let opened = backstitch::Backstitch::open("memory:").register(workflow).run().await;
            let error = opened.err().expect("it is refused");
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}

/// Asks for so many steps at once.
#[workflow]
async fn crowd(ctx: Ctx, size: u32) -> Result<u64> {
    ctx.step("first", async |_s| Ok(()))
        .rollback(async |u| {
            u.state::<Effects>().add("undo first");
            Ok(())
        })
        .await?;
    let steps = (0..size).map(|i| ctx.step("one", async move |_s| Ok(u64::from(i))));
    let outcomes = join_all(steps).await;
    outcomes.into_iter().sum()
}

#[tokio::test]
async fn p12_ten_thousand_things_may_be_asked_for_in_one_turn() {
    let world = World::new();
    let app = world.open(|b| b.register(crowd)).await;
    let handle = app.start(crowd, "t", 10_000).await.unwrap();
    assert_eq!(handle.result().soon().await.unwrap(), 9_999 * 10_000 / 2);
    assert_eq!(journal(&handle).await.count("StepSucceeded"), 10_001);
}

#[tokio::test]
async fn p12_w12_one_more_is_refused_and_what_was_done_before_is_undone() {
    let world = World::new();
    let app = world.open(|b| b.register(crowd)).await;
    let handle = app.start(crowd, "t", 10_001).await.unwrap();
    let error = handle.result().soon().await.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!((failure.type_name.as_str(), failure.class()), ("AsksPerTurn", Class::Permanent));
    assert!(failure.message.contains("10001 things in one turn; at most 10000"), "{failure}");
    assert_eq!(world.effects.all(), ["undo first"]);
    let journal = journal(&handle).await;
    assert_eq!(journal.run.asks.len(), 1, "none of the crowd was started");
    assert_eq!(handle.status().await.unwrap().status, Status::Failed);
    assert!(app.attention(10).await.unwrap().is_empty());
}
