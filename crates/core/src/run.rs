//! The fold: what a journal means.
//!
//! **Invariants** that `apply` enforces by refusing the event: recorded is final (P3); after
//! `RollbackStarted` no attempt starts and nothing is shown (P5); no undo starts and no run is
//! closed, except by kill, while a step is in flight (P7); a run is not closed while it owes (P6).

mod apply;
mod back;
mod events;
mod outcome;
mod told;
mod view;

pub use outcome::Outcome;
pub(crate) use told::Told;
pub use view::{RollbackProgress, WaitsFor};

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::attention::{AttentionEdit, AttentionItem, AttentionKind};
use crate::attribute::{AttributeChange, AttributeValue};
use crate::event::{
    BlockKind, CancelRequested, Event, EventReceived, ExecutionStarted, RollbackOutcome,
};
use crate::failure::{Failure, Origin};
use crate::id::{Key, Ordinal, RunId};
use crate::payload::Payload;
use crate::rollback::Rollback;
use crate::row::{Header, Row, RowKind};
use crate::step::Step;
use crate::timer::Timer;
use crate::wait::{Kept, Wait};

/// The event does not follow from the journal before it: a bug of ours, or a damaged journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {seq}: {event} is not legal here: {why}")]
pub struct IllegalEvent {
    /// The row.
    pub seq: u64,
    /// The kind of the event.
    pub event: &'static str,
    /// Why not.
    pub why: String,
}

/// Something the code asked for.
#[derive(Clone, Debug)]
pub enum Ask {
    /// A step.
    Step(Box<Step>),
    /// A sleep.
    Timer(Timer),
    /// A wait for an event.
    Wait(Box<Wait>),
}

impl Ask {
    /// Its identity.
    pub fn key(&self) -> &Key {
        match self {
            Ask::Step(step) => &step.key,
            Ask::Timer(timer) => &timer.key,
            Ask::Wait(wait) => &wait.key,
        }
    }
}

/// A value that the code has published.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The value.
    pub value: Payload,
    /// The row that published it.
    pub seq: u64,
}

/// Where a run stands in its life.
#[derive(Clone, Debug)]
pub enum Phase {
    /// Goes forward.
    Forward,
    /// Pays what it owes.
    RollingBack,
    /// Over.
    Closed(Ending),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// The code returned this.
    Succeeded(Payload),
    /// The code failed with this.
    Failed(Failure),
    /// Cancelled, or rolled back on request.
    Cancelled,
    /// Terminated.
    Terminated,
    /// Killed, with debts left.
    Killed {
        /// Who did it.
        by: String,
        /// Why.
        reason: String,
        /// The steps whose undo will not run.
        left: Vec<Ordinal>,
    },
}

/// Who holds a paused run.
#[derive(Clone, Debug, PartialEq)]
pub struct Pause {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since_us: i64,
}

/// Something that is held.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// What kind.
    pub what: BlockKind,
    /// The step, if it is one.
    pub ord: Option<Ordinal>,
    /// Why.
    pub failure: Failure,
}

/// The state of one run, folded from its journal.
#[derive(Clone, Debug)]
pub struct Run {
    /// The first event.
    pub started: Box<ExecutionStarted>,
    /// The id of the run.
    pub run_id: RunId,
    /// The last row.
    pub seq: u64,
    /// The time that the code saw in its last turn.
    pub now_us: i64,
    /// The version of the workflow that ran the last turn.
    pub version: String,
    /// Everything the code asked for, by ordinal − 1.
    pub asks: Vec<Ask>,
    /// Where the run stands.
    pub phase: Phase,
    /// Held by a person.
    pub pause: Option<Pause>,
    /// Open blocks.
    pub blocks: Vec<Block>,
    /// The last rollback.
    pub rollback: Option<Rollback>,
    /// Open matters.
    pub attention: Vec<AttentionItem>,
    /// The last inbox row that was copied.
    pub inbox_read: u64,
    /// Events that no wait has taken yet.
    pub kept: Kept,
    /// Waits that are open.
    pub waits: BTreeSet<Ordinal>,
    /// What the code has published, by key.
    pub published: BTreeMap<String, Published>,
    /// Search attributes, by name.
    pub attributes: BTreeMap<String, AttributeValue>,
    /// When the run is rolled back for lateness.
    pub deadline_at_us: Option<i64>,
    /// The first request to roll back.
    pub cancel: Option<CancelRequested>,
    /// What the code returned, also if that was rolled back later.
    pub output: Option<Payload>,
    /// Steps whose attempt is in flight.
    pub in_flight: BTreeSet<Ordinal>,
    /// What becomes due when: open timers and steps that wait for a retry.
    pub due: BTreeSet<(i64, Ordinal)>,
    /// Outcomes that are recorded and not shown, in the order of the journal.
    pub unshown: VecDeque<Ordinal>,
    /// Turn rows so far.
    pub turns: u64,
    /// Recoveries in a row that found an attempt in flight, however many of them there were.
    pub lost_streak: u32,
    /// The row in which the last one wrote that down.
    lost_seq: u64,
    row_kind: RowKind,
    at_us: i64,
    edits: Vec<AttentionEdit>,
    attribute_edits: Vec<AttributeChange>,
}

