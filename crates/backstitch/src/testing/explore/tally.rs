//! From worlds to cells and findings.

use std::collections::BTreeMap;

use backstitch_core::event::RollbackOutcome;
use backstitch_core::status::Status;

use super::ONLY;
use super::fault::Fault;
use super::one::Seen;
use super::report::{Column, Finding, Report, short};

/// The name of a world.
pub(super) fn name(faults: &[Fault]) -> String {
    let names: Vec<String> = faults.iter().map(Fault::to_string).collect();
    names.join(" + ")
}

/// What the cells will say.
pub(super) struct Tally {
    cells: BTreeMap<(String, Column), String>,
    steps: Vec<String>,
    unexplored: Vec<String>,
    /// Of the worlds in which something happens to the execution: how many, and where the check holds.
    whole: BTreeMap<&'static str, (u64, u64)>,
}

impl Tally {
    pub fn new(plain: &Seen) -> Tally {
        let steps = plain.steps.clone();
        Tally { cells: BTreeMap::new(), steps, unexplored: Vec::new(), whole: BTreeMap::new() }
    }

    pub fn add(&mut self, faults: &[Fault], mut seen: Seen, report: &mut Report) {
        for step in seen.steps.drain(..) {
            if !self.steps.contains(&step) && !self.unexplored.contains(&step) {
                self.unexplored.push(step);
            }
        }
        if !seen.unfired.is_empty() && faults.iter().any(|fault| fault.cell().is_some()) {
            // It went another way before that could happen.
            return;
        }
        let complaint = seen.complaint.clone();
        match faults {
            [fault, ..] if fault.cell().is_some() => {
                let (step, column) = fault.cell().expect("looked at above");
                let cell = self.cells.entry((step.to_owned(), column)).or_default();
                match &complaint {
                    Some(says) if !cell.starts_with("**") => *cell = format!("**{}**", short(says)),
                    None if cell.is_empty() => *cell = holds(column, &seen),
                    Some(_) | None => {}
                }
            }
            _ => {
                let what = match faults.first() {
                    Some(Fault::Dies(..)) => "dies before or after each of its writes",
                    Some(Fault::CancelledAt(_)) => "cancelled at each of its waits",
                    _ => "undone after it succeeded",
                };
                let (all, good) = self.whole.entry(what).or_default();
                *all += 1;
                *good += u64::from(complaint.is_none());
            }
        }
        report.findings.extend(complaint.map(|says| Finding::new(faults, says)));
    }

    pub fn finish(mut self, report: &mut Report) {
        for step in self.steps {
            let columns = self.cells.extract_if(.., |(of, _), _| *of == step);
            let cells = columns.map(|((_, column), cell)| (column, cell)).collect();
            report.steps.push((step, cells));
        }
        for (what, (all, good)) in self.whole {
            let came_out = match all - good {
                0 => format!("ok ({all} worlds)"),
                bad => format!("**not ok in {bad} of {all} worlds**"),
            };
            report.execution.push((what.to_owned(), came_out));
        }
        report.unexplored = self.unexplored;
    }
}

/// What a cell says when the check holds.
fn holds(column: Column, seen: &Seen) -> String {
    let ended = match (seen.outcome.status, seen.outcome.rollback) {
        (Status::Succeeded, _) => "goes on",
        (_, RollbackOutcome::Complete) => "rolled back",
        (_, RollbackOutcome::Incomplete) => "rolled back in part",
        (_, RollbackOutcome::None) => "nothing to undo",
    };
    match column {
        Column::RunTwice | Column::DiesUnrecorded | Column::UndoTwice => "ok",
        Column::FailsForGood | Column::Cancelled => ended,
        Column::UndoFails if seen.was_stuck => "Stuck, attention raised",
        Column::UndoFails => ended,
    }
    .to_owned()
}

impl Finding {
    pub(super) fn new(faults: &[Fault], says: String) -> Finding {
        let cell = faults.first().and_then(Fault::cell);
        let fault = match faults {
            [] => "nothing goes wrong".to_owned(),
            faults => name(faults),
        };
        let run = match std::thread::current().name() {
            Some(test) if test != "main" => format!("cargo test {test} -- --nocapture"),
            _ => std::env::args().next().unwrap_or_default(),
        };
        let again = match faults {
            [] => run,
            faults => format!("{ONLY}='{}' {run}", name(faults).replace('\'', "'\\''")),
        };
        let (step, column) = cell.map(|(step, column)| (step.to_owned(), column)).unzip();
        Finding { fault, step, column, says, again }
    }
}
