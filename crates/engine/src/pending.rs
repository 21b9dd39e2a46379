//! Runs that nobody here has the code of, or a slot for, and since when they could go on.
//!
//! It is known as long as this process lives: one that is started again gives workers the time to come back.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use backstitch_store::RunNo;

use crate::engine::Engine;

/// Whether it is news that a run has nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    First,
    Again,
}

/// Runs that have nobody, and since when those of them could go on that could.
#[derive(Default)]
pub(crate) struct PendingRuns(Mutex<BTreeMap<RunNo, Option<i64>>>);

impl PendingRuns {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunNo, Option<i64>>> {
        self.0.lock().expect("no code runs under this lock")
    }

    /// The run has nobody; with the time it is now if it could go on. One that could before has waited since then.
    pub fn note(&self, run: RunNo, could_go_on_us: Option<i64>) -> Noted {
        let mut runs = self.lock();
        let known = runs.get(&run).copied();
        let since_us = could_go_on_us.map(|now_us| known.flatten().unwrap_or(now_us));
        runs.insert(run, since_us);
        if known.is_none() { Noted::First } else { Noted::Again }
    }

    /// Somebody has the run, or it is over.
    pub fn forget(&self, run: RunNo) {
        self.lock().remove(&run);
    }
}

impl Engine {
    /// Runs that could go on and have waited for a worker since before `before_us`, longest first; at most `limit`.
    /// A run that has just been closed may be among them.
    pub fn pending_since(&self, before_us: i64, limit: usize) -> Vec<(RunNo, i64)> {
        let pending = self.shared.pending.lock();
        let waits = pending.iter().filter_map(|(run, since_us)| Some((*run, (*since_us)?)));
        let mut waits: Vec<_> = waits.filter(|(_, since_us)| *since_us < before_us).collect();
        waits.sort_by_key(|(run, since_us)| (*since_us, *run));
        waits.truncate(limit);
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_waits_since_it_could_go_on_and_anew_after_it_could_not() {
        let (pending, run) = (PendingRuns::default(), RunNo(1));
        assert_eq!(pending.note(run, Some(5)), Noted::First);
        assert_eq!(pending.note(run, Some(7)), Noted::Again);
        assert_eq!(pending.lock().get(&run), Some(&Some(5)));
        assert_eq!(pending.note(run, None), Noted::Again);
        assert_eq!(pending.note(run, Some(9)), Noted::Again);
        assert_eq!(pending.lock().get(&run), Some(&Some(9)));
        pending.forget(run);
        assert_eq!(pending.note(run, Some(11)), Noted::First);
    }
}
