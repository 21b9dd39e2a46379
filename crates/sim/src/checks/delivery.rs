//! Events from outside, and time: P8, P9.

use std::collections::BTreeMap;

use backstitch::core::event::Event;
use backstitch::core::id::Ordinal;
use backstitch::core::inbox::InboxKind;
use backstitch::store::RunNo;

use super::Violations;
use crate::history::{Entry, Moment};

/// What one run has got and waits for.
#[derive(Default)]
struct Desk {
    /// Accepted and taken by no wait: type and instant, by number.
    kept: BTreeMap<u64, (String, i64)>,
    waits: BTreeMap<Ordinal, (Vec<String>, Option<i64>)>,
    /// Waits that took one.
    took: BTreeMap<Ordinal, (u64, String, i64)>,
    timers: BTreeMap<Ordinal, i64>,
    /// When the next attempt of a step and of its undo is due.
    retries: BTreeMap<(Ordinal, What), i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Step,
    Undo,
}

pub(super) fn check(moments: &[Moment]) -> Violations {
    let mut desks: BTreeMap<RunNo, Desk> = BTreeMap::new();
    let mut violations = Violations::new();
    let mut latest_us = i64::MIN;
    for moment in moments {
        latest_us = latest_us.max(moment.at_us);
        match &moment.entry {
            Entry::Accepted { run, number, kind: InboxKind::Event, topic, at_us } => {
                desks.entry(*run).or_default().kept.insert(*number, (topic.clone(), *at_us));
            }
            Entry::Durable { run, row } => {
                let desk = desks.entry(*run).or_default();
                for event in &row.events {
                    if let Some(why) = desk.read(event, latest_us) {
                        violations.push(format!("{why} (run {})", run.0));
                    }
                }
            }
            Entry::Accepted { .. }
            | Entry::Opened { .. }
            | Entry::Gone { .. }
            | Entry::WokeUp { .. }
            | Entry::ClockSet { .. }
            | Entry::Answered { .. }
            | Entry::Listed(_)
            | Entry::Began(_)
            | Entry::Ended { .. }
            | Entry::Found { .. } => {}
        }
    }
    violations
}

impl Desk {
    /// What is wrong with the next event of the journal; `latest_us` is the latest that any clock
    /// has shown.
    fn read(&mut self, event: &Event, latest_us: i64) -> Option<String> {
        match event {
            Event::TimerStarted(e) => drop(self.timers.insert(e.ord, e.fire_at_us)),
            Event::TimerFired(e) => {
                let fire_at_us = self.timers.remove(&e.ord);
                if fire_at_us.is_none_or(|at_us| at_us > latest_us) {
                    return Some(format!("P9: timer {} fires early", e.ord));
                }
            }
            Event::TimerCancelled(e) => drop(self.timers.remove(&e.ord)),
            Event::WaitStarted(e) => {
                self.waits.insert(e.ord, (e.types.clone(), e.until_us));
            }
            Event::WaitSatisfied(e) => return self.satisfied(e.ord, e.inbox),
            Event::WaitTimedOut(e) => return self.timed_out(e.ord, latest_us),
            Event::WaitCancelled(e) => {
                self.waits.remove(&e.ord);
                if let Some((number, topic, at_us)) = self.took.remove(&e.ord) {
                    self.kept.insert(number, (topic, at_us));
                }
            }
            Event::Resumed(e) => {
                let ends = self.waits.values_mut().filter_map(|(_, until_us)| until_us.as_mut());
                self.timers.values_mut().chain(ends).for_each(|at_us| *at_us += e.shift_us);
            }
            Event::StepAttemptFailed(e) => {
                if let Some(at_us) = e.retry_at_us {
                    self.retries.insert((e.ord, What::Step), at_us);
                }
            }
            Event::UndoAttemptFailed(e) => {
                if let Some(at_us) = e.retry_at_us {
                    self.retries.insert((e.ord, What::Undo), at_us);
                }
            }
            Event::StepStarted(e) => return self.again((e.ord, What::Step), latest_us),
            Event::UndoStarted(e) => return self.again((e.ord, What::Undo), latest_us),
            _ => {}
        }
        None
    }

    fn again(&mut self, what: (Ordinal, What), latest_us: i64) -> Option<String> {
        let at_us = self.retries.remove(&what)?;
        (at_us > latest_us).then(|| format!("P9: the retry of step {} begins early", what.0))
    }

    fn satisfied(&mut self, wait: Ordinal, number: u64) -> Option<String> {
        let Some((topic, at_us)) = self.kept.remove(&number) else {
            return Some(format!("P8: wait {wait} takes event {number}, which is not there"));
        };
        let Some((topics, until_us)) = self.waits.remove(&wait) else {
            return Some(format!("P8: wait {wait} takes event {number} and is not open"));
        };
        if !topics.contains(&topic) {
            return Some(format!("P8: wait {wait} takes event {number} of type {topic}"));
        }
        let mut older = self.kept.range(..number).filter(|(_, (other, _))| *other == topic);
        if let Some((older, _)) = older.next() {
            return Some(format!("P8: wait {wait} takes event {number} before event {older}"));
        }
        if until_us.is_some_and(|until_us| at_us > until_us) {
            return Some(format!("P8: wait {wait} takes event {number}, which came too late"));
        }
        self.took.insert(wait, (number, topic, at_us));
        None
    }

    fn timed_out(&mut self, wait: Ordinal, latest_us: i64) -> Option<String> {
        let Some((topics, Some(until_us))) = self.waits.remove(&wait) else {
            return Some(format!("P8: wait {wait} times out, and has no end or is not open"));
        };
        if until_us > latest_us {
            return Some(format!("P9: wait {wait} times out early"));
        }
        let in_time = |topic: &String, at_us: i64| topics.contains(topic) && at_us <= until_us;
        let missed = self.kept.iter().find(|(_, (topic, at_us))| in_time(topic, *at_us));
        let (number, _) = missed?;
        Some(format!("P8: wait {wait} times out, and event {number} had come in time"))
    }
}
