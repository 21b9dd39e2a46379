//! What a run looks like from outside.

use crate::event::{RollbackCause, RollbackOutcome};
use crate::id::{Ordinal, RunId};
use crate::run::{Ending, Phase, Run};
use crate::status::Status;
use crate::undo::UndoPhase;

/// What a run that is not running waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum WaitsFor {
    /// A worker that knows this workflow in this version.
    Worker {
        /// The workflow.
        workflow: String,
        /// The version.
        version: String,
    },
    /// The run of the same id that is still open.
    EarlierRun {
        /// Its id.
        run_id: RunId,
    },
    /// An instant: a sleep, or the retry of a step or an undo.
    Instant {
        /// The step or timer.
        ord: Ordinal,
        /// Microseconds since 1970.
        at_us: i64,
    },
    /// An event of one of these types.
    Event {
        /// The wait.
        ord: Ordinal,
        /// The types.
        types: Vec<String>,
        /// Until when, microseconds since 1970; absent for a wait without end.
        until_us: Option<i64>,
    },
    /// A step whose attempt is in flight.
    Step {
        /// The step.
        ord: Ordinal,
    },
    /// A person.
    Person,
}

impl WaitsFor {
    /// Whom it waits for, if that is somebody and not something.
    pub fn whom(&self) -> Option<String> {
        match self {
            WaitsFor::Worker { workflow, version } => {
                Some(format!("a worker that knows {workflow} {version}"))
            }
            WaitsFor::EarlierRun { run_id } => Some(format!("run {run_id}")),
            WaitsFor::Person => Some("a person".to_owned()),
            WaitsFor::Instant { .. } | WaitsFor::Event { .. } | WaitsFor::Step { .. } => None,
        }
    }
}

/// How far a rollback is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollbackProgress {
    /// How it came out, or stands: it is incomplete as long as it is under way.
    pub outcome: RollbackOutcome,
    /// Undos that succeeded or were not needed.
    pub done: u32,
    /// Undos in the plan.
    pub of: u32,
    /// Undos that failed for good and are still owed.
    pub failed: u32,
}

impl Run {
    /// The derived status. `owned` says whether a worker has the run.
    pub fn status(&self, owned: bool) -> Status {
        match &self.phase {
            Phase::Closed(Ending::Succeeded(_)) => Status::Succeeded,
            Phase::Closed(Ending::Failed(_)) => Status::Failed,
            Phase::Closed(Ending::Cancelled) => Status::Cancelled,
            Phase::Closed(Ending::Terminated | Ending::Killed { .. }) => Status::Terminated,
            _ if self.pause.is_some() && !self.something_runs() => Status::Paused,
            Phase::RollingBack if self.rollback_can_go_on() => Status::RollingBack,
            Phase::RollingBack => Status::Stuck,
            Phase::Forward if !self.blocks.is_empty() => Status::Blocked,
            Phase::Forward if !self.in_flight.is_empty() => Status::Running,
            Phase::Forward if self.has_something_to_show() || self.turns == 0 => {
                if owned {
                    Status::Running
                } else {
                    Status::Pending
                }
            }
            Phase::Forward => Status::Suspended,
        }
    }

    /// Whether the run could go on at `now_us` if its code were at hand. Whoever has no code need not look for a
    /// worker before that.
    pub fn wants_code(&self, now_us: i64) -> bool {
        if self.pause.is_some() {
            return false;
        }
        let is_due = self.next_due_us().is_some_and(|at_us| at_us <= now_us);
        match &self.phase {
            Phase::Closed(_) => false,
            // With mended code, perhaps.
            Phase::Forward if self.is_held_by_block() => true,
            Phase::Forward => {
                self.turns == 0
                    || is_due
                    || !self.in_flight.is_empty()
                    || self.has_something_to_show()
            }
            Phase::RollingBack => match self.undo_retry_at_us() {
                Some((_, at_us)) => at_us <= now_us,
                None => self.rollback_can_go_on(),
            },
        }
    }

    fn has_something_to_show(&self) -> bool {
        !self.unshown.is_empty() || self.deliverable().is_some()
    }

    /// Whether an attempt of a step or of an undo is in flight.
    pub fn something_runs(&self) -> bool {
        let undo_runs = self.rollback.as_ref().and_then(|rollback| rollback.current);
        let undo_runs = undo_runs
            .and_then(|ord| self.step(ord))
            .is_some_and(|step| step.undo.phase == UndoPhase::Running);
        !self.in_flight.is_empty() || undo_runs
    }

