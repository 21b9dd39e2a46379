//! Taking connections, and letting go of them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::limits::{CONNECTIONS_MAX, HEAD_BYTES_MAX, HEAD_TIME_MAX, HEADERS_MAX, WRITE_TIME_MAX};
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
        // An answer is written at once; there is nothing to gather.
        let _ = stream.set_nodelay(true);
        let stream = TokioIo::new(Impatient::new(stream, WRITE_TIME_MAX));
        let connection = http.serve_connection(stream, TowerToHyperService::new(router.clone()));
        let connection = under_way.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke");
            }
            drop(place);
        });
    }
    drop(listener);
    under_way.shutdown().await;
}
