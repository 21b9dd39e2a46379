//! Naming a run that is not the newest of its id.

use crate::server::{Answer, Server};

/// No run has it.
const NOBODY: &str = "018f2b9c-5a7e-7d3a-9c41-6f0d8e2b7a55";

/// Two runs of `a`: the first one was killed and owes an undo, and the second one waits. Gives their ids.
async fn two_runs(server: &Server) -> (String, String) {
    server.gate("a").await;
    let first = server.get("/v1/executions/a").await.at("/run_id");
    assert_eq!(server.post("/v1/executions/a/kill", "").await.status, 200);
    server.app.handle::<()>("a").await.expect("there").closed().await.expect("it ends");
    let again = r#"{"id":"a","workflow":"gate","reuse":"allow"}"#;
    let again = server.post("/v1/executions", again).await;
    assert_eq!(again.status, 201, "{again:?}");
    (first, again.at("/run_id"))
}

fn refused(answer: &Answer, status: u16, code: &str, says: &str) {
    assert_eq!((answer.status, answer.at("/code").as_str()), (status, code), "{answer:?}");
    assert!(answer.at("/detail").contains(says), "{answer:?}");
}

#[tokio::test]
async fn an_earlier_run_is_looked_at_by_its_id() {
    let server = Server::begin().await;
    let (first, second) = two_runs(&server).await;
    let listed = server.get("/v1/executions").await;
    let of_list = (listed.at("/executions/0/run_id"), listed.at("/executions/1/run_id"));
    assert_eq!(of_list, (second.clone(), first.clone()));

    let at = |what: &str, run: &str| format!("/v1/executions/a{what}?run_id={run}");
    let shown = server.get(&at("", &first)).await;
    assert_eq!((shown.at("/run_id"), shown.at("/status")), (first.clone(), "terminated".into()));
    let newest = server.get("/v1/executions/a").await;
    assert_eq!(newest.at("/run_id"), second);
    assert_eq!(server.get(&at("", &second)).await.at("/run_id"), second);
    let result = server.get(&at("/result", &first)).await;
    assert_eq!((result.status, result.at("/run_id")), (200, first.clone()), "{result:?}");
    assert_eq!(server.get(&at("/result", &second)).await.status, 202);
    let journal = server.get(&at("/journal", &first)).await;
    assert!(journal.text.contains("execution_killed"), "{journal:?}");
    assert!(!server.get(&at("/journal", &second)).await.text.contains("execution_killed"));
    let accept = ["accept: text/event-stream"];
    let live = server.ask("GET", &at("/journal", &first), &accept, "").await;
    assert!(live.text.contains("event: end"), "a closed run comes to its end: {live:?}");
    assert!(live.text.contains("execution_killed"), "{live:?}");
    assert!(server.get(&at("/timeline", &first)).await.text.contains("killed"));
    server.stop().await;
}

