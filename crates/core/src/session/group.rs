//! One group: show one outcome, poll the code until it is quiet, take down what it asked for.

use crate::attribute::AttributeChange;
use crate::event::{
    Event, EventReceived, MarkerRecorded, Shown, StepCancelRequested, StepScheduled, StepStarted,
    TimerCancelled, TimerFired, TimerStarted, UndoSpec, WaitCancelled, WaitSatisfied, WaitStarted,
    WaitTimedOut,
};
use crate::failure::Failure;
use crate::id::Ordinal;
use crate::payload::Payload;
use crate::retry::{StepPolicy, UndoPolicy};
use crate::row::RowKind;
use crate::run::Ask;
use crate::session::mismatch::{Found, Mismatch};
use crate::session::{Asked, Code, Command, Session, Stopping};

/// What the code is shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The outcome of a step.
    Step(Result<Payload, Failure>),
    /// A sleep is over.
    Timer,
    /// A wait took this event.
    Event(Box<EventReceived>),
    /// No event came in time.
    NoEvent,
}

/// What comes to the code without a step that ends.
pub(super) enum ByItself {
    /// The wait, and the event that it takes.
    Event(Ordinal, u64),
    /// A sleep that is over, or a wait whose time is.
    Due(Ordinal),
}

/// The begin of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupStart {
    /// The number of the group in the run, from 1.
    pub group: u64,
    /// What the code sees as the time.
    pub now_us: i64,
    /// What to show; nothing in the very first group.
    pub show: Option<(Ordinal, Outcome)>,
    /// Which way the code goes where it was patched.
    pub patches: Patches,
}

/// Which way the code goes where it was patched.
#[derive(Clone, Debug, PartialEq)]
pub enum Patches {
    /// The new way, and that is recorded.
    Live,
    /// The new way for these, the old one for all others.
    Recorded(Vec<String>),
}

/// Something that the code says and does not wait for.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// A value for whoever looks from outside.
    Published {
        /// Its key.
        key: String,
        /// The value.
        value: Payload,
    },
    /// A search attribute.
    Attribute(AttributeChange),
}

/// What an ask is.
#[derive(Clone, Debug, PartialEq)]
pub enum AskedKind {
    /// A step.
    Step {
        /// Its policy.
        policy: StepPolicy,
        /// The policy of its undo, if it has one.
        undo: Option<UndoPolicy>,
    },
    /// A sleep.
    Timer {
        /// Until when.
        fire_at_us: i64,
    },
    /// A wait for an event.
    Wait {
        /// Its types.
        types: Vec<String>,
        /// Until when.
        until_us: Option<i64>,
    },
}

/// What the code did in a group.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What it newly asked for and did not drop at once, in the order of the first polls.
    pub asks: Vec<Asked>,
    /// What it had asked for in earlier groups and dropped; at its end, everything still open.
    pub drops: Vec<Ordinal>,
    /// What it returned, if it did.
    pub ended: Option<Result<Payload, Failure>>,
    /// What it said, in order.
    pub notes: Vec<Note>,
    /// Patches whose new way it took for the first time in the run.
    pub patched: Vec<String>,
    /// A recorded outcome did not decode as the type that the code asked for.
    pub undecodable: Option<String>,
}

impl Report {
    /// Whether the code did anything.
    pub fn does_anything(&self) -> bool {
        let Report { asks, drops, ended, notes, patched, undecodable } = self;
        !(asks.is_empty() && drops.is_empty() && notes.is_empty() && patched.is_empty())
            || ended.is_some()
            || undecodable.is_some()
    }
}

impl Session {
    /// The next group to poll the code for, or `None` when there is nothing to show.
    ///
    /// In replay the groups are the recorded ones. Live ones belong to the row that
    /// [`Session::open_row`] opened, and their outcome is written down here.
    pub fn next_group(&mut self) -> Option<GroupStart> {
        if self.code == Code::Replaying {
            let recorded = self.script.front().expect("replay has groups left");
            let (now_us, show) = (recorded.now_us, recorded.show);
            let patches = match self.script.len() == 1 && self.is_cut_short(recorded) {
                // Mended code may pass a patch here that it had not passed then.
                true => Patches::Live,
                false => Patches::Recorded(recorded.markers.clone()),
            };
            self.groups += 1;
            let show = show.map(|ord| (ord, self.recorded_outcome(ord)));
            return Some(GroupStart { group: self.groups, now_us, show, patches });
        }
        let row = self.open.as_ref()?;
        if row.kind != RowKind::Turn || row.is_full() || !self.can_turn() {
            return None;
        }
        let now_us = row.now_us;
        let show = if self.groups == 0 { None } else { Some(self.take_show(now_us)?) };
        self.groups += 1;
        self.open.as_mut().expect("a row is open").groups += 1;
        Some(GroupStart { group: self.groups, now_us, show, patches: Patches::Live })
    }

