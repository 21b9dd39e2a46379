//! Which worlds there are, after a look at those in which nothing goes wrong.

use backstitch_core::failure::{Class, Failure};
use backstitch_core::status::Status;

use super::super::mock::Side;
use super::super::names::is_named;
use super::super::script::Known;
use super::fault::{At, Fault};
use super::one::Seen;

/// Awaits of one body, or one undo, at which the process dies. A body that streams a file has
/// thousands, and they are alike.
const AWAITS_MAX: u32 = 20;

/// What is tried.
#[derive(Default)]
pub(super) struct Faults {
    pub all: Vec<Fault>,
    /// What is not, though there is reason to.
    pub notes: Vec<String>,
}

/// `plain` is the case in which nothing goes wrong, `undone` that in which all is undone, `events`
/// the types of the events, and `told` the failures, each with its step.
pub(super) fn faults(
    plain: &Seen,
    undone: &Seen,
    events: &[(String, serde_json::Value)],
    told: &[(String, Failure)],
) -> Faults {
    let mut faults = Faults::default();
    for known in &plain.steps {
        faults.of_step(known, told);
    }
    for known in &undone.undos {
        faults.of_undo(known);
    }
    let all = &mut faults.all;
    if plain.outcome.status == Status::Succeeded {
        all.push(Fault::Undone);
    }
    for (place, answer) in plain.answers.iter().enumerate() {
        let others = answer.choice.iter().filter(|event| **event != answer.given);
        let other = |event: &usize| Fault::Answered(place + 1, *event, events[*event].0.clone());
        all.extend(others.map(other));
        if answer.ends {
            all.push(Fault::Unanswered(place + 1));
        }
    }
    all.extend((1..=plain.waits).map(Fault::CancelledAt));
    all.extend((1..=plain.writes).map(|n| Fault::Dies(Side::Before, n)));
    all.extend((1..=plain.writes).map(|n| Fault::Dies(Side::After, n)));
    faults
}

impl Faults {
    fn of_step(&mut self, known: &Known, told: &[(String, Failure)]) {
        let at = || At { step: known.key.to_string(), attempt: known.good };
        // What always fails begins with the first attempt.
        let all = || At { attempt: 1, ..at() };
        self.all.extend([Fault::Twice(at()), Fault::Stale(at())]);
        let awaits = self.awaits("step", known);
        self.all.extend((1..=awaits).map(|n| Fault::DiesAt(n, at())));
        self.all.extend([
            Fault::Unrecorded(at()),
            Fault::UnrecordedCancelled(at()),
            Fault::Fails(Side::Before, Class::Permanent, all()),
            Fault::Fails(Side::Before, Class::Transient, all()),
            Fault::Fails(Side::After, Class::Transient, all()),
            Fault::Fails(Side::Before, Class::Attention, all()),
            Fault::Hangs(Side::Before, all()),
            Fault::Hangs(Side::After, all()),
        ]);
        let told = told.iter().filter(|(step, _)| is_named(&known.key, step));
        self.all.extend(told.map(|(_, failure)| Fault::FailsWith(failure.clone(), all())));
        self.all
            .extend([Fault::Cancelled(Side::Before, at()), Fault::Cancelled(Side::After, at())]);
    }

    fn of_undo(&mut self, known: &Known) {
        let at = || At { step: known.key.to_string(), attempt: known.good };
        self.all.push(Fault::UndoTwice(at()));
        let awaits = self.awaits("the undo of step", known);
        self.all.extend((1..=awaits).map(|n| Fault::UndoDiesAt(n, at())));
        self.all.extend([
            Fault::UndoUnrecorded(at()),
            Fault::UndoFails(Side::Before, at()),
            Fault::UndoFails(Side::After, at()),
        ]);
    }

    fn awaits(&mut self, what: &str, known: &Known) -> u32 {
        let (key, awaits) = (&known.key, known.awaits);
        if awaits > AWAITS_MAX {
            self.notes.push(format!(
                "{what} {key} waits {awaits} times; the process dies at the first {AWAITS_MAX} of them"
            ));
        }
        awaits.min(AWAITS_MAX)
    }
}

/// Pairs that begin with this fault: with a death after each write of its world; and what lands late
/// lands behind the undo.
pub(super) fn with_another(fault: &Fault, writes: u64) -> Vec<Vec<Fault>> {
    if matches!(fault, Fault::Dies(..)) {
        return Vec::new();
    }
    let mut others: Vec<Fault> = (1..=writes).map(|n| Fault::Dies(Side::After, n)).collect();
    if let Fault::Stale(at) = fault {
        others.push(Fault::Fails(Side::Before, Class::Permanent, at.clone()));
        others.push(Fault::Undone);
    }
    others.into_iter().map(|other| vec![fault.clone(), other]).collect()
}
