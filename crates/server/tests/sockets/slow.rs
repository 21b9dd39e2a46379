//! Peers that ask for much and read none of it.

use std::time::Duration;

use backstitch::{Backstitch, Builder};
use backstitch_api::worker as wire;
use backstitch_engine::ManualClock;
use backstitch_server::http::{HttpOptions, Limits};
use tonic::Code;
use tonic::transport::Channel;
use wire::from_server::Message;
use wire::from_worker::Message as Said;

use crate::frames::{
    self, DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, WINDOW_UPDATE, frame,
};
use crate::line::{Line, NEVER, eventually, health, no_limits, soon, tasks};
use crate::peer::{Peer, T0, Talk, hello};
use crate::server::{Server, bulky, gate};

/// The reason of a reset: what was asked for is not wanted any more.
const CANCEL: u32 = 8;

const SHORT: Duration = Duration::from_millis(300);

/// 21 MB, which no socket has room for.
const MUCH: [(&str, &str, &str); 3] = [
    ("pages", "?limit=1000", ""),
    ("a stream", "", "accept: text/event-stream\r\n"),
    ("a stream from the beginning", "", "accept: text/event-stream\r\nlast-event-id: 0\r\n"),
];

async fn server(builder: Builder, limits: Limits) -> Server {
    let options = HttpOptions { limits, ..HttpOptions::default() };
    Server::with(builder, options).await
}

