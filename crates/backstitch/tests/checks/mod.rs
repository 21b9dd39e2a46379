//! What holds for every journal, checked without the fold, and against it.

use std::collections::{BTreeMap, BTreeSet};

use backstitch::core::event::Event;
use backstitch::core::id::Ordinal;
use backstitch::core::run::{Phase, Run};
use backstitch::{Failure, Origin, Row};

/// A journal as an outsider reads it.
#[derive(Default)]
struct Reader {
    decided: bool,
    finished: bool,
    closed: bool,
    killed: bool,
    in_flight: BTreeSet<Ordinal>,
    undo_running: Option<Ordinal>,
    plan: Vec<Ordinal>,
    settled: BTreeSet<Ordinal>,
    outcomes: BTreeSet<Ordinal>,
    /// Attempts of the present budget that count, and the most that are allowed.
    attempts: BTreeMap<Ordinal, (u32, u32)>,
    undo_attempts: BTreeMap<Ordinal, (u32, u32)>,
    /// Events that were received and that no wait has: their number and type.
    kept: BTreeMap<u64, String>,
    /// Waits that are open, with their types; those that took an event, with it.
    waits: BTreeMap<Ordinal, Vec<String>>,
    took: BTreeMap<Ordinal, (u64, String)>,
}

/// Checks P2, P3, P5, P6, P7 and the limits of attempts; gives the fold.
pub fn check(rows: &[Row]) -> Run {
    let mut reader = Reader::default();
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(row.header.seq, i as u64 + 1, "rows are numbered without a gap");
        assert!(!row.events.is_empty(), "no row is empty");
        for event in &row.events {
            assert!(!reader.closed || may_follow_the_end(event), "{} after the end", event.name());
            reader.read(event);
        }
        assert_eq!(reader.finished, reader.decided && reader.closed && !reader.killed);
    }
    let run = Run::fold(rows).expect("every journal folds");
    let again = Run::fold(rows).expect("and again");
    assert_eq!(format!("{run:?}"), format!("{again:?}"), "the fold is a function of the journal");
    assert_eq!(matches!(run.phase, Phase::Closed(_)), reader.closed);
    if reader.closed && !reader.killed {
        let owed: Vec<_> = reader.plan.iter().filter(|o| !reader.settled.contains(o)).collect();
        assert!(owed.is_empty(), "closed while the undos of {owed:?} are owed (P6)");
    }
    run
}

