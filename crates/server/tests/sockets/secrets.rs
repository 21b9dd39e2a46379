//! What people send stands in the store, and never in the log.

use backstitch::{Backstitch, Ctx, FailureExt, Workflow, msg, workflow_fn};
use serde_json::{Value, json};

use crate::binary::{Folder, Running, command};
use crate::line::Line;

/// Stands in everything that is a secret here, and in no name.
const SECRET: &str = "s3cr3t";

fn secret(of: &str) -> String {
    format!("{SECRET}-{of}")
}

/// Returns what its step and an event have told it; fails for good if the event says so.
fn careful() -> impl Workflow<Input = Value, Output = Value> {
    workflow_fn("careful", |ctx: Ctx, input: Value| async move {
        let step = ctx.step("look", async |_s| Ok(secret("step"))).rollback(async |_u| Ok(()));
        let step = step.await?;
        let event = ctx.wait_event::<Value>("go", "go", backstitch::NoTimeout).await?;
        if event["fail"] == true {
            return Err(msg("no").permanent());
        }
        Ok(json!([step, event, input, secret("output")]))
    })
}

struct Logged {
    server: Running,
    address: std::net::SocketAddr,
    folder: Folder,
}

impl Logged {
    fn begin(name: &str) -> Logged {
        let folder = Folder::new(name);
        let mut server = command(&folder.0);
        server.args(["server", "--listen", "127.0.0.1:0", "--log", "trace"]);
        let server = Running::begin(server);
        let address = server.url.trim().trim_start_matches("http://").parse().expect("an address");
        Logged { server, address, folder }
    }

    async fn ask(&self, method: &str, path: &str, more: &str, body: &str) -> String {
        let mut line = Line::to(self.address).await;
        line.say(format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n{more}\r\n{body}",
            body.len()
        ))
        .await;
        line.text().await
    }

    async fn post(&self, path: &str, body: &str) -> String {
        let key = format!("{}-{}", path.replace('/', "-"), body.len());
        let key = format!("idempotency-key: {}\r\n", secret(&key));
        self.ask("POST", path, &key, body).await
    }

    /// The log tells of these, and of nothing secret.
    fn end(self, tells: &[&str]) {
        let ended = self.server.stop();
        assert_eq!(ended.exit, 0);
        for line in ended.err.lines() {
            assert!(!line.contains(SECRET), "{line}");
        }
        for words in tells {
            assert!(ended.err.contains(words), "it is no log without {words:?}");
        }
        drop(self.folder);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_through_http_and_a_worker_is_not_logged() {
    let logged = Logged::begin("secrets");
    let url = logged.server.url.trim().to_owned();
    let worker = Backstitch::open(&url).register(careful()).run().await.expect("it connects");
    for (id, fail) in [("good", false), ("bad", true)] {
        let input = json!({
            "id": id, "workflow": "careful", "version": "1", "input": {"is": secret("input")}
        });
        let started = logged.post("/v1/executions", &input.to_string()).await;
        assert!(started.starts_with("HTTP/1.1 201"), "{started}");
        let event = json!({"type": "go", "payload": {"is": secret("event"), "fail": fail}});
        let path = format!("/v1/executions/{id}/events");
        let sent = logged.post(&path, &event.to_string()).await;
        assert!(sent.starts_with("HTTP/1.1 200"), "{sent}");
        let path = format!("/v1/executions/{id}/result?wait_ms=50000");
        let result = logged.ask("GET", &path, "", "").await;
        assert!(result.starts_with("HTTP/1.1 200"), "{result}");
        assert_eq!(result.contains(&secret("output")), !fail, "{result}");
        let path = format!("/v1/executions/{id}/journal");
        let journal = logged.ask("GET", &path, "", "").await;
        assert!(journal.contains(&secret("step")), "{journal}");
        let path = format!("/v1/executions/{id}/timeline");
        assert!(logged.ask("GET", &path, "", "").await.starts_with("HTTP/1.1 200"));
    }
    // The same through gRPC, which a caller in Rust speaks.
    let client = Backstitch::connect(&url).await.expect("it connects");
    let handle = client.start(careful(), "mine", json!(secret("input"))).await.expect("it starts");
    let event = json!({"is": secret("event")});
    handle.send_event("go", &event).id(secret("event-id")).await.expect("it is sent");
    assert!(handle.result().await.expect("it succeeds").to_string().contains(SECRET));
    client.close().await.expect("it closes");
    worker.shutdown().await.expect("it closes");
    logged.end(&["request", "worker connected", "execution closed", "good", "TRACE"]);
}

#[tokio::test]
async fn what_is_refused_is_not_logged() {
    let logged = Logged::begin("refused-secrets");
    let good = json!({"id": "a", "workflow": "w", "version": "1", "input": secret("input")});
    assert!(logged.post("/v1/executions", &good.to_string()).await.starts_with("HTTP/1.1 201"));
    let large = format!("\"{}\"", secret(&"x".repeat(2_000_000)));
    let bodies = [
        // Other input under an id that is in use, an unknown field, wrong types, no JSON, too much of it.
        json!({"id": "a", "workflow": "w", "version": "1", "input": secret("another")}).to_string(),
        json!({"id": "b", "workflow": "w", "version": "1", (secret("field")): 1}).to_string(),
        json!({"id": "b", "workflow": "w", "version": "1", "conflict": secret("word")}).to_string(),
        json!({"id": "b", "workflow": "w", "version": "1", "deadline": secret("time")}).to_string(),
        json!([secret("list")]).to_string(),
        format!("{{\"id\":\"b\",\"input\":\"{}\"", secret("half")),
        large,
    ];
    for body in &bodies {
        for path in ["/v1/executions", "/v1/executions/a/events", "/v1/executions/a/cancel"] {
            let answer = logged.post(path, body).await;
            assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
        }
    }
    let by = format!("/v1/executions?cursor={}", secret("query"));
    assert!(logged.ask("GET", &by, "", "").await.starts_with("HTTP/1.1 422"));
    let header = format!("last-event-id: {}\r\naccept: text/event-stream\r\n", secret("header"));
    let journal = logged.ask("GET", "/v1/executions/a/journal", &header, "").await;
    assert!(journal.starts_with("HTTP/1.1 400"), "{journal}");
    let mut line = Line::to(logged.address).await;
    line.say(format!("{}\r\n\r\n", secret("head"))).await;
    assert!(line.text().await.starts_with("HTTP/1.1 400"));
    let mut line = Line::to(logged.address).await;
    line.say(format!("POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n", secret("length"))).await;
    assert!(line.text().await.starts_with("HTTP/1.1 400"));
    logged.end(&["request", "422", "413", "409", "DEBUG"]);
}
