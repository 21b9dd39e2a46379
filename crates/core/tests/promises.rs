//! Random stories: whatever the fold accepts keeps the promises, judged by a second set of books.

mod dice;
mod story;

use std::collections::BTreeSet;

use backstitch_core::event::{AbandonWhy, BlockKind, EndKind, Event};
use backstitch_core::id::Ordinal;
use backstitch_core::row::RowKind;
use backstitch_core::run::Run;
use dice::Dice;
use story::*;

/// What an auditor notes who reads the accepted events, and nothing else.
#[derive(Default)]
struct Books {
    in_flight: BTreeSet<Ordinal>,
    recorded: BTreeSet<Ordinal>,
    has_undo: BTreeSet<Ordinal>,
    begun: BTreeSet<Ordinal>,
    settled: BTreeSet<Ordinal>,
    undo_in_flight: BTreeSet<Ordinal>,
    decided: bool,
    closed: bool,
}

impl Books {
    fn note(&mut self, event: &Event) {
        assert!(!self.closed, "{} after the end", event.name());
        match event {
            Event::StepScheduled(e) => {
                assert!(!self.decided, "P5");
                if e.undo.is_some() {
                    self.has_undo.insert(e.ord);
                }
            }
            Event::StepStarted(e) => {
                assert!(!self.decided, "P5");
                assert!(!self.recorded.contains(&e.ord), "P3");
                assert!(self.in_flight.insert(e.ord), "two attempts at once");
                self.begun.insert(e.ord);
            }
            Event::StepSucceeded(e) => self.record(e.ord, true),
            Event::StepFailed(e) => self.record(e.ord, false),
            Event::StepAttemptFailed(e) => assert!(self.in_flight.remove(&e.ord)),
            Event::StepAbandoned(e) => assert!(self.in_flight.remove(&e.ord)),
            Event::TimerStarted(_) | Event::TimerFired(_) | Event::Shown(_) => {
                assert!(!self.decided, "P5");
            }
            Event::RollbackStarted(_) => {
                assert!(!self.decided, "one decision");
                self.decided = true;
            }
            Event::UndoStarted(e) => {
                assert!(self.decided && self.in_flight.is_empty(), "P7");
                assert!(!self.settled.contains(&e.ord), "undone twice");
                assert!(self.undo_in_flight.is_empty(), "R3: one at a time");
                self.undo_in_flight.insert(e.ord);
            }
            Event::UndoSucceeded(e) => {
                assert!(self.undo_in_flight.remove(&e.ord));
                self.settled.insert(e.ord);
            }
            Event::UndoAttemptFailed(e) => assert!(self.undo_in_flight.remove(&e.ord)),
            Event::UndoWaived(e) => {
                self.settled.insert(e.ord);
            }
            Event::UndoNotNeeded(e) => {
                self.settled.insert(e.ord);
            }
            Event::ExecutionFailed(_)
            | Event::ExecutionCancelled(_)
            | Event::ExecutionTerminated(_) => {
                assert!(self.in_flight.is_empty() && self.undo_in_flight.is_empty(), "P7");
                let owed = self.begun.intersection(&self.has_undo);
                let mut open = owed.filter(|ord| !self.settled.contains(ord));
                assert_eq!(open.next(), None, "P6: closed with a debt");
                self.closed = true;
            }
            Event::ExecutionSucceeded(_) => {
                assert!(self.in_flight.is_empty() && self.undo_in_flight.is_empty(), "P7");
                self.closed = true;
            }
            _ => {}
        }
    }

    fn record(&mut self, ord: Ordinal, was_in_flight: bool) {
        assert!(self.recorded.insert(ord), "P3");
        assert_eq!(self.in_flight.remove(&ord), was_in_flight);
    }
}

