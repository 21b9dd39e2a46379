//! Asking a server over HTTP.

use std::time::Duration;

use backstitch_api::http::Problem;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;

use super::fault::{Fault, UNREACHABLE, USAGE};

/// How long connecting may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a server may be silent: longer than it waits for a result, and than its streams are between two beats.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A server.
#[derive(Clone)]
pub struct Remote {
    authority: String,
}

/// An answer that comes piece by piece.
pub struct Coming {
    from: Remote,
    body: Incoming,
}

impl Coming {
    /// The next piece; `None` at the end.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, Fault> {
        match self.from.in_time(SILENCE_MAX, self.body.frame()).await? {
            None => Ok(None),
            Some(frame) => {
                let frame = frame.map_err(|error| self.from.broken(&error))?;
                Ok(Some(frame.into_data().unwrap_or_default()))
            }
        }
    }

    async fn whole(mut self) -> Result<Vec<u8>, Fault> {
        let mut whole = Vec::new();
        while let Some(piece) = self.piece().await? {
            whole.extend(piece);
        }
        Ok(whole)
    }
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
        // A `#` and what follows it is not in what was read.
        if uri.query().is_some() || url.contains('#') {
            return Err(wrong("it has more than a host and a port"));
        }
        let given = uri.authority().map_or("", |authority| authority.as_str());
        if given.contains('@') {
            return Err(wrong("it has a name or a password, and servers know none"));
        }
        let host =
            uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it has no host"))?;
        let port = match given.strip_prefix(host) {
            Some("") => 80,
            _ => uri.port_u16().ok_or_else(|| wrong("its port is none; a port is 1 to 65535"))?,
        };
        Ok(Remote { authority: format!("{host}:{port}") })
    }

    /// Asks, and reads the answer.
    pub async fn ask<T: DeserializeOwned>(&self, asking: Asking<'_>) -> Result<T, Fault> {
        let bytes = self.bytes(asking).await?;
        serde_json::from_slice(&bytes).map_err(|why| self.not_ours(&why.to_string()))
    }

    /// Asks, and gives the answer as it is.
    pub async fn bytes(&self, asking: Asking<'_>) -> Result<Vec<u8>, Fault> {
        self.send(asking).await?.whole().await
    }

    /// Asks, and gives the answer as it comes.
    pub async fn send(&self, asking: Asking<'_>) -> Result<Coming, Fault> {
        let connecting = TcpStream::connect(&self.authority);
        let stream = self.in_time(CONNECT_TIME_MAX, connecting).await?;
        let stream = stream.map_err(|error| self.away(&error))?;
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
        let response = self.in_time(SILENCE_MAX, sender.send_request(request)).await?;
        let response = response.map_err(|error| self.broken(&error))?;
        let status = response.status();
        let coming = Coming { from: self.clone(), body: response.into_body() };
        match status.is_success() {
            true => Ok(coming),
            false => Err(self.refusal(status, coming).await),
        }
    }

    async fn refusal(&self, status: StatusCode, coming: Coming) -> Fault {
        match coming.whole().await {
            Err(fault) => fault,
            Ok(body) => match serde_json::from_slice::<Problem>(&body) {
                Ok(problem) => problem.into(),
                Err(_) => self.not_ours(&format!("it answers {status}")),
            },
        }
    }

    async fn in_time<T>(&self, most: Duration, what: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::time::timeout(most, what).await.map_err(|_| {
            let message = format!(
                "the server at http://{} does not answer: nothing came from it for {} s; look at what it \
                 does, and ask again",
                self.authority,
                most.as_secs()
            );
            Fault::new(UNREACHABLE, message)
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    /// Asks a server that says no more than `words`. The clock stands still but when nothing else happens.
    async fn ask_one_that_says(words: &str) -> Fault {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let address = listener.local_addr().expect("it has one");
        let remote = Remote::new(&format!("http://{address}")).expect("that is a URL");
        let silent = async {
            let (mut stream, _) = listener.accept().await.expect("it is asked");
            stream.write_all(words.as_bytes()).await.expect("it is read");
            std::future::pending::<()>().await;
        };
        tokio::select! {
            answer = remote.ask::<serde_json::Value>(Asking::get(vec!["v1"])) => answer.expect_err("no answer"),
            () = silent => unreachable!("it is silent for ever"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_falls_silent_is_given_up() {
        for words in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"] {
            let Fault::Told { exit, message } = ask_one_that_says(words).await else {
                panic!("{words:?}: it is told");
            };
            assert_eq!(exit, UNREACHABLE, "{message}");
            assert!(message.contains("the server at http://127.0.0.1:"), "{message}");
        }
    }
}
