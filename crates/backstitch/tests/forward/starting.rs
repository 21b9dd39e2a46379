//! Starting by an id, finding again, and waiting for the result.

use backstitch::{
    Conflict, Ctx, Error, ErrorKind, FailureExt, FnWorkflow, Result, Reuse, Status, StepCtx,
    WaitsFor, msg, workflow, workflow_fn,
};

use crate::journal::{Soon, journal};
use crate::world::{Effects, Gate, World, eventually, until};

#[workflow]
pub async fn greets(ctx: Ctx, name: String) -> Result<String> {
    let said = format!("hello {name}");
    ctx.step("wait", async |s: StepCtx| {
        s.state::<Effects>().add("waits");
        s.state::<Gate>().pass().await;
        Ok(())
    })
    .rollback(async |u| {
        u.state::<Effects>().add("undo wait");
        Ok(())
    })
    .await?;
    match name.as_str() {
        "nobody" => Err(msg("there is nobody").permanent().with_code("nobody")),
        _ => Ok(said),
    }
}

pub fn kind<T>(answer: std::result::Result<T, Error>) -> (ErrorKind, String) {
    let error = answer.err().expect("it is refused");
    (error.kind(), error.to_string())
}

#[tokio::test]
async fn b30_a_start_with_an_id_in_use_is_the_same_execution() {
    let (world, gate) = (World::new(), Gate::closed());
    let app = world.open(|b| b.register(greets).state(gate.clone())).await;
    let first = app.start(greets, "t", "Ada".into()).await.unwrap();
    assert!(first.created());
    world.effects.wait_for("waits", 1).await;
    let again = app.start(greets, "t", "Ada".into()).await.unwrap();
    assert!(!again.created());
    assert_eq!((again.run_id(), again.found()), (first.run_id(), Status::Running));
    gate.open();
    assert_eq!(first.result().soon().await.unwrap(), "hello Ada");
    assert_eq!(again.result().soon().await.unwrap(), "hello Ada");

    let after = app.start(greets, "t", "Ada".into()).await.unwrap();
    assert_eq!((after.created(), after.found()), (false, Status::Succeeded));
    assert_eq!(after.result().soon().await.unwrap(), "hello Ada");
    assert_eq!(world.effects.count("waits"), 1);
}

#[tokio::test]
async fn b30_an_id_in_use_with_another_input_or_workflow_is_an_error_that_says_so() {
    let other: FnWorkflow<String, String> =
        workflow_fn("other", |_ctx: Ctx, name: String| async move { Ok(name) });
    let (world, gate) = (World::new(), Gate::closed());
    let app = world.open(|b| b.register(greets).register(other.clone()).state(gate.clone())).await;
    let first = app.start(greets, "t", "Ada".into()).await.unwrap();
    for closed in [false, true] {
        if closed {
            gate.open();
            first.result().soon().await.unwrap();
        }
        let (kind_of, says) = kind(app.start(greets, "t", "Bob".into()).await);
        assert_eq!(kind_of, ErrorKind::OtherInput);
        assert!(says.contains("\"t\"") && says.contains("with another input"), "{says}");
        let (kind_of, says) = kind(app.start(other.clone(), "t", "Ada".into()).await);
        assert_eq!(kind_of, ErrorKind::OtherInput);
        assert!(says.contains("for another workflow"), "{says}");
        assert!(says.contains("\"greets\""), "{says}");
    }
    assert_eq!(journal(&first).await.count("StepStarted"), 1);
}

#[tokio::test]
async fn b30_with_fail_an_id_in_use_is_an_error() {
    let (world, gate) = (World::new(), Gate::closed());
    let app = world.open(|b| b.register(greets).state(gate.clone())).await;
    let start = || app.start(greets, "t", "Ada".into()).conflict(Conflict::Fail);
    let first = start().await.unwrap();
    world.effects.wait_for("waits", 1).await;
    let (kind_of, says) = kind(start().await);
    assert_eq!(kind_of, ErrorKind::IdInUse);
    assert!(says.contains("is in use (its status is running)"), "{says}");
    gate.open();
    first.result().soon().await.unwrap();
    let (kind_of, says) = kind(start().await);
    assert_eq!(kind_of, ErrorKind::IdInUse);
    assert!(says.contains("was used by a closed run"), "{says}");
}

