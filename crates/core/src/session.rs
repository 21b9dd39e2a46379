//! One owned run as a machine without I/O: it is given rows and outcomes, and it gives back what
//! to append and what to run.
//!
//! The owner of a run drives it like this:
//!
//! 1. [`Session::load`] with the journal, [`Session::attach`] if the workflow's code is at hand.
//! 2. Replay: [`Session::next_group`], poll the code, [`Session::end_group`], until
//!    [`Session::is_replaying`] is false; then [`Session::recover`].
//! 3. For ever: [`Session::open_row`], groups as above while there are any,
//!    [`Session::close_row`]; append what it gives, and only then carry out its commands.
//!    Outcomes come in by [`Session::step_ended`], [`Session::undo_ended`], [`Session::inbox`].
//!
//! **Invariant:** every event is folded before it is offered to the store. A row that the store
//! refuses voids the session: it is dropped, and rebuilt from the journal.

mod back;
mod bounds;
mod ends;
mod group;
mod mismatch;
mod replay;
mod row;
mod script;
mod unwanted;
mod verbs;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::event::{EndsIn, Event};
use crate::failure::Failure;
use crate::follow::Follower;
use crate::id::{Key, Ordinal};
use crate::inbox::InboxRow;
use crate::limits::{GROUPS_PER_ROW_MAX, ROW_PAYLOAD_BYTES_SOFT_MAX, RunLimits};
use crate::payload::Payload;
use crate::retry::{StepPolicy, UndoPolicy};
use crate::row::{Row, RowKind};
use crate::run::{IllegalEvent, Phase, Run, Told};
use crate::status::Status;

pub use group::{AskedKind, GroupStart, Note, Outcome, Patches, Report};
pub use mismatch::{Found, Mismatch};
pub use row::RowOut;
pub use verbs::{Verdict, attributes_refusal, judge};

/// What the owner has to do once a row is durable.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Run the body of a step.
    StartStep {
        /// The step.
        ord: Ordinal,
        /// The attempt.
        attempt: u32,
        /// Drop the body after this long, in microseconds.
        timeout_us: u64,
    },
    /// Run the undo of a step.
    StartUndo {
        /// The step.
        ord: Ordinal,
        /// The attempt.
        attempt: u32,
        /// Drop the handler's future after this long, in microseconds.
        timeout_us: u64,
    },
    /// A body that has begun may come to its end; one that has not never begins.
    SettleStep {
        /// The step.
        ord: Ordinal,
        /// Call [`Session::overdue`] if it has not yielded after this long, in microseconds.
        within_us: u64,
    },
    /// Give the body its token and drop it at its next await.
    CancelStep {
        /// The step.
        ord: Ordinal,
        /// Call [`Session::overdue`] if it has not yielded after this long, in microseconds.
        within_us: u64,
    },
    /// The body did not yield: forget it.
    LeaveStep {
        /// The step.
        ord: Ordinal,
    },
    /// Drop everything that runs.
    DropAll,
}

/// How an attempt of a body or of an undo ended.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptEnd {
    /// It returned this (an undo returns nothing of interest).
    Returned(Payload),
    /// It failed, timed out, panicked, was lost or interrupted.
    Failed {
        /// Why.
        failure: Failure,
        /// The delay before the next attempt, in microseconds, if the code has a function for it.
        delay_us: Option<u64>,
    },
    /// It was dropped on request.
    Dropped,
}

/// Something the code newly asked for, at its first poll.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Its identity, taken when it was built.
    pub key: Key,
    /// Where in the source it was built.
    pub place: String,
    /// What it is.
    pub what: AskedKind,
}

/// What the session knows of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    /// No worker has the workflow.
    Absent,
    /// It is being brought to the end of the journal.
    Replaying,
    /// It is where the journal ends.
    Live,
    /// It returned, or failed; the handlers it declared are known.
    Ended,
    /// It does not fit the journal; the handlers it declared so far are known.
    Unfit,
}

#[derive(Debug)]
struct StepEnd {
    ord: Ordinal,
    attempt: u32,
    end: AttemptEnd,
    finished_us: i64,
}

