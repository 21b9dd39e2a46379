//! Runs that a worker has given back with nothing written, though they could go on. Leased again at once, they would
//! go to and fro as fast as the network is.

use std::collections::BTreeMap;
use std::time::Duration;

use backstitch_store::RunNo;

use crate::workers::Worker;

/// How long such a run rests the first time; twice as long each further time.
const REST_FIRST: Duration = Duration::from_millis(100);

/// How long at most: a worker that was mended is not waited for longer.
const REST_MAX: Duration = Duration::from_secs(10);

/// How often in a row each of them was given back, and by whom last.
#[derive(Default)]
pub(super) struct Resting(BTreeMap<RunNo, (u32, u64)>);

impl Resting {
    /// `worker` has given the run back. How long it rests now.
    pub fn rest(&mut self, run: RunNo, worker: &Worker) -> Duration {
        let (times, by) = self.0.entry(run).or_default();
        let rest = REST_FIRST.saturating_mul(1 << (*times).min(16)).min(REST_MAX);
        (*times, *by) = (times.saturating_add(1), worker.number());
        rest
    }

    /// Something became of the run.
    pub fn forget(&mut self, run: RunNo) {
        self.0.remove(&run);
    }

    /// Whether `worker` is the one that gave the run back last: any other is better.
    pub fn is_by(&self, run: RunNo, worker: &Worker) -> bool {
        self.0.get(&run).is_some_and(|(_, by)| *by == worker.number())
    }
}