/// Books, and sleeps if its input is `old`. The undo is held at the gate.
pub fn slow() -> FnWorkflow<String, String> {
    workflow_fn("slow", |ctx: Ctx, name: String| async move {
        ctx.step("book", async |s: StepCtx| {
            s.state::<Effects>().add("book");
            Ok(())
        })
        .rollback(async |u| {
            u.state::<Effects>().add("undo begins");
            u.state::<Gate>().pass().await;
            u.state::<Effects>().add("undone");
            Ok(())
        })
        .await?;
        if name == "old" {
            ctx.sleep("100h").await?;
        }
        Ok(name)
    })
}

#[tokio::test]
async fn b30_with_terminate_the_new_run_waits_until_the_old_one_is_undone_and_closed() {
    let (world, undo_gate) = (World::new(), Gate::closed());
    let app = world.open(|b| b.register(slow()).state(undo_gate.clone())).await;
    let old = app.start(slow(), "t", "old".into()).await.unwrap();
    until(&old, Status::Suspended).await;
    let new = app.start(slow(), "t", "new".into()).conflict(Conflict::Terminate).await.unwrap();
    assert!(new.created());
    assert_ne!(new.run_id(), old.run_id());
    world.effects.wait_for("undo begins", 1).await;
    assert_eq!(new.status().await.unwrap().status, Status::Pending);
    assert_eq!(world.effects.all(), ["book", "undo begins"], "the new run has not begun");
    undo_gate.open();
    assert_eq!(new.result().soon().await.unwrap(), "new");
    assert_eq!(world.effects.all(), ["book", "undo begins", "undone", "book"]);
    assert_eq!(old.status().await.unwrap().status, Status::Terminated);
    assert_eq!(app.handle::<String>("t").await.unwrap().run_id(), new.run_id());
}

#[tokio::test]
async fn b30_a_run_that_waits_for_its_predecessor_survives_a_crash() {
    let world = World::new();
    let app = world.open(|b| b.register(slow()).state(Gate::closed())).await;
    let old = app.start(slow(), "t", "old".into()).await.unwrap();
    until(&old, Status::Suspended).await;
    app.start(slow(), "t", "new".into()).conflict(Conflict::Terminate).await.unwrap();
    world.effects.wait_for("undo begins", 1).await;

    let gate = Gate::closed();
    gate.open();
    let app = world.open(|b| b.register(slow()).state(gate)).await;
    let new = app.handle::<String>("t").await.unwrap();
    assert_eq!(new.result().soon().await.unwrap(), "new");
    assert_eq!(world.effects.all(), ["book", "undo begins", "undo begins", "undone", "book"]);
    assert_eq!(old.status().await.unwrap().status, Status::Terminated);
}

#[tokio::test]
async fn b30_after_it_closed_the_reuse_policy_decides() {
    let (world, gate) = (World::new(), Gate::closed());
    gate.open();
    let app = world.open(|b| b.register(greets).state(gate)).await;
    let start = |id: &str, name: &str, reuse| app.start(greets, id, name.into()).reuse(reuse);
    let failed = start("f", "nobody", Reuse::Reject).await.unwrap();
    failed.result().soon().await.unwrap_err();
    let good = start("g", "Ada", Reuse::Reject).await.unwrap();
    good.result().soon().await.unwrap();

    assert!(!start("f", "nobody", Reuse::Reject).await.unwrap().created());
    assert!(!start("g", "Ada", Reuse::AllowIfFailed).await.unwrap().created());
    let again = start("f", "Ada", Reuse::AllowIfFailed).await.unwrap();
    assert!(again.created());
    assert_eq!(again.result().soon().await.unwrap(), "hello Ada");
    assert!(!start("f", "Ada", Reuse::AllowIfFailed).await.unwrap().created(), "it succeeded now");
    let again = start("g", "Bob", Reuse::Allow).await.unwrap();
    assert!(again.created());
    assert_eq!(again.result().soon().await.unwrap(), "hello Bob");
    assert_eq!(good.result().soon().await.unwrap(), "hello Ada", "an older run keeps its result");
}

#[tokio::test]
async fn b30_reuse_says_nothing_about_an_open_run() {
    let world = World::new();
    let app = world.open(|b| b.register(greets).state(Gate::closed())).await;
    let first = app.start(greets, "t", "Ada".into()).await.unwrap();
    let again = app.start(greets, "t", "Ada".into()).reuse(Reuse::Allow).await.unwrap();
    assert!(!again.created());
    assert_eq!(first.run_id(), again.run_id());
}

