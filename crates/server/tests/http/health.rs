//! Health, workers, and the document of the API.

use std::time::Duration;

use backstitch::Backstitch;
use backstitch_server::http::{HttpOptions, document};

use crate::server::{Server, gate};

#[tokio::test]
async fn a_server_whose_work_waits_for_a_worker_is_not_ready() {
    let builder = Backstitch::open("memory:").register(gate).keep_unknown_workflows();
    let options = HttpOptions { ready_pending_max: Some(Duration::ZERO) };
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
    let unready = server.get("/readyz").await;
    assert_eq!(unready.status, 503);
    assert!(unready.at("/reasons/0").contains("workflow \"else\" version \"3\""));
    server.post("/v1/executions/a/cancel", "").await;
    server.get("/v1/executions/a/result?wait_ms=50000").await;
    assert_eq!(server.get("/readyz").await.status, 200);
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