impl Run {
    /// Folds the first row, which begins with `ExecutionStarted`.
    ///
    /// # Errors
    /// When it does not.
    pub fn begin(row: &Row) -> Result<Run, IllegalEvent> {
        let illegal = |event, why: &str| IllegalEvent { seq: 1, event, why: why.to_owned() };
        let Some(Event::ExecutionStarted(started)) = row.events.first() else {
            let event = row.events.first().map_or("nothing", Event::name);
            return Err(illegal(event, "a journal begins with ExecutionStarted"));
        };
        let Some(run_id) = RunId::from_slice(&started.run_id) else {
            return Err(illegal("ExecutionStarted", "its run id has not 16 bytes"));
        };
        let mut run = Run {
            run_id,
            seq: 0,
            // No turn yet. (The stamp of the row may be ahead of a clock that was set back.)
            now_us: 0,
            version: started.version.clone(),
            started: started.clone(),
            asks: Vec::new(),
            phase: Phase::Forward,
            pause: None,
            blocks: Vec::new(),
            rollback: None,
            attention: Vec::new(),
            inbox_read: 0,
            kept: Kept::default(),
            waits: BTreeSet::new(),
            published: BTreeMap::new(),
            attributes: BTreeMap::new(),
            deadline_at_us: started.deadline_at_us,
            cancel: None,
            output: None,
            in_flight: BTreeSet::new(),
            due: BTreeSet::new(),
            unshown: VecDeque::new(),
            turns: 0,
            lost_streak: 0,
            lost_seq: 0,
            row_kind: RowKind::Engine,
            at_us: row.header.at_us,
            edits: Vec::new(),
            attribute_edits: Vec::new(),
        };
        run.begin_row(&row.header)?;
        for event in &row.events[1..] {
            run.apply(event)?;
        }
        Ok(run)
    }

    /// Folds a whole journal.
    ///
    /// # Errors
    /// When it is empty, or an event does not follow from those before it.
    pub fn fold<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Result<Run, IllegalEvent> {
        let mut rows = rows.into_iter();
        let Some(first) = rows.next() else {
            let why = "the journal is empty".to_owned();
            return Err(IllegalEvent { seq: 1, event: "nothing", why });
        };
        let mut run = Run::begin(first)?;
        for row in rows {
            run.apply_row(row)?;
        }
        run.edits.clear();
        run.attribute_edits.clear();
        Ok(run)
    }

    /// Folds one row.
    ///
    /// # Errors
    /// When its seq is not the next one, or an event does not follow from those before it.
    pub fn apply_row(&mut self, row: &Row) -> Result<(), IllegalEvent> {
        self.begin_row(&row.header)?;
        row.events.iter().try_for_each(|event| self.apply(event))
    }

    /// Opens the row that the next events belong to.
    pub(crate) fn begin_row(&mut self, header: &Header) -> Result<(), IllegalEvent> {
        if header.seq != self.seq + 1 {
            let why = format!("row {} follows row {}", header.seq, self.seq);
            return Err(IllegalEvent { seq: header.seq, event: "the row", why });
        }
        self.seq = header.seq;
        self.row_kind = header.kind();
        self.at_us = header.at_us;
        if header.kind() == RowKind::Turn {
            self.turns += 1;
            self.now_us = self.now_us.max(header.now_us.unwrap_or(0));
            if let Some(version) = &header.version
                && *version != self.version
            {
                self.version = version.clone();
            }
        }
        Ok(())
    }

