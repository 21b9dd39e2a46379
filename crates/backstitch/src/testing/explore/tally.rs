//! From worlds to cells and findings.

use std::collections::{BTreeMap, BTreeSet};

use backstitch_core::event::RollbackOutcome;
use backstitch_core::status::Status;

use super::ONLY;
use super::again::PLAIN;
use super::asked::{Asked, Extent, difference};
use super::fault::{Fault, Place};
use super::one::Seen;
use super::report::{Column, Finding, FindingKind, Report, short};
use crate::error::Error;

/// The name of a world.
pub(super) fn name(faults: &[Fault]) -> String {
    let names: Vec<String> = faults.iter().map(Fault::to_string).collect();
    names.join(" + ")
}

/// What the cells will say.
pub(super) struct Tally {
    cells: BTreeMap<(String, Column), Cell>,
    steps: Vec<String>,
    unexplored: Vec<String>,
    /// Of the worlds in which something happens to the execution: how many, and where the check holds.
    whole: BTreeMap<&'static str, (u64, u64)>,
    /// The types of the events that were taken in any world, and of those that were awaited.
    pub taken: BTreeSet<String>,
    pub awaited: BTreeSet<String>,
    /// What the code asks for when nothing goes wrong.
    asked: Vec<Asked>,
    /// What the check says after every rollback, and in how many worlds it has said so.
    rollback: Vec<String>,
    folded: u64,
}

#[derive(Default)]
struct Cell {
    /// What the first world says in which the check holds.
    holds: String,
    /// What the first world says in which it does not, and how many there are.
    complaint: String,
    complaints: u64,
    /// What the check says after every rollback it says here too.
    as_ever: bool,
}

impl Tally {
    pub fn new(plain: &Seen) -> Tally {
        let steps = plain.steps.iter().map(|known| known.key.to_string()).collect();
        Tally {
            cells: BTreeMap::new(),
            steps,
            unexplored: Vec::new(),
            whole: BTreeMap::new(),
            taken: plain.taken.clone(),
            awaited: plain.awaited.clone(),
            asked: plain.asked.clone(),
            rollback: Vec::new(),
            folded: 0,
        }
    }

    /// The check says this after every rollback, whatever else goes wrong.
    pub fn rollback_leaves(&mut self, says: Vec<String>, report: &mut Report) {
        if let Some(first) = says.first() {
            let what = format!("every rollback leaves: {first}");
            let found = Finding::new(report, &[Fault::Undone], what);
            report.findings.push(found.of_kind(FindingKind::EveryRollback));
        }
        self.rollback = says;
    }

    /// Goes another way although nothing has gone wrong yet: told once.
    fn asks_as_ever(&self, faults: &[Fault], seen: &Seen, report: &mut Report) {
        let [_] = faults else { return };
        let told = |found: &Finding| found.kind == FindingKind::NotDeterministic;
        if report.findings.iter().any(told) {
            return;
        }
        let before = &seen.asked[..seen.asked_before.min(seen.asked.len())];
        if let Some(why) = difference(&self.asked, before, Extent::UpToTheFault) {
            let says = format!("the code is not deterministic: before anything went wrong {why}");
            let found = Finding::new(report, faults, says);
            report.findings.push(found.of_kind(FindingKind::NotDeterministic));
        }
    }

