//! One change inside the open transaction: conditions first, then writes.
//!
//! **Invariant:** an append is one insert into `journal` and nothing else, unless it brings an
//! update of the execution row or changes of attention items. Where a journal ends is kept in
//! memory, because the owner of the file is the only one who appends.

use backstitch_core::inbox::InboxKind;
use backstitch_core::row::Draft;
use bytes::Bytes;
use rusqlite::{Connection, params};

use super::error::Trouble;
use super::query::{self, place};
use super::tails::Tails;
use crate::rules::{Accepted, Facts, Tail, judge_append, judge_inbox, judge_start, repeated};
use crate::{
    Answer, Append, AttentionChange, Change, CommittedRow, ErrorKind, InboxPut, RunInfo, RunNo,
    Start, StoreError,
};

/// A transaction under way.
pub(super) struct Apply<'a> {
    pub connection: &'a Connection,
    pub tails: &'a mut Tails,
    pub next_run: &'a mut RunNo,
    pub fence: u64,
    /// The stamp of everything in this transaction.
    pub at_us: i64,
    /// The rows appended so far, if somebody wants to see them.
    pub rows: Option<&'a mut Vec<CommittedRow>>,
}

/// What has become of a change, once the transaction commits.
#[derive(Clone, Debug)]
pub(super) enum Applied {
    /// It was written.
    Written(Answer),
    /// A condition answered it.
    Judged(Answer),
}

impl Applied {
    pub(super) fn into_answer(self) -> Answer {
        match self {
            Applied::Written(answer) | Applied::Judged(answer) => answer,
        }
    }
}

