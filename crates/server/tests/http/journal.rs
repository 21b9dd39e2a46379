//! Journals: by pages, live, and as pictures.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::server::Server;

#[tokio::test]
async fn a_journal_is_read_page_by_page() {
    let server = Server::begin().await;
    server.gate("a").await;
    let first = server.get("/v1/executions/a/journal?limit=1").await;
    assert_eq!(first.at("/rows/0/events/0/kind"), "execution_started", "{first:?}");
    assert_eq!(first.at("/next_after"), "1");
    let rest = server.get("/v1/executions/a/journal?after=1").await;
    assert_eq!(rest.at("/rows/0/seq"), "2");
    assert_eq!(rest.at("/next_after"), "null");
    let picture = server.get("/v1/executions/a/timeline").await;
    assert!(picture.text.contains("├─▶  open"), "{picture:?}");
    let coloured = server.get("/v1/executions/a/timeline?colour=true").await;
    assert!(coloured.text.contains("\u{1b}["), "{coloured:?}");
    server.stop().await;
}

struct Live(tokio::io::Lines<BufReader<TcpStream>>);

impl Live {
    async fn begin(server: &Server, headers: &str) -> Live {
        let mut stream = TcpStream::connect(server.address).await.expect("it listens");
        let request = format!(
            "GET /v1/executions/a/journal HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\n\
             {headers}\r\n",
            server.address
        );
        stream.write_all(request.as_bytes()).await.expect("it reads");
        Live(BufReader::new(stream).lines())
    }

    /// The next line that begins so.
    async fn next(&mut self, begin: &str) -> String {
        loop {
            let line = self.0.next_line().await.expect("it is text").expect("it goes on");
            if line.starts_with(begin) {
                return line;
            }
        }
    }
}

#[tokio::test]
async fn a_journal_is_followed_until_the_run_is_closed() {
    let server = Server::begin().await;
    server.gate("a").await;
    let mut live = Live::begin(&server, "").await;
    assert!(live.next("content-type").await.contains("text/event-stream"));
    assert_eq!(live.next("id:").await, "id: 1");
    assert!(live.next("data:").await.contains("execution_started"));
    let mut late = Live::begin(&server, "last-event-id: 2\r\n").await;
    assert_eq!(late.next("id:").await, "id: 3");

    server.post("/v1/executions/a/events", r#"{"type":"go"}"#).await;
    loop {
        if live.next("data:").await.contains("execution_succeeded") {
            break;
        }
    }
    assert_eq!(live.next("event:").await, "event: end");
    assert_eq!(late.next("event: end").await, "event: end");
    server.stop().await;
}

#[tokio::test]
async fn whoever_follows_a_journal_is_told_that_the_server_stops() {
    let server = Server::begin().await;
    server.gate("a").await;
    let mut live = Live::begin(&server, "").await;
    live.next("id: 2").await;
    server.stop().await;
    assert_eq!(live.next("event: problem").await, "event: problem");
    assert!(live.next("data:").await.contains("\"code\":\"stopped\""));
}

#[tokio::test]
async fn no_more_journals_are_followed_than_may_be() {
    let server = Server::begin().await;
    server.gate("a").await;
    let mut streams = Vec::new();
    for _ in 0..backstitch_server::http::limits::STREAMS_MAX {
        let mut live = Live::begin(&server, "").await;
        live.next("id: 1").await;
        streams.push(live);
    }
    let accept = ["accept: text/event-stream"];
    let refused = server.ask("GET", "/v1/executions/a/journal", &accept, "").await;
    assert_eq!((refused.status, refused.at("/code").as_str()), (429, "too_many_streams"));
    assert!(refused.head.contains("retry-after: 1"), "{refused:?}");
    // Pages are still read.
    assert_eq!(server.get("/v1/executions/a/journal").await.status, 200);
    server.stop().await;
}