/// One owned run.
#[derive(Debug)]
pub struct Session {
    run: Run,
    fence: u64,
    worker: String,
    code: Code,
    /// Recorded groups that are not yet replayed.
    script: VecDeque<script::RecordedGroup>,
    /// Groups so far.
    groups: u64,
    /// Policies that the code gives now, where they differ from the recorded ones.
    newer: BTreeMap<Ordinal, (StepPolicy, Option<UndoPolicy>)>,
    /// Steps whose undo handler is at hand.
    handlers: BTreeSet<Ordinal>,
    inbox: VecDeque<InboxRow>,
    step_ends: VecDeque<StepEnd>,
    undo_ends: VecDeque<StepEnd>,
    /// Steps that nobody wants any more, and whose bodies did not yield in time.
    overdue: Vec<Ordinal>,
    /// How a run that owes nothing ends, once its inbox is copied.
    closes_in: Option<EndsIn>,
    /// The code returned this, and waits for steps that it dropped.
    returned: Option<Payload>,
    /// The code returned this in the last recorded group, and the journal does not say so yet.
    returned_in_replay: Option<Payload>,
    /// What mended code said in the last recorded group, in which the run had been blocked.
    said_late: Option<Report>,
    /// To be written into the next row.
    pending_blocks: VecDeque<Event>,
    /// The owner is being stopped: nothing new begins.
    closing_down: Stopping,
    limits: RunLimits,
    /// The events of the journal so far, in bytes.
    journal_bytes: u64,
    /// Patches whose new way was taken so far.
    patches: usize,
    told: Told,
    open: Option<OpenRow>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopping {
    No,
    Yes,
}

/// The row that is being composed.
#[derive(Debug)]
struct OpenRow {
    kind: RowKind,
    now_us: i64,
    groups: usize,
    payload_bytes: usize,
    events: Vec<Event>,
    commands: Vec<Command>,
    /// Types of events that must not stand unread: a wait for them timed out in this row.
    topics: Vec<String>,
    /// The run was closed when the row was opened.
    after_close: bool,
}

impl OpenRow {
    fn new(kind: RowKind, now_us: i64, after_close: bool) -> OpenRow {
        OpenRow {
            kind,
            now_us,
            groups: 0,
            payload_bytes: 0,
            events: Vec::new(),
            commands: Vec::new(),
            topics: Vec::new(),
            after_close,
        }
    }

    /// Whether further outcomes go into the next row.
    fn is_full(&self) -> bool {
        self.groups >= GROUPS_PER_ROW_MAX || self.payload_bytes >= ROW_PAYLOAD_BYTES_SOFT_MAX
    }
}

impl Session {
    /// Folds a journal. `status` and `wake_at_us` are what the execution's own row says.
    ///
    /// # Errors
    /// When an event does not follow from those before it.
    pub fn load(
        rows: &[Row],
        fence: u64,
        worker: &str,
        status: Status,
        wake_at_us: Option<i64>,
    ) -> Result<Session, IllegalEvent> {
        Ok(Session {
            run: Run::fold(rows)?,
            fence,
            worker: worker.to_owned(),
            code: Code::Absent,
            script: script::recorded_groups(rows),
            groups: 0,
            newer: BTreeMap::new(),
            handlers: BTreeSet::new(),
            inbox: VecDeque::new(),
            step_ends: VecDeque::new(),
            undo_ends: VecDeque::new(),
            overdue: Vec::new(),
            closes_in: None,
            returned: None,
            returned_in_replay: None,
            said_late: None,
            pending_blocks: VecDeque::new(),
            closing_down: Stopping::No,
            limits: RunLimits::default(),
            journal_bytes: rows.iter().map(events_bytes).sum(),
            patches: rows.iter().flat_map(|row| &row.events).filter(|e| is_marker(e)).count(),
            told: Told { status, wake_at_us },
            open: None,
        })
    }

    /// The fold.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The fold, when the session has done its work.
    pub fn into_run(self) -> Run {
        self.run
    }

    /// Whether the run is over.
    pub fn is_closed(&self) -> bool {
        matches!(self.run.phase, Phase::Closed(_))
    }

    /// The workflow's code is at hand and will be brought to the end of the journal.
    pub fn attach(&mut self) {
        assert_eq!(self.code, Code::Absent, "code is attached once");
        self.code = if self.script.is_empty() { Code::Live } else { Code::Replaying };
        // A rollback needs nothing but the handlers; without groups there are none.
        if self.code == Code::Live && !matches!(self.run.phase, Phase::Forward) {
            self.code = Code::Ended;
        }
    }

    /// Whether recorded groups are left to replay.
    pub fn is_replaying(&self) -> bool {
        self.code == Code::Replaying
    }

    /// Whether the code may still be polled: it is where the journal ends and the run goes forward.
    pub fn is_live(&self) -> bool {
        self.code == Code::Live && matches!(self.run.phase, Phase::Forward)
    }

    /// Whether a worker has the code.
    pub fn has_code(&self) -> bool {
        self.code != Code::Absent
    }