fn anything(dice: &mut Dice, run: &Run) -> Event {
    let next = run.asks.len() as Ordinal + 1;
    let ord = dice.below(next.min(4) as usize) as Ordinal + 1;
    let attempt = dice.below(3) as u32 + 1;
    let retry_at_us = (dice.below(2) == 0).then_some(NOW_US);
    let inbox = run.inbox_read + dice.below(3) as u64;
    let plan = match dice.below(4) {
        0 => vec![],
        1 => run.dropped_and_owed(),
        _ => run.plan(),
    };
    let ends = [EndKind::Failed, EndKind::Cancelled, EndKind::Terminated, EndKind::Succeeded];
    let end = ends[dice.below(4)];
    // Ends and decisions are rare, so that stories have a middle.
    let choices = if dice.below(8) == 0 { 36 } else { 33 };
    match dice.below(choices) {
        0 => scheduled(next),
        1 => scheduled_plain(next),
        2 => timer(next),
        3 => fired(ord),
        4 => timer_dropped(ord),
        5..=8 => started(ord, attempt),
        9..=11 => succeeded(ord, attempt),
        12 | 13 => attempt_failed(ord, attempt, retry_at_us),
        14 => failed(ord),
        15 => dropped(ord),
        16 => abandoned(ord, AbandonWhy::Cancelled),
        17 => retry_step(ord, inbox),
        18 => shown(ord),
        19 => cancel(inbox),
        20 => pause(inbox),
        21 => resume(inbox),
        22 => blocked(BlockKind::Step, Some(ord)),
        23 => unblocked(BlockKind::Step, Some(ord)),
        24..=26 => undo_started(ord, attempt),
        27 => undo_succeeded(ord, attempt),
        28 => undo_attempt_failed(ord, attempt, retry_at_us),
        29 => undo_failed(ord),
        30 => not_needed(ord),
        31 => retry_undo(ord, inbox),
        32 => waived(ord, inbox),
        33 => rollback_into(end, &plan),
        34 => finished(),
        _ => [ended_failed(), ended_cancelled(), ended_terminated(), ended_well()][dice.below(4)]
            .clone(),
    }
}

/// One random story; what was refused is passed over. Gives the kinds that were accepted.
fn tell(seed: u64, seen: &mut BTreeSet<&'static str>) {
    let (mut dice, mut run, mut books) = (Dice::new(seed), run(), Books::default());
    let mut rows = vec![row(1, RowKind::Engine, vec![begun()])];
    for _ in 0..300 {
        let kind = [RowKind::Turn, RowKind::Engine][dice.below(2)];
        let event = anything(&mut dice, &run);
        // A run that has refused an event is not to be used.
        let mut tried = run.clone();
        if then(&mut tried, kind, vec![event.clone()]).is_ok() {
            books.note(&event);
            seen.insert(event.name());
            rows.push(row(tried.seq, kind, vec![event]));
            run = tried;
        }
        let status = run.status(true);
        assert_eq!(status.is_closed(), books.closed, "seed {seed}: {status:?}");
        if books.closed && dice.below(8) == 0 {
            break;
        }
        let _ = (run.rollback_progress(), run.waits_for(true), run.next_due_us());
    }
    let again = Run::fold(&rows).expect("what was accepted once is accepted again");
    assert_eq!(picture(&again), picture(&run), "seed {seed}");
}

/// Everything that the fold knows of a run and shows.
fn picture(run: &Run) -> String {
    let Run { seq, asks, phase, pause, blocks, rollback, attention, .. } = run;
    let Run { inbox_read, in_flight, due, unshown, turns, lost_streak, .. } = run;
    let first = format!("{seq} {asks:?} {phase:?} {pause:?} {blocks:?} {rollback:?} {attention:?}");
    format!("{first} {inbox_read} {in_flight:?} {due:?} {unshown:?} {turns} {lost_streak}")
}

#[test]
fn p3_p5_p6_p7_hold_in_every_story_that_the_fold_accepts() {
    let mut seen = BTreeSet::new();
    for seed in 0..400 {
        tell(seed, &mut seen);
    }
    let untold = ["ExecutionStarted", "ExecutionKilled", "VerbRefused"];
    let kinds = Event::KINDS.iter().map(|(_, _, name)| *name);
    for name in kinds.filter(|name| !untold.contains(name)) {
        assert!(seen.contains(name), "no story got to {name}: {seen:?}");
    }
}
