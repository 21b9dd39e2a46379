//! Asking a server over HTTP.

use backstitch_api::http::Problem;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;

use super::fault::{Fault, UNREACHABLE, USAGE};

/// A server.
pub struct Remote {
    authority: String,
}

/// One request.
pub struct Asking<'a> {
    pub method: Method,
    /// What is asked for: the pieces of the path, which are escaped here.
    pub path: Vec<&'a str>,
    /// Each with a name, where there is one.
    pub query: Vec<(&'static str, Option<String>)>,
    /// JSON.
    pub body: Option<String>,
    pub request_id: Option<String>,
    pub accept: &'static str,
}

impl<'a> Asking<'a> {
    pub fn get(path: Vec<&'a str>) -> Asking<'a> {
        let accept = "application/json";
        Asking {
            method: Method::GET,
            path,
            query: Vec::new(),
            body: None,
            request_id: None,
            accept,
        }
    }

    pub fn post<T: Serialize>(path: Vec<&'a str>, body: &T, request_id: Option<String>) -> Self {
        let body = Some(serde_json::to_string(body).expect("requests are JSON by their types"));
        Asking { method: Method::POST, body, request_id, ..Asking::get(path) }
    }

    pub fn with(mut self, name: &'static str, value: Option<String>) -> Self {
        self.query.push((name, value));
        self
    }

    fn target(&self) -> String {
        let mut target: String =
            self.path.iter().map(|piece| format!("/{}", escape(piece))).collect();
        let given = self.query.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        for (i, (name, value)) in given.enumerate() {
            target.push(if i == 0 { '?' } else { '&' });
            target.push_str(&format!("{name}={}", escape(value)));
        }
        target
    }
}

impl Remote {
    /// A server by its URL.
    pub fn new(url: &str) -> Result<Remote, Fault> {
        let wrong = |why: &str| {
            let message =
                format!("--server {url:?}: {why}; write for example http://127.0.0.1:7070");
            Fault::new(USAGE, message)
        };
        let uri: Uri = url.parse().map_err(|_| wrong("that is no URL"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(wrong("the command line speaks no TLS")),
            Some(_) | None => return Err(wrong("it does not begin with http://")),
        }
        if !matches!(uri.path(), "" | "/") {
            return Err(wrong("it has a path"));
        }
        let host = uri.host().ok_or_else(|| wrong("it has no host"))?;
        Ok(Remote { authority: format!("{host}:{}", uri.port_u16().unwrap_or(80)) })
    }

    /// Asks, and reads the answer.
    pub async fn ask<T: DeserializeOwned>(&self, asking: Asking<'_>) -> Result<T, Fault> {
        let bytes = self.bytes(asking).await?;
        serde_json::from_slice(&bytes).map_err(|why| self.not_ours(&why.to_string()))
    }

    /// Asks, and gives the answer as it is.
    pub async fn bytes(&self, asking: Asking<'_>) -> Result<Bytes, Fault> {
        let response = self.send(asking).await?;
        let body = response.into_body().collect().await;
        Ok(body.map_err(|error| self.broken(&error))?.to_bytes())
    }

    /// Asks, and gives the answer as it comes.
    pub async fn send(&self, asking: Asking<'_>) -> Result<Response<Incoming>, Fault> {
        let stream =
            TcpStream::connect(&self.authority).await.map_err(|error| self.away(&error))?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| self.broken(&error))?;
        tokio::spawn(async move { drop(connection.await) });
        let target = asking.target();
        let mut request = Request::builder()
            .method(asking.method)
            .uri(target)
            .header(HOST, &self.authority)
            .header(ACCEPT, asking.accept);
        if let Some(id) = &asking.request_id {
            request = request.header("idempotency-key", id);
        }
        if asking.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = Full::new(Bytes::from(asking.body.unwrap_or_default()));
        let request = request.body(body).map_err(|error| {
            Fault::new(USAGE, format!("that cannot be sent over HTTP: {error}"))
        })?;
        let response = sender.send_request(request).await.map_err(|error| self.broken(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refusal(response).await)
    }

    async fn refusal(&self, response: Response<Incoming>) -> Fault {
        let status: StatusCode = response.status();
        match response.into_body().collect().await {
            Err(error) => self.broken(&error),
            Ok(body) => match serde_json::from_slice::<Problem>(&body.to_bytes()) {
                Ok(problem) => problem.into(),
                Err(_) => self.not_ours(&format!("it answers {status}")),
            },
        }
    }

    fn away(&self, error: &std::io::Error) -> Fault {
        let message = format!(
            "no server answers at http://{} ({error}); start one with `backstitch dev` or `backstitch \
             server`, say where it is with --server, or ask a file with --store sqlite:PATH",
            self.authority
        );
        Fault::new(UNREACHABLE, message)
    }

    fn broken(&self, error: &hyper::Error) -> Fault {
        let message = format!("the connection to http://{} broke: {error}", self.authority);
        Fault::new(UNREACHABLE, message)
    }

    fn not_ours(&self, why: &str) -> Fault {
        let message = format!(
            "what answers at http://{} is not a server of this version of Backstitch: {why}",
            self.authority
        );
        Fault::new(UNREACHABLE, message)
    }
}

/// Everything but letters, digits and `-._~` as `%XX`.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(byte.into());
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
