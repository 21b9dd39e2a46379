//! One connection, byte by byte.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use backstitch_server::http::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Nothing here takes so long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Longer than any test.
pub const NEVER: Duration = Duration::from_secs(3_600);

const LOOK: Duration = Duration::from_millis(10);

/// A request for the health of a server, after which the connection is closed.
pub const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// The same, after which it stays open.
pub const HEALTH_AND_STAY: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// Bounds that no test comes near.
pub fn no_limits() -> Limits {
    Limits {
        place_time_max: NEVER,
        head_time_max: NEVER,
        body_time_max: NEVER,
        write_time_max: NEVER,
        beat_every: NEVER,
        idle_time_max: NEVER,
        hello_time_max: NEVER,
        ..Limits::default()
    }
}

/// What it comes to, if it does.
pub async fn soon<T>(what: &str, coming: impl Future<Output = T>) -> T {
    let came = tokio::time::timeout(PATIENCE, coming).await;
    came.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}

/// Waits until it is so.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    soon(what, async {
        while !is_so().await {
            // tidy: allow-sleep the other side is the system, or another process
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
}

pub struct Line(pub TcpStream);

impl Line {
    pub async fn to(address: SocketAddr) -> Line {
        Line(TcpStream::connect(address).await.expect("it listens"))
    }

    /// Sends bytes; one that the other side has closed already takes none.
    pub async fn say(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.0.write_all(bytes.as_ref()).await;
    }

    /// Everything that comes until the other side closes.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // One that is closed with something unread is reset.
        let _ = soon("the server closes", self.0.read_to_end(&mut bytes)).await;
        bytes
    }

    pub async fn text(&mut self) -> String {
        String::from_utf8_lossy(&self.rest().await).into_owned()
    }

    /// Reads until these words have come.
    pub async fn until(&mut self, words: &str) -> String {
        let mut text = String::new();
        let mut bytes = [0; 4096];
        while !text.contains(words) {
            let read = soon(words, self.0.read(&mut bytes)).await.expect("it is open");
            assert!(read > 0, "closed before {words:?}: {text:?}");
            text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        text
    }

    /// Waits until the other side, on this machine, has read all that was said.
    pub async fn until_read(&self) {
        let ours = self.0.local_addr().expect("it is connected").port();
        let theirs = self.0.peer_addr().expect("it is connected").port();
        let (ours, theirs) = (format!(":{ours:04X}"), format!(":{theirs:04X}"));
        eventually("all is read", async || {
            let sockets = std::fs::read_to_string("/proc/net/tcp").expect("Linux has it");
            // number, local address, remote address, state, bytes to be sent and to be read
            sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|line| {
                line[1].ends_with(&theirs)
                    && line[2].ends_with(&ours)
                    && line[4].ends_with(":00000000")
            })
        })
        .await;
    }

    /// Is gone without a farewell.
    pub fn vanish(self) {
        self.0.set_zero_linger().expect("it is a socket");
    }
}

/// The tasks of this test, in which the server is.
pub fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// What the server says of its health on a connection of its own.
pub async fn health(address: SocketAddr) -> String {
    let mut line = Line::to(address).await;
    line.say(HEALTH).await;
    line.text().await
}