    /// Whether the code may be shown something now.
    pub(super) fn can_turn(&self) -> bool {
        self.is_live()
            && self.run.pause.is_none()
            && !self.run.is_held_by_block()
            && self.pending_blocks.is_empty()
            && self.returned.is_none()
            && self.closing_down == Stopping::No
    }

    fn recorded_outcome(&self, ord: Ordinal) -> Outcome {
        match &self.run.asks[ord as usize - 1] {
            Ask::Timer(_) => Outcome::Timer,
            Ask::Step(step) => Outcome::Step(match (&step.output, &step.failure) {
                (Some(output), _) => Ok(output.clone()),
                (None, Some(failure)) => Err(failure.clone()),
                (None, None) => unreachable!("the fold shows only what has an outcome"),
            }),
            Ask::Wait(wait) => wait.event.clone().map_or(Outcome::NoEvent, Outcome::Event),
        }
    }

    /// Writes down the next outcome as shown.
    fn take_show(&mut self, now_us: i64) -> Option<(Ordinal, Outcome)> {
        if let Some(ord) = self.run.unshown.front().copied() {
            self.push(Shown { ord });
            return Some((ord, self.recorded_outcome(ord)));
        }
        // A group of this very row may have dropped a step: its end belongs into an engine row.
        while let Some(i) = self.step_ends.iter().position(|end| self.is_wanted(end.ord)) {
            let end = self.step_ends.remove(i).expect("just found");
            let ord = end.ord;
            if self.record_step_end(end) {
                return Some((ord, self.recorded_outcome(ord)));
            }
        }
        let ord = match self.next_by_itself(now_us)? {
            ByItself::Event(ord, inbox) => {
                self.push(WaitSatisfied { ord, inbox });
                ord
            }
            ByItself::Due(ord) => {
                match &self.run.asks[ord as usize - 1] {
                    Ask::Wait(wait) => {
                        let topics = wait.types.clone();
                        self.open.as_mut().expect("a row is open").topics.extend(topics);
                        self.push(WaitTimedOut { ord });
                    }
                    Ask::Timer(_) | Ask::Step(_) => self.push(TimerFired { ord }),
                }
                ord
            }
        };
        Some((ord, self.recorded_outcome(ord)))
    }

    /// What the code may be shown though no step has ended, in the order of the instants: an event
    /// that came at or before the instant of a sleep goes first.
    pub(super) fn next_by_itself(&self, now_us: i64) -> Option<ByItself> {
        let is_shown = |ord: Ordinal| match &self.run.asks[ord as usize - 1] {
            Ask::Timer(_) | Ask::Wait(_) => true,
            Ask::Step(_) => false,
        };
        let mut due = self.run.due.iter().take_while(|(at_us, _)| *at_us <= now_us);
        let due = due.find(|(_, ord)| is_shown(*ord)).copied();
        let event = self.run.deliverable();
        match (event, due) {
            (Some((ord, event)), Some((at_us, _))) if event.accepted_at_us <= at_us => {
                Some(ByItself::Event(ord, event.inbox))
            }
            (Some((ord, event)), None) => Some(ByItself::Event(ord, event.inbox)),
            (_, Some((_, ord))) => Some(ByItself::Due(ord)),
            (None, None) => None,
        }
    }

    /// Takes down what the code did in the group; gives the ordinals of its asks, in their order.
    ///
    /// # Errors
    /// In replay, when the code did something else than the journal says. The code is then not to
    /// be polled again.
    pub fn end_group(&mut self, report: Report) -> Result<Vec<Ordinal>, Mismatch> {
        if self.code == Code::Replaying {
            return self.end_recorded_group(report);
        }
        if let Some(what) = report.undecodable {
            return Err(self.mismatch_here("an outcome".into(), what));
        }
        Ok(self.take_down(report))
    }

