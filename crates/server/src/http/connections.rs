//! Taking connections, and letting go of them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::map_response;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use super::limits::{
    HEAD_BYTES_MAX, HEADERS_MAX, Limits, REFUSALS_MAX, RESETS_BY_SERVER_MAX, RESETS_WAITING_MAX,
    STREAMS_PER_CONNECTION_MAX,
};
use super::refused::refuse;
use super::slow::Impatient;
use super::streams::{Streams, in_pieces};

/// How long to wait when the process has no more files for connections.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves until it is to stop, and then until the requests under way are answered.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: watch::Receiver<bool>,
) {
    let under_way = GracefulShutdown::new();
    let serving = Serving::new(router, limits, stop.clone());
    let mut door = Door::new(listener, limits);
    let mut stopped = stop;
    loop {
        let (stream, place) = tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break,
            taken = door.take() => taken,
        };
        let served = serving.clone().serve_one(stream, under_way.watcher());
        tokio::spawn(async move {
            if let Err(error) = served.await {
                tracing::debug!(error, "a connection broke");
            }
            drop(place);
        });
    }
    drop(door);
    under_way.shutdown().await;
}

/// Where connections come in, as many as there are places.
struct Door {
    listener: TcpListener,
    limits: Limits,
    places: Arc<Semaphore>,
    /// One permit per connection that is told that there is no place.
    refusals: Arc<Semaphore>,
    /// Since when there has been no place.
    full_since: Option<Instant>,
}

impl Door {
    fn new(listener: TcpListener, limits: Limits) -> Door {
        let places = Arc::new(Semaphore::new(limits.connections_max));
        let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
        Door { listener, limits, places, refusals, full_since: None }
    }

    /// The next connection that has a place.
    async fn take(&mut self) -> (TcpStream, OwnedSemaphorePermit) {
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            };
            if let Some(place) = self.place().await {
                return (stream, place);
            }
            // Without a permit it is closed without a word.
            if let Ok(permit) = self.refusals.clone().try_acquire_owned() {
                let connections_max = self.limits.connections_max;
                tokio::spawn(async move {
                    refuse(stream, connections_max).await;
                    drop(permit);
                });
            }
        }
    }

    async fn place(&mut self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            self.full_since = None;
            return Some(place);
        }
        let since = match self.full_since {
            Some(since) => since,
            None => {
                let connections = self.limits.connections_max;
                tracing::warn!(connections, "there are as many connections as may be");
                *self.full_since.insert(Instant::now())
            }
        };
        let place = self.places.clone().acquire_owned();
        let place = timeout_at(since + self.limits.place_time_max, place).await.ok()?;
        self.full_since = None;
        Some(place.expect("it is never closed"))
    }
}

/// How connections are served.
#[derive(Clone)]
struct Serving {
    router: Router,
    /// The same, for HTTP/2.
    router2: Router,
    http1: http1::Builder,
    limits: Limits,
    stop: watch::Receiver<bool>,
}

impl Serving {
    fn new(router: Router, limits: Limits, stop: watch::Receiver<bool>) -> Serving {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_time_max)
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX);
        let router2 = router.clone().layer(map_response(in_pieces));
        Serving { router, router2, http1, limits, stop }
    }

    /// Serves one connection, in the HTTP that its first bytes speak.
    async fn serve_one(mut self, stream: TcpStream, under_way: Watcher) -> Result<(), String> {
        // An answer is written at once; there is nothing to gather.
        let _ = stream.set_nodelay(true);
        let spoken = tokio::select! {
            spoken = tokio::time::timeout(self.limits.head_time_max, spoken(&stream)) => spoken,
            // Nothing was asked yet.
            _ = self.stop.wait_for(|stop| *stop) => return Ok(()),
        };
        let spoken = spoken.map_err(|_| "nothing came".to_owned())?.map_err(|e| e.to_string())?;
        let stream = TokioIo::new(Impatient::new(stream, self.limits.write_time_max));
        let served = match spoken {
            Spoken::Http1 => {
                let service = TowerToHyperService::new(self.router);
                under_way.watch(self.http1.serve_connection(stream, service)).await
            }
            Spoken::Http2 => self.serve_http2(stream, under_way).await,
        };
        served.map_err(|error| error.to_string())
    }

    async fn serve_http2(
        mut self,
        stream: TokioIo<Impatient<TcpStream>>,
        under_way: Watcher,
    ) -> hyper::Result<()> {
        let limits = self.limits;
        let streams = Streams::new(limits.write_time_max);
        let mut http2 = http2::Builder::new(streams.clone());
        http2
            .timer(TokioTimer::new())
            .keep_alive_interval(limits.beat_every)
            .keep_alive_timeout(limits.beat_every)
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
            .max_pending_accept_reset_streams(RESETS_WAITING_MAX)
            .max_local_error_reset_streams(RESETS_BY_SERVER_MAX);
        let service = TowerToHyperService::new(self.router2);
        let mut served = pin!(http2.serve_connection(stream, service));
        let is_idle = tokio::select! {
            served = served.as_mut() => return served,
            () = streams.until_idle(limits.idle_time_max) => true,
            _ = self.stop.wait_for(|stop| *stop) => false,
        };
        served.as_mut().graceful_shutdown();
        let end = match is_idle {
            // Nothing is under way but what the peer does not read.
            true => tokio::time::timeout(limits.write_time_max, served).await.unwrap_or(Ok(())),
            false => served.await,
        };
        drop(under_way);
        end
    }
}

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    Http1,
    /// Without TLS nothing is agreed on before: it begins with what no other HTTP begins with.
    Http2,
}

/// The first bytes of a connection in HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long to wait before a beginning that is too short to tell is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Looks at the first bytes of a connection, and leaves them there.
pub(super) async fn spoken(stream: &TcpStream) -> std::io::Result<Spoken> {
    let mut first = [0; PREFACE.len()];
    loop {
        // Looked at before the bytes are: what comes before a close has come then.
        let is_closed = stream.ready(Interest::READABLE).await?.is_read_closed();
        let bytes = stream.peek(&mut first).await?;
        if bytes == 0 || first[..bytes] != PREFACE[..bytes] {
            return Ok(Spoken::Http1);
        }
        if bytes == PREFACE.len() {
            return Ok(Spoken::Http2);
        }
        if is_closed {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
