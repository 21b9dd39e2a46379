//! A network between workers and a server, in memory, which breaks when the test says so.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};

const BUFFER_BYTES: usize = 64 * 1024;

type Arrivals = mpsc::UnboundedSender<io::Result<DuplexStream>>;

#[derive(Clone)]
pub struct Net(Arc<State>);

struct State {
    /// Where connections arrive; nowhere while the server is down.
    server: Mutex<Option<Arrivals>>,
    wires: Mutex<Vec<AbortHandle>>,
    /// Whether what the workers say is held up, and what the server says.
    to_server: watch::Sender<bool>,
    to_worker: watch::Sender<bool>,
    from_server: Arc<AtomicUsize>,
}

impl Net {
    pub fn new() -> Net {
        Net(Arc::new(State {
            server: Mutex::default(),
            wires: Mutex::default(),
            to_server: watch::Sender::new(false),
            to_worker: watch::Sender::new(false),
            from_server: Arc::default(),
        }))
    }

    /// Connections arrive here from now on.
    pub fn listen(&self) -> mpsc::UnboundedReceiver<io::Result<DuplexStream>> {
        let (arrivals, arriving) = mpsc::unbounded_channel();
        *self.0.server.lock().unwrap() = Some(arrivals);
        arriving
    }

    /// There is no server any more.
    pub fn down(&self) {
        *self.0.server.lock().unwrap() = None;
        self.cut();
    }

    /// A worker's way to the server.
    pub fn channel(&self) -> Channel {
        Endpoint::from_static("http://server").connect_with_connector_lazy(self.clone())
    }

    /// Breaks all connections; what is on its way is lost.
    pub fn cut(&self) {
        self.0.wires.lock().unwrap().drain(..).for_each(|wire| wire.abort());
    }

    /// Holds up what the server says.
    pub fn hold_to_worker(&self) {
        self.0.to_worker.send_replace(true);
    }

    /// Holds up what either side says.
    pub fn hold(&self) {
        self.0.to_server.send_replace(true);
        self.hold_to_worker();
    }

    /// Delivers what was held up.
    pub fn release(&self) {
        self.0.to_server.send_replace(false);
        self.0.to_worker.send_replace(false);
    }

    /// What the server has said so far, to everybody.
    pub fn bytes_from_server(&self) -> usize {
        self.0.from_server.load(Ordering::SeqCst)
    }

    fn connect(&self) -> io::Result<DuplexStream> {
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let server = self.0.server.lock().unwrap();
        let arrivals = server.as_ref().ok_or_else(refused)?;
        let (worker, worker_end) = duplex(BUFFER_BYTES);
        let (server, server_end) = duplex(BUFFER_BYTES);
        arrivals.send(Ok(server)).map_err(|_| refused())?;
        let (from_worker, to_worker) = split(worker_end);
        let (from_server, to_server) = split(server_end);
        let (asked, said) = (Arc::default(), self.0.from_server.clone());
        let wires = [
            tokio::spawn(carry(from_worker, to_server, self.0.to_server.subscribe(), asked)),
            tokio::spawn(carry(from_server, to_worker, self.0.to_worker.subscribe(), said)),
        ];
        self.0.wires.lock().unwrap().extend(wires.map(|wire| wire.abort_handle()));
        Ok(worker)
    }
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut held: watch::Receiver<bool>,
    bytes_carried: Arc<AtomicUsize>,
) {
    let mut bytes = vec![0; BUFFER_BYTES];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        let free = held.wait_for(|held| !held).await.is_ok();
        if !free || to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
        bytes_carried.fetch_add(read, Ordering::SeqCst);
    }
}

impl Service<Uri> for Net {
    type Response = TokioIo<DuplexStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connected = self.connect().map(TokioIo::new);
        Box::pin(std::future::ready(connected))
    }
}
