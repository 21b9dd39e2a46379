//! The owner of one run without I/O: it drives a session as an engine would, keeps the rows, and
//! can die at any time. The code of the run is a function from a group to what it does there.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;

use backstitch_core::attribute::AttributeChange;
use backstitch_core::event::{BlockKind, Event, ExecutionStarted};
use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::follow::{Follower, Offered};
use backstitch_core::id::{Key, KeyKind, Ordinal};
use backstitch_core::inbox::{EventMessage, InboxKind, InboxRow, Verb};
use backstitch_core::limits::RunLimits;
use backstitch_core::payload::Payload;
use backstitch_core::retry::{StepPolicy, UndoPolicy};
use backstitch_core::row::{Draft, Header, Row, RowKind};
use backstitch_core::session::{
    Asked, AskedKind, AttemptEnd, GroupStart, Mismatch, Note, Outcome, Report, RowOut, Session,
    Verdict, judge,
};
use backstitch_core::status::Status;

/// When the first row of every run is committed.
pub const T0: i64 = 1_000_000;

/// One run, and whoever owns it.
pub struct Owner {
    pub session: Session,
    pub rows: Vec<Row>,
    /// Everything that was ever accepted.
    pub inbox: Vec<InboxRow>,
    pub now_us: i64,
    /// Groups so far, with what the code did in each; replay does the same again.
    pub played: Vec<(GroupStart, Report)>,
    /// What the execution's own row says.
    pub written: (Status, Option<i64>),
    limits: RunLimits,
    /// Whoever writes the rows down, if that is somebody else.
    follower: Follower,
}

impl Owner {
    /// A run that has begun, with its code at hand.
    pub fn begin() -> Owner {
        Owner::begin_with(ExecutionStarted::default())
    }

    pub fn begin_with(started: ExecutionStarted) -> Owner {
        let run_id = vec![7; 16];
        let (workflow, version) = ("w".to_owned(), "1".to_owned());
        let started = ExecutionStarted { run_id, workflow, version, ..started };
        let draft = Draft::new(Header { seq: 1, ..Header::default() }, &[started.into()]);
        let rows = vec![Row::decode(draft.seal(T0)).expect("it was just written")];
        let (written, limits) = ((Status::Pending, None), RunLimits::default());
        let mut session = load(&rows, written);
        session.attach();
        let follower = follow(&rows, written);
        let (inbox, played, now_us) = (vec![], vec![], T0);
        Owner { session, rows, inbox, now_us, played, written, limits, follower }
    }

    pub fn limit(&mut self, limits: RunLimits) {
        self.limits = limits;
        self.session.limit(limits);
    }

    /// Composes one row, with the code played as long as there is something to show, and commits it.
    pub fn row(&mut self, mut code: impl FnMut(&GroupStart) -> Report) -> Option<RowOut> {
        let out = self.compose(&mut code)?;
        self.commit(&out);
        Some(out)
    }

    /// One row after the other, until there is nothing left to write.
    pub fn rows(&mut self, mut code: impl FnMut(&GroupStart) -> Report) -> Vec<RowOut> {
        std::iter::from_fn(|| self.row(&mut code)).collect()
    }

    /// A row in which the code does nothing.
    pub fn idle(&mut self) -> Option<RowOut> {
        self.row(|_| Report::default())
    }

    /// Composes a row that no store has.
    pub fn compose(&mut self, code: &mut dyn FnMut(&GroupStart) -> Report) -> Option<RowOut> {
        self.session.open_row(self.now_us);
        while let Some(group) = self.session.next_group() {
            let report = code(&group);
            self.session.end_group(report.clone()).expect("what is live fits");
            self.played.push((group, report));
        }
        let out = self.session.close_row([0; 16])?;
        assert_eq!(out.inbox_read, self.session.run().inbox_read);
        Some(out)
    }

    pub fn commit(&mut self, out: &RowOut) {
        let row = Row::decode(out.draft.seal(self.now_us)).expect("it was just written");
        assert_eq!(row.header.seq, self.rows.len() as u64 + 1);
        self.rows.push(row);
        self.written = out.update.unwrap_or(self.written);
        self.is_followed(out);
    }

