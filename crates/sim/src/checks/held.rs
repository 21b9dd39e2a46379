//! What holds a run, and until when: a pause, an undo that failed and halts, code that does not fit
//! the journal, a deadline; and that whatever waits for a person is on his list. P6, P9, P10, P13, R1,
//! R7, R10.

use std::collections::{BTreeMap, BTreeSet};

use backstitch::core::event::{BlockKind, CauseKind, Event};
use backstitch::core::id::Ordinal;
use backstitch::core::retry::OnUndoFailure;
use backstitch::store::RunNo;

use super::Violations;
use super::ledger::Ledger;
use crate::history::{Entry, Listed, Moment};

/// The type of the failure with which a run ends whose deadline has passed.
const DEADLINE_PASSED: &str = "DeadlinePassed";

#[derive(Default)]
struct Hold {
    paused: bool,
    deadline_at_us: Option<i64>,
    /// Undos that failed for good, and are owed.
    failed: BTreeSet<Ordinal>,
    blocked: BTreeSet<Ordinal>,
    /// The code does not fit the journal, or awaits the unknown.
    unfit: bool,
}

pub(super) fn check(moments: &[Moment]) -> Violations {
    let (mut ledger, mut violations) = (Ledger::default(), Violations::new());
    let mut holds: BTreeMap<RunNo, Hold> = BTreeMap::new();
    let mut latest_us = i64::MIN;
    for moment in moments {
        latest_us = latest_us.max(moment.at_us);
        match &moment.entry {
            Entry::Durable { run, row } => {
                let hold = holds.entry(*run).or_default();
                for event in &row.events {
                    let halts = |ord: &Ordinal| halts(&ledger, *run, *ord);
                    let why = hold.forbids(event, row.header.now_us, latest_us, halts);
                    violations.extend(why.map(|why| format!("{why} (run {})", run.0)));
                    hold.read(event);
                }
            }
            Entry::Listed(listed) => {
                for (run, hold) in &holds {
                    violations.extend(hold.is_listed(&ledger, *run, listed));
                }
            }
            Entry::Opened { .. }
            | Entry::Gone { .. }
            | Entry::WokeUp { .. }
            | Entry::ClockSet { .. }
            | Entry::Answered { .. }
            | Entry::Accepted { .. }
            | Entry::Began(_)
            | Entry::Ended { .. }
            | Entry::Found { .. } => {}
        }
        ledger.take(moment);
    }
    violations
}

/// Whether the undo of the step, if it fails, lets no other one past.
fn halts(ledger: &Ledger, run: RunNo, ord: Ordinal) -> bool {
    let step = ledger.runs.get(&run).and_then(|book| book.steps.get(&ord));
    let undo = step.and_then(|step| step.undo.as_ref());
    undo.is_some_and(|undo| undo.policy.on_failure() == OnUndoFailure::Halt)
}

impl Hold {
    /// Why the event must not come now.
    fn forbids(
        &self,
        event: &Event,
        now_us: Option<i64>,
        latest_us: i64,
        halts: impl Fn(&Ordinal) -> bool,
    ) -> Option<String> {
        let name = event.name();
        if self.unfit && goes_on_with_the_code(event) {
            return Some(format!("P13: {name} with code that does not fit"));
        }
        match event {
            Event::StepStarted(_)
            | Event::UndoStarted(_)
            | Event::TimerFired(_)
            | Event::WaitSatisfied(_)
            | Event::WaitTimedOut(_)
            | Event::Shown(_)
                if self.paused =>
            {
                Some(format!("R10: {name} while it is paused"))
            }
            Event::UndoStarted(e) => {
                let before = self.failed.iter().find(|ord| **ord != e.ord && halts(ord))?;
                Some(format!("R7: the undo of step {} goes past that of step {before}", e.ord))
            }
            Event::StepStarted(e)
                if self
                    .deadline_at_us
                    .zip(now_us)
                    .is_some_and(|(end_us, now_us)| now_us >= end_us) =>
            {
                Some(format!("R1: step {} begins after the deadline", e.ord))
            }
            Event::RollbackStarted(e) => {
                let late = e.causes.first().is_some_and(|c| c.kind() == CauseKind::Deadline);
                let early =
                    self.deadline_at_us.is_none_or(|deadline_at_us| deadline_at_us > latest_us);
                (late && early).then(|| "P9: it is rolled back before its deadline".to_owned())
            }
            // With nothing to undo there is no decision.
            Event::ExecutionFailed(e) if e.failure.type_name == DEADLINE_PASSED => {
                let early =
                    self.deadline_at_us.is_none_or(|deadline_at_us| deadline_at_us > latest_us);
                early.then(|| "P9: it fails before its deadline".to_owned())
            }
            _ => None,
        }
    }

