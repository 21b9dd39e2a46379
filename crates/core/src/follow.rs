//! Following a run whose rows somebody else composes: a worker elsewhere has the [`Session`], and whoever
//! writes the journal has this.
//!
//! **Invariant:** nothing is believed but the events themselves, and these only if they follow from the
//! journal. What the store has to know besides (what the row decides, the status, the open matters, the
//! search attributes) comes out of the fold, the same way as in a session.
//!
//! [`Session`]: crate::session::Session

use bytes::Bytes;

use crate::event::{Event, EventError};
use crate::row::{Draft, Header, Row, RowKind};
use crate::run::{IllegalEvent, Phase, Run, Told};
use crate::session::RowOut;
use crate::status::Status;

/// How far the time of a turn may be ahead of the time of its row, in microseconds: clocks are set back, and a
/// run keeps to the latest time that it has seen. What is farther away is no clock.
pub const TURN_AHEAD_US_MAX: i64 = 24 * 3_600 * 1_000_000;

/// Why a row that came from elsewhere is not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotARow {
    /// It is not the next one.
    #[error("row {offered} was offered, and the next one is row {next}")]
    Seq {
        /// The number that was offered.
        offered: u64,
        /// The number that it has to have.
        next: u64,
    },
    /// It says nothing.
    #[error("row {seq} has no events")]
    Empty {
        /// Its number.
        seq: u64,
    },
    /// One of its events cannot be read.
    #[error("row {seq} cannot be read: {why}")]
    Event {
        /// Its number.
        seq: u64,
        /// What is wrong.
        why: EventError,
    },
    /// It was made by another version than the one that the run has.
    #[error("row {seq} is of version {offered:?}, and the run of version {expected:?}")]
    Version {
        /// Its number.
        seq: u64,
        /// The version that it says.
        offered: String,
        /// That of the run.
        expected: String,
    },
    /// Its turn was at no time that a clock can have shown.
    #[error("row {seq} is a turn at {offered_us}, and it is {now_us} (microseconds since 1970)")]
    Time {
        /// Its number.
        seq: u64,
        /// The time of the turn.
        offered_us: i64,
        /// The time now.
        now_us: i64,
    },
    /// It says that it has read what is not there.
    #[error("row {seq} has read row {read} of the inbox, which has {there}")]
    Inbox {
        /// Its number.
        seq: u64,
        /// The last row that it says it has read.
        read: u64,
        /// The last row that there is.
        there: u64,
    },
    /// It does not follow from the journal.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
}

/// A row as it was offered.
#[derive(Clone, Debug)]
pub struct Offered {
    /// Its header, with `at_us` still 0.
    pub header: Header,
    /// Its events, encoded.
    pub events: Bytes,
}

/// The fold of a run whose rows come from elsewhere.
#[derive(Clone, Debug)]
pub struct Follower {
    run: Run,
    told: Told,
}

impl Follower {
    /// Folds a journal. `status` and `wake_at_us` are what the execution's own row says.
    ///
    /// # Errors
    /// When an event does not follow from those before it.
    pub fn load(
        rows: &[Row],
        status: Status,
        wake_at_us: Option<i64>,
    ) -> Result<Follower, IllegalEvent> {
        Ok(Follower { run: Run::fold(rows)?, told: Told { status, wake_at_us } })
    }

    pub(crate) fn new(run: Run, told: Told) -> Follower {
        Follower { run, told }
    }

    /// The fold.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The fold, when there is nothing more to follow.
    pub fn into_run(self) -> Run {
        self.run
    }

    /// Judges the next row, and folds it. `now_us` is the time, `inbox` the last row of the inbox that the
    /// writer was given. What comes back is to be appended, and has no commands.
    ///
    /// # Errors
    /// When it is not a row that may follow. Then, and also if the store refuses it, the follower is of no use
    /// any more: load another one.
    pub fn follow(&mut self, offered: Offered, now_us: i64, inbox: u64) -> Result<RowOut, NotARow> {
        let Offered { header, events } = offered;
        let after_close = matches!(self.run.phase, Phase::Closed(_));
        let events_read = self.check(&header, &events, now_us)?;
        self.run.begin_row(&Header { at_us: now_us, ..header.clone() })?;
        let (mut decides, mut topics) = (false, Vec::new());
        for event in &events_read {
            decides |= event.decides();
            if let Event::WaitTimedOut(out) = event
                && let Some(wait) = self.run.wait(out.ord)
            {
                topics.extend(wait.types.iter().cloned());
            }
            self.run.apply(event)?;
        }
        let read = self.run.inbox_read;
        if read > inbox {
            return Err(NotARow::Inbox { seq: header.seq, read, there: inbox });
        }
        Ok(RowOut {
            draft: Draft { header, events },
            decides,
            topics,
            after_close,
            inbox_read: read,
            update: self.told.changed(&self.run, true),
            attention: self.run.take_attention_edits(),
            attributes: self.run.take_attribute_edits(),
            commands: Vec::new(),
        })
    }

    /// Judges what the fold does not look at.
    fn check(&self, header: &Header, events: &Bytes, now_us: i64) -> Result<Vec<Event>, NotARow> {
        let (seq, next) = (header.seq, self.run.seq + 1);
        if seq != next {
            return Err(NotARow::Seq { offered: seq, next });
        }
        if header.kind() == RowKind::Turn {
            let offered = header.version.as_deref().unwrap_or_default();
            if offered != self.run.version {
                let (offered, expected) = (offered.to_owned(), self.run.version.clone());
                return Err(NotARow::Version { seq, offered, expected });
            }
            let offered_us = header.now_us.unwrap_or_default();
            let latest_us = now_us.max(self.run.now_us).saturating_add(TURN_AHEAD_US_MAX);
            if offered_us < self.run.now_us || offered_us > latest_us {
                return Err(NotARow::Time { seq, offered_us, now_us });
            }
        }
        let (mut rest, mut read) = (events.clone(), Vec::new());
        while !rest.is_empty() {
            read.push(Event::decode(&mut rest).map_err(|why| NotARow::Event { seq, why })?);
        }
        if read.is_empty() { Err(NotARow::Empty { seq }) } else { Ok(read) }
    }
}