    /// Who follows the run finds out from the row alone what its owner says of it.
    fn is_followed(&mut self, out: &RowOut) {
        let (header, events) = (out.draft.header.clone(), out.draft.events.clone());
        let followed = self.follower.follow(
            Offered { header, events },
            self.now_us,
            self.session.inbox_seen(),
        );
        let followed = followed.expect("what an owner writes may follow");
        assert_eq!(followed.draft, out.draft);
        assert_eq!((followed.decides, &followed.topics), (out.decides, &out.topics));
        assert_eq!(followed.after_close, out.after_close);
        assert_eq!(followed.inbox_read, out.inbox_read);
        assert_eq!(followed.attention, out.attention);
        assert_eq!(followed.attributes, out.attributes);
        if self.session.has_code() {
            assert_eq!(followed.update, out.update);
        }
    }

    /// The process dies; another one reads the journal and the inbox, and replays the code.
    pub fn crash(&mut self) {
        self.crash_without_code();
        self.attach().expect("the code did the same again");
    }

    /// As [`Owner::crash`], but no worker has the code.
    pub fn crash_without_code(&mut self) {
        self.session = load(&self.rows, self.written);
        self.follower = follow(&self.rows, self.written);
        self.session.limit(self.limits);
        self.inbox.iter().for_each(|row| self.session.inbox(row.clone()));
    }

    /// Brings the code to the end of the journal. What it had done in rows that no store has is
    /// forgotten.
    pub fn attach(&mut self) -> Result<(), Mismatch> {
        let played = std::mem::take(&mut self.played);
        let mut before = played.into_iter();
        self.attach_to(|group| {
            let (then, report) = before.next().expect("it was played before");
            let same = (then.group, then.now_us, &then.show);
            assert_eq!((group.group, group.now_us, &group.show), same, "P13");
            report
        })
    }

    /// Brings this code to the end of the journal.
    pub fn attach_to(
        &mut self,
        mut code: impl FnMut(&GroupStart) -> Report,
    ) -> Result<(), Mismatch> {
        self.session.attach();
        self.played.clear();
        let replayed = self.replay(&mut code);
        self.session.recover(self.now_us, |_| false, |_| false);
        replayed
    }

    fn replay(&mut self, code: &mut dyn FnMut(&GroupStart) -> Report) -> Result<(), Mismatch> {
        while self.session.is_replaying() {
            let group = self.session.next_group().expect("replay has groups left");
            let report = code(&group);
            self.session.end_group(report.clone()).inspect_err(|mismatch| {
                self.session.block(BlockKind::Mismatch, mismatch.to_failure());
            })?;
            self.played.push((group, report));
        }
        Ok(())
    }

    /// Whether a store refuses the row for what was accepted since it was composed.
    pub fn is_refused(&self, out: &RowOut) -> bool {
        let mut unread = self.inbox.iter().filter(|row| row.number > out.inbox_read);
        unread.any(|row| match row.kind {
            InboxKind::Event => out.topics.contains(&row.topic),
            kind => out.decides && InboxKind::DECISIVE.contains(&kind),
        })
    }

    fn accept(&mut self, kind: InboxKind, topic: &str, ord: Ordinal, payload: bytes::Bytes) -> u64 {
        let number = self.inbox.len() as u64 + 1;
        let row = InboxRow {
            number,
            kind,
            request_id: String::new(),
            topic: topic.to_owned(),
            payload,
            changed: judge(self.session.run(), kind, ord) == Verdict::Changes,
            accepted_at_us: self.inbox.last().map_or(0, |row| row.accepted_at_us).max(self.now_us),
        };
        self.session.inbox(row.clone());
        self.inbox.push(row);
        number
    }

    /// An event is accepted now; gives its number, which is also what it says.
    pub fn send(&mut self, event_type: &str) -> u64 {
        self.send_bytes(event_type, (self.inbox.len() + 1).to_string())
    }

    pub fn send_bytes(&mut self, event_type: &str, says: impl Into<bytes::Bytes>) -> u64 {
        let payload = Payload::json(says);
        let message = EventMessage { by: "ada".into(), event_id: String::new(), payload };
        self.accept(InboxKind::Event, event_type, 0, message.to_bytes())
    }

    pub fn ask(&mut self, kind: InboxKind) -> u64 {
        self.verb(kind, Verb::default())
    }

    pub fn ask_about(&mut self, kind: InboxKind, ord: Ordinal) -> u64 {
        self.verb(kind, Verb { ord, ..Verb::default() })
    }

    pub fn verb(&mut self, kind: InboxKind, verb: Verb) -> u64 {
        let verb = Verb { by: "ada".into(), reason: "because".into(), ..verb };
        self.accept(kind, "", verb.ord, verb.to_bytes())
    }

