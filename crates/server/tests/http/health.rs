//! Health, workers, and the document of the API.

use std::sync::Arc;
use std::time::Duration;

use backstitch::engine::ManualClock;
use backstitch::{Backstitch, Status, WaitsFor};
use backstitch_server::http::{HttpOptions, document};

use crate::server::{Server, gate};

#[tokio::test]
async fn a_server_whose_work_waits_for_a_worker_is_not_ready() {
    let builder = Backstitch::open("memory:").register(gate).keep_unknown_workflows();
    let options = HttpOptions { ready_pending_max: Some(Duration::ZERO), ..HttpOptions::default() };
    let server = Server::with(builder, options).await;
    assert_eq!(server.get("/healthz").await.text, "ok\n");
    let ready = server.get("/readyz").await;
    assert_eq!((ready.status, ready.at("/ready").as_str()), (200, "true"));

    let unversioned = server.post("/v1/executions", r#"{"id":"a","workflow":"else"}"#).await;
    assert_eq!(unversioned.status, 422);
    assert!(unversioned.at("/detail").contains("say its `version`"), "{unversioned:?}");
    // Its deadline is far away, and no excuse.
    let body = r#"{"id":"a","workflow":"else","version":"3","deadline":"2 days"}"#;
    let started = server.post("/v1/executions", body).await;
    assert_eq!((started.status, started.at("/status").as_str()), (201, "pending"), "{started:?}");
    let shown = server.get("/v1/executions/a").await;
    assert_eq!(shown.at("/waits_for/0/what"), "worker");
    server.until_pending().await;
    let unready = server.get("/readyz").await;
    assert_eq!(unready.status, 503);
    assert!(unready.at("/reasons/0").contains("workflow \"else\""), "{unready:?}");
    server.post("/v1/executions/a/cancel", "").await;
    server.get("/v1/executions/a/result?wait_ms=50000").await;
    assert_eq!(server.get("/readyz").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_run_counts_as_overdue_from_when_it_could_go_on_and_had_nobody() {
    let clock = ManualClock::new(1_700_000_000_000_000);
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let builder = Backstitch::open("memory:").clock(Arc::new(clock.clone()));
    let builder = builder.keep_unknown_workflows().lease(Duration::from_secs(15));
    let options = HttpOptions { ready_pending_max: Some(minutes(5)), ..HttpOptions::default() };
    let server = Server::with(builder, options).await;
    let body = r#"{"id":"a","workflow":"gate","version":"1"}"#;
    assert_eq!(server.post("/v1/executions", body).await.status, 201);
    server.until_pending().await;
    assert_eq!(server.get("/readyz").await.status, 200, "it has waited for no time yet");
    clock.advance(minutes(6));
    let unready = server.get("/readyz").await;
    assert_eq!(unready.status, 503, "{unready:?}");
    assert!(unready.at("/reasons/0").contains("for 360 s"), "{unready:?}");

    // A worker comes, and goes when the run waits for something else.
    let handle = server.app.handle::<String>("a").await.expect("it was started");
    let worker = Backstitch::open(format!("http://{}", server.address)).register(gate);
    let worker = worker.run().await.expect("the server takes it on");
    let waits = |status: &backstitch::ExecutionStatus| {
        status.waits_for.iter().any(|waits| matches!(waits, WaitsFor::Event { .. }))
    };
    handle.until(waits).await.expect("it comes there");
    worker.shutdown().await.expect("it gives back what it has");
    clock.advance(minutes(60));
    assert_eq!(server.get("/readyz").await.status, 200, "nothing could go on");
    let asleep = server.get("/v1/executions/a/timeline").await;
    assert!(asleep.text.contains("not closed: suspended"), "{asleep:?}");

    // It could go on now, an hour after its start.
    server.post("/v1/executions/a/events", r#"{"type":"go"}"#).await;
    server.until_pending().await;
    assert_eq!(server.get("/readyz").await.status, 200, "it has waited for no time yet");
    let end = "not closed: pending, waiting for a worker that knows gate 1\n";
    let picture = server.get("/v1/executions/a/timeline").await;
    assert!(picture.text.ends_with(end), "{picture:?}");
    clock.advance(minutes(6));
    assert_eq!(server.get("/readyz").await.status, 503);
    server.post("/v1/executions/a/pause", "").await;
    handle.until(|status| status.status == Status::Paused).await.expect("it is paused");
    server.until_nothing_is_pending().await;
    assert_eq!(server.get("/readyz").await.status, 200, "it is held by a person");
    server.stop().await;
}

#[tokio::test]
async fn workers_are_listed() {
    let server = Server::begin().await;
    let workers = server.get("/v1/workers").await;
    assert_eq!(workers.at("/workers/0/workflows/1/name"), "gate");
    assert_eq!(workers.at("/workers/0/workflows/1/version"), "1");
    assert_eq!(workers.at("/workers/0/built_in"), "true");
    server.stop().await;
}

#[tokio::test]
async fn the_document_of_the_api_is_the_committed_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let committed = std::fs::read_to_string(path).expect("it is there");
    let way_out = "run `cargo run -q -- openapi > docs/openapi.json`";
    assert!(committed == document(), "docs/openapi.json is out of date; {way_out}");
    let server = Server::begin().await;
    let served = server.get("/v1/openapi.json").await.json();
    assert_eq!(served, serde_json::from_str::<serde_json::Value>(&committed).expect("JSON"));
    server.stop().await;
}