    fn read(&mut self, event: &Event) {
        match event {
            Event::ExecutionStarted(e) => self.deadline_at_us = e.deadline_at_us,
            Event::PauseRequested(_) => self.paused = true,
            Event::Resumed(e) => {
                self.paused = false;
                self.deadline_at_us.iter_mut().for_each(|at_us| *at_us += e.shift_us);
            }
            Event::RollbackStarted(_)
            | Event::ExecutionKilled(_)
            | Event::ExecutionSucceeded(_)
            | Event::ExecutionFailed(_)
            | Event::ExecutionCancelled(_)
            | Event::ExecutionTerminated(_) => {
                (self.paused, self.unfit) = (false, false);
                self.blocked.clear();
            }
            Event::Blocked(e) if e.what() == BlockKind::Step => self.blocked.extend(e.ord),
            Event::Blocked(_) => self.unfit = true,
            Event::Unblocked(e) if e.what() != BlockKind::Step => self.unfit = false,
            Event::StepRetryRequested(e) => drop(self.blocked.remove(&e.ord)),
            Event::StepCancelRequested(e) => drop(self.blocked.remove(&e.ord)),
            Event::UndoFailed(e) => drop(self.failed.insert(e.ord)),
            Event::UndoRetryRequested(e) => drop(self.failed.remove(&e.ord)),
            Event::UndoWaived(e) => drop(self.failed.remove(&e.ord)),
            _ => {}
        }
    }

    /// Whether whoever looks at the open matters finds just those that a person has to settle.
    fn is_listed(&self, ledger: &Ledger, run: RunNo, listed: &[Listed]) -> Option<String> {
        let run_id = ledger.runs.get(&run)?.run_id?.to_string();
        let of_kind = |kind: &str| -> BTreeSet<Ordinal> {
            let of_it = listed.iter().filter(|item| item.run_id == run_id && item.kind == kind);
            of_it.map(|item| item.ord).collect()
        };
        let (failed, blocked) = (of_kind("undo_failed"), of_kind("step_blocked"));
        if failed != self.failed {
            let why = format!("undos {:?} failed, and {failed:?} are listed", self.failed);
            return Some(format!("P6: of run {} {why}", run.0));
        }
        (blocked != self.blocked).then(|| {
            let why = format!("steps {:?} are blocked, and {blocked:?} are listed", self.blocked);
            format!("P10: of run {} {why}", run.0)
        })
    }
}

/// What only code that fits may cause. Bodies that are at work come to their ends, and people and the
/// deadline may end the run; a bad deploy fails nothing and rolls nothing back.
fn goes_on_with_the_code(event: &Event) -> bool {
    match event {
        Event::StepScheduled(_)
        | Event::StepStarted(_)
        | Event::TimerStarted(_)
        | Event::TimerFired(_)
        | Event::WaitStarted(_)
        | Event::WaitSatisfied(_)
        | Event::WaitTimedOut(_)
        | Event::Shown(_)
        | Event::ValuePublished(_)
        | Event::ExecutionSucceeded(_) => true,
        // The deadline passes also while the run is blocked.
        Event::ExecutionFailed(e) => e.failure.type_name != DEADLINE_PASSED,
        Event::RollbackStarted(e) => e.causes.first().is_none_or(|cause| match cause.kind() {
            CauseKind::Failed | CauseKind::Dropped => true,
            CauseKind::Cancelled
            | CauseKind::Terminated
            | CauseKind::Requested
            | CauseKind::Deadline => false,
        }),
        _ => false,
    }
}
