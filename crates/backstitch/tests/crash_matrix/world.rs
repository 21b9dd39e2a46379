//! Processes that live and die on one disk.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use backstitch::core::run::{Run, WaitsFor};
use backstitch::engine::{Clock, ManualClock};
use backstitch::store::fault::{FaultPlan, FaultStore};
use backstitch::store::memory::MemoryStore;
use backstitch::store::{RunNo, Store};
use backstitch::{
    App, Backstitch, ErrorKind, ExecutionStatus, FnWorkflow, Handle, Row, Status, VerbRequest,
};

use tokio::runtime::{self, Runtime};

use crate::checks::check;
use crate::outside::Outside;

/// A workflow, and what people do to it.
pub struct Scenario {
    pub name: String,
    /// The code that the n-th process runs.
    pub code: Box<Code>,
    /// What somebody does, given what can be seen. Each deed is done once.
    pub deeds: Box<Deeds>,
    /// Rolled back if it is not over so long after its start.
    pub deadline: Option<&'static str>,
}

type Code = dyn Fn(u32) -> FnWorkflow<(), String>;
type Deeds = dyn Fn(&Seen<'_>) -> Vec<Deed>;

impl Scenario {
    pub fn new(
        name: impl Into<String>,
        code: impl Fn(u32) -> FnWorkflow<(), String> + 'static,
        deeds: impl Fn(&Seen<'_>) -> Vec<Deed> + 'static,
    ) -> Scenario {
        let (name, code, deeds) = (name.into(), Box::new(code), Box::new(deeds));
        Scenario { name, code, deeds, deadline: None }
    }

    pub fn deadline(self, deadline: &'static str) -> Scenario {
        Scenario { deadline: Some(deadline), ..self }
    }
}

/// What somebody outside can see.
pub struct Seen<'a> {
    pub process: u32,
    pub status: Status,
    pub run: &'a Run,
    pub outside: &'a Outside,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    Cancel,
    Terminate,
    Kill,
    Pause,
    Resume,
    RetryUndo(String),
    WaiveUndo(String),
    /// Also after success.
    Rollback,
    /// An event of this type, with a number of its own.
    Send(&'static str, u64),
    /// Lets a body or an undo that waits for it go on.
    Raise(&'static str),
    /// Ends the process, so that the next one runs other code.
    Redeploy,
    /// Stops the process in good order.
    Shutdown,
}

/// How a run came out.
#[derive(Debug, PartialEq)]
pub struct Final {
    pub status: Status,
    pub outcome: backstitch::RollbackOutcome,
    pub standing: Vec<String>,
    pub result: Result<String, String>,
}

impl fmt::Display for Final {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (outcome, standing) = (self.outcome.name(), self.standing.join(" "));
        let (Ok(result) | Err(result)) = &self.result;
        write!(f, "{}, {outcome}, [{standing}], {result}", self.status)
    }
}

#[derive(PartialEq)]
enum Ended {
    Closed,
    Died,
}

/// How many threads a process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// Everything happens in the same order each time.
    One,
    /// Bodies and the driver run at the same time.
    Two,
}

impl Threads {
    fn runtime(self) -> Runtime {
        let mut builder = match self {
            Threads::One => runtime::Builder::new_current_thread(),
            Threads::Two => runtime::Builder::new_multi_thread(),
        };
        builder.worker_threads(2).build().unwrap()
    }
}

pub struct World {
    threads: Threads,
    clock: ManualClock,
    disk: Mutex<MemoryStore>,
    outside: Outside,
    process: u32,
    /// What was answered; a person does not ask for it again.
    done: BTreeSet<Deed>,
}

/// The largest output of a step here.
pub const PAYLOAD_BYTES_MAX: usize = 4096;
/// More than any of these runs take; only a hang gets there.
const HANG: Duration = Duration::from_secs(60);
/// So many looks without a new row, and the clock moves on to the next instant.
const STALLED_LOOKS: u32 = 50;
/// So many looks without a new row and with nothing due, and the clock moves on by a minute.
const HANGING_LOOKS: u32 = 300;

impl World {
    pub fn new(threads: Threads) -> World {
        let (clock, outside) = (ManualClock::new(1_767_225_600_000_000), Outside::new(threads));
        let now = {
            let clock = clock.clone();
            Arc::new(move || clock.now_us())
        };
        let ear = outside.clone();
        let disk = MemoryStore::with_after_sync(now, Arc::new(move |rows| ear.hear(rows)));
        World { threads, clock, disk: Mutex::new(disk), outside, process: 0, done: BTreeSet::new() }
    }

    fn reopen(&self) -> MemoryStore {
        let mut disk = self.disk.lock().unwrap();
        *disk = disk.reopen();
        disk.clone()
    }

    /// Runs processes until the run is closed; the n-th one under the n-th plan, later ones under
    /// `later`.
    pub fn run(
        &mut self,
        scenario: &Scenario,
        mut plans: Vec<FaultPlan>,
        later: fn(u32) -> FaultPlan,
    ) {
        plans.reverse();
        let began = Instant::now();
        let mut next = |process| plans.pop().unwrap_or_else(|| later(process));
        while self.one_process(scenario, next(self.process + 1)) == Ended::Died {
            assert!(began.elapsed() < HANG, "{} does not come to an end", scenario.name);
        }
    }

    /// One process, from its start to its death or the end of the run. Everything in it dies with
    /// its runtime.
    fn one_process(&mut self, scenario: &Scenario, plan: FaultPlan) -> Ended {
        self.process += 1;
        let runtime = self.threads.runtime();
        let store = FaultStore::new(Arc::new(self.reopen()), plan.clone());
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = plan.died() => Ended::Died,
                ended = self.live(scenario, store) => ended,
            }
        })
    }

    async fn live(&mut self, scenario: &Scenario, store: FaultStore) -> Ended {
        let code = (scenario.code)(self.process);
        let builder = Backstitch::on(Arc::new(store))
            .clock(Arc::new(self.clock.clone()))
            .state(self.outside.clone())
            .payload_bytes_max(PAYLOAD_BYTES_MAX)
            .register(code.clone());
        let app = builder.run().await.unwrap();
        let handle = loop {
            let start = app.start(code.clone(), "t", ());
            let start = match scenario.deadline {
                Some(deadline) => start.deadline(deadline),
                None => start,
            };
            match start.await {
                Ok(handle) => break handle,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
            }
        };
        self.wait_beside(&app).await;
        let (mut looks, mut rows) = (0, 0);
        let began = Instant::now();
        loop {
            let status = handle.status().await.unwrap();
            let seen = Seen {
                process: self.process,
                status: status.status,
                run: &status.run,
                outside: &self.outside,
            };
            let deeds = (scenario.deeds)(&seen);
            // What has succeeded is over, unless somebody wants it undone.
            let undone = status.status == Status::Succeeded && deeds.contains(&Deed::Rollback);
            if status.status.is_closed() && !undone {
                return Ended::Closed;
            }
            for deed in deeds {
                if deed == Deed::Redeploy {
                    return Ended::Died;
                }
                if deed == Deed::Shutdown && self.done.insert(Deed::Shutdown) {
                    app.shutdown().await.unwrap();
                    return Ended::Died;
                }
                if !self.done.contains(&deed) && self.do_it(&handle, &deed).await {
                    self.done.insert(deed);
                }
            }
            looks = if status.run.seq == rows { looks + 1 } else { 0 };
            rows = status.run.seq;
            self.move_the_clock(&app, &status, looks);
            assert!(began.elapsed() < HANG, "{}: {status:?}", scenario.name);
            tokio::task::yield_now().await;
        }
    }

    /// Somebody else waits for the result, and notes what he is told.
    async fn wait_beside(&self, app: &App) {
        let handle: Handle<String> = app.handle("t").await.unwrap();
        let outside = self.outside.clone();
        tokio::spawn(async move {
            let told = handle.result().await.map_err(|error| error.kind());
            if !matches!(told, Err(ErrorKind::Stuck | ErrorKind::Stopped)) {
                outside.told(told);
            }
        });
    }

    fn move_the_clock(&self, app: &App, status: &ExecutionStatus, looks: u32) {
        // Not at each look: the clock is not to run ahead of the threads that do the work.
        let stalled = looks % STALLED_LOOKS == STALLED_LOOKS - 1;
        if stalled && app.trouble().is_some() {
            self.clock.advance(Duration::from_millis(250));
        }
        let due = status.waits_for.iter().filter_map(|waits| match waits {
            WaitsFor::Instant { at_us, .. } => Some(*at_us),
            WaitsFor::Event { until_us, .. } => *until_us,
            WaitsFor::Worker { .. }
            | WaitsFor::EarlierRun { .. }
            | WaitsFor::Step { .. }
            | WaitsFor::Person => None,
        });
        match due.min() {
            Some(at_us) if stalled => self.clock.set(at_us.max(self.clock.now_us())),
            // Perhaps an undo hangs.
            None if looks % HANGING_LOOKS == HANGING_LOOKS - 1 && !self.outside.is_at_work() => {
                self.clock.advance(Duration::from_secs(60));
            }
            Some(_) | None => {}
        }
    }

    /// Whether it is done; what the store could not take is asked for again.
    async fn do_it(&self, handle: &Handle<String>, deed: &Deed) -> bool {
        if let Deed::Send(event_type, number) = deed {
            let event = handle.send_event(*event_type, number).id(format!("{deed:?}"));
            return is_done(event.by("ops").await.map(drop));
        }
        let request: VerbRequest = match deed {
            Deed::Cancel => handle.cancel(),
            Deed::Terminate => handle.terminate(),
            Deed::Kill => handle.kill(),
            Deed::Pause => handle.pause(),
            Deed::Resume => handle.resume(),
            Deed::RetryUndo(step) => handle.retry_undo(step.as_str()),
            Deed::WaiveUndo(step) => handle.waive_undo(step.as_str()),
            Deed::Rollback => handle.rollback(),
            Deed::Raise(flag) => {
                self.outside.raise(flag);
                return true;
            }
            Deed::Send(..) => unreachable!("sent above"),
            Deed::Redeploy | Deed::Shutdown => unreachable!("it ends the process"),
        };
        is_done(request.by("ops").request_id(format!("{deed:?}")).await.map(drop))
    }

    /// How it came out, after all checks. Looks twice: a closed run appends nothing any more.
    pub fn outcome(&mut self, scenario: &Scenario) -> (Final, Vec<Row>) {
        let (ended, rows) = self.look(scenario);
        let (again, rows_again) = self.look(scenario);
        assert_eq!((&ended, &rows), (&again, &rows_again), "a look changes nothing (B85)");
        (ended, rows)
    }

    fn look(&mut self, scenario: &Scenario) -> (Final, Vec<Row>) {
        self.process += 1;
        let runtime = self.threads.runtime();
        runtime.block_on(async {
            let store = Arc::new(self.reopen());
            let app = Backstitch::on(store.clone())
                .clock(Arc::new(self.clock.clone()))
                .state(self.outside.clone())
                .register((scenario.code)(self.process))
                .run()
                .await
                .unwrap();
            // What was sent to it when it closed is noted first.
            let began = Instant::now();
            while !store.calls(RunNo(0), 1).await.unwrap().is_empty() {
                assert!(began.elapsed() < HANG, "{}: the call is not answered", scenario.name);
                tokio::task::yield_now().await;
            }
            let handle: Handle<String> = app.handle("t").await.unwrap();
            let result = handle.result().await;
            let rows = handle.journal().await.unwrap();
            let run: Run = check(&rows);
            self.outside.assert_told(&result, &run);
            let result = result.map_err(|error| match error.failure() {
                Some(failure) => failure.to_string(),
                None => format!("{:?}", error.kind()),
            });
            let (status, outcome) = (run.status(true), run.rollback_outcome());
            (Final { status, outcome, standing: self.outside.settle(), result }, rows)
        })
    }
}

fn is_done(answer: Result<(), backstitch::Error>) -> bool {
    answer.map_or_else(
        |error| {
            let known = [ErrorKind::Unavailable, ErrorKind::Refused];
            assert!(known.contains(&error.kind()), "{error}");
            error.kind() == ErrorKind::Refused
        },
        |()| true,
    )
}
