//! Errors keep what they say through the journal and a restart.

use std::fmt;

use backstitch::{
    Class, Classify, Ctx, ErrorKind, Failure, FailureExt, Origin, Result, Retry, Status, StepCtx,
    msg, workflow, workflow_fn,
};
use serde::{Deserialize, Serialize};

use crate::journal::{Soon, journal, seen_by};
use crate::world::{Effects, Gate, World};

#[derive(Debug)]
struct CardDeclined {
    limit: u32,
    source: Option<std::io::Error>,
}

impl fmt::Display for CardDeclined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the card is good for {} 🧵\0 only", self.limit)
    }
}

impl std::error::Error for CardDeclined {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Details {
    limit: u32,
    tried: Vec<String>,
}

fn details() -> Details {
    Details { limit: 100, tried: vec!["visa".into(), "\0".into()] }
}

fn declined() -> CardDeclined {
    CardDeclined { limit: 100, source: Some(std::io::Error::other("connection reset")) }
}

fn check(failure: &Failure) {
    assert_eq!(failure.type_name, "CardDeclined");
    assert!(failure.is::<CardDeclined>() && !failure.is::<std::io::Error>());
    assert_eq!(failure.code, "declined");
    assert_eq!(failure.message, "the card is good for 100 🧵\0 only");
    assert_eq!(failure.decode_details::<Details>(), Some(details()));
    assert_eq!(failure.decode_details::<u32>(), None);
    assert_eq!((failure.class(), failure.origin()), (Class::Permanent, Origin::Body));
    let causes: Vec<&str> = failure.causes.iter().map(|cause| cause.message.as_str()).collect();
    assert_eq!(causes, ["connection reset"]);
}

#[workflow]
async fn pays(ctx: Ctx, catch: bool) -> Result<String> {
    let paid = ctx
        .step("pay", async |s: StepCtx| {
            s.state::<Effects>().add("pay");
            let failure = Failure::from(declined()).permanent().with_code("declined");
            Err::<(), _>(failure.with_details(&details()))
        })
        .await;
    ctx.step("wait", async |s: StepCtx| {
        s.state::<Effects>().add("wait");
        s.state::<Gate>().pass().await;
        Ok(())
    })
    .await?;
    match paid {
        Err(failure) if catch => {
            check(&failure);
            Ok("another card".into())
        }
        paid => paid.map(|()| "paid".into()),
    }
}

#[tokio::test]
async fn a_typed_error_is_the_same_after_a_restart() {
    for catch in [true, false] {
        let world = World::new();
        let app = world.open(|b| b.register(pays).state(Gate::closed())).await;
        let handle = app.start(pays, "t", catch).await.unwrap();
        world.effects.wait_for("wait", 1).await;
        let gate = Gate::closed();
        gate.open();
        let app = world.open(|b| b.register(pays).state(gate)).await;
        let handle = seen_by(&app, &handle).await;
        match (catch, handle.result().soon().await) {
            (true, Ok(paid)) => assert_eq!(paid, "another card"),
            (false, Err(error)) => {
                check(error.failure().unwrap());
                // Once more, from a process that has only the closed journal.
                let app = world.open(|b| b.register(pays)).await;
                let error = seen_by(&app, &handle).await.result().soon().await.unwrap_err();
                check(error.failure().unwrap());
                assert_eq!(error.kind(), ErrorKind::Failed);
            }
            (_, result) => panic!("{result:?}"),
        }
        assert_eq!(world.effects.count("pay"), 1);
        check(&journal(&handle).await.failures(1)[0].1);
    }
}

/// The failure of a step whose body ends with `end`, at its one attempt.
async fn failure_of(end: fn() -> Result<()>) -> Failure {
    let ends = workflow_fn("ends", move |ctx: Ctx, (): ()| async move {
        ctx.step("call", async move |_s| end()).retry(Retry::none()).await
    });
    let world = World::new();
    let app = world.open(|b| b.register(ends.clone())).await;
    let handle = app.start(ends, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Failed).await;
    handle.result().soon().await.unwrap_err().failure().unwrap().clone()
}

#[tokio::test]
async fn a_question_mark_on_any_error_is_a_transient_failure_of_its_type() {
    let failure = failure_of(|| {
        "x".parse::<u32>()?;
        Ok(())
    })
    .await;
    assert_eq!((failure.type_name.as_str(), failure.class()), ("ParseIntError", Class::Transient));
    assert_eq!(failure.message, "invalid digit found in string");

    let failure = failure_of(|| Ok(serde_json::from_str::<()>("{").map(|_| ())?)).await;
    assert_eq!((failure.type_name.as_str(), failure.class()), ("Error", Class::Transient));

    let failure = failure_of(|| {
        let nothing: Option<u32> = None;
        nothing.ok_or_else(|| msg("no seat left").permanent())?;
        Ok(())
    })
    .await;
    assert_eq!((failure.type_name.as_str(), failure.class()), ("Message", Class::Permanent));
    assert_eq!(failure.to_string(), "no seat left");
}

#[tokio::test]
async fn permanent_attention_and_retry_after_are_one_call_each() {
    let refused = || Err::<(), _>(declined());
    assert_eq!(refused().permanent().unwrap_err().class(), Class::Permanent);
    assert_eq!(refused().attention().unwrap_err().class(), Class::Attention);
    let later = Classify::retry_after(refused(), "90s").unwrap_err();
    assert_eq!((later.class(), later.retry_after_us), (Class::Transient, Some(90_000_000)));
    assert_eq!(later.type_name, "CardDeclined");
    let odd = msg("busy").retry_after("a while");
    assert_eq!(odd.retry_after_us, None);
    assert!(odd.message.starts_with("busy [retry_after ignored: \"a while\""), "{odd}");
}

#[tokio::test]
async fn the_workflows_own_error_is_kept_as_well() {
    let refuses = workflow_fn("refuses", |_ctx: Ctx, (): ()| async move {
        Err::<(), _>(declined())?;
        Ok(())
    });
    let world = World::new();
    let app = world.open(|b| b.register(refuses.clone())).await;
    let error = app.start(refuses, "t", ()).await.unwrap().result().soon().await.unwrap_err();
    let failure = error.failure().unwrap();
    assert!(failure.is::<CardDeclined>());
    assert_eq!(failure.causes.len(), 1);
    assert!(error.to_string().contains("CardDeclined: the card is good for 100"), "{error}");
}

#[tokio::test]
async fn a_workflow_that_panics_fails_with_the_text() {
    let panics = workflow_fn("panics", |ctx: Ctx, (): ()| async move {
        ctx.step("book", async |_s| Ok(()))
            .rollback(async |u| {
                u.state::<Effects>().add("undo");
                Ok(())
            })
            .await?;
        let seats: Vec<u32> = ctx.step("seats", async |_s| Ok(Vec::new())).await?;
        Ok(*seats.first().expect("somebody is there"))
    });
    let world = World::new();
    let app = world.open(|b| b.register(panics.clone())).await;
    let error = app.start(panics, "t", ()).await.unwrap().result().soon().await.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!(failure.origin(), Origin::Panic);
    assert!(failure.message.contains("somebody is there"), "{failure}");
    assert_eq!(world.effects.all(), ["undo"]);
}

#[tokio::test]
async fn details_that_cannot_be_encoded_are_left_out_and_the_message_says_so() {
    let no_json = std::collections::HashMap::from([((1, 2), 3)]);
    let failure = msg("no").with_details(&no_json);
    assert!(failure.details.is_none());
    assert!(failure.message.starts_with("no [the details cannot be encoded"), "{failure}");
}

#[derive(Debug)]
struct Deep(Option<Box<Deep>>);

impl fmt::Display for Deep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("deep")
    }
}

impl std::error::Error for Deep {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.as_deref().map(|deep| deep as _)
    }
}

#[test]
fn p12_at_most_eight_causes_are_kept() {
    let deep = (0..20).fold(Deep(None), |inner, _| Deep(Some(Box::new(inner))));
    assert_eq!(Failure::from(deep).causes.len(), 8);
}
