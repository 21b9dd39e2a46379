//! Whatever is wrong with a request, the answer names it, as a problem.

use backstitch_server::http::limits::HEAD_BYTES_MAX;

use crate::server::{Answer, Server};

fn is_problem(what: &str, answer: &Answer, status: u16, code: &str, says: &str) {
    assert_eq!(answer.status, status, "{what}: {answer:?}");
    assert!(answer.head.contains("content-type: application/problem+json"), "{what}: {answer:?}");
    assert_eq!(answer.at("/code"), code, "{what}: {answer:?}");
    assert_eq!(answer.at("/status"), status.to_string(), "{what}: {answer:?}");
    assert_eq!(answer.at("/type"), format!("urn:backstitch:problem:{code}"), "{what}");
    assert!(answer.at("/detail").contains(says), "{what}: {answer:?}");
}

const VERBS: &[&str] = &["cancel", "terminate", "rollback", "kill", "pause", "resume", "restart"];
const STEP_VERBS: &[&str] = &["retry-step", "retry-undo", "waive-undo"];

/// Every path that takes a body, with one that is good.
fn posts() -> Vec<(String, &'static str)> {
    let mut posts = vec![
        ("/v1/executions".to_owned(), r#"{"id":"a","workflow":"gate"}"#),
        ("/v1/executions/a/events".to_owned(), r#"{"type":"go"}"#),
        ("/v1/executions/a/set-attributes".to_owned(), r#"{"attributes":{"A":1}}"#),
    ];
    posts.extend(VERBS.iter().map(|verb| (format!("/v1/executions/a/{verb}"), "{}")));
    let of_step = r#"{"step":"open"}"#;
    posts.extend(STEP_VERBS.iter().map(|verb| (format!("/v1/executions/a/{verb}"), of_step)));
    posts
}

const GETS: &[&str] = &[
    "/v1/executions",
    "/v1/executions/a",
    "/v1/executions/a/result",
    "/v1/executions/a/journal",
    "/v1/executions/a/timeline",
    "/v1/attention",
    "/v1/workers",
];

#[tokio::test]
async fn a_body_that_is_no_good_is_refused_at_every_path() {
    let server = Server::begin().await;
    for (path, good) in posts() {
        let broken = server.post(&path, "{\"by\":").await;
        is_problem(&path, &broken, 400, "bad_body", "is not JSON");

        let list = server.post(&path, "[1,2]").await;
        assert_eq!((list.status, list.at("/code").as_str()), (400, "bad_body"), "{path}: {list:?}");

        let unknown = good.replacen('{', r#"{"colour":"red","#, 1).replace(",}", "}");
        let unknown = server.post(&path, &unknown).await;
        is_problem(&path, &unknown, 400, "bad_body", "unknown field `colour`");

        let number = good.replacen('{', r#"{"by":7,"#, 1).replace(",}", "}");
        let number = server.post(&path, &number).await;
        is_problem(&path, &number, 400, "bad_body", "invalid type: integer `7`");

        let undeclared = server.ask("POST", &path, &[], good).await;
        is_problem(&path, &undeclared, 415, "unsupported_media_type", "declared as nothing");
        let plain = server.ask("POST", &path, &["content-type: text/plain"], good).await;
        is_problem(&path, &plain, 415, "unsupported_media_type", "text/plain");

        let large = format!("{{\"by\":\"{}\"}}", "x".repeat(2_000_000));
        let large = server.post(&path, &large).await;
        is_problem(&path, &large, 413, "body_too_large", "more than 1310720 bytes");

        let key = "k".repeat(300);
        let long_key = server.post_as(&key, &path, good).await;
        let status = if path == "/v1/executions" { 422 } else { 404 };
        assert_eq!(long_key.status, status, "{path}: {long_key:?}");
        let no_key = server.post_as("", &path, good).await;
        is_problem(&path, &no_key, 400, "bad_header", "idempotency-key is empty");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_query_that_is_no_good_is_refused_at_every_path() {
    let server = Server::begin().await;
    let of_posts: Vec<(String, &str)> = posts();
    for (path, good) in &of_posts {
        let answer = server.post(&format!("{path}?nonsense=1"), good).await;
        is_problem(path, &answer, 400, "bad_query", "unknown field `nonsense`");
    }
    for path in GETS {
        let answer = server.get(&format!("{path}?nonsense=1")).await;
        is_problem(path, &answer, 400, "bad_query", "nonsense");
    }
    let answer = server.ask("DELETE", "/v1/executions/a?nonsense=1", &[], "").await;
    is_problem("delete", &answer, 400, "bad_query", "nonsense");

    let bad = [
        ("/v1/executions?limit=many", 400, "bad_query", "limit"),
        ("/v1/executions?limit=0", 422, "invalid", "it can be 1 to 1000"),
        ("/v1/executions?limit=-1", 400, "bad_query", "limit"),
        ("/v1/executions?cursor=x", 422, "invalid", "\"x\" is no cursor"),
        ("/v1/executions?status=asleep", 400, "bad_query", "asleep"),
        ("/v1/executions?started_after=soon", 400, "bad_query", "started_after"),
        ("/v1/executions?attribute=A", 400, "bad_query", "go together"),
        ("/v1/executions/a/result?wait_ms=50001", 422, "invalid", "at most 50000"),
        ("/v1/executions/a/result?wait_ms=1s", 400, "bad_query", "wait_ms"),
        ("/v1/executions/a/journal?limit=1001", 422, "invalid", "it can be 1 to 1000"),
        ("/v1/executions/a/journal?after=-1", 400, "bad_query", "after"),
        ("/v1/executions/a/timeline?colour=red", 400, "bad_query", "colour"),
        ("/v1/attention?limit=2000", 422, "invalid", "it can be 1 to 1000"),
        ("/v1/executions?namespace=%F0%9F", 400, "bad_query", "\"namespace=%F0%9F\" stands for no"),
        ("/v1/executions/a?x=1&%FF=x%", 400, "bad_query", "\"%FF=x%\" stands for no UTF-8"),
        ("/v1/executions/a?namespace=%F0%9F%A7%B5%", 404, "not_found", "in namespace \"🧵%\""),
        ("/v1/executions/%FF", 400, "bad_path", "cannot be read"),
        ("/v2/executions", 404, "unknown_route", "nothing at /v2/executions"),
        ("/v1/executions/a/b/c", 404, "unknown_route", "escaped"),
        ("/", 404, "unknown_route", "openapi.json"),
    ];
    for (target, status, code, says) in bad {
        is_problem(target, &server.get(target).await, status, code, says);
    }
    server.stop().await;
}

#[tokio::test]
async fn an_execution_that_is_not_there_is_told_at_every_path() {
    let server = Server::begin().await;
    for (path, good) in posts().iter().skip(1) {
        let answer = server.post(path, good).await;
        is_problem(path, &answer, 404, "not_found", "no execution \"a\" in namespace \"default\"");
    }
    for path in GETS.iter().filter(|path| path.contains("executions/a")) {
        let answer = server.get(&format!("{path}?namespace=n%2Fa")).await;
        is_problem(path, &answer, 404, "not_found", "no execution \"a\" in namespace \"n/a\"");
    }
    let live = ["accept: text/event-stream"];
    let answer = server.ask("GET", "/v1/executions/a/journal", &live, "").await;
    is_problem("live", &answer, 404, "not_found", "\"a\"");
    let answer = server.ask("DELETE", "/v1/executions/a", &[], "").await;
    is_problem("delete", &answer, 404, "not_found", "\"a\"");
    server.stop().await;
}

#[tokio::test]
async fn a_start_that_is_no_good_says_why() {
    let server = Server::begin().await;
    let long = "x".repeat(257);
    let large = "x".repeat(1_100_000);
    let attributes = |json: &str| format!(r#"{{"id":"a","workflow":"gate","attributes":{json}}}"#);
    let named = |workflow: &str, version: &str| {
        format!(r#"{{"id":"a","workflow":"{workflow}","version":"{version}"}}"#)
    };
    let with = |more: &str| format!(r#"{{"id":"a","workflow":"gate",{more}}}"#);
    let bad = [
        (r#"{"workflow":"gate"}"#.to_owned(), 400, "bad_body", "missing field `id`"),
        (r#"{"id":"a"}"#.to_owned(), 400, "bad_body", "missing field `workflow`"),
        (r#"{"id":"","workflow":"gate"}"#.to_owned(), 422, "invalid", "execution id is empty"),
        (format!(r#"{{"id":"{long}","workflow":"gate"}}"#), 422, "invalid", "256"),
        (r#"{"id":"a\n","workflow":"gate"}"#.to_owned(), 422, "invalid", "U+000A"),
        (named(r"a\nINFO forged", "1"), 422, "invalid", "workflow name \"a\\nINFO forged\" holds"),
        (named("gate", r"1\u001b[2J"), 422, "invalid", "workflow version \"1\\u{1b}[2J\" holds"),
        (named("gate", ""), 422, "invalid", "workflow version is empty"),
        (named(&long, "1"), 422, "invalid", "256"),
        (r#"{"id":"a","workflow":"gat"}"#.to_owned(), 422, "unknown_workflow", "gate \"1\""),
        (with(r#""version":"2""#), 422, "unknown_workflow", "version \"2\""),
        (with(&format!(r#""input":"{large}""#)), 422, "invalid", "at most 1048576 are allowed"),
        (with(r#""conflict":"ask""#), 400, "bad_body", "unknown variant `ask`"),
        (with(r#""deadline":"5 parsecs""#), 422, "invalid", "the deadline: \"5 parsecs\""),
        (with(r#""retention":"soon""#), 422, "invalid", "the retention: \"soon\""),
        (attributes(r#"{"A":[1]}"#), 400, "bad_body", "a text, a number, true or false"),
        (attributes(r#"{"":1}"#), 422, "invalid", "is empty"),
        (with(r#""namespace":"x""#), 422, "invalid", "say it in one place"),
    ];
    for (body, status, code, says) in bad {
        let answer = server.post("/v1/executions?namespace=default", &body).await;
        let shown: String = body.chars().take(80).collect();
        is_problem(&shown, &answer, status, code, says);
    }
    server.stop().await;
}

#[tokio::test]
async fn methods_names_and_heads_that_are_no_good_are_refused() {
    let server = Server::begin().await;
    for (method, path) in [
        ("PUT", "/v1/executions"),
        ("GET", "/v1/executions/a/cancel"),
        ("POST", "/v1/executions/a"),
        ("DELETE", "/healthz"),
    ] {
        let answer = server.ask(method, path, &[], "").await;
        is_problem(path, &answer, 405, "method_not_allowed", method);
        assert!(answer.head.contains("allow: "), "{answer:?}");
    }
    let elsewhere = b"GET /v1/workers HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    is_problem("host", &server.raw(elsewhere).await, 421, "not_local", "\"evil.example\"");
    let last = ["accept: text/event-stream", "last-event-id: x"];
    server.gate("a").await;
    let answer = server.ask("GET", "/v1/executions/a/journal", &last, "").await;
    is_problem("last-event-id", &answer, 400, "bad_header", "it is the number of a row");

    // This much arrives in one piece, or is refused by the HTTP layer, without a body.
    let long = "y".repeat(HEAD_BYTES_MAX);
    let header = server.ask("GET", "/healthz", &[&format!("x: {long}")], "").await;
    let query = server.get(&format!("/v1/executions?workflow={long}")).await;
    for answer in [header, query] {
        assert_eq!(answer.status, 431);
        if !answer.text.is_empty() {
            is_problem("head", &answer, 431, "head_too_large", "at most 32768 are allowed");
        }
    }

    // Heads that are too large are refused before there is a request to answer.
    let headers: Vec<String> = (0..65).map(|i| format!("x-{i}: y")).collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    assert_eq!(server.ask("GET", "/healthz", &headers, "").await.status, 431);
    let long = format!("x: {}", "y".repeat(64 * 1024));
    assert_eq!(server.ask("GET", "/healthz", &[&long], "").await.status, 431);
    assert_eq!(server.raw(b"what is this\r\n\r\n").await.status, 400);
    server.stop().await;
}
