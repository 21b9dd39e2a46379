//! What is at work at the same time, and in which order undos begin: P7, R3.

use std::collections::BTreeMap;

use backstitch::core::event::Event;
use backstitch::core::id::Ordinal;
use backstitch::store::RunNo;

use super::Violations;
use super::ledger::Ledger;
use crate::history::{Entry, Kind, Moment};

/// An attempt of the live process that has not ended.
struct AtWork {
    process: u32,
    kind: Kind,
    run: RunNo,
    ord: Ordinal,
    name: String,
}

#[derive(Default)]
struct Barrier {
    ledger: Ledger,
    at_work: BTreeMap<u64, AtWork>,
    /// The step whose undo began last for the first time, in the present rollback.
    lowest: BTreeMap<RunNo, Ordinal>,
    violations: Violations,
}

pub(super) fn check(moments: &[Moment]) -> Violations {
    let mut barrier = Barrier::default();
    for moment in moments {
        barrier.take(moment);
        barrier.ledger.take(moment);
    }
    barrier.violations
}

impl Barrier {
    fn take(&mut self, moment: &Moment) {
        match &moment.entry {
            Entry::Began(attempt) if !self.ledger.is_superseded(attempt.process) => {
                let Some((run, ord, _, _)) = self.ledger.step(&attempt.step_key) else { return };
                if attempt.kind == Kind::Undo {
                    self.undo_begins(run, ord, attempt.number);
                }
                let (process, kind, name) = (attempt.process, attempt.kind, attempt.name.clone());
                self.at_work.insert(attempt.token, AtWork { process, kind, run, ord, name });
            }
            Entry::Ended { token, .. } => drop(self.at_work.remove(token)),
            Entry::Gone { process, .. } => {
                self.at_work.retain(|_, at_work| at_work.process != *process);
            }
            Entry::Durable { run, row } => {
                row.events.iter().for_each(|event| self.read(*run, event));
            }
            Entry::Began(_)
            | Entry::Opened { .. }
            | Entry::WokeUp { .. }
            | Entry::ClockSet { .. }
            | Entry::Answered { .. }
            | Entry::Listed(_)
            | Entry::Accepted { .. }
            | Entry::Found { .. } => {}
        }
    }

    fn undo_begins(&mut self, run: RunNo, ord: Ordinal, number: u32) {
        for other in self.at_work.values().filter(|other| other.run == run) {
            self.violations.push(match other.kind {
                Kind::Body => {
                    format!("P7: the undo of step {ord} begins under body {}", other.name)
                }
                Kind::Undo => format!("R3: the undo of step {ord} begins beside {}", other.name),
            });
        }
        if number == 1 {
            let before = self.lowest.insert(run, ord);
            if let Some(before) = before.filter(|before| *before < ord) {
                let why = format!("R3: the undo of step {ord} begins after that of step {before}");
                self.violations.push(why);
            }
        }
    }

    fn read(&mut self, run: RunNo, event: &Event) {
        match event {
            Event::StepAbandoned(left) => {
                // It may go on; there is an open matter that says so.
                self.at_work.retain(|_, other| (other.run, other.ord) != (run, left.ord));
            }
            Event::RollbackStarted(_) => drop(self.lowest.remove(&run)),
            Event::ExecutionSucceeded(_)
            | Event::ExecutionFailed(_)
            | Event::ExecutionCancelled(_)
            | Event::ExecutionTerminated(_) => {
                for other in self.at_work.values().filter(|other| other.run == run) {
                    let (run, name) = (run.0, &other.name);
                    self.violations.push(format!("P7: run {run} is closed under {name}"));
                }
            }
            _ => {}
        }
    }
}