impl Apply<'_> {
    pub(super) fn change(&mut self, change: &Change) -> Result<Applied, Trouble> {
        let judged = match change {
            Change::Start(start) => judge_start(self, start)?,
            Change::Append(append) => judge_append(self, append)?,
            Change::Inbox(put) => judge_inbox(self, put)?,
        };
        if let Some(answer) = judged {
            return Ok(Applied::Judged(answer));
        }
        let answer = match change {
            Change::Start(start) => self.start(start)?,
            Change::Append(append) => self.append(append)?,
            Change::Inbox(put) => self.put(put)?,
        };
        Ok(Applied::Written(answer))
    }

    /// Whether this change, whose commit had an unknown outcome, is there.
    pub(super) fn is_there(&mut self, change: &Change) -> rusqlite::Result<bool> {
        Ok(match change {
            Change::Start(start) => {
                let new = &start.execution;
                query::newest(self.connection, &new.namespace, &new.id)?
                    .is_some_and(|info| info.new.run_id == new.run_id)
            }
            Change::Append(append) => repeated(self, append)?.is_some(),
            Change::Inbox(put) => self.accepted(put.run, &put.request_id)?.is_some(),
        })
    }

    fn start(&mut self, start: &Start) -> Result<Answer, Trouble> {
        let (run, new, at_us) = (*self.next_run, &start.execution, self.at_us);
        // A number that a failed transaction has taken is left out.
        *self.next_run = RunNo(run.0 + 1);
        self.connection
            .prepare_cached(
                "INSERT INTO executions (run_no, namespace, id, run_id, workflow, version,
                   input_digest, after_run, created_at_us, status)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                run.0,
                new.namespace,
                new.id,
                new.run_id.0.as_bytes(),
                new.workflow,
                new.version,
                new.input_digest,
                new.after.map(|after| after.0),
                at_us,
                start.status as i32,
            ])?;
        self.push(run, &start.first)?;
        self.tails.set(run, Tail { last: 1, closed: false });
        Ok(Answer::Started { run, at_us })
    }

    fn append(&mut self, append: &Append) -> Result<Answer, Trouble> {
        let (run, at_us) = (append.run, self.at_us);
        let last = append.draft.header.seq;
        self.push(run, &append.draft)?;
        let mut closed = false;
        if let Some(update) = &append.update {
            closed = update.status.is_closed();
            self.connection
                .prepare_cached(
                    "UPDATE executions SET status = ?2, wake_at_us = ?3, closed_at_us = ?4
                     WHERE run_no = ?1",
                )?
                .execute(params![
                    run.0,
                    update.status as i32,
                    update.wake_at_us,
                    closed.then_some(at_us),
                ])?;
        }
        for change in &append.attention {
            self.change_attention(run, last, change)?;
        }
        self.tails.set(run, Tail { last, closed });
        Ok(Answer::Appended { at_us })
    }

    fn push(&mut self, run: RunNo, draft: &Draft) -> Result<(), Trouble> {
        let row = draft.seal(self.at_us);
        let place = place(run, draft.header.seq).ok_or_else(|| out_of_places(run))?;
        self.connection
            .prepare_cached("INSERT INTO journal (place, row) VALUES (?1, ?2)")?
            .execute(params![place, row])?;
        if let Some(rows) = &mut self.rows {
            rows.push(CommittedRow { run, row: row.into() });
        }
        Ok(())
    }

    fn change_attention(
        &mut self,
        run: RunNo,
        opened_by: u64,
        change: &AttentionChange,
    ) -> Result<(), Trouble> {
        match change {
            AttentionChange::Open { ord, kind, message } => self
                .connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO attention (run_no, seq, ord, kind, message,
                       opened_at_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![run.0, opened_by as i64, ord, kind, message, self.at_us])?,
            AttentionChange::Close { seq, ord } => self
                .connection
                .prepare_cached(
                    "DELETE FROM attention WHERE run_no = ?1 AND seq = ?2 AND ord = ?3",
                )?
                .execute(params![run.0, *seq as i64, ord])?,
        };
        Ok(())
    }

    fn put(&mut self, put: &InboxPut) -> Result<Answer, Trouble> {
        let last = query::inbox_last(self.connection, put.run)?;
        let (number, before_us) = last.map_or((1, i64::MIN), |(last, at_us)| (last + 1, at_us));
        // The clock may have been set back since the process before this one (P8).
        let accepted_at_us = self.at_us.max(before_us);
        let place = place(put.run, number).ok_or_else(|| out_of_places(put.run))?;
        self.connection
            .prepare_cached(
                "INSERT INTO inbox (place, run_no, request_id, kind, payload, digest,
                   accepted_at_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                place,
                put.run.0,
                put.request_id,
                put.kind as i32,
                &put.payload[..],
                put.digest,
                accepted_at_us,
            ])?;
        Ok(Answer::Accepted { number, accepted_at_us, first: true })
    }
}

impl Facts for Apply<'_> {
    type Error = rusqlite::Error;

    fn fence(&self) -> u64 {
        self.fence
    }

    fn tail(&mut self, run: RunNo) -> rusqlite::Result<Option<Tail>> {
        if let Some(tail) = self.tails.get(run) {
            return Ok(Some(tail));
        }
        let tail = query::tail(self.connection, run)?;
        if let Some(tail) = tail {
            self.tails.set(run, tail);
        }
        Ok(tail)
    }

    fn row(&mut self, run: RunNo, seq: u64) -> rusqlite::Result<Option<Bytes>> {
        query::journal_row(self.connection, run, seq)
    }

    fn unread(&mut self, run: RunNo, read: u64) -> rusqlite::Result<Vec<InboxKind>> {
        query::unread(self.connection, run, read)
    }

    fn accepted(&mut self, run: RunNo, request: &str) -> rusqlite::Result<Option<Accepted>> {
        query::accepted(self.connection, run, request)
    }

    fn newest(&mut self, namespace: &str, id: &str) -> rusqlite::Result<Option<RunInfo>> {
        query::newest(self.connection, namespace, id)
    }
}

fn out_of_places(run: RunNo) -> StoreError {
    StoreError::new(
        ErrorKind::Rejected,
        format!("run {} has no room for another row: a journal holds 2^28 rows at most", run.0),
    )
}