    /// The body of the step returned 1.
    pub fn returned(&mut self, ord: Ordinal) {
        let attempt = self.session.run().step(ord).map_or(0, |step| step.attempts);
        self.session.step_ended(ord, attempt, AttemptEnd::Returned(one()), self.now_us);
    }

    /// The undo of the step is done.
    pub fn undone(&mut self, ord: Ordinal) {
        let attempt = self.session.run().step(ord).map_or(0, |step| step.undo.attempts);
        self.session.undo_ended(ord, attempt, AttemptEnd::Returned(one()), self.now_us);
    }

    pub fn status(&self) -> Status {
        self.session.run().status(self.session.has_code())
    }

    /// The names of the events of the last row.
    pub fn last(&self) -> Vec<&'static str> {
        self.rows.last().expect("there is a first row").events.iter().map(Event::name).collect()
    }

    pub fn last_kind(&self) -> RowKind {
        self.rows.last().expect("there is a first row").header.kind()
    }

    /// What the code was shown so far: the number of an event, -1 for a time-out, -2 for a sleep,
    /// -3 for a step.
    pub fn shown(&self) -> Vec<(Ordinal, i64)> {
        let shown = self.played.iter().filter_map(|(group, _)| group.show.as_ref());
        shown.map(|(ord, outcome)| (*ord, number(outcome))).collect()
    }
}

fn follow(rows: &[Row], (status, wake_at_us): (Status, Option<i64>)) -> Follower {
    Follower::load(rows, status, wake_at_us).expect("what was written can be read")
}

fn load(rows: &[Row], (status, wake_at_us): (Status, Option<i64>)) -> Session {
    Session::load(rows, 1, "here", status, wake_at_us).expect("the journal folds")
}

pub fn one() -> Payload {
    Payload::json("1")
}

fn number(outcome: &Outcome) -> i64 {
    match outcome {
        Outcome::Event(event) => event.inbox as i64,
        Outcome::NoEvent => -1,
        Outcome::Timer => -2,
        Outcome::Step(_) => -3,
    }
}

fn asked(kind: KeyKind, name: &str, what: AskedKind) -> Asked {
    let key = Key { scope: Vec::new(), kind: kind as i32, name: name.into(), count: 1 };
    Asked { key, place: "src/w.rs:1:1".into(), what }
}

/// A step with an undo.
pub fn step(name: &str) -> Asked {
    let (policy, undo) = (StepPolicy::step_default(), Some(UndoPolicy::undo_default()));
    asked(KeyKind::Step, name, AskedKind::Step { policy, undo })
}

pub fn sleep(name: &str, fire_at_us: i64) -> Asked {
    asked(KeyKind::Timer, name, AskedKind::Timer { fire_at_us })
}

/// A wait for the types whose names are the words of `types`.
pub fn wait(name: &str, types: &str, until_us: Option<i64>) -> Asked {
    let types = types.split(' ').map(str::to_owned).collect();
    asked(KeyKind::Wait, name, AskedKind::Wait { types, until_us })
}

pub fn asks(asks: Vec<Asked>) -> Report {
    Report { asks, ..Report::default() }
}

pub fn drops(drops: &[Ordinal]) -> Report {
    Report { drops: drops.to_vec(), ..Report::default() }
}

/// The code is at its end, and lets go of these.
pub fn ends(drops: &[Ordinal]) -> Report {
    Report { ended: Some(Ok(one())), drops: drops.to_vec(), ..Report::default() }
}

pub fn fails() -> Report {
    let failure = Failure::new(Class::Permanent, Origin::Body, "Refused", "the bank said no");
    Report { ended: Some(Err(failure)), ..Report::default() }
}

pub fn says(notes: Vec<Note>) -> Report {
    Report { notes, ..Report::default() }
}

pub fn publishes(key: &str) -> Note {
    Note::Published { key: key.into(), value: one() }
}

/// Sets the attribute, or takes it away.
pub fn sets(change: AttributeChange) -> Note {
    Note::Attribute(change)
}

/// What the code does in its first, second … group, and nothing in later ones.
pub fn script(reports: Vec<Report>) -> impl FnMut(&GroupStart) -> Report {
    let mut by_group: BTreeMap<u64, Report> = (1..).zip(reports).collect();
    move |group| by_group.remove(&group.group).unwrap_or_default()
}

/// The code awaits something that the engine does not know.
pub fn blocks(owner: &mut Owner) {
    let failure = Failure::new(Class::Attention, Origin::Engine, "ForeignWait", "a raw timer");
    owner.session.block(BlockKind::ForeignWait, failure);
}