    pub fn add(&mut self, faults: &[Fault], ended: Result<Seen, Error>, report: &mut Report) {
        let (complaint, holds_so) = match ended {
            Err(endless) => (Some(endless.to_string()), None),
            Ok(seen) => {
                self.taken.extend(seen.taken.iter().cloned());
                self.awaited.extend(seen.awaited.iter().cloned());
                for says in &seen.owed {
                    let owed = Finding::new(report, faults, says.clone());
                    report.findings.push(owed.of_kind(FindingKind::UndoWaived));
                }
                self.asks_as_ever(faults, &seen, report);
                for step in seen.steps.iter().map(|known| known.key.to_string()) {
                    if !self.steps.contains(&step) && !self.unexplored.contains(&step) {
                        self.unexplored.push(step);
                    }
                }
                if !seen.unfired.is_empty() && (seen.complaint.is_none() || faults.len() > 1) {
                    // It went another way before that could happen; of a pair there is a world with
                    // the one that did.
                    report.unfired.push(name(faults));
                    return;
                }
                (seen.complaint.clone(), Some(seen))
            }
        };
        report.worlds += 1;
        let rolled_back = holds_so.as_ref().is_some_and(|seen| !seen.outcome.succeeded());
        let as_ever = rolled_back && complaint.as_ref().is_some_and(|c| self.rollback.contains(c));
        match faults[0].place() {
            Place::Cell(step, column) => {
                let cell = self.cells.entry((step.to_owned(), column)).or_default();
                cell.complaints += u64::from(complaint.is_some() && !as_ever);
                match (&complaint, holds_so) {
                    (Some(_), _) if as_ever => cell.as_ever = true,
                    (Some(says), _) if cell.complaint.is_empty() => cell.complaint = short(says),
                    (None, Some(seen)) if cell.holds.is_empty() => {
                        cell.holds = holds(column, &seen);
                    }
                    (Some(_), _) | (None, _) => {}
                }
            }
            Place::Whole(what) => {
                let (all, good) = self.whole.entry(what).or_default();
                *all += 1;
                *good += u64::from(complaint.is_none());
            }
        }
        if as_ever {
            self.folded += 1;
            return;
        }
        report.findings.extend(complaint.map(|says| Finding::new(report, faults, says)));
    }

    pub fn finish(mut self, report: &mut Report) {
        let rollback = |found: &&mut Finding| found.kind == FindingKind::EveryRollback;
        if let Some(found) = report.findings.iter_mut().find(rollback) {
            found.says += &format!(" ({} worlds say so)", self.folded);
        }
        for step in self.steps {
            let columns = self.cells.extract_if(.., |(of, _), _| *of == step);
            let cells = columns.map(|((_, column), cell)| (column, cell.text())).collect();
            report.steps.push((step, cells));
        }
        for (what, (all, good)) in self.whole {
            let worlds = if all == 1 { "world" } else { "worlds" };
            let came_out = match all - good {
                0 => format!("ok ({all} {worlds})"),
                bad => format!("**not ok in {bad} of {all} {worlds}**"),
            };
            report.execution.push((what.to_owned(), came_out));
        }
        report.unexplored = self.unexplored;
    }
}

impl Cell {
    fn text(&self) -> String {
        match self.complaints {
            0 if self.as_ever => "every rollback".to_owned(),
            0 => self.holds.clone(),
            1 => format!("**{}**", self.complaint),
            n => format!("**{}** and {} more", self.complaint, n - 1),
        }
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
        Column::UndoFails if seen.was_stuck => "Stuck, listed",
        Column::UndoFails => ended,
    }
    .to_owned()
}

impl Finding {
    pub(super) fn new(report: &Report, faults: &[Fault], says: String) -> Finding {
        let (step, column) = match faults.first().map(Fault::place) {
            Some(Place::Cell(step, column)) => (Some(step.to_owned()), Some(column)),
            Some(Place::Whole(_)) | None => (None, None),
        };
        let fault = match faults {
            [] => "nothing goes wrong".to_owned(),
            faults => name(faults),
        };
        let run = run();
        let world = if faults.is_empty() { PLAIN.to_owned() } else { name(faults) };
        let world = format!("{}: {world}", report.name).replace('\'', "'\\''");
        let again = format!("{ONLY}='{world}' {run}");
        Finding { kind: FindingKind::World, fault, step, column, says, again }
    }

    /// About something that is no world.
    pub(super) fn about(kind: FindingKind, fault: String, says: String) -> Finding {
        Finding { kind, fault, step: None, column: None, says, again: run() }
    }

    /// The same, seen in its world, about something else than what the world does to a step.
    pub(super) fn of_kind(self, kind: FindingKind) -> Finding {
        Finding { kind, step: None, column: None, ..self }
    }
}

/// A line for the shell that explores again.
fn run() -> String {
    match std::thread::current().name() {
        Some(test) if test != "main" => format!("cargo test {test} -- --exact --nocapture"),
        _ => std::env::args().next().unwrap_or_default(),
    }
}