#[tokio::test]
async fn what_a_killed_earlier_run_has_left_is_settled_by_its_id() {
    let server = Server::begin().await;
    let (first, second) = two_runs(&server).await;
    let matters = server.get("/v1/attention").await;
    assert_eq!(matters.at("/attention/0/run_id"), first, "{matters:?}");

    let waive = format!("/v1/executions/a/waive-undo?run_id={first}");
    let waived = server.post(&waive, r#"{"step":"open","by":"Ada"}"#).await;
    assert_eq!((waived.status, waived.at("/changed").as_str()), (200, "true"), "{waived:?}");
    let run_id = first.parse().expect("it is one");
    let killed = server.app.handle_of_run::<()>("default", "a", run_id).await.expect("there");
    killed.until(|status| status.run.attention.is_empty()).await.expect("it is settled");
    let set = format!("/v1/executions/a/set-attributes?run_id={first}");
    assert_eq!(server.post(&set, r#"{"attributes":{"A":1}}"#).await.status, 200);
    let late = format!("/v1/executions/a/events?run_id={first}");
    refused(&server.post(&late, r#"{"type":"go"}"#).await, 409, "refused", "closed");
    let over = format!("/v1/executions/a/restart?run_id={first}");
    refused(&server.post(&over, "").await, 409, "refused", "");

    // Its inbox has to be read before it can go.
    let delete = format!("/v1/executions/a?by=Ada&run_id={first}");
    killed.until(|status| !status.run.attributes.is_empty()).await.expect("it is set");
    let gone = server.ask("DELETE", &delete, &[], "").await;
    assert_eq!((gone.status, gone.at("/still_there")), (200, second.clone()), "{gone:?}");
    let shown = format!("/v1/executions/a?run_id={first}");
    refused(&server.get(&shown).await, 404, "not_found", "has no run");
    let newest = server.get("/v1/executions/a").await;
    assert_eq!((newest.at("/run_id"), newest.at("/attributes")), (second, "{}".into()));
    server.stop().await;
}

#[tokio::test]
async fn a_restart_that_names_its_run_is_repeated_with_its_key() {
    let server = Server::begin().await;
    server.gate("a").await;
    let first = server.get("/v1/executions/a").await.at("/run_id");
    server.post("/v1/executions/a/terminate", "").await;
    server.get("/v1/executions/a/result?wait_ms=50000").await;
    let over = format!("/v1/executions/a/restart?run_id={first}");
    let begun = server.post_as("r-1", &over, "").await;
    assert_eq!(begun.status, 201, "{begun:?}");
    let again = server.post_as("r-1", &over, "").await;
    assert_eq!(again.at("/run_id"), begun.at("/run_id"), "{again:?}");
    refused(&server.post_as("r-2", &over, "").await, 409, "refused", "");
    server.stop().await;
}

#[tokio::test]
async fn a_run_id_that_nobody_has_or_that_is_none_is_told_at_every_path() {
    let server = Server::begin().await;
    server.gate("a").await;
    server.gate("b").await;
    let others = server.get("/v1/executions/b").await.at("/run_id");
    let looks = ["", "/result", "/journal", "/timeline"].map(|what| (what, None));
    let step = r#"{"step":"open"}"#;
    let sends = [
        ("/events", r#"{"type":"go"}"#),
        ("/cancel", ""),
        ("/terminate", ""),
        ("/rollback", ""),
        ("/kill", ""),
        ("/pause", ""),
        ("/resume", ""),
        ("/restart", ""),
        ("/retry-step", step),
        ("/retry-undo", step),
        ("/waive-undo", step),
        ("/set-attributes", r#"{"attributes":{"A":1}}"#),
    ];
    for (what, body) in looks.into_iter().chain(sends.map(|(what, body)| (what, Some(body)))) {
        let ask = async |run: &str| {
            let path = format!("/v1/executions/a{what}?run_id={run}");
            match body {
                None => server.get(&path).await,
                Some(body) => server.post(&path, body).await,
            }
        };
        refused(&ask(NOBODY).await, 404, "not_found", "has no run");
        refused(&ask(&others).await, 404, "not_found", "another execution's");
        for none in ["7", "", "018f2b9c"] {
            refused(&ask(none).await, 400, "bad_query", "is no run id");
        }
    }
    let live = ["accept: text/event-stream"];
    let path = format!("/v1/executions/a/journal?run_id={NOBODY}");
    refused(&server.ask("GET", &path, &live, "").await, 404, "not_found", "has no run");
    let delete = format!("/v1/executions/a?run_id={NOBODY}");
    refused(&server.ask("DELETE", &delete, &[], "").await, 404, "not_found", "has no run");
    let delete = "/v1/executions/a?run_id=all";
    refused(&server.ask("DELETE", delete, &[], "").await, 400, "bad_query", "is no run id");
    // Nothing of it came to the run that is there.
    assert_eq!(
        server.get("/v1/executions/a").await.at("/seq"),
        server.get("/v1/executions/b").await.at("/seq")
    );
    // A start begins a run and cannot name one.
    let start = format!("/v1/executions?run_id={NOBODY}");
    let start = server.post(&start, r#"{"id":"c","workflow":"gate"}"#).await;
    refused(&start, 400, "bad_query", "unknown field `run_id`");
    server.stop().await;
}
