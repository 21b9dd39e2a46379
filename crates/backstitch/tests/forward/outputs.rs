//! What bodies and workflows return: everything that JSON carries, up to the limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use backstitch::{
    Class, Ctx, Error, ErrorKind, FnWorkflow, Handle, Origin, Result, RollbackOutcome, Status,
    UndoOutcome, msg, workflow, workflow_fn,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::journal::{Soon, journal, seen_by};
use crate::world::{Effects, World};

/// The default limit of a payload.
const MAX: usize = 1024 * 1024;

/// Sends `value` through an input, a step's output and a workflow's output, and through a restart.
async fn through<T>(value: T)
where
    T: Serialize + DeserializeOwned + Clone + PartialEq + std::fmt::Debug + Send + Sync + 'static,
{
    let echo = workflow_fn("echo", |ctx: Ctx, value: T| async move {
        ctx.step("echo", async move |_s| Ok(value)).await
    });
    let world = World::new();
    let app = world.open(|b| b.register(echo.clone())).await;
    let handle = app.start(echo.clone(), "t", value.clone()).await.unwrap();
    assert_eq!(handle.result().soon().await.unwrap(), value);
    let app = world.open(|b| b.register(echo)).await;
    assert_eq!(seen_by(&app, &handle).await.result().soon().await.unwrap(), value);
}

#[tokio::test]
async fn b12_t10_odd_values_come_back_as_they_were() {
    through(()).await;
    through(None::<u32>).await;
    through(Some(String::new())).await;
    through(String::new()).await;
    through("\0".to_owned()).await;
    through("a\0b\u{1}\u{7f}\u{85}\r\n\t\"\\/".to_owned()).await;
    through("🧵👩‍👩‍👧 \u{feff}\u{202e}\u{10ffff}".to_owned()).await;
    through(vec![0_u8, 255, 128]).await;
    through((u64::MAX, i64::MIN, f64::MIN_POSITIVE, -0.0_f64, '\u{0}')).await;
    through(HashMap::from([(String::new(), vec![None, Some(true)])])).await;
}

#[tokio::test]
async fn b12_t10_a_payload_may_be_as_large_as_the_limit() {
    // Two bytes are the quotes around a string in JSON.
    through("x".repeat(64 * 1024)).await;
    through("x".repeat(MAX - 3)).await;
    through("x".repeat(MAX - 2)).await;
}

/// A step of that many bytes, and then perhaps a workflow output of that many.
fn large() -> FnWorkflow<(usize, usize), String> {
    workflow_fn("large", |ctx: Ctx, (step, output): (usize, usize)| async move {
        let undo = async |u: backstitch::Undo<()>| {
            u.state::<Effects>().add("undo first");
            Ok(())
        };
        ctx.step("first", async |_s| Ok(())).rollback(undo).await?;
        ctx.step("big", async move |s| {
            s.state::<Effects>().add("big");
            Ok("x".repeat(step))
        })
        .rollback(async |u| {
            let failed = matches!(u.outcome(), UndoOutcome::Failed(_)) && u.output().is_none();
            u.state::<Effects>().add(if failed { "undo big: failed" } else { "undo big" });
            Ok(())
        })
        .await?;
        Ok("y".repeat(output))
    })
}

async fn failed_large(world: &World, step: usize, output: usize) -> (Handle<String>, Error) {
    let app = world.open(|b| b.register(large())).await;
    let handle = app.start(large(), "t", (step, output)).await.unwrap();
    let error = handle.result().soon().await.unwrap_err();
    (handle, error)
}

#[tokio::test]
async fn b12_w12_an_output_over_the_limit_is_refused_by_name_and_size() {
    let world = World::new();
    let (handle, error) = failed_large(&world, MAX - 1, 0).await;
    let failure = error.failure().unwrap();
    assert_eq!((failure.origin(), failure.class()), (Origin::Limit, Class::Permanent));
    let wanted = "the output of step big#1 has 1048577 bytes; at most 1048576 are allowed";
    assert!(failure.message.starts_with(wanted), "{failure}");
    let effects = ["big", "undo big: failed", "undo first"];
    assert_eq!(world.effects.all(), effects, "tried once, and undone: it had its effect");
    assert_eq!(journal(&handle).await.starts(2).len(), 1);
    assert_eq!(error.rollback().unwrap().outcome, RollbackOutcome::Complete);
}

#[tokio::test]
async fn b66_w12_a_workflow_output_over_the_limit_rolls_back() {
    let world = World::new();
    let (handle, error) = failed_large(&world, 0, MAX - 1).await;
    let failure = error.failure().unwrap();
    assert_eq!(failure.type_name, "PayloadTooLarge");
    assert!(failure.message.contains("the output of workflow \"large\""), "{failure}");
    assert_eq!(world.effects.all(), ["big", "undo big", "undo first"]);
    assert_eq!(handle.status().await.unwrap().status, Status::Failed);
}

#[tokio::test]
async fn b12_an_input_over_the_limit_is_refused_at_the_door() {
    let echo = workflow_fn("echo", |_ctx: Ctx, text: String| async move { Ok(text.len() as u64) });
    let world = World::new();
    let app = world.open(|b| b.register(echo.clone())).await;
    let error = app.start(echo.clone(), "big", "x".repeat(MAX - 1)).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let wanted = "the input of execution \"big\" has 1048577 bytes; at most 1048576 are allowed";
    assert!(error.to_string().starts_with(wanted), "{error}");
    assert_eq!(app.handle::<()>("big").await.err().unwrap().kind(), ErrorKind::NotFound);

    let fits = app.start(echo, "big", "x".repeat(MAX - 2)).await.unwrap();
    assert_eq!(fits.result().soon().await.unwrap(), MAX as u64 - 2);
}