#[tokio::test]
async fn b30_many_starts_of_one_id_at_once_make_one_execution() {
    let (world, gate) = (World::new(), Gate::closed());
    gate.open();
    let app = world.open(|b| b.register(greets).state(gate)).await;
    let starts = (0..50).map(|_| {
        let app = app.clone();
        tokio::spawn(async move { app.start(greets, "t", "Ada".into()).await.unwrap() })
    });
    let mut created = 0;
    for handle in futures_util::future::join_all(starts).await {
        let handle = handle.unwrap();
        created += u32::from(handle.created());
        assert_eq!(handle.result().soon().await.unwrap(), "hello Ada");
    }
    assert_eq!((created, world.effects.count("waits")), (1, 1));
}

#[tokio::test]
async fn b37_one_id_in_two_namespaces_is_two_executions() {
    let (world, gate) = (World::new(), Gate::closed());
    let app = world.open(|b| b.register(greets).state(gate.clone())).await;
    let mut handles = Vec::new();
    for i in 0..100 {
        let (space, name) = (format!("space-{}", i % 2), format!("{i}"));
        let handle = app.start(greets, (i / 2).to_string(), name).namespace(space).await.unwrap();
        assert!(handle.created());
        handles.push(handle);
    }
    world.effects.wait_for("waits", 100).await;
    handles[6].cancel().await.unwrap();
    gate.open();
    for (i, handle) in handles.iter().enumerate() {
        match i {
            6 => assert_eq!(kind(handle.result().soon().await).0, ErrorKind::Cancelled),
            _ => assert_eq!(handle.result().soon().await.unwrap(), format!("hello {i}")),
        }
    }
    assert_eq!(world.effects.count("undo wait"), 1);
    let keys: std::collections::HashSet<_> =
        handles.iter().map(|h| h.run_id().step_key(1)).collect();
    assert_eq!(keys.len(), 100);
}

#[tokio::test]
async fn p1_a_start_that_nobody_awaits_to_the_end_is_still_driven() {
    let (world, gate) = (World::new(), Gate::closed());
    gate.open();
    let app = world.open(|b| b.register(greets).state(gate)).await;
    let start = std::future::IntoFuture::into_future(app.start(greets, "t", "Ada".into()));
    let dropped = futures_util::future::select(start, std::future::ready(()));
    drop(dropped.await);
    eventually("it is driven if it was accepted", || async {
        match app.handle::<String>("t").await {
            Ok(handle) => handle.status().await.unwrap().status == Status::Succeeded,
            Err(_) => false,
        }
    })
    .await;
}

#[tokio::test]
async fn b30_a_start_with_a_request_id_gets_its_first_answer_again() {
    let (world, gate) = (World::new(), Gate::closed());
    gate.open();
    let app = world.open(|b| b.register(greets).state(gate)).await;
    let start = |request: &str, name: &str| {
        let start = app.start(greets, "t", name.into()).reuse(Reuse::Allow);
        start.conflict(Conflict::Fail).request_id(request)
    };
    let first = start("mail-1", "Ada").await.unwrap();
    first.result().soon().await.unwrap();
    let again = start("mail-1", "Ada").await.unwrap();
    assert_eq!((again.created(), again.run_id()), (true, first.run_id()));
    let (error, message) = kind(start("mail-1", "Bob").await);
    assert_eq!(error, ErrorKind::Invalid);
    assert!(message.contains("\"mail-1\" was used before to start execution \"t\""), "{message}");

    let second = start("mail-2", "Bob").await.unwrap();
    assert_ne!(second.run_id(), first.run_id());
    second.result().soon().await.unwrap();
    // Known as long as its run is the newest one.
    assert_ne!(start("mail-1", "Ada").await.unwrap().run_id(), first.run_id());
    let (error, message) = kind(start(&"m".repeat(257), "Ada").await);
    assert_eq!(error, ErrorKind::Invalid);
    assert!(message.contains("request id"), "{message}");
}

#[tokio::test]
async fn a_start_of_a_workflow_that_nobody_knows_waits_if_it_may() {
    let (world, gate) = (World::new(), Gate::closed());
    gate.open();
    let app = world.open(|b| b.keep_unknown_workflows()).await;
    let handle = app.start(greets, "t", "Ada".into()).await.unwrap();
    assert_eq!(handle.found(), Status::Pending);
    let status = handle.status().await.unwrap();
    assert_eq!(status.status, Status::Pending);
    assert!(
        matches!(&status.waits_for[..], [WaitsFor::Worker { workflow, .. }] if workflow == "greets")
    );
    assert_eq!(app.list(1).await.unwrap()[0].status, Status::Pending);
    app.shutdown().await.unwrap();

    let app = world.open(|b| b.register(greets).state(gate)).await;
    let handle = app.handle::<String>("t").await.unwrap();
    assert_eq!(handle.result().soon().await.unwrap(), "hello Ada");
}
