//! Stopping while connections are in the middle of something.

use crate::binary::{Folder, Running, Said, command};
use crate::line::{HEALTH_AND_STAY, Line};

/// A server with an execution that waits for a worker, and peers that wait for it.
struct Busy {
    server: Running,
    idle: Line,
    stream: Line,
    waits: Line,
    folder: Folder,
}

const OF_STREAM: &str = "GET /v1/executions/a/journal HTTP/1.1\r\nhost: localhost\r\n\
                         accept: text/event-stream\r\n\r\n";
const OF_RESULT: &str =
    "GET /v1/executions/a/result?wait_ms=50000 HTTP/1.1\r\nhost: localhost\r\n\r\n";

async fn busy(name: &str) -> Busy {
    let folder = Folder::new(name);
    let mut server = command(&folder.0);
    server.args(["server", "--store", "sqlite:a.db", "--listen", "127.0.0.1:0"]);
    server.args(["--stop-grace", "1h", "--log", "debug"]);
    let server = Running::begin(server);
    let started = server.ask(&folder, &["start", "else", "a", "--workflow-version", "1"]);
    assert_eq!(started.exit, 0, "{started:?}");
    let address = server.url.trim().trim_start_matches("http://").parse().expect("an address");
    let mut idle = Line::to(address).await;
    idle.say(HEALTH_AND_STAY).await;
    idle.until("ok\n").await;
    let mut stream = Line::to(address).await;
    stream.say(OF_STREAM).await;
    stream.until("id: 1").await;
    let mut waits = Line::to(address).await;
    waits.say(OF_RESULT).await;
    waits.until_read().await;
    Busy { server, idle, stream, waits, folder }
}

impl Busy {
    /// The first signal, and what everybody is told at it.
    async fn stop(mut self) -> (Running, Folder) {
        self.server.signal("-TERM");
        assert_eq!(self.idle.text().await, "");
        let told = self.stream.text().await;
        assert!(told.contains("event: problem") && told.contains("\"stopped\""), "{told:?}");
        let told = self.waits.text().await;
        assert!(told.starts_with("HTTP/1.1 503") && told.contains("\"stopped\""), "{told:?}");
        (self.server, self.folder)
    }
}

fn is_kept(folder: &Folder) {
    let shown = crate::binary::run(folder, &["--store", "sqlite:a.db", "list"]);
    assert!(shown.out.contains("pending"), "{shown:?}");
}

#[tokio::test]
async fn one_signal_ends_everything_in_order() {
    let (server, folder) = busy("once").await.stop().await;
    let Said { exit, err, .. } = server.end();
    assert!(exit == 0 && err.contains("stopped") && !err.contains("at once"), "{err}");
    is_kept(&folder);
}

#[tokio::test]
async fn a_second_signal_ends_the_server_at_once() {
    let busy = busy("twice").await;
    // It holds up the stop, for as long as a body may take.
    let mut held = Line::to(busy.idle.0.peer_addr().expect("it is connected")).await;
    let head = "POST /v1/executions HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n";
    held.say(head).await;
    held.until("100 Continue").await;
    let (server, folder) = busy.stop().await;
    server.signal("-TERM");
    let Said { exit, err, .. } = server.end();
    assert_eq!(exit, 4, "{err}");
    assert!(err.contains("stopped at once, at the second signal"), "{err}");
    assert!(held.text().await.is_empty());
    is_kept(&folder);
}