#[tokio::test]
async fn b12_the_limit_can_be_set() {
    let world = World::new();
    let app = world.open(|b| b.register(large()).payload_bytes_max(100)).await;
    let fits = app.start(large(), "fits", (98, 98)).await.unwrap();
    assert_eq!(fits.result().soon().await.unwrap().len(), 98);
    let big = app.start(large(), "big", (99, 0)).await.unwrap();
    let error = big.result().soon().await.unwrap_err();
    assert!(error.to_string().contains("has 101 bytes; at most 100"), "{error}");

    for bytes in [0, usize::MAX] {
        let opened = backstitch::Backstitch::open("memory:").payload_bytes_max(bytes).run().await;
        let error = opened.err().expect("it is refused");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(&format!("payload_bytes_max is {bytes}")), "{error}");
    }
}

#[tokio::test]
async fn b12_a_smaller_limit_leaves_what_was_recorded_alone() {
    let world = World::new();
    let app = world.open(|b| b.register(large())).await;
    let handle = app.start(large(), "t", (1_000, 1_000)).await.unwrap();
    handle.result().soon().await.unwrap();
    let app = world.open(|b| b.register(large()).payload_bytes_max(10)).await;
    assert_eq!(seen_by(&app, &handle).await.result().soon().await.unwrap().len(), 1_000);
}

/// Runs a step that gives `value`, which cannot be stored, after one with an undo.
async fn unstorable<T>(value: T) -> (backstitch::Failure, Vec<String>)
where
    T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    let odd = workflow_fn("odd", move |ctx: Ctx, (): ()| {
        let value = value.clone();
        async move {
            ctx.step("first", async |_s| Ok(()))
                .rollback(async |u| {
                    u.state::<Effects>().add("undo first");
                    Ok(())
                })
                .await?;
            ctx.step("odd", async move |s| {
                s.state::<Effects>().add("odd");
                Ok(value)
            })
            .await?;
            Ok(())
        }
    });
    let world = World::new();
    let app = world.open(|b| b.register(odd.clone())).await;
    let handle = app.start(odd, "t", ()).await.unwrap();
    let error = handle.result().soon().await.unwrap_err();
    journal(&handle).await;
    (error.failure().unwrap().clone(), world.effects.all())
}

#[tokio::test]
async fn b11_w12_an_output_that_cannot_be_encoded_fails_the_step_for_good_and_rolls_back() {
    let no_keys_in_json = HashMap::from([((1_u8, 2_u8), 3_u8)]);
    let (failure, effects) = unstorable(no_keys_in_json).await;
    assert_eq!((failure.class(), failure.origin()), (Class::Permanent, Origin::Decode));
    assert!(failure.message.contains("the output of step odd#1 cannot be encoded"), "{failure}");
    assert_eq!(effects, ["odd", "undo first"]);
}

#[tokio::test]
async fn b11_an_output_that_could_not_be_read_back_is_refused_at_once() {
    let (failure, effects) = unstorable(f64::NAN).await;
    assert_eq!(failure.class(), Class::Permanent);
    assert!(failure.message.contains("the output of step odd#1 was encoded, but"), "{failure}");
    assert_eq!(effects, ["odd", "undo first"]);
}

#[workflow]
async fn fails_at_length(ctx: Ctx, bytes: usize) -> Result<()> {
    ctx.step("call", async move |_s| {
        use backstitch::FailureExt;
        let text = "🧵".repeat(bytes / 4);
        Err::<(), _>(msg(text.clone()).permanent().with_details(&text))
    })
    .await
}

#[tokio::test]
async fn p12_a_failure_that_is_too_large_is_cut_and_marked() {
    let world = World::new();
    let app = world.open(|b| b.register(fails_at_length)).await;
    let handle = app.start(fails_at_length, "t", 4 * MAX).await.unwrap();
    let error = handle.result().soon().await.unwrap_err();
    let failure = error.failure().unwrap();
    assert!(failure.message.len() < 9 * 1024, "{}", failure.message.len());
    let tail = failure.message.trim_start_matches('🧵');
    assert!(tail.contains("cut: 4194304 bytes in all"), "{tail}");
    assert!(tail.contains("details of 4194306 bytes left out"), "{tail}");
    assert!(failure.details.is_none());
    let bytes: usize =
        handle.journal().await.unwrap().iter().flat_map(|row| &row.events).map(size_of_event).sum();
    assert!(bytes < 64 * 1024, "{bytes}");
}

fn size_of_event(event: &backstitch::core::event::Event) -> usize {
    let mut bytes = Vec::new();
    event.encode(&mut bytes);
    bytes.len()
}

#[tokio::test]
async fn b12_a_body_that_fails_is_not_asked_for_an_output() {
    let tried = Arc::new(Mutex::new(0));
    let counts = {
        let tried = tried.clone();
        workflow_fn("counts", move |ctx: Ctx, (): ()| {
            let tried = tried.clone();
            async move {
                ctx.step("call", async move |_s| {
                    *tried.lock().unwrap() += 1;
                    Err::<(), _>(msg("no"))
                })
                .retry(backstitch::Retry::none())
                .await
            }
        })
    };
    let world = World::new();
    let app = world.open(|b| b.register(counts.clone())).await;
    app.start(counts, "t", ()).await.unwrap().result().soon().await.unwrap_err();
    assert_eq!(*tried.lock().unwrap(), 1);
}
