//! Random runs that wait for events, sleep, drop what they wait for, are paused and die at any
//! time: what the code is shown, judged by a model of P8 that knows neither the fold nor the inbox's
//! copy in the journal.

mod dice;
mod owner;

use std::collections::{BTreeMap, BTreeSet};

use backstitch_core::event::Event;
use backstitch_core::id::Ordinal;
use backstitch_core::inbox::{InboxKind, InboxRow, Verb};
use backstitch_core::session::{AskedKind, GroupStart, Outcome, Report, RowOut};
use dice::Dice;
use owner::*;

/// What the code waits for.
#[derive(Clone)]
struct Open {
    /// Of a wait; empty for a sleep.
    types: Vec<String>,
    /// When it is over, if nothing comes.
    at_us: Option<i64>,
}

impl Open {
    fn wants(&self, row: &InboxRow) -> bool {
        self.types.contains(&row.topic)
            && self.at_us.is_none_or(|at_us| row.accepted_at_us <= at_us)
    }
}

/// Events arrive once and in order.
#[derive(Clone, Default)]
struct Model {
    asks: Ordinal,
    open: BTreeMap<Ordinal, Open>,
    /// Which wait was shown which event.
    shown: BTreeMap<Ordinal, u64>,
    taken: BTreeSet<u64>,
}

impl Model {
    /// The events that are there to be taken, oldest first.
    fn there<'a>(&self, inbox: &'a [InboxRow]) -> impl Iterator<Item = &'a InboxRow> {
        let events = inbox.iter().filter(|row| row.kind == InboxKind::Event);
        events.filter(|row| !self.taken.contains(&row.number))
    }

    /// The first event that somebody waits for, and who.
    fn next<'a>(&self, inbox: &'a [InboxRow]) -> Option<(Ordinal, &'a InboxRow)> {
        self.there(inbox).find_map(|row| {
            let taker = self.open.iter().find(|(_, open)| open.wants(row));
            taker.map(|(ord, _)| (*ord, row))
        })
    }

    /// The first instant that has come.
    fn due(&self, now_us: i64) -> Option<(i64, Ordinal)> {
        let due = self.open.iter().filter_map(|(ord, open)| open.at_us.map(|at_us| (at_us, *ord)));
        due.filter(|(at_us, _)| *at_us <= now_us).min()
    }

    /// Judges what the code was shown. `inbox` is what was accepted until the row was committed, and
    /// the first `read` rows of it were known when it was composed.
    fn judge(&self, group: &GroupStart, inbox: &[InboxRow], read: usize) {
        let Some((ord, outcome)) = &group.show else { return };
        let (next, due) = (self.next(&inbox[..read]), self.due(group.now_us));
        let wait = self.open.get(ord).expect("what is shown is waited for");
        match outcome {
            Outcome::Event(event) => {
                let next = next.map(|(ord, row)| (ord, row.number, row.accepted_at_us));
                assert_eq!(next, Some((*ord, event.inbox, event.accepted_at_us)), "in order");
                assert_eq!(event.payload.data.as_ref(), event.inbox.to_string().as_bytes());
                assert!(due.is_none_or(|(at_us, _)| event.accepted_at_us <= at_us), "in time");
            }
            Outcome::NoEvent | Outcome::Timer => {
                let late = matches!(outcome, Outcome::NoEvent);
                assert_eq!(late, !wait.types.is_empty());
                assert_eq!(due.map(|(_, ord)| ord), Some(*ord), "the first instant");
                let at_us = wait.at_us.expect("it ends by itself");
                assert!(next.is_none_or(|(_, row)| row.accepted_at_us > at_us), "events go first");
                // Also of what came while the row was on its way.
                let satisfies = self.there(inbox).find(|row| wait.wants(row));
                assert!(!late || satisfies.is_none(), "{satisfies:?} came in time");
            }
            Outcome::Step(_) => panic!("there is no step"),
        }
    }

    fn play(&mut self, group: &GroupStart, report: &Report) {
        if let Some((ord, outcome)) = &group.show {
            self.open.remove(ord);
            if let Outcome::Event(event) = outcome {
                assert!(self.taken.insert(event.inbox), "once");
                self.shown.insert(*ord, event.inbox);
            }
        }
        for asked in &report.asks {
            self.asks += 1;
            let open = match &asked.what {
                AskedKind::Wait { types, until_us } => {
                    Open { types: types.clone(), at_us: *until_us }
                }
                AskedKind::Timer { fire_at_us } => {
                    Open { types: Vec::new(), at_us: Some(*fire_at_us) }
                }
                AskedKind::Step { .. } => panic!("there is no step"),
            };
            self.open.insert(self.asks, open);
        }
        for ord in &report.drops {
            if self.open.remove(ord).is_none() {
                let unread = self.shown.remove(ord).expect("only what was not taken is dropped");
                self.taken.remove(&unread);
            }
        }
    }

    /// What the code does next: it asks for a few things, and lets go of a few.
    fn act(&self, dice: &mut Dice, group: &GroupStart) -> Report {
        let mut report = Report::default();
        let mut open: Vec<Ordinal> = self.open.keys().copied().collect();
        if let Some((ord, outcome)) = &group.show {
            open.retain(|open| open != ord);
            if matches!(outcome, Outcome::Event(_)) && dice.below(4) == 0 {
                report.drops.push(*ord);
            }
        }
        report.drops.extend(open.iter().filter(|_| dice.below(8) == 0));
        let least = usize::from(open.is_empty());
        for i in 0..least + dice.below(3) {
            let name = (self.asks as usize + 1 + i).to_string();
            let at_us = group.now_us + dice.below(12) as i64;
            let types = ["a", "b", "c", "a b", "c b", "b c a"][dice.below(6)];
            report.asks.push(match dice.below(6) {
                0 => sleep(&name, at_us),
                1..=3 => wait(&name, types, Some(at_us)),
                _ => wait(&name, types, None),
            });
        }
        report
    }
}

