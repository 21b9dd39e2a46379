//! Peers that stop in the middle of something. The server has one place for connections here: it is served whoever
//! comes next, if the place is free again.

use std::time::Duration;

use backstitch::{Backstitch, ErrorKind};
use backstitch_api::worker::FromWorker;
use backstitch_api::worker::worker_client::WorkerClient;
use backstitch_server::http::{HttpOptions, Limits};
use tonic::Code;
use tonic::transport::Channel;

use crate::frames::{self, DATA, END_HEADERS, HEADERS, PREFACE};
use crate::line::{Line, NEVER, eventually, health, no_limits, soon, tasks};
use crate::server::{Server, gate};

const SHORT: Duration = Duration::from_millis(200);

/// A server with room for one connection; everybody else waits for as long as it takes.
async fn narrow(limits: Limits) -> Server {
    let limits = Limits { connections_max: 1, place_time_max: NEVER, ..limits };
    let builder = Backstitch::open("memory:").register(gate).keep_unknown_workflows();
    let builder = builder.lease(NEVER);
    Server::with(builder, HttpOptions { limits, ..HttpOptions::default() }).await
}

fn post(how_long: &str, begun: &str) -> Vec<u8> {
    let head =
        "POST /v1/executions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    format!("{head}{how_long}\r\n\r\n{begun}").into_bytes()
}

/// A call of gRPC of which half of the first message came.
fn half_a_message(path: &str) -> Vec<u8> {
    let headers = frames::frame(HEADERS, END_HEADERS, 1, &frames::call(path));
    // 100 bytes are announced.
    let data = frames::frame(DATA, 0, 1, &[0, 0, 0, 0, 100, 1, 2, 3]);
    [frames::opening(), headers, data].concat()
}

/// How it begins, and what the server says before it closes.
fn beginnings() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let half_headers = &frames::frame(HEADERS, END_HEADERS, 1, &frames::call("/"))[..20];
    vec![
        ("nothing", Vec::new(), ""),
        ("half a line", b"GET /hea".to_vec(), ""),
        ("half a head", b"GET /healthz HTTP/1.1\r\nhost: loc".to_vec(), ""),
        ("half a body", post("content-length: 100", "{\"id\":"), "timed_out"),
        ("half a chunk", post("transfer-encoding: chunked", "64\r\n{\"id\":"), "timed_out"),
        ("a missing chunk", post("transfer-encoding: chunked", "6\r\n{\"id\":\r\n"), "timed_out"),
        ("half a preface", PREFACE[..9].to_vec(), ""),
        ("no settings", PREFACE.to_vec(), ""),
        ("half a frame", [&frames::opening(), half_headers].concat(), ""),
        ("half a Hello", half_a_message("/backstitch.v1.Worker/Work"), ""),
        ("half a call", half_a_message("/backstitch.v1.Client/Newest"), ""),
        ("half a wait", half_a_message("/backstitch.v1.Client/Watch"), ""),
    ]
}

#[tokio::test]
async fn a_peer_that_says_no_more_is_given_up_and_its_place_is_free() {
    let limits =
        Limits { head_time_max: SHORT, body_time_max: SHORT, beat_every: SHORT, ..no_limits() };
    let server = narrow(limits).await;
    let before = tasks();
    for (what, begun, says) in beginnings() {
        let mut silent = Line::to(server.address).await;
        silent.say(begun).await;
        let said = silent.text().await;
        assert!(said.contains(says), "{what}: {said:?}");
        let next = health(server.address).await;
        assert!(next.starts_with("HTTP/1.1 200"), "{what}: {next:?}");
    }
    eventually("all tasks have ended", async || tasks() <= before).await;
    server.stop().await;
}

#[tokio::test]
async fn a_peer_that_vanishes_leaves_its_place_at_once() {
    let server = narrow(no_limits()).await;
    let before = tasks();
    for (what, begun, _) in beginnings() {
        let mut gone = Line::to(server.address).await;
        gone.say(begun).await;
        gone.vanish();
        let next = soon(what, health(server.address)).await;
        assert!(next.starts_with("HTTP/1.1 200"), "{what}: {next:?}");
    }
    eventually("all tasks have ended", async || tasks() <= before).await;
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_is_not_used_any_more_is_closed() {
    let server = narrow(Limits { head_time_max: SHORT, ..no_limits() }).await;
    let mut idle = Line::to(server.address).await;
    idle.say(crate::line::HEALTH_AND_STAY).await;
    assert!(idle.text().await.starts_with("HTTP/1.1 200"));
    assert!(health(server.address).await.starts_with("HTTP/1.1 200"));
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_peers_that_have_asked_nothing() {
    let server = Server::with(
        Backstitch::open("memory:").register(gate),
        HttpOptions { limits: no_limits(), ..HttpOptions::default() },
    )
    .await;
    let mut lines = Vec::new();
    for begun in ["", "PRI * HT"] {
        let mut line = Line::to(server.address).await;
        line.say(begun).await;
        lines.push(line);
    }
    let mut idle = Line::to(server.address).await;
    idle.say(crate::line::HEALTH_AND_STAY).await;
    idle.until("ok\n").await;
    lines.push(idle);
    soon("it stops", server.stop_within(NEVER)).await;
    for line in &mut lines {
        assert_eq!(line.text().await, "");
    }
}

#[tokio::test]
async fn a_connection_of_http2_without_requests_is_closed_and_its_owner_connects_again() {
    let server = narrow(Limits { idle_time_max: SHORT, ..no_limits() }).await;
    let url = format!("http://{}", server.address);
    let client = Backstitch::connect(&url).await.expect("it connects");
    for _ in 0..3 {
        let none = client.handle::<String>("none").await.err().expect("nothing has this id");
        assert_eq!(none.kind(), ErrorKind::NotFound, "{none}");
        // There is one place, and the client has had it.
        let next = soon("its place is free", health(server.address)).await;
        assert!(next.starts_with("HTTP/1.1 200"), "{next:?}");
    }
    client.close().await.expect("it closes");
    server.stop().await;
}

#[tokio::test]
async fn a_worker_that_opens_a_stream_and_says_nothing_is_told_what_was_missing() {
    let server = narrow(Limits { hello_time_max: SHORT, ..no_limits() }).await;
    let channel = Channel::from_shared(format!("http://{}", server.address)).expect("it is a URL");
    let channel = channel.connect().await.expect("it listens");
    let nothing = futures_util::stream::pending::<FromWorker>();
    let told = WorkerClient::new(channel).work(nothing).await.unwrap_err();
    assert_eq!(told.code(), Code::DeadlineExceeded, "{told}");
    assert!(told.message().contains("no Hello came within 200ms"), "{told}");
    server.stop().await;
}
