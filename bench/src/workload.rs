//! The list of workloads.

use tokio::runtime::Runtime;

use crate::report::Measured;
use crate::store_dir::Place;
use crate::{
    Result, growth, idle_workers, killed, parallel, parked, ping_pong, replay, sleepers,
    three_steps, undone,
};

/// Something to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    ThreeSteps,
    ThreeStepsAlone,
    Undone,
    Parallel,
    Sleepers,
    Killed,
    Parked,
    Replay,
    PingPong,
    Growth,
    IdleWorkers,
}

impl Workload {
    pub const ALL: [Workload; 11] = [
        Workload::ThreeSteps,
        Workload::ThreeStepsAlone,
        Workload::Undone,
        Workload::Parallel,
        Workload::Sleepers,
        Workload::Killed,
        Workload::Parked,
        Workload::Replay,
        Workload::PingPong,
        Workload::Growth,
        Workload::IdleWorkers,
    ];

    pub fn named(name: &str) -> Option<Workload> {
        Workload::ALL.into_iter().find(|workload| workload.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Workload::ThreeSteps => "w1a",
            Workload::ThreeStepsAlone => "w1b",
            Workload::Undone => "w2",
            Workload::Parallel => "w3",
            Workload::Sleepers => "w4",
            Workload::Killed => "w5",
            Workload::Parked => "w6",
            Workload::Replay => "w7",
            Workload::PingPong => "w8",
            Workload::Growth => "growth",
            Workload::IdleWorkers => "idle",
        }
    }

    pub fn what(self) -> &'static str {
        match self {
            Workload::ThreeSteps => "three empty steps, 64 workflows in flight",
            Workload::ThreeStepsAlone => "three empty steps, one workflow at a time",
            Workload::Undone => "the third step fails for good, two are undone, 64 in flight",
            Workload::Parallel => "one workflow of 100 parallel steps, again and again",
            Workload::Sleepers => "2,000 workflows that sleep 5 s each: starts, and wake-ups",
            Workload::Killed => {
                "a process is killed with 500 workflows in flight: the way to their ends"
            }
            Workload::Parked => "10,000 workflows that sleep an hour: the memory of each",
            Workload::Replay => "from open to going on, behind a journal of 5,000 steps",
            Workload::PingPong => "100 events in a row, each answered by a published value",
            Workload::Growth => "one workflow of 100, 1,000 and 5,000 steps, in a row and parallel",
            Workload::IdleWorkers => {
                "200 workers with nothing to do: the memory that a server has for each (--server)"
            }
        }
    }

    /// How many workflows are measured unless `--n` says otherwise.
    pub fn n(self) -> u64 {
        match self {
            Workload::ThreeSteps => 40_000,
            Workload::ThreeStepsAlone => 2_000,
            Workload::Undone => 20_000,
            Workload::Parallel => 500,
            Workload::Sleepers => 2_000,
            Workload::Killed => 500,
            Workload::Parked => 10_000,
            Workload::Replay | Workload::PingPong => 20,
            Workload::Growth => 3,
            Workload::IdleWorkers => 200,
        }
    }

    /// How many workflows are in flight unless `--in-flight` says otherwise.
    pub fn in_flight(self) -> usize {
        match self {
            Workload::ThreeSteps | Workload::Undone | Workload::Sleepers | Workload::Parked => 64,
            Workload::ThreeStepsAlone
            | Workload::Parallel
            | Workload::Killed
            | Workload::Replay
            | Workload::PingPong
            | Workload::Growth
            | Workload::IdleWorkers => 1,
        }
    }

    /// Whether it is measured with these options when all are.
    pub fn is_for(self, server: Option<&str>) -> bool {
        match server {
            Some(_) => self.is_for_a_server(),
            None => self != Workload::IdleWorkers,
        }
    }

    /// Whether it can be measured at a server.
    fn is_for_a_server(self) -> bool {
        matches!(
            self,
            Workload::ThreeSteps
                | Workload::ThreeStepsAlone
                | Workload::Sleepers
                | Workload::Parked
                | Workload::IdleWorkers
        )
    }

    pub fn measure(
        self,
        runtime: &Runtime,
        place: Place<'_>,
        n: u64,
        in_flight: usize,
    ) -> Result<Vec<Measured>> {
        let (name, dir) = (self.name(), place.dir);
        let one = |measured: Result<Measured>| measured.map(|measured| vec![measured]);
        match self {
            _ if place.server.is_some() && !self.is_for_a_server() => {
                let those = Workload::ALL.into_iter().filter(|it| it.is_for_a_server());
                let those: Vec<_> = those.map(Workload::name).collect();
                Err(format!("{name} is not for a server; {} are", those.join(", ")).into())
            }
            Workload::IdleWorkers => one(runtime.block_on(idle_workers::measure(name, place, n))),
            Workload::ThreeSteps | Workload::ThreeStepsAlone => {
                one(runtime.block_on(three_steps::measure(name, place, n, in_flight)))
            }
            Workload::Undone => one(runtime.block_on(undone::measure(name, dir, n, in_flight))),
            Workload::Parallel => one(runtime.block_on(parallel::measure(name, dir, n, in_flight))),
            Workload::Sleepers => {
                one(runtime.block_on(sleepers::measure(name, place, n, in_flight)))
            }
            Workload::Killed => one(killed::measure(name, runtime, dir, n)),
            Workload::Parked => one(runtime.block_on(parked::measure(name, place, n, in_flight))),
            Workload::PingPong => {
                one(runtime.block_on(ping_pong::measure(name, dir, n, in_flight)))
            }
            // Opens and abandons runtimes of its own.
            Workload::Replay => one(replay::measure(name, dir, n)),
            Workload::Growth => runtime.block_on(growth::measure(name, dir, n)),
        }
    }
}