    /// What the rows since the last call did to the open matters.
    pub(crate) fn take_attention_edits(&mut self) -> Vec<AttentionEdit> {
        std::mem::take(&mut self.edits)
    }

    /// The search attributes that the rows since the last call set or took away.
    pub(crate) fn take_attribute_edits(&mut self) -> Vec<AttributeChange> {
        std::mem::take(&mut self.attribute_edits)
    }

    /// An attempt has failed: with its process, or in another way.
    fn attempt_has_failed(&mut self, failure: &Failure) {
        if failure.origin() != Origin::Lost {
            self.lost_streak = 0;
        } else if self.lost_seq != self.seq {
            self.lost_seq = self.seq;
            self.lost_streak += 1;
        }
    }

    fn open_attention(&mut self, ord: Ordinal, kind: AttentionKind, message: String) {
        let item = AttentionItem { seq: self.seq, ord, kind, message };
        self.edits.push(AttentionEdit::Opened(item.clone()));
        self.attention.push(item);
    }

    fn close_attention(&mut self, settled: impl Fn(&AttentionItem) -> bool) {
        let edits = &mut self.edits;
        self.attention.retain(|item| {
            let settled = settled(item);
            if settled {
                edits.push(AttentionEdit::Closed { seq: item.seq, ord: item.ord });
            }
            !settled
        });
    }

    /// The step `ord`, if there is one.
    pub fn step(&self, ord: Ordinal) -> Option<&Step> {
        match self.asks.get((ord as usize).checked_sub(1)?)? {
            Ask::Step(step) => Some(step),
            Ask::Timer(_) | Ask::Wait(_) => None,
        }
    }

    /// The wait `ord`, if there is one.
    pub fn wait(&self, ord: Ordinal) -> Option<&Wait> {
        match self.asks.get((ord as usize).checked_sub(1)?)? {
            Ask::Wait(wait) => Some(wait),
            Ask::Step(_) | Ask::Timer(_) => None,
        }
    }

    /// The oldest event that an open wait wants, and that wait: of several the one that was asked
    /// for first.
    pub fn deliverable(&self) -> Option<(Ordinal, &EventReceived)> {
        if self.kept.is_empty() {
            return None;
        }
        let pairs = self.waits.iter().filter_map(|ord| {
            let wait = self.wait(*ord).expect("open waits are waits");
            self.kept.first_for(wait).map(|event| (*ord, event))
        });
        pairs.min_by_key(|(ord, event)| (event.inbox, *ord))
    }

    /// All steps, in the order in which the code asked for them.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = (Ordinal, &Step)> {
        self.asks.iter().enumerate().filter_map(|(i, ask)| match ask {
            Ask::Step(step) => Some((i as Ordinal + 1, step.as_ref())),
            Ask::Timer(_) | Ask::Wait(_) => None,
        })
    }

    /// The plan of a rollback that is decided now: the owed steps, newest start first (R2, R3).
    pub fn plan(&self) -> Vec<Ordinal> {
        self.steps().rev().filter(|(_, step)| step.is_owed()).map(|(ord, _)| ord).collect()
    }

    /// The dropped steps that are owed although the code succeeded (R13).
    pub fn dropped_and_owed(&self) -> Vec<Ordinal> {
        let owed = |step: &Step| step.dropped && !step.policy.keep_when_dropped && step.is_owed();
        self.steps().rev().filter(|(_, step)| owed(step)).map(|(ord, _)| ord).collect()
    }

    /// Whether a block holds the run as a whole, not only one step.
    pub fn is_held_by_block(&self) -> bool {
        self.blocks.iter().any(|block| block.what != BlockKind::Step)
    }

    /// How the rollback came out, or stands: it is incomplete as long as it is under way.
    pub fn rollback_outcome(&self) -> RollbackOutcome {
        match &self.phase {
            Phase::Closed(Ending::Killed { left, .. }) if !left.is_empty() => {
                RollbackOutcome::Incomplete
            }
            Phase::RollingBack => RollbackOutcome::Incomplete,
            Phase::Closed(_) | Phase::Forward => {
                self.rollback.as_ref().map_or(RollbackOutcome::None, |rollback| {
                    rollback.outcome.unwrap_or_else(|| rollback.verdict())
                })
            }
        }
    }
}
