//! A world for tests: a clock that stands still, a store that outlives "processes", outside
//! effects that are counted, and gates that hold bodies.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use backstitch::engine::ManualClock;
use backstitch::store::Store;
use backstitch::store::memory::MemoryStore;
use backstitch::{App, Backstitch, Builder, ExecutionStatus, Handle, Status, WaitsFor};
use tokio::sync::watch;

/// Longer than anything here takes; only a hang gets there.
const HANG: Duration = Duration::from_secs(30);

/// 2026-01-01T00:00:00Z.
pub const EPOCH_US: i64 = 1_767_225_600_000_000;

pub struct World {
    pub clock: ManualClock,
    pub effects: Effects,
    disk: Mutex<MemoryStore>,
}

impl World {
    pub fn new() -> World {
        let clock = ManualClock::new(EPOCH_US);
        let now = {
            let clock = clock.clone();
            Arc::new(move || backstitch::engine::Clock::now_us(&clock))
        };
        World { clock, effects: Effects::default(), disk: Mutex::new(MemoryStore::new(now)) }
    }

    /// A process on the world's disk. The one before it, if it still runs, is fenced off: it can
    /// write nothing any more, as if it had been killed. The effects are application state.
    pub async fn open(&self, setup: impl FnOnce(Builder) -> Builder) -> App {
        let store = self.reopen();
        self.open_on(Arc::new(store), setup).await
    }

    /// As [`World::open`], on a store that wraps the world's disk.
    pub async fn open_on(
        &self,
        store: Arc<dyn Store>,
        setup: impl FnOnce(Builder) -> Builder,
    ) -> App {
        let builder =
            Backstitch::on(store).clock(Arc::new(self.clock.clone())).state(self.effects.clone());
        setup(builder).run().await.expect("the world opens")
    }

    /// The next owner of the disk.
    pub fn reopen(&self) -> MemoryStore {
        let mut disk = self.disk.lock().unwrap();
        *disk = disk.reopen();
        disk.clone()
    }

    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Moves the clock to the next instant that the execution waits for, as often as it takes to
    /// get `wanted`.
    pub async fn advance_until<T>(&self, handle: &Handle<T>, wanted: Status) -> ExecutionStatus {
        let began = Instant::now();
        loop {
            let status = handle.status().await.unwrap();
            if status.status == wanted {
                return status;
            }
            let next = status.waits_for.iter().filter_map(|waits| match waits {
                WaitsFor::Instant { at_us, .. } => Some(*at_us),
                _ => None,
            });
            if status.run.in_flight.is_empty()
                && let Some(at_us) = next.min()
            {
                self.clock.set(at_us.max(backstitch::engine::Clock::now_us(&self.clock)));
            }
            assert!(began.elapsed() < HANG, "still {:?}, wanted {wanted:?}", status.status);
            tokio::task::yield_now().await;
        }
    }
}

/// Waits until the execution has the status.
pub async fn until<T>(handle: &Handle<T>, wanted: Status) -> ExecutionStatus {
    let began = Instant::now();
    loop {
        let status = handle.status().await.unwrap();
        if status.status == wanted {
            return status;
        }
        assert!(
            began.elapsed() < HANG,
            "still {:?} ({:?}), wanted {wanted:?}",
            status.status,
            status.waits_for
        );
        tokio::task::yield_now().await;
    }
}

/// Waits until `condition` holds.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < HANG, "never came true: {what}");
        tokio::task::yield_now().await;
    }
}

/// The names of the events of a journal, in order.
pub async fn events<T>(handle: &Handle<T>) -> Vec<&'static str> {
    let rows = handle.journal().await.unwrap();
    rows.iter().flat_map(|row| row.events.iter().map(|event| event.name())).collect()
}

/// What really happened outside.
#[derive(Clone)]
pub struct Effects(Arc<watch::Sender<Vec<String>>>);

impl Default for Effects {
    fn default() -> Effects {
        Effects(Arc::new(watch::Sender::new(Vec::new())))
    }
}

impl Effects {
    pub fn add(&self, effect: impl Into<String>) {
        self.0.send_modify(|effects| effects.push(effect.into()));
    }

    pub fn all(&self) -> Vec<String> {
        self.0.borrow().clone()
    }

    pub fn count(&self, effect: &str) -> usize {
        self.0.borrow().iter().filter(|seen| *seen == effect).count()
    }

    /// Waits until `effect` was seen `times` times.
    pub async fn wait_for(&self, effect: &str, times: usize) {
        let mut seen = self.0.subscribe();
        let enough = |all: &Vec<String>| all.iter().filter(|e| *e == effect).count() >= times;
        let waited = tokio::time::timeout(HANG, seen.wait_for(enough)).await;
        assert!(waited.is_ok(), "{effect:?} was not seen {times} times: {:?}", self.all());
    }
}

/// Holds whoever passes until it is opened. Stays open.
#[derive(Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    pub fn closed() -> Gate {
        Gate(Arc::new(watch::Sender::new(false)))
    }

    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub async fn pass(&self) {
        let mut open = self.0.subscribe();
        open.wait_for(|open| *open).await.expect("the gate itself holds the sender");
    }
}