    fn rollback_can_go_on(&self) -> bool {
        let under_way = |rollback: &crate::rollback::Rollback| {
            rollback.current.is_some() || rollback.next().is_some() || rollback.is_paid()
        };
        !self.in_flight.is_empty() || self.rollback.as_ref().is_some_and(under_way)
    }

    /// How far the last rollback is.
    pub fn rollback_progress(&self) -> RollbackProgress {
        let (done, of, failed) = self.rollback.as_ref().map_or((0, 0, 0), |rollback| {
            (rollback.done, rollback.plan.len() as u32, rollback.failed.len() as u32)
        });
        RollbackProgress { outcome: self.rollback_outcome(), done, of, failed }
    }

    /// The instant at which something becomes due (its deadline, if nothing else), unless it is
    /// paused.
    pub fn next_due_us(&self) -> Option<i64> {
        if self.pause.is_some() {
            return None;
        }
        match &self.phase {
            Phase::Forward if self.is_held_by_block() => self.deadline_at_us(),
            Phase::Forward => {
                let due_us = self.due.first().map(|(at_us, _)| *at_us);
                due_us.into_iter().chain(self.deadline_at_us()).min()
            }
            Phase::RollingBack => self.undo_retry_at_us().map(|(_, at_us)| at_us),
            Phase::Closed(_) => None,
        }
    }

    /// When the run is rolled back for lateness, as it stands: not while it is paused.
    pub fn deadline_at_us(&self) -> Option<i64> {
        match &self.phase {
            Phase::Forward if self.pause.is_none() => self.deadline_at_us,
            Phase::Forward | Phase::RollingBack | Phase::Closed(_) => None,
        }
    }

    /// Who ended a run that was cancelled or terminated, and why: the first cause of its rollback, or
    /// the first request if nothing was owed.
    pub fn ended_by(&self) -> Option<RollbackCause> {
        if !matches!(self.phase, Phase::Closed(Ending::Cancelled | Ending::Terminated)) {
            return None;
        }
        let decided = self.rollback.as_ref().and_then(|rollback| rollback.causes.first());
        let asked = self.cancel.as_ref();
        decided.cloned().or_else(|| {
            asked.map(|asked| RollbackCause::asked(asked.verb(), &asked.by, &asked.reason))
        })
    }

    /// The undo that waits for its retry, and until when.
    pub fn undo_retry_at_us(&self) -> Option<(Ordinal, i64)> {
        let ord = self.rollback.as_ref()?.current?;
        match self.step(ord)?.undo.phase {
            UndoPhase::Waiting { retry_at_us } => Some((ord, retry_at_us)),
            UndoPhase::Idle
            | UndoPhase::Due
            | UndoPhase::Running
            | UndoPhase::Failed
            | UndoPhase::Succeeded
            | UndoPhase::NotNeeded
            | UndoPhase::Waived => None,
        }
    }

    /// What the run waits for, for people. `has_worker` says whether its code is at hand.
    pub fn waits_for(&self, has_worker: bool) -> Vec<WaitsFor> {
        let mut waits = Vec::new();
        if matches!(self.phase, Phase::Closed(_)) {
            return waits;
        }
        let earlier = self.started.after.as_deref().filter(|_| !has_worker && self.turns == 0);
        if let Some(run_id) = earlier.and_then(RunId::from_slice) {
            waits.push(WaitsFor::EarlierRun { run_id });
        } else if !has_worker {
            waits.push(WaitsFor::Worker {
                workflow: self.started.workflow.clone(),
                version: self.version.clone(),
            });
        }
        if self.pause.is_some()
            || !self.blocks.is_empty()
            || self.status(has_worker) == Status::Stuck
        {
            waits.push(WaitsFor::Person);
        }
        waits.extend(self.in_flight.iter().map(|ord| WaitsFor::Step { ord: *ord }));
        let retry = self.undo_retry_at_us().map(|(ord, at_us)| (at_us, ord));
        let due = self.due.iter().copied().chain(retry);
        let is_a_wait = |ord: &Ordinal| self.waits.contains(ord);
        let instants = due.filter(|(_, ord)| !is_a_wait(ord));
        waits.extend(instants.map(|(at_us, ord)| WaitsFor::Instant { ord, at_us }));
        waits.extend(self.waits.iter().map(|ord| {
            let wait = self.wait(*ord).expect("open waits are waits");
            WaitsFor::Event { ord: *ord, types: wait.types.clone(), until_us: wait.until_us }
        }));
        waits
    }
}
