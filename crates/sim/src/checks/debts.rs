//! What is owed and what became of it: P6, R1, R2, R6, R8, R13.

use std::collections::BTreeMap;

use backstitch::core::retry::UndoOn;
use backstitch::{RollbackOutcome, Status};

use super::Violations;
use super::ledger::{Book, Ledger, Step};
use crate::history::{Attempt, Entry, Found, How, Kind, Moment, Told};

/// What was seen outside of one step, by its idempotency key.
#[derive(Default)]
struct Seen {
    bodies: Vec<How>,
    undos: Vec<How>,
}

impl Seen {
    /// It is certain that there was no effect: each attempt was refused by the other side.
    fn had_no_effect(&self) -> bool {
        self.bodies.iter().all(|how| matches!(how, How::Refused | How::CalledForHelp))
    }

    fn was_undone(&self) -> bool {
        self.undos.iter().any(|how| matches!(how, How::Well(_)))
    }
}

pub(super) fn check(moments: &[Moment]) -> Violations {
    let (mut ledger, mut violations) = (Ledger::default(), Violations::new());
    let mut attempts: BTreeMap<u64, (Attempt, How)> = BTreeMap::new();
    let mut undo_keys: BTreeMap<String, String> = BTreeMap::new();
    for moment in moments {
        match &moment.entry {
            Entry::Began(attempt) => {
                if attempt.kind == Kind::Undo {
                    let seen = attempts.values();
                    violations.extend(told_wrongly(&ledger, attempt, seen));
                    let (step, key) = (attempt.step_key.clone(), attempt.key.clone());
                    if *undo_keys.entry(step).or_insert_with(|| key.clone()) != key {
                        let why = format!("R6: the undo of {} changes its key", attempt.name);
                        violations.push(why);
                    }
                }
                attempts.insert(attempt.token, (attempt.clone(), How::Dropped));
            }
            Entry::Ended { token, how } => {
                if let Some((_, ended)) = attempts.get_mut(token) {
                    ended.clone_from(how);
                }
            }
            Entry::Found { run, found, .. } => {
                let mut seen: BTreeMap<&str, Seen> = BTreeMap::new();
                for (attempt, how) in attempts.values() {
                    let seen = seen.entry(&attempt.step_key).or_default();
                    match attempt.kind {
                        Kind::Body => seen.bodies.push(how.clone()),
                        Kind::Undo => seen.undos.push(how.clone()),
                    }
                }
                if let Some(book) = ledger.runs.get(run) {
                    violations.extend(settled(book, found, &seen));
                }
            }
            Entry::Opened { .. }
            | Entry::Gone { .. }
            | Entry::WokeUp { .. }
            | Entry::ClockSet { .. }
            | Entry::Answered { .. }
            | Entry::Listed(_)
            | Entry::Accepted { .. }
            | Entry::Durable { .. } => {}
        }
        ledger.take(moment);
    }
    violations
}

/// What an undo is told of its step has to be what is known.
fn told_wrongly<'a>(
    ledger: &Ledger,
    undo: &Attempt,
    mut attempts: impl Iterator<Item = &'a (Attempt, How)>,
) -> Option<String> {
    let (_, _, _, step) = ledger.step(&undo.step_key)?;
    let wrong = match (&undo.told, &step.output) {
        (Told::Succeeded(told), Some(output)) => {
            let how = How::Well(told.clone());
            let came_true = attempts.any(|(body, end)| body.key == step.key && *end == how);
            told != output || !came_true
        }
        (Told::Succeeded(_), None) | (Told::Failed | Told::Unknown, Some(_)) => true,
        (Told::Failed, None) => !step.has_failed,
        (Told::Unknown, None) => step.has_failed,
        (Told::Nothing, _) => true,
    };
    wrong.then(|| format!("R6: the undo of {} is told {:?}", undo.name, undo.told))
}

fn settled(book: &Book, found: &Found, seen: &BTreeMap<&str, Seen>) -> Violations {
    let mut violations = Violations::new();
    let nothing = Seen::default();
    for (ord, step) in &book.steps {
        let seen = seen.get(step.key.as_str()).unwrap_or(&nothing);
        if step.undo.is_none() {
            continue;
        }
        let passed_over = step.policy.undo_on() == UndoOn::Succeeded && seen.had_no_effect();
        let settled = step.waived || seen.was_undone() || passed_over;
        let left = book.killed.as_ref().is_some_and(|left| left.contains(ord));
        let began = !seen.bodies.is_empty();
        if began && is_owed(book, found.status, step) && !settled && !left {
            let (name, status) = (&step.name, found.status);
            violations.push(format!("P6: {name} is owed, and nobody says so: it is {status}"));
        }
        if step.undo_settled && !step.waived && !seen.was_undone() && !passed_over && began {
            violations.push(format!("P6: the undo of {} is settled by nothing", step.name));
        }
        if !is_owed(book, found.status, step) && !seen.undos.is_empty() && book.killed.is_none() {
            violations.push(format!("R1: {} is undone for no reason", step.name));
        }
    }
    let outcome = match (&book.killed, book.waived > 0) {
        (Some(left), _) if !left.is_empty() => RollbackOutcome::Incomplete,
        (_, true) => RollbackOutcome::Incomplete,
        _ if book.paid > 0 => RollbackOutcome::Complete,
        // Killed when it had turned out that nothing of the plan was owed, and before that was written down.
        (Some(_), _) if book.planned => RollbackOutcome::Complete,
        _ => RollbackOutcome::None,
    };
    if found.rollback != outcome {
        let found = found.rollback;
        violations.push(format!("R8: the rollback is {found:?}, and should be {outcome:?}"));
    }
    violations
}

/// Whether the undo of a step that began is owed, as the execution has ended.
fn is_owed(book: &Book, status: Status, step: &Step) -> bool {
    match status {
        Status::Failed | Status::Cancelled | Status::Terminated => true,
        Status::Succeeded => step.dropped && !step.policy.keep_when_dropped,
        // That is no end; others complain.
        Status::Pending
        | Status::Running
        | Status::Suspended
        | Status::Paused
        | Status::Blocked
        | Status::RollingBack
        | Status::Stuck => book.closed,
    }
}
