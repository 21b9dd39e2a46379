//! A server on a store in memory, and the simplest client there is.

use std::net::SocketAddr;
use std::time::Duration;

use backstitch::{App, Backstitch, Builder, Ctx, FailureExt, NoTimeout, Result, msg, workflow};
use backstitch_server::http::{HttpOptions, HttpServer};
use backstitch_server::service::Service;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Waits for `go`, and fails if it says so.
#[workflow]
pub async fn gate(ctx: Ctx, _input: serde_json::Value) -> Result<String> {
    ctx.step("open", async |_s| Ok(1)).rollback(async |_u| Ok(())).await?;
    ctx.wait_event::<serde_json::Value>("go", "go", NoTimeout).await?;
    Ok("through".to_owned())
}

/// Its undo fails for good.
#[workflow]
pub async fn owing(ctx: Ctx, _input: serde_json::Value) -> Result<()> {
    ctx.step("borrow", async |_s| Ok(1))
        .rollback(async |_u| Err(msg("nothing to give back").permanent()))
        .await?;
    Err(msg("no").permanent())
}

/// Its steps return much.
#[workflow]
pub async fn bulky(ctx: Ctx, _input: serde_json::Value) -> Result<()> {
    for _ in 0..24 {
        ctx.step("fetch", async |_s| Ok("x".repeat(900_000))).await?;
    }
    Ok(())
}

pub struct Server {
    pub app: App,
    pub address: SocketAddr,
    http: HttpServer,
}

/// What a server has answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// A text in the answer.
    pub fn at(&self, pointer: &str) -> String {
        let json = self.json();
        let found = json.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {json}"));
        found.as_str().map_or_else(|| found.to_string(), str::to_owned)
    }
}

impl Server {
    pub async fn begin() -> Server {
        let builder = Backstitch::open("memory:").register(gate).register(owing).register(bulky);
        Server::with(builder, HttpOptions::default()).await
    }

    pub async fn with(builder: Builder, options: HttpOptions) -> Server {
        let app = builder.run().await.expect("memory is there");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let service = Service::new((*app).clone());
        let http = HttpServer::begin(listener, service, options).expect("it has an address");
        Server { app, address: http.address(), http }
    }

    pub async fn stop(self) {
        self.stop_within(Duration::from_secs(60)).await;
    }

    pub async fn stop_within(self, grace: Duration) {
        self.http.stop(grace).await;
        self.app.shutdown().await.expect("memory closes");
    }

    /// Sends bytes and reads until the server closes the connection.
    pub async fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        // A server may answer, and close, before it has read everything.
        let _ = stream.write_all(request).await;
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        let all = String::from_utf8(bytes).expect("answers are text");
        let (head, text) =
            all.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {all:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Answer { status: status.expect("a status"), head: head.to_owned(), text: text.to_owned() }
    }

    /// `headers` are whole lines.
    pub async fn ask(&self, method: &str, target: &str, headers: &[&str], body: &str) -> Answer {
        let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let request = format!(
            "{method} {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\
             {headers}\r\n{body}",
            self.address,
            body.len()
        );
        self.raw(request.as_bytes()).await
    }

    pub async fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &[], "").await
    }

    pub async fn post(&self, target: &str, body: &str) -> Answer {
        self.ask("POST", target, &["content-type: application/json"], body).await
    }

    pub async fn post_as(&self, key: &str, target: &str, body: &str) -> Answer {
        let key = format!("idempotency-key: {key}");
        self.ask("POST", target, &["content-type: application/json", &key], body).await
    }

    /// Waits until the engine knows of a run that could go on and has nobody.
    pub async fn until_pending(&self) {
        while self.app.engine().pending_since(i64::MAX, 1).is_empty() {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until it knows of none.
    pub async fn until_nothing_is_pending(&self) {
        while !self.app.engine().pending_since(i64::MAX, 1).is_empty() {
            tokio::task::yield_now().await;
        }
    }

    /// Starts `gate` and waits until it waits.
    pub async fn gate(&self, id: &str) {
        let started =
            self.post("/v1/executions", &format!(r#"{{"id":"{id}","workflow":"gate"}}"#)).await;
        assert_eq!(started.status, 201, "{started:?}");
        let handle = self.app.handle::<String>(id).await.expect("it was started");
        let waits = |status: &backstitch::ExecutionStatus| {
            status.waits_for.iter().any(|waits| matches!(waits, backstitch::WaitsFor::Event { .. }))
        };
        handle.until(waits).await.expect("it comes there");
    }
}
