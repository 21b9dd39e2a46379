//! Starting executions, finding them and waiting for them.

use std::time::Duration;

use backstitch::{App, Backstitch, Ctx, workflow_fn};
use backstitch_server::http::HttpOptions;

use crate::server::Server;

#[tokio::test]
async fn an_execution_is_started_looked_at_and_waited_for() {
    let server = Server::begin().await;
    server.gate("a").await;
    let shown = server.get("/v1/executions/a").await;
    assert_eq!(shown.at("/status"), "suspended", "{shown:?}");
    assert_eq!(shown.at("/waits_for/0/what"), "event");
    assert_eq!(shown.at("/waits_for/0/types/0"), "go");
    assert_eq!(shown.at("/steps/0/key"), "open#1");
    assert_eq!(shown.at("/steps/0/undo/phase"), "idle");
    assert_eq!(shown.at("/input"), "null");

    let early = server.get("/v1/executions/a/result").await;
    assert_eq!((early.status, early.at("/settled").as_str()), (202, "false"));

    let waiting = server.get("/v1/executions/a/result?wait_ms=50000");
    let sent = server.post("/v1/executions/a/events", r#"{"type":"go","payload":{"n":1.10}}"#);
    let (result, sent) = tokio::join!(biased; waiting, sent);
    assert_eq!(sent.at("/first"), "true", "{sent:?}");
    assert_eq!((result.status, result.at("/output").as_str()), (200, "through"));
    assert_eq!(result.at("/message"), "execution \"a\" succeeded");
    server.stop().await;
}

#[tokio::test]
async fn a_start_that_is_repeated_is_the_same_execution() {
    let server = Server::begin().await;
    let body = r#"{"id":"a","workflow":"gate","input":{"x": 1.10, "a": 2}}"#;
    let first = server.post("/v1/executions", body).await;
    assert_eq!((first.status, first.at("/created").as_str()), (201, "true"));
    let spaced = server.post("/v1/executions", &body.replace(": ", ":")).await;
    assert_eq!((spaced.status, spaced.at("/created").as_str()), (200, "false"));
    assert_eq!(spaced.at("/run_id"), first.at("/run_id"));
    assert!(server.get("/v1/executions/a").await.text.contains(r#""input":{"x":1.10,"a":2}"#));

    let other = server.post("/v1/executions", r#"{"id":"a","workflow":"gate","input":2}"#).await;
    assert_eq!((other.status, other.at("/code").as_str()), (409, "other_input"));
    let fails = body.replacen('{', r#"{"conflict":"fail","#, 1);
    let fails = server.post("/v1/executions", &fails).await;
    assert_eq!((fails.status, fails.at("/code").as_str()), (409, "id_in_use"));
    server.stop().await;
}

#[tokio::test]
async fn a_start_takes_the_one_version_that_connected_workers_have() {
    let builder = Backstitch::open("memory:").keep_unknown_workflows();
    let builder = builder.lease(Duration::from_secs(15));
    let server = Server::with(builder, HttpOptions::default()).await;
    let worker = async |version: &str| -> App {
        let order = workflow_fn("order", async |_: Ctx, (): ()| Ok(())).version(version);
        let worker = Backstitch::open(format!("http://{}", server.address)).register(order);
        worker.run().await.expect("the server takes it on")
    };
    let start = async |id: &str| {
        server.post("/v1/executions", &format!(r#"{{"id":"{id}","workflow":"order"}}"#)).await
    };
    let unknown = start("a").await;
    assert_eq!((unknown.status, unknown.at("/code").as_str()), (422, "invalid"), "{unknown:?}");
    let (first, same) = (worker("1").await, worker("1").await);
    let started = start("a").await;
    assert_eq!(started.status, 201, "{started:?}");
    assert_eq!(server.get("/v1/executions/a").await.at("/version"), "1");

    let second = worker("2").await;
    let several = start("b").await;
    assert_eq!(several.status, 422, "{several:?}");
    assert!(several.at("/detail").contains("in several: 1, 2; say its"), "{several:?}");

    // Those who have left do not count.
    first.shutdown().await.expect("it leaves");
    same.shutdown().await.expect("it leaves");
    assert_eq!(start("b").await.status, 201);
    assert_eq!(server.get("/v1/executions/b").await.at("/version"), "2");
    second.shutdown().await.expect("it leaves");
    // A start that is repeated gets its answer, whoever is there.
    assert_eq!(start("a").await.status, 200);
    assert_eq!(start("c").await.status, 422);
    // One that could begin another run has to say of which version.
    for how in [r#""conflict":"terminate""#, r#""reuse":"allow""#, r#""reuse":"allow_if_failed""#] {
        let body = format!(r#"{{"id":"a","workflow":"order",{how}}}"#);
        let refused = server.post("/v1/executions", &body).await;
        assert_eq!(refused.status, 422, "{how}: {refused:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_start_with_a_key_gets_its_first_answer_again() {
    let server = Server::begin().await;
    let body = r#"{"id":"a","workflow":"owing","conflict":"terminate","reuse":"allow"}"#;
    let first = server.post_as("k-1", "/v1/executions", body).await;
    assert_eq!(first.status, 201);
    let again = server.post_as("k-1", "/v1/executions", body).await;
    assert_eq!((again.status, again.at("/run_id")), (201, first.at("/run_id")));

    let changed = body.replace(r#""reuse""#, r#""input":7,"reuse""#);
    let changed = server.post_as("k-1", "/v1/executions", &changed).await;
    assert_eq!((changed.status, changed.at("/code").as_str()), (422, "invalid"));
    assert!(changed.at("/detail").contains("\"k-1\" was used before"), "{changed:?}");

    server.get("/v1/executions/a/result?wait_ms=50000").await;
    server.post("/v1/executions/a/waive-undo", r#"{"step":"borrow"}"#).await;
    server.app.handle::<()>("a").await.expect("there").closed().await.expect("it ends");
    let another = server.post_as("k-2", "/v1/executions", body).await;
    assert_eq!(another.status, 201);
    assert_ne!(another.at("/run_id"), first.at("/run_id"));
    server.stop().await;
}

#[tokio::test]
async fn executions_are_found_by_what_is_asked_for() {
    let server = Server::begin().await;
    for (id, attribute) in [("a", "7"), ("b", "\"7\""), ("c", "true")] {
        let body = format!(r#"{{"id":"{id}","workflow":"gate","attributes":{{"A":{attribute}}}}}"#);
        assert_eq!(server.post("/v1/executions", &body).await.status, 201);
    }
    let body = r#"{"id":"a","workflow":"gate"}"#;
    assert_eq!(server.post("/v1/executions?namespace=other", body).await.status, 201);

    let found = async |query: &str| -> String {
        let answer = server.get(&format!("/v1/executions?{query}")).await;
        let json = answer.json();
        let ids = json["executions"].as_array().unwrap_or_else(|| panic!("{answer:?}"));
        ids.iter().map(|run| run["id"].as_str().expect("a text")).collect()
    };
    assert_eq!(found("").await, "cba");
    assert_eq!(found("namespace=other").await, "a");
    assert_eq!(found("attribute=A&value=7").await, "a");
    assert_eq!(found("attribute=A&value=%227%22").await, "b");
    assert_eq!(found("attribute=A&value=true").await, "c");
    assert_eq!(found("workflow=owing").await, "");
    assert_eq!(found("status=succeeded").await, "");
    assert_eq!(found("started_after=2099-01-01T00:00:00Z").await, "");
    assert_eq!(found("started_before=2099-01-01T00:00:00Z").await, "cba");
    assert_eq!(found("started_before=2001-01-01T00:00:00Z").await, "");

    let page = server.get("/v1/executions?limit=2").await;
    assert_eq!(
        (page.at("/executions/0/id"), page.at("/executions/1/id")),
        ("c".into(), "b".into())
    );
    let next = format!("limit=2&cursor={}", page.at("/next_cursor"));
    assert_eq!(found(&next).await, "a");
    server.stop().await;
}

#[tokio::test]
async fn whoever_waits_for_a_result_is_told_that_the_server_stops() {
    let server = Server::begin().await;
    server.gate("a").await;
    let request = format!(
        "GET /v1/executions/a/result?wait_ms=50000 HTTP/1.1\r\nhost: {}\r\n\r\n",
        server.address
    );
    let mut stream = tokio::net::TcpStream::connect(server.address).await.expect("it listens");
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    stream.write_all(request.as_bytes()).await.expect("it reads");
    // A second request that is answered on another connection: the first one has been taken by then.
    server.get("/healthz").await;
    server.stop().await;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    assert!(answer.is_empty() || answer.contains("\"code\":\"stopped\""), "{answer}");
}

#[tokio::test]
async fn large_outputs_are_left_to_the_journal_whose_pages_stay_small() {
    let server = Server::begin().await;
    let body = r#"{"id":"a","workflow":"bulky"}"#;
    server.post("/v1/executions", body).await;
    assert_eq!(
        server.get("/v1/executions/a/result?wait_ms=50000").await.at("/status"),
        "succeeded"
    );
    let shown = server.get("/v1/executions/a").await;
    assert!(shown.text.len() < 100_000, "{} bytes", shown.text.len());
    assert_eq!(shown.at("/steps_total"), "24");
    assert_eq!(
        (shown.at("/steps/0/output"), shown.at("/steps/0/output_bytes")),
        ("null".into(), "900002".into())
    );
    let (mut after, mut rows, mut pages) = ("0".to_owned(), 0, 0);
    while after != "null" {
        let page = server.get(&format!("/v1/executions/a/journal?limit=1000&after={after}")).await;
        assert!(page.text.len() < 1_500_000, "a page of {} bytes", page.text.len());
        rows += page.json()["rows"].as_array().expect("rows").len();
        (after, pages) = (page.at("/next_after"), pages + 1);
    }
    // Two of the 24 outputs are more than a page has room for.
    assert_eq!((rows, pages), (26, 24));
    server.stop().await;
}
