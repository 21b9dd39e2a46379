//! A thousand connections at once, and more than there are places.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use backstitch::Backstitch;
use backstitch_server::http::{HttpOptions, Limits};

use crate::binary::{Folder, Running, command};
use crate::frames::{self, GOAWAY};
use crate::line::{HEALTH, HEALTH_AND_STAY, Line, eventually, health, no_limits};
use crate::server::{Server, gate};

/// As many files for this process and for those that it begins as the system allows.
fn many_files() {
    let raised = Command::new("prlimit")
        .args(["--pid", &std::process::id().to_string(), "--nofile=4096:"])
        .status();
    assert!(raised.expect("prlimit is there").success(), "4096 files are not allowed here");
}

fn address(server: &Running) -> SocketAddr {
    server.url.trim().trim_start_matches("http://").parse().expect("it is an address")
}

fn files(server: &Running) -> usize {
    let folder = format!("/proc/{}/fd", server.id());
    std::fs::read_dir(folder).expect("it runs").count()
}

async fn is_well(address: SocketAddr) -> bool {
    health(address).await.starts_with("HTTP/1.1 200")
}

async fn lines(number: usize, address: SocketAddr) -> Vec<Line> {
    let mut lines = Vec::new();
    for _ in 0..number {
        lines.push(Line::to(address).await);
    }
    lines
}

#[tokio::test]
async fn a_thousand_connections_come_and_go() {
    many_files();
    let folder = Folder::new("crowd");
    let mut server = command(&folder.0);
    server.args(["server", "--listen", "127.0.0.1:0"]);
    let server = Running::begin(server);
    let address = address(&server);
    let before = files(&server);

    let mut crowd = lines(1_000, address).await;
    eventually("all have come in", async || files(&server) >= before + 1_000).await;
    for (number, line) in crowd.iter_mut().enumerate() {
        let request = [HEALTH_AND_STAY, "POST /v1/executions HTTP/1.1\r\nhost: loc"][number % 2];
        line.say(request).await;
    }
    for line in crowd.iter_mut().step_by(2) {
        line.until("ok\n").await;
    }
    assert!(is_well(address).await, "while they are there");
    for (number, line) in crowd.into_iter().enumerate() {
        match number % 4 {
            0 | 1 => drop(line),
            _ => line.vanish(),
        }
    }
    assert!(is_well(address).await, "when they are gone");
    eventually("all files are closed", async || files(&server) <= before).await;
    let stopped = server.stop();
    assert_eq!(stopped.exit, 0, "{stopped:?}");
    assert!(!stopped.err.contains("WARN"), "{stopped:?}");
}

#[tokio::test]
async fn one_connection_too_many_is_told_in_the_http_that_it_speaks() {
    const PLACES: usize = 4;
    let place_time_max = Duration::from_millis(50);
    let limits = Limits { connections_max: PLACES, place_time_max, ..no_limits() };
    let options = HttpOptions { limits, ..HttpOptions::default() };
    let server = Server::with(Backstitch::open("memory:").register(gate), options).await;
    let mut there = lines(PLACES, server.address).await;
    for line in &mut there {
        line.say(HEALTH_AND_STAY).await;
        line.until("ok\n").await;
    }
    // The first of them waits for a place, and all others are refused at once.
    for _ in 0..3 {
        let refused = server.get("/healthz").await;
        assert_eq!((refused.status, refused.at("/code").as_str()), (503, "too_many_connections"));
        assert!(refused.at("/detail").contains("has 4 connections"), "{refused:?}");
        assert!(refused.head.contains("application/problem+json"), "{refused:?}");
        assert!(refused.head.contains("retry-after: 1"), "{refused:?}");
        let mut refused = Line::to(server.address).await;
        refused.say(frames::opening()).await;
        let goaway = frames::next_of(&mut refused, GOAWAY).await;
        assert_eq!(goaway.number(4), 0xb, "it is to calm down");
        assert!(String::from_utf8_lossy(&goaway.payload).contains("has 4 connections"));
    }
    // Those who were there first are served.
    for line in &mut there {
        line.say(HEALTH_AND_STAY).await;
        line.until("ok\n").await;
    }
    there.pop().expect("there are four").vanish();
    eventually("there is a place", async || is_well(server.address).await).await;
    drop(there);
    server.stop().await;
}

#[tokio::test]
async fn one_connection_too_many_waits_for_a_place_for_a_while() {
    let options = HttpOptions {
        limits: Limits { connections_max: 1, ..no_limits() },
        ..HttpOptions::default()
    };
    let server = Server::with(Backstitch::open("memory:").register(gate), options).await;
    let mut first = Line::to(server.address).await;
    first.say(HEALTH_AND_STAY).await;
    first.until("ok\n").await;
    let mut second = Line::to(server.address).await;
    second.say(HEALTH).await;
    first.say(HEALTH_AND_STAY).await;
    first.until("ok\n").await;
    drop(first);
    assert!(second.text().await.starts_with("HTTP/1.1 200"));
    server.stop().await;
}

#[tokio::test]
async fn a_crowd_leaves_the_store_its_files() {
    let folder = Folder::new("files");
    let mut server = Command::new("sh");
    let run = "ulimit -S -n 192; exec \"$0\" server --listen 127.0.0.1:0";
    server.args(["-c", run, env!("CARGO_BIN_EXE_backstitch")]).current_dir(&folder.0);
    let server = Running::begin(server);
    let address = address(&server);
    let mut first = Line::to(address).await;
    first.say(HEALTH_AND_STAY).await;
    first.until("ok\n").await;
    let crowd = lines(200, address).await;
    eventually("it is full", async || !is_well(address).await).await;
    let body = r#"{"id":"a","workflow":"else","version":"1"}"#;
    let start = format!(
        "POST /v1/executions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    first.say(start).await;
    first.until("201 Created").await;
    drop(crowd);
    eventually("there is a place", async || is_well(address).await).await;
    let stopped = server.stop();
    assert_eq!(stopped.exit, 0, "{stopped:?}");
    assert!(stopped.err.contains("ulimit -n"), "{stopped:?}");
    assert!(!stopped.err.contains("could not be taken"), "{stopped:?}");
}
