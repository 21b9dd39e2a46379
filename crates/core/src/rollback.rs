//! A rollback under way: its plan, and whose turn it is.
//!
//! **Invariant:** each step of the plan is in exactly one of `due`, `current`, `failed` or settled.

use std::collections::BTreeSet;

use crate::event::{EndsIn, RollbackCause, RollbackOutcome, RollbackStarted};
use crate::id::Ordinal;

/// One rollback of a run.
#[derive(Clone, Debug)]
pub struct Rollback {
    /// Its number in the run, from 1.
    pub no: u32,
    /// Why; the first one decided, the others came later.
    pub causes: Vec<RollbackCause>,
    /// The steps to undo, newest start first.
    pub plan: Vec<Ordinal>,
    /// How the run ends.
    pub ends_in: EndsIn,
    /// Planned (or put back), not started.
    pub due: BTreeSet<Ordinal>,
    /// Runs, or waits for its retry.
    pub current: Option<Ordinal>,
    /// Failed for good.
    pub failed: BTreeSet<Ordinal>,
    /// Those of `failed` past which the rollback does not go.
    pub holding: BTreeSet<Ordinal>,
    /// Succeeded or not needed.
    pub done: u32,
    /// Waived.
    pub waived: u32,
    /// Its outcome, once it is over.
    pub outcome: Option<RollbackOutcome>,
}

impl Rollback {
    pub(crate) fn started(event: &RollbackStarted) -> Rollback {
        Rollback {
            no: event.no,
            causes: event.causes.clone(),
            plan: event.plan.clone(),
            ends_in: event.ends_in.clone(),
            due: event.plan.iter().copied().collect(),
            current: None,
            failed: BTreeSet::new(),
            holding: BTreeSet::new(),
            done: 0,
            waived: 0,
            outcome: None,
        }
    }

    /// The undo whose turn it is: the newest start among those due, unless one runs, waits for
    /// its retry, or holds the rollback.
    pub fn next(&self) -> Option<Ordinal> {
        match self.current {
            Some(_) => None,
            None if self.holding.is_empty() => self.due.last().copied(),
            None => None,
        }
    }

    /// Whether nothing is owed any more.
    pub fn is_paid(&self) -> bool {
        self.due.is_empty() && self.current.is_none() && self.failed.is_empty()
    }

    /// What `RollbackFinished` has to say.
    pub fn verdict(&self) -> RollbackOutcome {
        if self.plan.is_empty() {
            RollbackOutcome::None
        } else if self.waived > 0 {
            RollbackOutcome::Incomplete
        } else {
            RollbackOutcome::Complete
        }
    }
}
