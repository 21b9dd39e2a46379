//! A server with its store, on a clock that moves only when everybody waits.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch::core::run::Run;
use backstitch::engine::engine::UnknownWorkflows;
use backstitch::engine::program::BoxFuture;
use backstitch::engine::start::{Conflict, Retention, Reuse, StartRequest};
use backstitch::engine::{Clock, Engine, EngineOptions};
use backstitch::store::RunNo;
use backstitch::store::memory::MemoryStore;
use backstitch::{App, Backstitch, Builder, Payload, Row};
use backstitch_server::grpc::{ClientService, WorkerService};
use tokio::time::Instant;
use tonic::transport::Server;

use crate::net::Net;
use crate::world::{EPOCH_US, Effects};

/// A minute, and far more than anything takes that is waited for.
const MOMENTS_MAX: u32 = 60_000;

pub const LEASE: Duration = Duration::from_secs(15);

/// The clock of tokio, which a test can stop.
#[derive(Clone)]
pub struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now_us(&self) -> i64 {
        EPOCH_US + i64::try_from(self.0.elapsed().as_micros()).unwrap()
    }

    fn sleep_until(&self, at_us: i64) -> BoxFuture<()> {
        let us = u64::try_from(at_us - self.now_us()).unwrap_or(0);
        self.sleep(Duration::from_micros(us))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        // tidy: allow-sleep the time of these tests is tokio's, stopped
        Box::pin(tokio::time::sleep(duration))
    }
}

pub struct House {
    pub net: Net,
    pub effects: Effects,
    clock: TokioClock,
    store: Mutex<MemoryStore>,
    engine: Mutex<Engine>,
}

impl House {
    pub async fn new() -> House {
        let clock = TokioClock(Instant::now());
        let now = clock.clone();
        let store = MemoryStore::new(Arc::new(move || now.now_us()));
        let (net, effects) = (Net::new(), Effects::default());
        let engine = serve(&net, &clock, store.clone()).await;
        House { net, effects, clock, store: Mutex::new(store), engine: Mutex::new(engine) }
    }

    pub fn engine(&self) -> Engine {
        self.engine.lock().unwrap().clone()
    }

    /// The server dies, and another one takes its store.
    pub async fn restart(&self) {
        self.net.down();
        let store = {
            let mut store = self.store.lock().unwrap();
            *store = store.reopen();
            store.clone()
        };
        let engine = serve(&self.net, &self.clock, store).await;
        *self.engine.lock().unwrap() = engine;
    }

    /// A program that works for the server.
    pub async fn worker(&self, setup: impl FnOnce(Builder) -> Builder) -> App {
        let builder = Backstitch::open_through(self.net.channel()).state(self.effects.clone());
        setup(builder).run().await.expect("the server takes it on")
    }

    pub async fn start(&self, workflow: &str, id: &str) -> RunNo {
        let request = StartRequest {
            namespace: "default".into(),
            id: id.into(),
            workflow: workflow.into(),
            version: "1".into(),
            input: Payload::json("null"),
            conflict: Conflict::default(),
            reuse: Reuse::default(),
            started_by: String::new(),
            request_id: String::new(),
            deadline: None,
            retention: Retention::default(),
            attributes: Vec::new(),
            restart: None,
        };
        self.engine().start(request).await.expect("it can be started").run
    }

    pub async fn settled(&self, run: RunNo) -> Arc<Run> {
        let engine = self.engine();
        let settled = tokio::time::timeout(Duration::from_secs(86_400), engine.settled(run));
        settled.await.expect("it comes to an end within a day").expect("it can be read")
    }

    pub async fn rows(&self, run: RunNo) -> Vec<Row> {
        self.engine().journal(run).await.expect("it can be read")
    }

    /// The names of the events of a journal, in order.
    pub async fn events(&self, run: RunNo) -> Vec<&'static str> {
        let rows = self.rows(run).await;
        rows.iter().flat_map(|row| row.events.iter().map(|event| event.name())).collect()
    }

    /// Waits until so many runs are leased.
    pub async fn until_leased(&self, runs: usize) {
        let leased = || self.engine().workers().iter().map(|worker| worker.leased).sum::<usize>();
        for _ in 0..MOMENTS_MAX {
            if leased() == runs {
                return;
            }
            moment().await;
        }
        panic!("{} runs are leased, and not {runs}", leased());
    }

    /// Waits until the journal has an event of this name.
    pub async fn until_event(&self, run: RunNo, name: &str) {
        for _ in 0..MOMENTS_MAX {
            if self.events(run).await.contains(&name) {
                return;
            }
            moment().await;
        }
        panic!("{name} never came: {:?}", self.events(run).await);
    }
}

/// Lets everything happen that can happen now.
pub async fn moment() {
    // tidy: allow-sleep the clock stands still as long as anything can happen
    tokio::time::sleep(Duration::from_millis(1)).await;
}

async fn serve(net: &Net, clock: &TokioClock, store: MemoryStore) -> Engine {
    let options = EngineOptions {
        lease: Some(LEASE),
        unknown_workflows: UnknownWorkflows::Wait,
        ..EngineOptions::default()
    };
    let engine = Engine::run(Arc::new(store), Arc::new(clock.clone()), Vec::new(), options).await;
    let engine = engine.expect("the store opens");
    let service = WorkerService::server(engine.clone());
    let arriving = futures_util::stream::unfold(net.listen(), |mut arriving| async {
        arriving.recv().await.map(|arrived| (arrived, arriving))
    });
    let router = Server::builder().add_service(service);
    let router = router.add_service(ClientService::server(engine.clone()));
    tokio::spawn(router.serve_with_incoming(arriving));
    engine
}
