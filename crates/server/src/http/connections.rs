//! Taking connections, and letting go of them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::limits::{
    BEAT_EVERY, CONNECTIONS_MAX, HEAD_BYTES_MAX, HEAD_TIME_MAX, HEADERS_MAX,
    STREAMS_PER_CONNECTION_MAX, WRITE_TIME_MAX,
};
use super::slow::Impatient;

/// How long to wait when the process has no more files for connections.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves until it is to stop, and then until the requests under way are answered.
pub(super) async fn serve(listener: TcpListener, router: Router, stop: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let under_way = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    let mut stopped = stop.clone();
    loop {
        let accepted = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            accepted = async {
                let place = places.clone().acquire_owned().await.expect("it is never closed");
                (listener.accept().await, place)
            } => accepted,
        };
        let (stream, place) = match accepted {
            (Ok((stream, _)), place) => (stream, place),
            (Err(error), _) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let serving = serve_one(stream, http.clone(), router.clone(), under_way.watcher());
        tokio::spawn(async move {
            if let Err(error) = serving.await {
                tracing::debug!(error, "a connection broke");
            }
            drop(place);
        });
    }
    drop(listener);
    under_way.shutdown().await;
}

/// Serves one connection, in the HTTP that its first bytes speak.
async fn serve_one(
    stream: TcpStream,
    http: http1::Builder,
    router: Router,
    under_way: Watcher,
) -> Result<(), String> {
    // An answer is written at once; there is nothing to gather.
    let _ = stream.set_nodelay(true);
    let spoken = tokio::time::timeout(HEAD_TIME_MAX, spoken(&stream)).await;
    let spoken = spoken.map_err(|_| "nothing came".to_owned())?.map_err(|e| e.to_string())?;
    let stream = TokioIo::new(Impatient::new(stream, WRITE_TIME_MAX));
    let service = TowerToHyperService::new(router);
    let served = match spoken {
        Spoken::Http1 => under_way.watch(http.serve_connection(stream, service)).await,
        Spoken::Http2 => {
            let mut http = http2::Builder::new(TokioExecutor::new());
            http.timer(TokioTimer::new())
                .keep_alive_interval(BEAT_EVERY)
                .keep_alive_timeout(BEAT_EVERY)
                .max_header_list_size(HEAD_BYTES_MAX as u32)
                .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX);
            under_way.watch(http.serve_connection(stream, service)).await
        }
    };
    served.map_err(|error| error.to_string())
}

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoken {
    Http1,
    /// Without TLS nothing is agreed on before: it begins with what no other HTTP begins with.
    Http2,
}

/// The first bytes of a connection in HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long to wait before a beginning that is too short to tell is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

async fn spoken(stream: &TcpStream) -> std::io::Result<Spoken> {
    let mut first = [0; PREFACE.len()];
    loop {
        let bytes = stream.peek(&mut first).await?;
        if bytes == 0 || first[..bytes] != PREFACE[..bytes] {
            return Ok(Spoken::Http1);
        }
        if bytes == PREFACE.len() {
            return Ok(Spoken::Http2);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