struct Story {
    dice: Dice,
    owner: Owner,
    model: Model,
    /// How often each thing happened.
    seen: BTreeMap<&'static str, usize>,
}

impl Story {
    fn compose(&mut self) -> Option<RowOut> {
        let (mut memory, dice) = (self.model.clone(), &mut self.dice);
        self.owner.compose(&mut |group| {
            let report = memory.act(dice, group);
            memory.play(group, &report);
            report
        })
    }

    fn commit(&mut self, out: &RowOut, played: usize) {
        self.owner.commit(out);
        for (group, report) in &self.owner.played[played..] {
            self.model.judge(group, &self.owner.inbox, out.inbox_read as usize);
            self.model.play(group, report);
            let what = match group.show {
                Some((_, Outcome::Event(_))) => "event",
                Some((_, Outcome::NoEvent)) => "time-out",
                Some(_) => "sleep",
                None => "begin",
            };
            *self.seen.entry(what).or_default() += 1;
            let unread = report.drops.iter().any(|ord| Some(ord) == shown(group));
            *self.seen.entry("given back").or_default() += usize::from(unread);
        }
        for event in &self.owner.rows.last().expect("just committed").events {
            if let Event::Resumed(resumed) = event {
                let instants = self.model.open.values_mut().filter_map(|open| open.at_us.as_mut());
                instants.for_each(|at_us| *at_us += resumed.shift_us);
            }
        }
    }

    /// Writes a row, unless the process dies before or the store refuses it. Whether there was one.
    fn row(&mut self) -> bool {
        let played = self.owner.played.len();
        let Some(out) = self.compose() else { return false };
        if self.dice.below(3) == 0 {
            self.send();
        }
        if self.owner.is_refused(&out) || self.dice.below(6) == 0 {
            *self.seen.entry("lost row").or_default() += 1;
            self.owner.crash();
            return true;
        }
        self.commit(&out, played);
        if self.dice.below(6) == 0 {
            self.owner.crash();
        }
        true
    }

    fn send(&mut self) {
        let event_type = ["a", "a", "b", "c"][self.dice.below(4)];
        self.owner.send(event_type);
    }

    fn something(&mut self) {
        match self.dice.below(12) {
            0..=2 => self.send(),
            3..=5 => self.owner.now_us += self.dice.below(6) as i64,
            // The clock of a machine may be set back.
            6 => self.owner.now_us -= self.dice.below(3) as i64,
            7 => self.owner.crash(),
            8 if self.dice.below(4) == 0 => drop(self.owner.ask(InboxKind::Pause)),
            8 => {
                let shift_timers = self.dice.below(2) == 0;
                let verb = Verb { shift_timers, ..Verb::default() };
                self.owner.verb(InboxKind::Resume, verb);
            }
            _ => drop(self.row()),
        }
    }

    /// Once nothing is left to write, nobody waits for what is there.
    fn rest(&mut self) {
        while self.row() {}
        // Of a run that is not paused yet, a resume says that it changes nothing.
        self.owner.ask(InboxKind::Resume);
        while self.row() {}
        let run = self.owner.session.run();
        let inbox = &self.owner.inbox;
        assert_eq!(run.inbox_read, inbox.len() as u64);
        assert_eq!(self.model.next(inbox).map(|(ord, row)| (ord, row.number)), None);
        assert_eq!(self.model.due(self.owner.now_us), None);
        let kept: Vec<u64> = run.kept.iter().map(|event| event.inbox).collect();
        assert_eq!(kept, self.model.there(inbox).map(|row| row.number).collect::<Vec<_>>());
        let waits = self.model.open.iter().filter(|(_, open)| !open.types.is_empty());
        assert!(run.waits.iter().eq(waits.map(|(ord, _)| ord)));
        let wakes_us = self.model.open.values().filter_map(|open| open.at_us).min();
        assert_eq!(self.owner.session.wake_at_us(), wakes_us);
        assert_eq!(self.owner.written, (self.owner.status(), wakes_us), "who parks it wakes it");
    }
}

fn shown(group: &GroupStart) -> Option<&Ordinal> {
    group.show.as_ref().map(|(ord, _)| ord)
}

#[test]
fn p8_p9_p13_events_arrive_once_and_in_order_whatever_happens() {
    let mut seen = BTreeMap::new();
    for seed in 0..300 {
        let (dice, model) = (Dice::new(seed), Model::default());
        let mut story = Story { dice, owner: Owner::begin(), model, seen };
        for _ in 0..3 {
            for _ in 0..20 {
                story.something();
            }
            story.rest();
        }
        story.owner.crash();
        seen = story.seen;
    }
    for what in ["event", "time-out", "sleep", "given back", "lost row"] {
        assert!(seen.get(what).is_some_and(|times| *times > 300), "{what}: {seen:?}");
    }
}
