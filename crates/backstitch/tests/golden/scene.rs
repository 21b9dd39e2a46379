//! A scene: a workflow, and what happens to it from outside, in an order that can be taken up at any
//! row of its journal.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backstitch::engine::Clock;
use backstitch::{
    App, Builder, ErrorKind, ExecutionStatus, Handle, Row, Status, VerbRequest, WaitsFor,
};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

use crate::world::{World, events, eventually};

/// Longer than anything here takes; only a hang gets there.
const HANG: Duration = Duration::from_secs(30);

/// What happens to one execution.
pub struct Scene {
    /// The id of the execution, and the name of its golden files.
    pub name: &'static str,
    /// One sentence.
    pub about: &'static str,
    pub register: fn(Builder) -> Builder,
    pub start: for<'a> fn(&'a App, &'a str) -> BoxFuture<'a, ()>,
    pub acts: Vec<Act>,
}

/// One thing that happens from outside.
pub struct Act {
    /// It is done when the journal holds so many events of this name.
    pub leaves: (&'static str, usize),
    /// The time for it has come.
    pub when: fn(&ExecutionStatus) -> bool,
    /// The gates that it opens.
    pub opens: &'static [&'static str],
    pub what: Move,
}

pub enum Move {
    /// Nothing besides the gates. Nobody waits for what it leaves: bodies that were lost meanwhile
    /// pass them later, or never.
    OpenGates,
    /// A verb.
    Ask(fn(&Handle<Value>) -> VerbRequest),
    /// As before, after the clock went on for a minute.
    AskLater(fn(&Handle<Value>) -> VerbRequest),
    /// An event of this type, with this text.
    Tell(&'static str, &'static str),
    /// The clock goes to the end of the wait that is open.
    LetItTimeOut,
    /// The process dies, and one with this code takes over.
    TakeOver(fn(Builder) -> Builder),
}

/// Gates by name. Each is closed until it is opened.
#[derive(Clone)]
pub struct Gates(Arc<watch::Sender<BTreeSet<String>>>);

impl Gates {
    pub fn closed() -> Gates {
        Gates(Arc::new(watch::Sender::new(BTreeSet::new())))
    }

    pub fn open(&self, name: &str) {
        self.0.send_modify(|open| open.extend([name.to_owned()]));
    }

    pub fn is_open(&self, name: &str) -> bool {
        self.0.borrow().contains(name)
    }

    pub async fn pass(&self, name: &str) {
        let mut open = self.0.subscribe();
        open.wait_for(|open| open.contains(name)).await.expect("the gates hold the sender");
    }
}

impl Scene {
    /// Plays it to its end, from where the journal on the disk of the world ends: `laid_down`, or
    /// from the start if there is none.
    pub async fn play(&self, world: &World, laid_down: &[Row]) -> Handle<Value> {
        let gates = Gates::closed();
        let names: Vec<_> =
            laid_down.iter().flat_map(|row| &row.events).map(|e| e.name()).collect();
        let done = self.acts.iter().filter(|act| act.is_done(&names));
        done.flat_map(|act| act.opens).for_each(|gate| gates.open(gate));
        let app = open(world, &gates, self.register).await;
        let mut handle = match app.handle(self.name).await {
            Ok(handle) => handle,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound);
                (self.start)(&app, self.name).await;
                app.handle(self.name).await.expect("it was just started")
            }
        };
        for act in &self.acts {
            let is_due = async |status: &ExecutionStatus, handle: &Handle<Value>| {
                act.is_done(&events(handle).await) || (act.when)(status)
            };
            self.goes_on_until(world, &handle, is_due).await;
            act.opens.iter().for_each(|gate| gates.open(gate));
            if !act.is_done(&events(&handle).await) {
                if let Some(app) = act.carry_out(world, &gates, &handle).await {
                    handle = app.handle(self.name).await.expect("it is still there");
                }
                if !matches!(act.what, Move::OpenGates) {
                    eventually(act.leaves.0, async || act.is_done(&events(&handle).await)).await;
                }
            }
        }
        let is_over = async |status: &ExecutionStatus, _: &Handle<Value>| status.status.is_closed();
        self.goes_on_until(world, &handle, is_over).await;
        handle
    }

    /// Lets time pass as the execution wants it, until something is so.
    async fn goes_on_until(
        &self,
        world: &World,
        handle: &Handle<Value>,
        is_so: impl AsyncFn(&ExecutionStatus, &Handle<Value>) -> bool,
    ) {
        let began = Instant::now();
        loop {
            let status = handle.status().await.unwrap();
            if is_so(&status, handle).await {
                return;
            }
            let instants = status.waits_for.iter().filter_map(|waits| match waits {
                WaitsFor::Instant { at_us, .. } => Some(*at_us),
                _ => None,
            });
            if status.run.in_flight.is_empty()
                && status.status != Status::Paused
                && let Some(at_us) = instants.min()
            {
                world.clock.set(at_us.max(world.clock.now_us()));
            }
            assert!(
                began.elapsed() < HANG,
                "{}: still {:?}, waits for {:?}, is blocked by {:?}",
                self.name,
                status.status,
                status.waits_for,
                status.blocks
            );
            tokio::task::yield_now().await;
        }
    }
}

impl Act {
    fn is_done(&self, names: &[&str]) -> bool {
        let (name, times) = self.leaves;
        names.iter().filter(|seen| **seen == name).count() >= times
    }

    /// Gives the process that has taken over, if one has.
    async fn carry_out(&self, world: &World, gates: &Gates, handle: &Handle<Value>) -> Option<App> {
        match &self.what {
            Move::OpenGates => {}
            Move::Ask(verb) => {
                verb(handle).by("ada").reason("she has her reasons").await.unwrap();
            }
            Move::AskLater(verb) => {
                world.advance(Duration::from_secs(60));
                verb(handle).by("ada").reason("she has her reasons").await.unwrap();
            }
            Move::Tell(event_type, text) => {
                handle.send_event(*event_type, text).by("ada").await.unwrap();
            }
            Move::LetItTimeOut => {
                let status = handle.status().await.unwrap();
                let until = status.waits_for.iter().filter_map(|waits| match waits {
                    WaitsFor::Event { until_us, .. } => *until_us,
                    _ => None,
                });
                world.clock.set(until.min().expect("a wait with an end is open"));
            }
            Move::TakeOver(register) => return Some(open(world, gates, *register).await),
        }
        None
    }
}

async fn open(world: &World, gates: &Gates, register: fn(Builder) -> Builder) -> App {
    world.open(|builder| register(builder.state(gates.clone()).keep_forever())).await
}
