//! The answer to a wait tells what came of the run, so that nobody has to read its journal for it.

use std::time::Duration;

use backstitch::core::failure::{Class, Origin};
use backstitch::core::run::Outcome;
use backstitch::core::status::Status;
use backstitch::store::RunNo;
use backstitch::{Backstitch, Ctx, ErrorKind, Failure, StepCtx, Undo, Workflow, workflow_fn};
use backstitch_api::client::{self as wire, client_client::ClientClient, watch_request};
use prost::Message;
use tokio::sync::mpsc;

use crate::house::House;
use crate::world::Effects;

/// Pays, and returns as many bytes as it is told to; or fails if that are none.
fn pay() -> impl Workflow<Input = usize, Output = String> {
    workflow_fn("pay", async |ctx: Ctx, bytes: usize| {
        ctx.step("charge", async |s: StepCtx| {
            s.state::<Effects>().add("charge");
            Ok(())
        })
        .rollback(async |u: Undo<()>| {
            u.state::<Effects>().add("refund");
            Ok(())
        })
        .await?;
        match bytes {
            0 => Err(Failure::new(Class::Permanent, Origin::Body, "Refused", "nothing to pay")),
            bytes => Ok("x".repeat(bytes)),
        }
    })
}

/// Asks on a stream of its own, and returns the answer.
async fn ask(house: &House, run: RunNo, what: watch_request::What) -> Option<Outcome> {
    let (asks, asked) = mpsc::unbounded_channel();
    asks.send(wire::WatchRequest { number: 7, run: run.0, what: Some(what) }).unwrap();
    let asked = futures_util::stream::unfold(asked, async |mut asked| {
        asked.recv().await.map(|request| (request, asked))
    });
    let mut stub = ClientClient::new(house.net.channel());
    let mut answers = stub.watch(asked).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().expect("it is answered");
    assert_eq!(answer.number, 7);
    answer.outcome.map(|told| Outcome::decode(told.encode_to_vec().as_slice()).unwrap())
}

fn settled() -> watch_request::What {
    watch_request::What::Settled(watch_request::Settled {})
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_told_the_result_and_one_too_large_is_read() {
    let house = House::new().await;
    let _app = house.worker(|b| b.register(pay())).await;
    let client = Backstitch::connect_through(house.net.channel()).await.unwrap();
    let small = client.start(pay(), "small", 3).await.unwrap();
    let large = client.start(pay(), "large", 100_000).await.unwrap();
    let run = house.engine().newest("default", "small").await.unwrap().run;
    let told = ask(&house, run, settled()).await.expect("it is small");
    assert_eq!(told.status(), Status::Succeeded);
    assert_eq!(told.output.unwrap().data, "\"xxx\"");
    let closed = watch_request::What::Closed(watch_request::Closed {});
    assert_eq!(ask(&house, run, closed).await.unwrap().status(), Status::Succeeded);
    let run = house.engine().newest("default", "large").await.unwrap().run;
    assert_eq!(ask(&house, run, settled()).await, None);
    assert_eq!(small.result().await.unwrap(), "xxx");
    assert_eq!(large.result().await.unwrap().len(), 100_000);
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_told_the_failure_and_how_far_it_was_undone() {
    let house = House::new().await;
    let _app = house.worker(|b| b.register(pay())).await;
    let client = Backstitch::connect_through(house.net.channel()).await.unwrap();
    let handle = client.start(pay(), "a", 0).await.unwrap();
    let run = house.engine().newest("default", "a").await.unwrap().run;
    let told = ask(&house, run, settled()).await.unwrap();
    assert_eq!(told.status(), Status::Failed);
    assert_eq!(told.failure.as_ref().unwrap().type_name, "Refused");
    assert_eq!((told.undos_done, told.undos_of, told.undos_failed), (1, 1, 0));
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert_eq!(error.failure().unwrap().code, told.failure.as_ref().unwrap().code);
    assert_eq!(error.to_string(), told.sentence("a"));
    assert_eq!(error.rollback(), Some(told.rollback_progress()));
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_what_is_not_there_is_answered_and_finds_out() {
    let house = House::new().await;
    assert_eq!(ask(&house, RunNo(99), settled()).await, None);
    let _app = house.worker(|b| b.register(pay())).await;
    let client = Backstitch::connect_through(house.net.channel()).await.unwrap();
    let handle = client.start(pay(), "a", 3).await.unwrap();
    handle.closed().await.unwrap();
    handle.delete().by("ada").await.unwrap();
    assert_eq!(handle.result().await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn who_killed_it_is_told_as_well() {
    let house = House::new().await;
    let client = Backstitch::connect_through(house.net.channel()).await.unwrap();
    // Nobody has the code, so it stays open.
    let handle = client.start(pay(), "a", 3).await.unwrap();
    handle.kill().by("ada").reason("it hangs").await.unwrap();
    let run = house.engine().newest("default", "a").await.unwrap().run;
    let told = ask(&house, run, settled()).await.unwrap();
    assert!(told.killed);
    let sentence = "execution \"a\" was killed by ada (it hangs)";
    assert_eq!(told.sentence("a"), sentence);
    assert_eq!(handle.result().await.unwrap_err().to_string(), sentence);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_result_outwaits_a_server_that_is_away_for_long() {
    let house = House::new().await;
    let client = Backstitch::connect_through(house.net.channel()).await.unwrap();
    let handle = client.start(pay(), "a", 3).await.unwrap();
    let result = tokio::spawn(async move { handle.result().await });
    for away_s in [20, 90] {
        // Long enough for the wait to be there, and once for it to look by itself.
        tokio::time::sleep(Duration::from_secs(away_s)).await; // tidy: allow-sleep stopped time
        house.net.down();
        tokio::time::sleep(Duration::from_secs(away_s)).await; // tidy: allow-sleep stopped time
        assert!(!result.is_finished(), "it waits");
        house.restart().await;
    }
    let _app = house.worker(|b| b.register(pay())).await;
    assert_eq!(result.await.unwrap().unwrap(), "xxx");
}
