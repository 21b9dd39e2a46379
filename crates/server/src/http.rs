//! The HTTP API: thin over [`service`](crate::service).
//!
//! A connection is taken and bounded by `connections`, and by `refused`, `slow` and `streams`; a request goes through
//! `router`, is read by `reading`, and answered by one of the handlers.
//!
//! **Invariant:** whatever is wrong with a request, the answer is an `application/problem+json` that
//! names it, and inputs and outputs never reach a log.

pub mod limits;

mod connections;
mod refused;
mod router;
mod slow;
mod streams;

mod answer;
mod reading;

mod executions;
mod health;
mod journal;
mod openapi;
mod verbs;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

pub(crate) use executions::attribute_of;
pub use limits::Limits;
pub use openapi::document;

use crate::service::Service;

/// How the API is served.
#[derive(Clone, Copy, Debug, Default)]
pub struct HttpOptions {
    /// Something that could run and has waited for a worker for longer makes the server not ready.
    pub ready_pending_max: Option<Duration>,
    /// What one caller can ask for.
    pub limits: Limits,
}

/// What every handler knows.
#[derive(Clone)]
struct Shared {
    service: Service,
    options: HttpOptions,
    /// One permit per journal that is followed.
    streams: Arc<Semaphore>,
    /// True when the server stops: whoever waits for something is told so.
    stop: watch::Receiver<bool>,
}

/// A server of the API, which is stopped by [`HttpServer::stop`].
pub struct HttpServer {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    served: tokio::task::JoinHandle<()>,
}

impl HttpServer {
    /// Serves the API on `listener`, until it is stopped.
    ///
    /// # Errors
    /// When the address of the listener cannot be found out.
    pub fn begin(
        listener: TcpListener,
        service: Service,
        options: HttpOptions,
    ) -> std::io::Result<HttpServer> {
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let streams = Arc::new(Semaphore::new(limits::STREAMS_MAX));
        let shared = Shared { service, options, streams, stop: stopped.clone() };
        let router = router::router(shared, address);
        let served = tokio::spawn(connections::serve(listener, router, options.limits, stopped));
        Ok(HttpServer { address, stop, served })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no further connections, and waits until the requests under way are answered, for as long
    /// as `grace`.
    pub async fn stop(self, grace: Duration) {
        self.stop.send_replace(true);
        if tokio::time::timeout(grace, self.served).await.is_err() {
            tracing::warn!("requests were still under way at the end of the grace period");
        }
    }
}
