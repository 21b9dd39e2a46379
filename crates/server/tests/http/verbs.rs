//! Verbs, restart and delete.

use backstitch::{ExecutionStatus, Status};

use crate::server::Server;

#[tokio::test]
async fn verbs_are_carried_out_and_refused_with_the_reason() {
    let server = Server::begin().await;
    server.gate("a").await;
    let at = |verb: &str| format!("/v1/executions/a/{verb}");
    let paused = server.post_as("p-1", &at("pause"), r#"{"by":"Ada","reason":"lunch"}"#).await;
    assert_eq!((paused.status, paused.at("/changed").as_str()), (200, "true"), "{paused:?}");
    let again = server.post_as("p-1", &at("pause"), r#"{"by":"Ada","reason":"lunch"}"#).await;
    assert_eq!(again.json(), paused.json());
    let resumed = server.post(&at("resume"), r#"{"shift_timers":true}"#).await;
    assert_eq!(resumed.at("/changed"), "true");
    let refused = server.post(&at("retry-step"), r#"{"step":"open"}"#).await;
    assert_eq!((refused.status, refused.at("/code").as_str()), (409, "refused"), "{refused:?}");
    let unknown = server.post(&at("retry-step"), r#"{"step":"shut"}"#).await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.at("/detail").contains("its steps are: open#1"), "{unknown:?}");

    let attributes = r#"{"attributes":{"A":1.5,"When":{"instant":"2026-01-31T12:00:00Z"}}}"#;
    assert_eq!(server.post(&at("set-attributes"), attributes).await.at("/changed"), "true");
    let gone = server.post(&at("set-attributes"), r#"{"attributes":{"A":null}}"#).await;
    assert_eq!(gone.at("/changed"), "true");

    assert_eq!(server.post(&at("restart"), "").await.status, 409);
    assert_eq!(server.ask("DELETE", "/v1/executions/a", &[], "").await.status, 409);
    assert_eq!(server.post(&at("cancel"), r#"{"by":"Ada","reason":"rain"}"#).await.status, 200);
    let result = server.get(&at("result?wait_ms=50000")).await;
    assert_eq!(result.at("/status"), "cancelled");
    let message = "execution \"a\" was cancelled by Ada (rain) (everything was undone)";
    assert_eq!(result.at("/message"), message);
    let shown = server.get("/v1/executions/a").await;
    assert_eq!(shown.at("/attributes/When/instant"), "2026-01-31T12:00:00Z");
    assert!(shown.json()["attributes"].get("A").is_none(), "{shown:?}");
    assert_eq!(shown.at("/steps/0/undo/phase"), "succeeded");
    server.stop().await;
}

#[tokio::test]
async fn a_key_counts_within_a_run_for_verbs_and_for_events() {
    let server = Server::begin().await;
    server.gate("a").await;
    server.gate("b").await;
    let ask = async |what: &str, body: &str| {
        server.post_as("k", &format!("/v1/executions/{what}"), body).await
    };
    let numbers = async |what: &str, body: &str| {
        let answer = ask(what, body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.at("/number")
    };
    assert_eq!(numbers("a/pause", r#"{"by":"Ada"}"#).await, "1");
    assert_eq!(numbers("a/pause", r#"{"by":"Ada"}"#).await, "1");
    assert_eq!(numbers("b/pause", r#"{"by":"Bob"}"#).await, "1", "another run");
    assert_eq!(numbers("a/events", r#"{"type":"go","payload":1}"#).await, "2", "an event");
    let by_bob = r#"{"type":"go","payload":1,"by":"Bob"}"#;
    assert_eq!(numbers("a/events", by_bob).await, "2", "whoever sends it");
    let others = [
        ("a/pause", r#"{"by":"Bob"}"#),
        ("a/resume", r#"{"by":"Ada"}"#),
        ("a/events", r#"{"type":"go","payload":2}"#),
    ];
    for (what, body) in others {
        let other = ask(what, body).await;
        assert_eq!((other.status, other.at("/code").as_str()), (422, "invalid"), "{other:?}");
        assert!(other.at("/detail").contains("\"k\" was used before"), "{other:?}");
    }
    let refused = ask("a/retry-step", r#"{"step":"open"}"#).await;
    assert_eq!((refused.status, refused.at("/code").as_str()), (409, "refused"), "{refused:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_closed_execution_is_done_over_once_per_key_and_deleted() {
    let server = Server::begin().await;
    server.gate("a").await;
    server.post("/v1/executions/a/terminate", "").await;
    server.get("/v1/executions/a/result?wait_ms=50000").await;
    let over = server.post_as("r-1", "/v1/executions/a/restart", r#"{"by":"Ada"}"#).await;
    assert_eq!(over.status, 201, "{over:?}");
    let again = server.post_as("r-1", "/v1/executions/a/restart", r#"{"by":"Ada"}"#).await;
    assert_eq!((again.status, again.at("/run_id")), (201, over.at("/run_id")));
    let other = server.post_as("r-1", "/v1/executions/a/restart", r#"{"version":"7"}"#).await;
    assert_eq!((other.status, other.at("/run_id")), (201, over.at("/run_id")));
    assert_eq!(server.post("/v1/executions/a/kill", "").await.status, 200);
    server.app.handle::<()>("a").await.expect("there").closed().await.expect("it ends");

    let kept = server.ask("DELETE", "/v1/executions/a?by=Ada", &[], "").await;
    assert_eq!(kept.status, 409, "the undo that the kill left is an open matter: {kept:?}");
    assert!(kept.at("/detail").contains("open matters"), "{kept:?}");
    let matters = server.get("/v1/attention").await;
    assert_eq!(matters.at("/attention/0/kind"), "killed", "{matters:?}");
    let waived = server.post("/v1/executions/a/waive-undo", r#"{"step":1,"by":"Ada"}"#).await;
    assert_eq!(waived.status, 200, "{waived:?}");
    let handle = server.app.handle::<()>("a").await.expect("there");
    handle.until(|status| status.run.attention.is_empty()).await.expect("it is settled");
    let gone = server.ask("DELETE", "/v1/executions/a?by=Ada&reason=old", &[], "").await;
    assert_eq!((gone.status, gone.at("/run_id")), (200, over.at("/run_id")), "{gone:?}");
    // The run before it is the newest one now.
    let before = server.get("/v1/executions/a").await;
    assert_eq!(before.at("/status"), "terminated");
    assert_eq!(gone.at("/still_there"), before.at("/run_id"));
    let gone = server.ask("DELETE", "/v1/executions/a", &[], "").await;
    assert_eq!(gone.at("/run_id"), before.at("/run_id"));
    assert_eq!(gone.at("/still_there"), "null", "the id is free");
    assert_eq!(server.get("/v1/executions/a").await.status, 404);
    server.stop().await;
}

#[tokio::test]
async fn what_is_stuck_is_told_and_settled() {
    let server = Server::begin().await;
    server.post("/v1/executions", r#"{"id":"a/b","workflow":"owing"}"#).await;
    let stuck = server.get("/v1/executions/a%2Fb/result?wait_ms=50000").await;
    assert_eq!((stuck.status, stuck.at("/status").as_str()), (200, "stuck"), "{stuck:?}");
    assert!(stuck.at("/message").contains("1 of 1 undos failed for good"), "{stuck:?}");
    let matters = server.get("/v1/attention").await;
    assert_eq!(matters.at("/attention/0/id"), "a/b");
    assert_eq!(matters.at("/attention/0/kind"), "undo_failed");
    let waived = server.post("/v1/executions/a%2Fb/waive-undo", r#"{"step":"borrow"}"#).await;
    assert_eq!(waived.at("/changed"), "true");
    let result = server.get("/v1/executions/a%2Fb/result?wait_ms=50000").await;
    assert_eq!(result.at("/failure/message"), "no");
    assert_eq!(result.at("/rollback/outcome"), "incomplete");
    server.stop().await;
}

#[tokio::test]
async fn open_matters_come_in_pages_and_each_once() {
    let server = Server::begin().await;
    for id in ["a", "b", "c", "d", "e"] {
        server.post("/v1/executions", &format!(r#"{{"id":"{id}","workflow":"owing"}}"#)).await;
        let stuck = server.get(&format!("/v1/executions/{id}/result?wait_ms=50000")).await;
        assert_eq!(stuck.at("/status"), "stuck", "{stuck:?}");
    }
    let (mut ids, mut cursor) = (String::new(), String::new());
    loop {
        let page = server.get(&format!("/v1/attention?limit=2{cursor}")).await;
        assert_eq!(page.status, 200, "{page:?}");
        let matters = page.json()["attention"].as_array().expect("a list").clone();
        ids.extend(matters.iter().map(|matter| matter["id"].as_str().expect("a text")));
        match page.json()["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(ids, "abcde", "the oldest one first");
    for none in ["", "7", "1.2.3", "1.2.3.4.5", "1.2.-3.4", "x.1.1.1"] {
        let refused = server.get(&format!("/v1/attention?cursor={none}")).await;
        assert_eq!((refused.status, refused.at("/code").as_str()), (422, "invalid"), "{none:?}");
        assert!(refused.at("/detail").contains("is no cursor"), "{refused:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn nobody_is_named_by_nothing() {
    let server = Server::begin().await;
    let start = r#"{"id":"a","workflow":"gate","by":""}"#;
    assert_eq!(server.post("/v1/executions", start).await.status, 201);
    let paused = server.post("/v1/executions/a/pause", r#"{"by":" "}"#).await;
    assert_eq!(paused.status, 200, "{paused:?}");
    let event = r#"{"type":"go","by":""}"#;
    assert_eq!(server.post("/v1/executions/a/events", event).await.status, 200);
    let handle = server.app.handle::<()>("a").await.expect("it was started");
    let is_paused = |status: &ExecutionStatus| status.status == Status::Paused;
    handle.until(is_paused).await.expect("it is paused");
    let journal = server.get("/v1/executions/a/journal").await;
    assert_eq!(server.get("/v1/executions/a").await.at("/started_by"), "an HTTP client");
    assert!(
        !journal.text.contains(r#""by":"""#) && !journal.text.contains(r#""by":" ""#),
        "{journal:?}"
    );
    assert!(journal.text.matches(r#""by":"an HTTP client""#).count() >= 2, "{journal:?}");
    server.stop().await;
}
