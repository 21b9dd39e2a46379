//! Random stories: whatever the fold accepts keeps the promises, judged by a second set of books.

mod dice;
mod story;

use std::collections::{BTreeMap, BTreeSet};

use backstitch_core::event::{
    AbandonWhy, AttributeOrigin, BlockKind, CancelVerb, CauseKind, EndKind, Event,
};
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
    /// Type and acceptance of events that are there to be taken.
    events: BTreeMap<u64, (String, i64)>,
    waits: BTreeMap<Ordinal, Waiting>,
    copied: u64,
    decided: bool,
    closed: bool,
    succeeded: bool,
    /// What a kill left and nobody has waived.
    left: BTreeSet<Ordinal>,
}

/// A wait that is open, or that was shown an event.
struct Waiting {
    types: Vec<String>,
    until_us: Option<i64>,
    shown: Option<(u64, (String, i64))>,
}

impl Waiting {
    fn wants(&self, (event_type, accepted_at_us): &(String, i64)) -> bool {
        self.shown.is_none()
            && self.types.contains(event_type)
            && self.until_us.is_none_or(|until_us| *accepted_at_us <= until_us)
    }
}

impl Books {
    fn note(&mut self, event: &Event) {
        assert!(!self.closed || self.may_follow(event), "{} after the end", event.name());
        if let Some(number) = inbox_number(event) {
            assert!(number > self.copied, "P8: inbox row {number} was copied before");
            self.copied = number;
        }
        match event {
            Event::WaitStarted(e) => {
                assert!(!self.decided, "P5");
                let (types, until_us) = (e.types.clone(), e.until_us);
                self.waits.insert(e.ord, Waiting { types, until_us, shown: None });
            }
            Event::EventReceived(e) => {
                assert!(!self.decided, "P5: events are refused on the way back");
                self.events.insert(e.inbox, (e.event_type.clone(), e.accepted_at_us));
            }
            Event::WaitSatisfied(e) => {
                let wait = self.waits.get_mut(&e.ord).expect("it is there");
                let first = self.events.iter().find(|(_, event)| wait.wants(event));
                assert_eq!(first.map(|(number, _)| *number), Some(e.inbox), "P8: in order");
                wait.shown = self.events.remove_entry(&e.inbox);
            }
            Event::WaitTimedOut(e) => {
                let wait = self.waits.remove(&e.ord).expect("it is open");
                assert!(wait.until_us.is_some_and(|until_us| until_us <= NOW_US), "P9");
                assert!(!self.events.values().any(|event| wait.wants(event)), "P8");
                assert_eq!(wait.shown, None, "P13: shown once");
            }
            Event::WaitCancelled(e) => {
                let wait = self.waits.remove(&e.ord).expect("dropped once");
                self.events.extend(wait.shown);
            }
            Event::Resumed(e) => {
                let untils = self.waits.values_mut().filter(|wait| wait.shown.is_none());
                untils.filter_map(|wait| wait.until_us.as_mut()).for_each(|at| *at += e.shift_us);
            }
            Event::MarkerRecorded(_) | Event::ValuePublished(_) => assert!(!self.decided, "P5"),
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
                assert!(!self.decided || self.succeeded, "one decision");
                (self.decided, self.closed, self.succeeded) = (true, false, false);
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
                self.left.remove(&e.ord);
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
                (self.closed, self.succeeded, self.decided) = (true, true, true);
            }
            Event::ExecutionKilled(e) => {
                self.left = e.left.iter().copied().collect();
                (self.closed, self.decided) = (true, true);
            }
            _ => {}
        }
    }

    /// What may stand behind the end.
    fn may_follow(&self, event: &Event) -> bool {
        match event {
            Event::VerbRefused(_) => true,
            Event::AttributesSet(e) => e.origin() != AttributeOrigin::Code,
            Event::UndoWaived(e) => self.left.contains(&e.ord),
            Event::CancelRequested(e) => self.succeeded && e.verb() == CancelVerb::Rollback,
            Event::RollbackStarted(e) => {
                self.succeeded && e.causes[0].kind() == CauseKind::Requested
            }
            _ => false,
        }
    }

    fn record(&mut self, ord: Ordinal, was_in_flight: bool) {
        assert!(self.recorded.insert(ord), "P3");
        assert_eq!(self.in_flight.remove(&ord), was_in_flight);
    }
}

/// The inbox row that the event was copied from.
fn inbox_number(event: &Event) -> Option<u64> {
    let number = match event {
        Event::EventReceived(e) => e.inbox,
        Event::CancelRequested(e) => e.inbox,
        Event::PauseRequested(e) => e.inbox,
        Event::Resumed(e) => e.inbox,
        Event::VerbRefused(e) => e.inbox,
        Event::AttributesSet(e) => e.inbox,
        Event::StepRetryRequested(e) => e.inbox,
        Event::UndoRetryRequested(e) => e.inbox,
        Event::UndoWaived(e) => e.inbox,
        Event::ExecutionKilled(e) => e.inbox,
        _ => 0,
    };
    (number > 0).then_some(number)
}