impl Reader {
    fn read(&mut self, event: &Event) {
        match event {
            Event::StepScheduled(e) => {
                self.attempts.insert(e.ord, (0, e.policy.retry.max_attempts));
                if let Some(undo) = &e.undo {
                    self.undo_attempts.insert(e.ord, (0, undo.policy.retry.max_attempts));
                }
            }
            Event::StepStarted(e) => {
                assert!(!self.decided, "an attempt of {} starts after the decision (P5)", e.ord);
                assert!(!self.outcomes.contains(&e.ord), "{} has its outcome (P3)", e.ord);
                if let Some(policy) = &e.policy {
                    self.attempts.entry(e.ord).and_modify(|a| a.1 = policy.retry.max_attempts);
                }
                let (used, most) = self.attempts[&e.ord];
                assert!(used < most, "attempt {} of step {} is one too many", e.attempt, e.ord);
                assert!(self.in_flight.insert(e.ord), "two attempts of {} at once", e.ord);
            }
            Event::StepSucceeded(e) => self.ended(e.ord),
            Event::StepAttemptFailed(e) => {
                self.ended(e.ord);
                count(&mut self.attempts, e.ord, &e.failure);
            }
            Event::StepAbandoned(e) => self.ended(e.ord),
            Event::StepFailed(e) => assert!(self.outcomes.insert(e.ord)),
            Event::StepRetryRequested(e) => {
                self.attempts.entry(e.ord).and_modify(|a| a.0 = 0);
            }
            Event::Shown(_) | Event::TimerFired(_) | Event::TimerStarted(_) => {
                assert!(!self.decided, "something is shown after the decision (P5)");
            }
            Event::WaitStarted(e) => {
                assert!(!self.decided, "a wait begins after the decision (P5)");
                self.waits.insert(e.ord, e.types.clone());
            }
            Event::EventReceived(e) => {
                assert!(!self.decided, "an event is received after the decision");
                assert!(self.kept.insert(e.inbox, e.event_type.clone()).is_none());
            }
            Event::WaitSatisfied(e) => {
                assert!(!self.decided, "something is shown after the decision (P5)");
                let event_type = self.kept.remove(&e.inbox).expect("an event is taken once (P8)");
                let types = self.waits.remove(&e.ord).expect("an open wait takes it");
                assert!(types.contains(&event_type));
                let older = self.kept.iter().find(|(n, t)| **n < e.inbox && **t == event_type);
                assert_eq!(older, None, "events are taken in order of acceptance (P8)");
                self.took.insert(e.ord, (e.inbox, event_type));
            }
            Event::WaitTimedOut(e) => {
                assert!(!self.decided, "something is shown after the decision (P5)");
                assert!(self.waits.remove(&e.ord).is_some());
            }
            Event::WaitCancelled(e) => match self.took.remove(&e.ord) {
                Some((inbox, event_type)) => {
                    self.kept.insert(inbox, event_type);
                }
                None => assert!(self.waits.remove(&e.ord).is_some()),
            },
            Event::RollbackStarted(e) => {
                assert!(!self.decided || self.closed, "there is one decision");
                self.decided = true;
                // After success, on request, the run is open again.
                (self.closed, self.finished) = (false, false);
                self.plan.clone_from(&e.plan);
                assert!(e.plan.is_sorted_by(|a, b| a > b), "newest start first (R3)");
            }
            Event::UndoStarted(e) => {
                assert!(self.decided, "an undo without a decision");
                assert!(self.in_flight.is_empty(), "an undo under {:?} (P7)", self.in_flight);
                assert_eq!(self.undo_running, None, "one undo at a time (R3)");
                assert!(self.plan.contains(&e.ord), "{} is in no plan", e.ord);
                assert!(!self.settled.contains(&e.ord), "{} is settled", e.ord);
                let (used, most) = self.undo_attempts[&e.ord];
                assert!(used < most, "attempt {} of undo {} is one too many", e.attempt, e.ord);
                self.undo_running = Some(e.ord);
            }
            Event::UndoAttemptFailed(e) => {
                assert_eq!(self.undo_running.take(), Some(e.ord));
                count(&mut self.undo_attempts, e.ord, &e.failure);
            }
            Event::UndoSucceeded(e) => {
                assert_eq!(self.undo_running.take(), Some(e.ord));
                assert!(self.settled.insert(e.ord));
            }
            Event::UndoNotNeeded(e) => assert!(self.settled.insert(e.ord)),
            Event::UndoWaived(e) => {
                self.settled.insert(e.ord);
            }
            Event::UndoRetryRequested(e) => {
                self.undo_attempts.entry(e.ord).and_modify(|a| a.0 = 0);
            }
            Event::RollbackFinished(_) => {
                assert!(self.decided && !self.finished);
                self.finished = true;
            }
            Event::ExecutionSucceeded(_)
            | Event::ExecutionFailed(_)
            | Event::ExecutionCancelled(_)
            | Event::ExecutionTerminated(_) => {
                assert!(self.in_flight.is_empty(), "closed under {:?} (P7)", self.in_flight);
                self.closed = true;
            }
            Event::ExecutionKilled(_) => (self.closed, self.killed) = (true, true),
            Event::ExecutionStarted(_)
            | Event::StepCancelRequested(_)
            | Event::TimerCancelled(_)
            | Event::CancelRequested(_)
            | Event::PauseRequested(_)
            | Event::Resumed(_)
            | Event::Blocked(_)
            | Event::Unblocked(_)
            | Event::VerbRefused(_)
            | Event::MarkerRecorded(_)
            | Event::ValuePublished(_)
            | Event::AttributesSet(_)
            | Event::UndoFailed(_) => {}
        }
        if let Event::StepSucceeded(e) = event {
            assert!(self.outcomes.insert(e.ord), "{} has two outcomes", e.ord);
        }
    }

    fn ended(&mut self, ord: Ordinal) {
        assert!(self.in_flight.remove(&ord), "{ord} ended without being in flight");
    }
}

/// What may still be written into the journal of a closed run: a rollback on request, waivers of what
/// a kill left, attributes, and what came too late.
fn may_follow_the_end(event: &Event) -> bool {
    matches!(
        event,
        Event::CancelRequested(_)
            | Event::RollbackStarted(_)
            | Event::UndoWaived(_)
            | Event::AttributesSet(_)
            | Event::VerbRefused(_)
    )
}

/// Adds a failed attempt to the budget, unless the process was stopped in good order.
fn count(attempts: &mut BTreeMap<Ordinal, (u32, u32)>, ord: Ordinal, failure: &Failure) {
    let counts = u32::from(failure.origin() != Origin::Interrupted);
    attempts.entry(ord).and_modify(|a| a.0 += counts);
}
