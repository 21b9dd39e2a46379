//! The list of workloads.

use std::path::Path;

use tokio::runtime::Runtime;

use crate::report::Measured;
use crate::{Result, growth, parallel, replay, three_steps, undone};

/// Something to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    ThreeSteps,
    ThreeStepsAlone,
    Undone,
    Parallel,
    Replay,
    Growth,
}

impl Workload {
    pub const ALL: [Workload; 6] = [
        Workload::ThreeSteps,
        Workload::ThreeStepsAlone,
        Workload::Undone,
        Workload::Parallel,
        Workload::Replay,
        Workload::Growth,
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
            Workload::Replay => "w7",
            Workload::Growth => "growth",
        }
    }

    pub fn what(self) -> &'static str {
        match self {
            Workload::ThreeSteps => "three empty steps, 64 workflows in flight",
            Workload::ThreeStepsAlone => "three empty steps, one workflow at a time",
            Workload::Undone => "the third step fails for good, two are undone, 64 in flight",
            Workload::Parallel => "one workflow of 100 parallel steps, again and again",
            Workload::Replay => "from open to going on, behind a journal of 5,000 steps",
            Workload::Growth => "one workflow of 100, 1,000 and 5,000 steps, in a row and parallel",
        }
    }

    /// How many workflows are measured unless `--n` says otherwise.
    pub fn n(self) -> u64 {
        match self {
            Workload::ThreeSteps => 40_000,
            Workload::ThreeStepsAlone => 2_000,
            Workload::Undone => 20_000,
            Workload::Parallel => 500,
            Workload::Replay => 20,
            Workload::Growth => 3,
        }
    }

    /// How many workflows are in flight unless `--in-flight` says otherwise.
    pub fn in_flight(self) -> usize {
        match self {
            Workload::ThreeSteps | Workload::Undone => 64,
            Workload::ThreeStepsAlone
            | Workload::Parallel
            | Workload::Replay
            | Workload::Growth => 1,
        }
    }

    pub fn measure(
        self,
        runtime: &Runtime,
        dir: &Path,
        n: u64,
        in_flight: usize,
    ) -> Result<Vec<Measured>> {
        let name = self.name();
        let one = |measured: Result<Measured>| measured.map(|measured| vec![measured]);
        match self {
            Workload::ThreeSteps | Workload::ThreeStepsAlone => {
                one(runtime.block_on(three_steps::measure(name, dir, n, in_flight)))
            }
            Workload::Undone => one(runtime.block_on(undone::measure(name, dir, n, in_flight))),
            Workload::Parallel => one(runtime.block_on(parallel::measure(name, dir, n, in_flight))),
            // Opens and abandons runtimes of its own.
            Workload::Replay => one(replay::measure(name, dir, n)),
            Workload::Growth => runtime.block_on(growth::measure(name, dir, n)),
        }
    }
}