/// An event of an inbox, of waits for it, or of what the code says.
fn news(dice: &mut Dice, run: &Run, ord: Ordinal, inbox: u64) -> Event {
    let next = run.asks.len() as Ordinal + 1;
    let types = ["a", "b", "a b", "b a"][dice.below(4)];
    // Acceptance never runs backwards, and comes to the time of the rows after a while.
    let accepted_at_us = NOW_US - 12 + inbox as i64;
    let until_us = (dice.below(3) > 0).then(|| NOW_US - 10 + dice.below(12) as i64);
    let any = run.kept.iter().map(|event| event.inbox).collect::<Vec<_>>();
    let event = *any.get(dice.below(any.len().max(1))).unwrap_or(&1);
    let origins = [AttributeOrigin::Start, AttributeOrigin::Code, AttributeOrigin::Verb];
    let origin = origins[dice.below(3)];
    let number = if origin == AttributeOrigin::Verb { inbox } else { 0 };
    match dice.below(16) {
        0 | 1 => wait(next, types, until_us),
        2..=5 => received(inbox, ["a", "b"][dice.below(2)], accepted_at_us),
        6..=8 => satisfied(ord, event),
        9 | 10 => timed_out(ord),
        11 | 12 => wait_dropped(ord),
        13 => marker("p"),
        14 => published("k", "1"),
        _ => attributes_set(origin, attribute("A", (ord == 1).then_some(1)), number),
    }
}

fn anything(dice: &mut Dice, run: &Run) -> Event {
    let next = run.asks.len() as Ordinal + 1;
    let ord = dice.below(next.min(4) as usize) as Ordinal + 1;
    let attempt = dice.below(3) as u32 + 1;
    // Stories come to the way back late, and have to get on there.
    let undoing = run.step(ord).map_or(attempt, |step| step.undo.attempts);
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
    let choices = if dice.below(8) == 0 { 38 } else { 33 };
    if dice.below(3) == 0 {
        return news(dice, run, ord, inbox);
    }
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
        19 if dice.below(4) == 0 => verb_refused(inbox),
        19 => asked([CancelVerb::Cancel, CancelVerb::Rollback][dice.below(2)], inbox),
        20 => pause(inbox),
        21 => resume_later(dice.below(3) as i64, inbox),
        22 => blocked(BlockKind::Step, Some(ord)),
        23 => unblocked(BlockKind::Step, Some(ord)),
        24..=26 => undo_started(ord, attempt),
        27 => undo_succeeded(ord, undoing),
        28 => undo_attempt_failed(ord, undoing, retry_at_us),
        29 => undo_failed(ord),
        30 => not_needed(ord),
        31 => retry_undo(ord, inbox),
        32 => waived(ord, inbox),
        33 => rollback_into(end, &plan),
        34 => finished(),
        35 => rollback_on_request(2, &plan),
        36 if dice.below(8) == 0 => killed(&run.plan(), inbox),
        _ => [ended_failed(), ended_cancelled(), ended_terminated(), ended_well()][dice.below(4)]
            .clone(),
    }
}

/// One random story; what was refused is passed over. Gives the kinds that were accepted.
fn tell(seed: u64, seen: &mut BTreeSet<&'static str>) {
    let (mut dice, mut run, mut books) = (Dice::new(seed), run(), Books::default());
    let mut rows = vec![row(1, RowKind::Engine, vec![begun()])];
    for _ in 0..300 {
        let kind = [RowKind::Turn, RowKind::Turn, RowKind::Engine][dice.below(3)];
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
    let Run { waits, published, attributes, deadline_at_us, cancel, output, .. } = run;
    let kept: Vec<_> = run.kept.iter().collect();
    let first = format!("{seq} {asks:?} {phase:?} {pause:?} {blocks:?} {rollback:?} {attention:?}");
    let second = format!("{inbox_read} {in_flight:?} {due:?} {unshown:?} {turns} {lost_streak}");
    let third = format!("{waits:?} {published:?} {attributes:?} {deadline_at_us:?} {cancel:?}");
    format!("{first} {second} {third} {output:?} {kept:?}")
}

#[test]
fn p3_p5_p6_p7_p8_hold_in_every_story_that_the_fold_accepts() {
    let mut seen = BTreeSet::new();
    for seed in 0..400 {
        tell(seed, &mut seen);
    }
    for (_, _, name) in Event::KINDS.iter().filter(|(_, _, name)| *name != "ExecutionStarted") {
        assert!(seen.contains(name), "no story got to {name}: {seen:?}");
    }
}