    /// Writes down what the code did.
    pub(super) fn take_down(&mut self, report: Report) -> Vec<Ordinal> {
        if let Some(limit) = self.exceeded(&report) {
            self.code = Code::Ended;
            for ord in report.drops {
                self.drop_ask(ord);
            }
            self.code_failed(limit);
            self.close_as_decided();
            return Vec::new();
        }
        self.patches += report.patched.len();
        for name in report.patched {
            self.push(MarkerRecorded { name, payload: None });
        }
        for note in report.notes {
            self.note(note);
        }
        let ords = report.asks.into_iter().map(|asked| self.ask(asked)).collect();
        for ord in report.drops {
            self.drop_ask(ord);
        }
        match report.ended {
            None => {}
            Some(Ok(output)) => {
                self.code = Code::Ended;
                self.code_succeeded(output);
            }
            Some(Err(failure)) => {
                self.code = Code::Ended;
                self.code_failed(failure.bounded());
            }
        }
        self.close_as_decided();
        ords
    }

    fn ask(&mut self, asked: Asked) -> Ordinal {
        let ord = self.run.asks.len() as Ordinal + 1;
        let Asked { key, place, what } = asked;
        match what {
            AskedKind::Step { policy, undo } => {
                if undo.is_some() {
                    self.handlers.insert(ord);
                }
                let undo = undo.map(|policy| UndoSpec { policy, named: None });
                self.push(StepScheduled {
                    ord,
                    key,
                    place,
                    policy,
                    undo,
                    input: None,
                    alias: None,
                    queue: None,
                });
                self.push(StepStarted { ord, attempt: 1, policy: None });
            }
            AskedKind::Timer { fire_at_us } => {
                self.push(TimerStarted { ord, key, fire_at_us, place });
            }
            AskedKind::Wait { types, until_us } => {
                self.push(WaitStarted { ord, key, types, until_us, place });
            }
        }
        ord
    }

    fn drop_ask(&mut self, ord: Ordinal) {
        match &self.run.asks[ord as usize - 1] {
            Ask::Timer(_) => self.push(TimerCancelled { ord }),
            Ask::Wait(_) => self.push(WaitCancelled { ord }),
            Ask::Step(_) => {
                self.push(StepCancelRequested { ord });
                if self.run.in_flight.contains(&ord) {
                    self.give_up(ord, self.unwanted(ord));
                }
            }
        }
    }

    fn mismatch_here(&self, recorded: String, asked: String) -> Mismatch {
        Mismatch {
            seq: self.run.seq,
            recorded,
            asked,
            recorded_version: self.run.version.clone(),
            running_version: self.run.version.clone(),
            found: Found::Live,
        }
    }

    /// Folds an event and writes it into the open row.
    ///
    /// # Panics
    /// When the fold refuses it: that is our bug, and nothing of the row reaches the store.
    pub(super) fn push(&mut self, event: impl Into<Event>) {
        let event = event.into();
        self.begin_row();
        if let Err(illegal) = self.run.apply(&event) {
            panic!("the session composed an illegal row: {illegal}");
        }
        let command = match &event {
            Event::StepStarted(e) => {
                let now_us = self.open.as_ref().expect("a row is open").now_us;
                let timeout_us = self.attempt_timeout_us(e.ord, now_us);
                Some(Command::StartStep { ord: e.ord, attempt: e.attempt, timeout_us })
            }
            Event::UndoStarted(e) => {
                let timeout_us = self.undo_timeout_us(e.ord);
                Some(Command::StartUndo { ord: e.ord, attempt: e.attempt, timeout_us })
            }
            _ => None,
        };
        let row = self.open.as_mut().expect("a row is open");
        row.commands.extend(command);
        row.payload_bytes += payload_bytes(&event);
        row.events.push(event);
    }
}

/// The part of an event that may be large.
fn payload_bytes(event: &Event) -> usize {
    match event {
        Event::StepSucceeded(e) => e.output.data.len(),
        Event::ExecutionSucceeded(e) => e.output.data.len(),
        Event::StepAttemptFailed(e) => e.failure.message.len(),
        Event::EventReceived(e) => e.payload.data.len(),
        Event::ValuePublished(e) => e.value.data.len(),
        _ => 0,
    }
}