    /// Attempts that the journal has in flight and the owner has not (`runs_step`, `runs_undo`)
    /// are lost: the process that ran them is gone.
    pub fn recover(
        &mut self,
        now_us: i64,
        runs_step: impl Fn(Ordinal) -> bool,
        runs_undo: impl Fn(Ordinal) -> bool,
    ) {
        let lost = || AttemptEnd::Failed { failure: ends::lost(), delay_us: None };
        for ord in &self.run.in_flight {
            if !runs_step(*ord) {
                let attempt = self.run.step(*ord).map_or(0, |step| step.attempts);
                let end = StepEnd { ord: *ord, attempt, end: lost(), finished_us: now_us };
                self.step_ends.push_back(end);
            }
        }
        if let Some(ord) = self.running_undo()
            && !runs_undo(ord)
        {
            let attempt = self.run.step(ord).map_or(0, |step| step.undo.attempts);
            self.undo_ends.push_back(StepEnd { ord, attempt, end: lost(), finished_us: now_us });
        }
    }

    fn running_undo(&self) -> Option<Ordinal> {
        let ord = self.run.rollback.as_ref()?.current?;
        let running = self.run.step(ord)?.undo.phase == crate::undo::UndoPhase::Running;
        running.then_some(ord)
    }

    /// A body ended.
    pub fn step_ended(&mut self, ord: Ordinal, attempt: u32, end: AttemptEnd, finished_us: i64) {
        self.step_ends.push_back(StepEnd { ord, attempt, end, finished_us });
    }

    /// An undo ended.
    pub fn undo_ended(&mut self, ord: Ordinal, attempt: u32, end: AttemptEnd, finished_us: i64) {
        self.undo_ends.push_back(StepEnd { ord, attempt, end, finished_us });
    }

    /// A body that nobody wants any more did not yield in time.
    pub fn overdue(&mut self, ord: Ordinal) {
        self.overdue.push(ord);
    }

    /// An inbox row was accepted. Rows that were seen before are passed over.
    pub fn inbox(&mut self, row: InboxRow) {
        let last = self.inbox.back().map_or(self.run.inbox_read, |last| last.number);
        if row.number > last {
            self.inbox.push_back(row);
        }
    }

    /// Whether a kill stands in the inbox that this session knows of.
    pub fn is_to_be_killed(&self) -> bool {
        self.inbox.iter().any(|row| row.kind == crate::inbox::InboxKind::Kill)
    }

    /// Whether inbox rows are left that found no room in the row that is open.
    pub fn has_unread(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// The last inbox row that this session knows of.
    pub fn inbox_seen(&self) -> u64 {
        self.inbox.back().map_or(self.run.inbox_read, |last| last.number)
    }

    /// The owner is being stopped: outcomes are recorded, nothing new begins.
    pub fn stop(&mut self) {
        self.closing_down = Stopping::Yes;
    }

    /// The code does not fit the journal, or awaits the unknown. A run that goes forward is
    /// blocked; a rollback goes on with the handlers that are known.
    pub fn block(&mut self, what: crate::event::BlockKind, failure: Failure) {
        self.code = Code::Unfit;
        self.script.clear();
        let known = self.run.blocks.iter().any(|block| block.what == what);
        if matches!(self.run.phase, Phase::Forward) && !known {
            let failure = failure.bounded();
            let blocked = crate::event::Blocked { what: what as i32, ord: None, failure };
            self.pending_blocks.push_back(blocked.into());
        }
    }

    /// The code fits again: a block that held the run as a whole is over.
    pub fn fits(&mut self) {
        if !matches!(self.run.phase, Phase::Forward) {
            return;
        }
        for block in &self.run.blocks {
            if block.what != crate::event::BlockKind::Step {
                let by = "engine: the code fits the journal again".to_owned();
                let unblocked = crate::event::Unblocked { what: block.what as i32, ord: None, by };
                self.pending_blocks.push_back(unblocked.into());
            }
        }
    }

    /// The fold, for whoever follows the run from now on.
    pub fn into_follower(self) -> Follower {
        Follower::new(self.run, self.told)
    }

    /// The next instant at which [`Session::open_row`] has something to do by itself.
    pub fn wake_at_us(&self) -> Option<i64> {
        if self.is_closed() || self.closing_down == Stopping::Yes {
            return None;
        }
        match self.code {
            Code::Absent => self.run.deadline_at_us(),
            Code::Replaying | Code::Live | Code::Ended | Code::Unfit => self.run.next_due_us(),
        }
    }
}

fn events_bytes(row: &Row) -> u64 {
    row.events.iter().map(|event| event.encoded_len() as u64).sum()
}

fn is_marker(event: &Event) -> bool {
    matches!(event, Event::MarkerRecorded(_))
}