/// A server with an execution that has a large journal.
async fn bulk(limits: Limits) -> Server {
    let server = server(Backstitch::open("memory:").register(bulky).register(gate), limits).await;
    let handle = server.app.start(bulky, "b", serde_json::Value::Null).await;
    handle.expect("it can be started").result().await.expect("it succeeds");
    server
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_given_up_and_its_place_is_free() {
    let limits =
        Limits { connections_max: 1, place_time_max: NEVER, write_time_max: SHORT, ..no_limits() };
    let server = bulk(limits).await;
    let before = tasks();
    for (what, query, header) in MUCH {
        let mut slow = Line::to(server.address).await;
        let request = format!(
            "GET /v1/executions/b/journal{query} HTTP/1.1\r\nhost: localhost\r\n{header}\r\n"
        );
        // Pages are one after the other.
        slow.say(request.repeat(24)).await;
        let next = health(server.address).await;
        assert!(next.starts_with("HTTP/1.1 200"), "{what}: {next:?}");
        // What it finds is cut off.
        let found = slow.rest().await;
        assert!((1..20_000_000).contains(&found.len()), "{what}: {} bytes", found.len());
    }
    eventually("all tasks have ended", async || tasks() <= before).await;
    server.stop().await;
}

#[tokio::test]
async fn a_stream_that_is_not_read_is_reset_and_the_others_of_its_connection_go_on() {
    let server = bulk(Limits { write_time_max: SHORT, ..no_limits() }).await;
    server.gate("a").await;
    let mut line = Line::to(server.address).await;
    line.say(frames::opening()).await;
    // Much room on the connection, and 65,535 bytes for each stream.
    line.say(frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes())).await;
    let mut numbers = (1..).step_by(2);
    let mut ask = async |line: &mut Line, path: &str, accept: &str| {
        let stream = numbers.next().expect("there are many");
        let accept = frames::block(&[("accept", accept)]);
        let headers = [frames::request("GET", path), accept].concat();
        line.say(frame(HEADERS, END_HEADERS | END_STREAM, stream, &headers)).await;
        stream
    };
    let live = "text/event-stream";
    let read = ask(&mut line, "/v1/executions/a/journal", live).await;
    assert_eq!(frames::next_of(&mut line, DATA).await.stream, read);
    for (path, accept) in
        [("/v1/executions/b/journal?limit=1000", "*/*"), ("/v1/executions/b/journal", live)]
    {
        let slow = ask(&mut line, path, accept).await;
        let reset = frames::next_of(&mut line, RST_STREAM).await;
        assert_eq!((reset.stream, reset.number(0)), (slow, CANCEL), "{path}");
        let healthy = ask(&mut line, "/healthz", "*/*").await;
        assert_eq!(frames::next_of(&mut line, HEADERS).await.stream, healthy);
    }
    let accepted = server.post("/v1/executions/a/events", r#"{"type":"go"}"#).await;
    assert_eq!(accepted.status, 200, "{accepted:?}");
    while frames::next_of(&mut line, DATA).await.stream != read {}
    drop(line);
    server.stop().await;
}

/// A server, and a connection of workers to it on which the window of a stream is small.
async fn workers(limits: Limits, lease: Duration) -> (Server, Peer) {
    let builder = Backstitch::open("memory:").keep_unknown_workflows().lease(lease);
    let server = server(builder, limits).await;
    let channel = Channel::from_shared(format!("http://{}", server.address)).expect("it is a URL");
    let channel = channel.initial_stream_window_size(65_535).connect().await.expect("it listens");
    let engine = server.app.engine().clone();
    (server, Peer { engine, clock: ManualClock::new(T0), channel })
}

fn named(session: u8, workflow: &str) -> wire::Hello {
    let workflow = wire::Workflow { name: workflow.into(), version: "1".into(), event_types: None };
    wire::Hello { session: vec![session; 16], workflows: vec![workflow], ..hello(1_000) }
}

/// More than is made ready for a worker that does not read.
const RUNS: usize = 400;

async fn start(server: &Server, workflow: &str, id: &str) {
    let input = "x".repeat(16 * 1024);
    let body =
        format!(r#"{{"id":"{id}","workflow":"{workflow}","version":"1","input":"{input}"}}"#);
    let started = server.post("/v1/executions", &body).await;
    assert_eq!(started.status, 201, "{started:?}");
}

/// Says Ping as long as there is somebody to hear it, and reads nothing.
async fn ping_until_it_is_over(worker: &Talk) {
    let ping = || Said::Ping(wire::Ping { number: 1 });
    soon("its stream is ended", async { while worker.is_heard(ping()).await {} }).await;
}

#[tokio::test]
async fn a_worker_that_reads_nothing_loses_its_stream_and_its_runs_and_others_go_on() {
    // Longer than a worker that works needs for a ping.
    let lease = Duration::from_secs(2);
    let (server, peer) = workers(Limits { write_time_max: SHORT, ..no_limits() }, lease).await;
    let before = tasks();
    let slow = peer.talk(named(1, "transfer")).await.expect("it is taken on");
    for number in 0..RUNS {
        start(&server, "transfer", &format!("t-{number}")).await;
        // It does say that it is there, for as long as its stream is open.
        slow.is_heard(Said::Ping(wire::Ping { number: 1 })).await;
    }
    start(&server, "other", "o").await;
    let mut other = peer.talk(named(2, "other")).await.expect("it is taken on");
    let mut run = other.lease().await;
    other.write(run.row().expect("the code asks for a step")).await;

    ping_until_it_is_over(&slow).await;
    // Its runs are for the next one.
    let mut next = peer.talk(named(3, "transfer")).await.expect("it is taken on");
    let mut leased = 0;
    soon("its runs", async {
        while leased < RUNS {
            next.say(Said::Ping(wire::Ping { number: 1 })).await;
            loop {
                match next.next().await {
                    Ok(Message::Lease(_)) => leased += 1,
                    Ok(Message::Pong(_)) => break,
                    other => panic!("a lease was to come, and not {other:?}"),
                }
            }
        }
    })
    .await;
    drop((slow, other, next, peer));
    // Runs that wait for a worker have none of their own.
    eventually("all tasks have ended", async || tasks() <= before).await;
    server.stop().await;
}

#[tokio::test]
async fn a_worker_that_reads_late_learns_at_last_why_its_stream_was_ended() {
    let (server, peer) = workers(no_limits(), Duration::from_secs(2)).await;
    let mut late = peer.talk(named(1, "transfer")).await.expect("it is taken on");
    for number in 0..RUNS {
        start(&server, "transfer", &format!("t-{number}")).await;
        late.is_heard(Said::Ping(wire::Ping { number: 1 })).await;
    }
    eventually("its leases have ended", async || peer.engine.workers().is_empty()).await;
    let end = soon("the end of its stream", async {
        loop {
            if let Err(end) = late.next().await {
                return end;
            }
        }
    });
    let end = end.await;
    assert_eq!(end.code(), Code::Aborted, "{end}");
    assert!(end.message().contains("was not heard of"), "{end}");
    drop((late, peer));
    server.stop().await;
}
