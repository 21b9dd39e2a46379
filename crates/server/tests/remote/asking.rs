//! Asking a server: what can be asked of a store can be asked of it, from another machine.

use backstitch::{
    Backstitch, Client, Conflict, Ctx, ErrorKind, NoTimeout, Reuse, Status, StepCtx, Workflow,
    workflow_fn,
};

use crate::house::{House, moment};
use crate::leases::ship;
use crate::world::{Effects, Gate};

async fn caller(house: &House) -> Client {
    Backstitch::connect_through(house.net.channel()).await.expect("the server answers")
}

/// Waits for its approval, and says what it does.
fn approve(effects: &Effects) -> impl Workflow<Input = u32, Output = String> + use<> {
    let effects = effects.clone();
    workflow_fn("approve", move |ctx: Ctx, amount: u32| {
        effects.add("code");
        async move {
            ctx.publish("stage", "asked")?;
            let by = ctx.wait_event::<String>("approval", "approved", NoTimeout).await?;
            ctx.publish("stage", "approved")?;
            ctx.step("pay", async |s: StepCtx| {
                s.state::<Effects>().add("pay");
                Ok(())
            })
            .rollback(async |u: backstitch::Undo<()>| {
                u.state::<Effects>().add("refund");
                Ok(())
            })
            .await?;
            Ok(format!("{amount} by {by}"))
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_caller_starts_an_execution_follows_it_sends_to_it_and_has_its_result() {
    let house = House::new().await;
    let _app = house.worker(|b| b.register(approve(&house.effects))).await;
    let client = caller(&house).await;
    let handle =
        client.start(approve(&house.effects), "a", 7).attribute("Customer", "ada").await.unwrap();
    assert!(handle.created());
    let mut stages = handle.follow::<String>("stage");
    assert_eq!(stages.next().await.unwrap().as_deref(), Some("asked"));
    handle.send_event("approved", "ada").id("e").await.unwrap();
    assert_eq!(stages.next().await.unwrap().as_deref(), Some("approved"));
    assert_eq!(handle.result().await.unwrap(), "7 by ada");
    assert_eq!(handle.status().await.unwrap().status, Status::Succeeded);
    let found = client.find("Customer", "ada", 10).await.unwrap();
    assert_eq!(found.iter().map(|found| found.id.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(client.list(10).await.unwrap().len(), 1);
    // Done over, and the way back, and gone.
    handle.rollback().by("ada").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(house.effects.count("refund"), 1);
    let again = handle.restart().by("ada").await.unwrap();
    again.cancel().by("ada").await.unwrap();
    assert_eq!(again.closed().await.unwrap(), Status::Cancelled);
    again.delete().by("ada").await.unwrap();
    assert_eq!(client.list(10).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_asks_its_server_as_well() {
    let house = House::new().await;
    let gate = Gate::closed();
    gate.open();
    let app = house.worker(|b| b.register(ship(&house.effects)).state(gate)).await;
    let handle = app.start(ship(&house.effects), "a", ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 7);
    let same = app.handle::<u32>("a").await.unwrap();
    assert_eq!(same.run_id(), handle.run_id());
    app.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_waits_goes_on_waiting_while_the_server_is_away() {
    let house = House::new().await;
    let gate = Gate::closed();
    let own = gate.clone();
    let app = house.worker(|b| b.register(ship(&house.effects)).state(own)).await;
    let handle = app.start(ship(&house.effects), "a", ()).await.unwrap();
    let waiting = tokio::spawn(async move { handle.result().await });
    house.effects.wait_for("pack", 1).await;
    house.restart().await;
    moment().await;
    gate.open();
    assert_eq!(waiting.await.unwrap().unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn who_waits_does_not_ask_again_for_each_row() {
    let house = House::new().await;
    let many = || {
        workflow_fn("many", |ctx: Ctx, (): ()| async move {
            for _ in 0..200 {
                ctx.step("one", async |_: StepCtx| Ok(())).await?;
            }
            Ok(())
        })
    };
    let client = caller(&house).await;
    let handle = client.start(many(), "a", ()).await.unwrap();
    let waiting = tokio::spawn(async move { handle.result().await });
    moment().await;
    let _app = house.worker(|b| b.register(many())).await;
    waiting.await.unwrap().unwrap();
    let bytes = house.net.bytes_from_server();
    assert!(bytes < 250_000, "the journal was read again and again: {bytes} bytes");
}

#[tokio::test(start_paused = true)]
async fn what_a_caller_asks_for_is_judged_by_the_server() {
    let house = House::new().await;
    let _app = house.worker(|b| b.register(approve(&house.effects))).await;
    let client = caller(&house).await;
    let workflow = || approve(&house.effects);
    let handle = client.start(workflow(), "a", 7).await.unwrap();
    let kind = |error: backstitch::Error| error.kind();
    let refused = client.start(workflow(), "a", 7).conflict(Conflict::Fail).await;
    assert_eq!(refused.err().map(kind), Some(ErrorKind::IdInUse));
    let refused = client.start(workflow(), "a", 8).await;
    assert_eq!(refused.err().map(kind), Some(ErrorKind::OtherInput));
    let again = client.start(workflow(), "a", 7).await.unwrap();
    assert!(!again.created());
    let refused = handle.delete().by("ada").await;
    assert_eq!(refused.err().map(kind), Some(ErrorKind::Refused));
    let refused = handle.restart().by("ada").await;
    assert_eq!(refused.err().map(kind), Some(ErrorKind::Refused));
    let refused = handle.send_event("", "of").await;
    assert_eq!(refused.err().map(kind), Some(ErrorKind::Invalid));
    assert_eq!(client.handle::<()>("b").await.err().map(kind), Some(ErrorKind::NotFound));
    let second = client.start(workflow(), "a", 7).reuse(Reuse::Allow);
    let second = second.conflict(Conflict::Terminate).await.unwrap();
    assert!(second.created());
    assert_eq!(handle.closed().await.unwrap(), Status::Terminated);
    handle.journal().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_not_the_newest_is_named_by_its_id() {
    let house = House::new().await;
    let _app = house.worker(|b| b.register(approve(&house.effects))).await;
    let client = caller(&house).await;
    let workflow = || approve(&house.effects);
    let first = client.start(workflow(), "a", 7).await.unwrap();
    first.kill().by("ada").await.unwrap();
    assert_eq!(first.closed().await.unwrap(), Status::Terminated);
    let second = client.start(workflow(), "a", 7).reuse(Reuse::Allow).await.unwrap();
    let other = client.start(workflow(), "b", 7).await.unwrap();
    let of_run =
        async |id: &str, run_id| client.handle_of_run::<String>("default", id, run_id).await;
    let found = of_run("a", first.run_id()).await.unwrap();
    assert_eq!(found.run_id(), first.run_id());
    assert_eq!(found.status().await.unwrap().status, Status::Terminated);
    let found = of_run("a", second.run_id()).await.unwrap();
    found.cancel().by("ada").await.unwrap();
    assert_eq!(second.closed().await.unwrap(), Status::Cancelled);
    for (id, run_id) in [("a", other.run_id()), ("b", first.run_id()), ("c", first.run_id())] {
        let error = of_run(id, run_id).await.err().expect("it is another execution's");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("has no run"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_the_workflow_does_not_take_is_refused_by_the_server_as_by_the_library() {
    let house = House::new().await;
    let waiter = |name: &str| {
        workflow_fn(name, |ctx: Ctx, (): ()| async move {
            ctx.wait_event::<()>("go", "go", NoTimeout).await
        })
    };
    let picky = || waiter("picky").events(["go", "stop"]);
    let client = caller(&house).await;
    let handle = client.start(picky(), "a", ()).await.unwrap();
    // Nobody has told yet what it takes.
    handle.send_event("og", &()).await.unwrap();
    let app = house.worker(|b| b.register(picky()).register(waiter("any"))).await;
    let error = handle.send_event("og", &()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let says = "the workflow \"picky\" takes no events of type \"og\"; it takes: go, stop";
    assert_eq!(error.to_string(), says);
    let local = Backstitch::open("memory:").register(picky()).run().await.unwrap();
    let same = local.start(picky(), "a", ()).await.unwrap();
    assert_eq!(same.send_event("og", &()).await.unwrap_err().to_string(), says);
    handle.send_event("go", &()).await.unwrap();
    handle.result().await.unwrap();
    // One that names none takes any.
    let any = client.start(waiter("any"), "b", ()).await.unwrap();
    any.send_event("og", &()).await.unwrap();
    app.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_is_told_at_once() {
    let house = House::new().await;
    let client = caller(&house).await;
    house.net.down();
    let error = client.list(1).await.expect_err("nobody answers");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let error = Backstitch::connect_through(house.net.channel()).await.err();
    assert_eq!(error.expect("nobody answers").kind(), ErrorKind::Unavailable);
}

/// What no program of ours would send.
#[tokio::test(start_paused = true)]
async fn a_caller_that_is_not_to_be_believed_is_refused_by_the_server_itself() {
    use api::client_client::ClientClient;
    use backstitch_api::client as api;
    use tonic::Code;

    let house = House::new().await;
    let mut stub = ClientClient::new(house.net.channel());
    let start = |id: &str, workflow: &str| api::StartRequest {
        namespace: "default".into(),
        id: id.into(),
        workflow: workflow.into(),
        version: "1".into(),
        ..api::StartRequest::default()
    };
    let long = "x".repeat(10_000);
    for (id, workflow) in [("", "ship"), (long.as_str(), "ship"), ("a", ""), ("a", &long)] {
        let error = stub.start(start(id, workflow)).await.expect_err("it has a bad name");
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
    let by = api::StartRequest { started_by: long.clone(), ..start("a", "ship") };
    assert_eq!(stub.start(by).await.err().map(|e| e.code()), Some(Code::InvalidArgument));
    let run = stub.start(start("a", "ship")).await.unwrap().into_inner().run;
    // 9 is an event, which no verb is; nobody knows 99 yet.
    for kind in [9, 99, u32::MAX] {
        let verb = Some(api::Verb::default());
        let request = api::SendRequest { run, kind, request_id: "r".into(), verb };
        let error = stub.send(request).await.expect_err("there is no such verb");
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
    let again = api::RestartRequest { run, by: "x".into(), version: None, request_id: None };
    let error = stub.restart(again).await.expect_err("it is open");
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    let rows = api::RowsRequest { run: i64::MIN, after_seq: u64::MAX, limit: u32::MAX };
    assert!(stub.rows(rows).await.unwrap().into_inner().rows.is_empty());
    for run_id in [Vec::new(), vec![7; 15], vec![7; 17]] {
        let request = api::RunOfRequest { namespace: "default".into(), id: "a".into(), run_id };
        let error = stub.run_of(request).await.expect_err("it is no id of a run");
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
    let about = api::AboutRequest { protocol_min: 7, protocol_max: 8 };
    assert_eq!(stub.about(about).await.err().map(|e| e.code()), Some(Code::FailedPrecondition));
}
