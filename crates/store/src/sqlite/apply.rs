//! One change inside the open transaction: conditions first, then writes.
//!
//! **Invariant:** an append is one insert into `journal` and nothing else, unless it brings an
//! update of the execution row, attention items or search attributes. Where a run ends is kept in
//! memory until somebody else writes to the file.

use backstitch_core::row::Draft;
use bytes::Bytes;
use rusqlite::{CachedStatement, Connection, params};

use super::error::Trouble;
use super::query::{self, place};
use super::tails::Tails;
use super::{attributes, calls, deletion};
use crate::role::Role;
use crate::rules::{
    Accepted, Facts, Tail, Unread, append_calls, closed_after, is_guests, judge_append,
    judge_delete, judge_inbox, judge_of_the_owner, judge_start, put_calls,
};
use crate::{
    Answer, Append, AttentionChange, Change, CommittedRow, ErrorKind, ExecutionUpdate, InboxPut,
    RunInfo, RunNo, Start, StoreError,
};

/// A transaction under way.
pub(super) struct Apply<'a> {
    pub connection: &'a Connection,
    pub role: Role,
    /// The newest fence.
    pub fence: u64,
    pub tails: &'a mut Tails,
    /// The number of the next run, if it is known.
    pub next_run: &'a mut Option<RunNo>,
    /// The stamp of everything in this transaction.
    pub at_us: i64,
    /// The rows appended so far, if somebody wants to see them.
    pub rows: Option<&'a mut Vec<CommittedRow>>,
    /// What every append needs: looked up once per transaction.
    pub insert_row: CachedStatement<'a>,
}

/// The one write of a plain append.
pub(super) const INSERT_ROW: &str = "INSERT INTO journal (place, row) VALUES (?1, ?2)";

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
        let role = self.role;
        let judged = match change {
            Change::Start(start) => judge_start(self, role, start)?,
            Change::Append(append) => judge_append(self, role, append)?,
            Change::Inbox(put) => judge_inbox(self, role, put)?,
            Change::Heard(_) | Change::Purge { .. } => judge_of_the_owner(self, role)?,
            Change::Delete(run) => judge_delete(self, role, *run)?,
        };
        if let Some(answer) = judged {
            return Ok(Applied::Judged(answer));
        }
        let answer = match change {
            Change::Start(start) => self.start(start)?,
            Change::Append(append) => self.append(append)?,
            Change::Inbox(put) => self.put(put)?,
            Change::Heard(heard) => {
                calls::heard(self.connection, heard)?;
                Answer::Heard
            }
            Change::Delete(run) => {
                deletion::delete(self.connection, *run)?;
                self.tails.forget(*run);
                Answer::Deleted
            }
            Change::Purge { rows } => {
                Answer::Purged { more: deletion::purge(self.connection, *rows)? }
            }
        };
        Ok(Applied::Written(answer))
    }

    fn start(&mut self, start: &Start) -> Result<Answer, Trouble> {
        let (new, at_us) = (&start.execution, self.at_us);
        let run = match *self.next_run {
            Some(run) => run,
            None => deletion::next_run(self.connection)?,
        };
        *self.next_run = Some(RunNo(run.0 + 1));
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
        attributes::set(self.connection, run, &start.attributes)?;
        if is_guests(start) {
            calls::call(self.connection, run)?;
        }
        self.tails.set(run, Tail { last: 1, closed: false, accepted: 0 });
        Ok(Answer::Started { run, at_us, first: true })
    }

    fn append(&mut self, append: &Append) -> Result<Answer, Trouble> {
        let (run, last) = (append.run, append.draft.header.seq);
        let before = self.tail(run)?.expect("judged to be there");
        self.push(run, &append.draft)?;
        if append_calls(self, before, append)? {
            calls::call(self.connection, run)?;
        }
        if let Some(update) = &append.update {
            self.update(run, update)?;
        }
        for change in &append.attention {
            self.change_attention(run, last, change)?;
        }
        attributes::set(self.connection, run, &append.attributes)?;
        self.tails.set(run, Tail { last, closed: closed_after(append), ..before });
        Ok(Answer::Appended { at_us: self.at_us })
    }

    fn push(&mut self, run: RunNo, draft: &Draft) -> Result<(), Trouble> {
        let row = draft.seal(self.at_us);
        let place = place(run, draft.header.seq).ok_or_else(|| out_of_places(run))?;
        self.insert_row.execute(params![place, row])?;
        if let Some(rows) = &mut self.rows {
            rows.push(CommittedRow { run, row: row.into() });
        }
        Ok(())
    }

    fn update(&self, run: RunNo, update: &ExecutionUpdate) -> Result<(), Trouble> {
        let closed = update.status.is_closed();
        self.connection
            .prepare_cached(
                "UPDATE executions SET status = ?2, wake_at_us = ?3, closed_at_us = ?4,
                   expires_at_us = ?5 WHERE run_no = ?1",
            )?
            .execute(params![
                run.0,
                update.status as i32,
                update.wake_at_us,
                closed.then_some(self.at_us),
                update.expires_at_us.filter(|_| closed),
            ])?;
        Ok(())
    }

    fn change_attention(
        &self,
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
        let tail = self.tail(put.run)?.expect("judged to be there");
        if put_calls(self.role, tail) {
            calls::call(self.connection, put.run)?;
        }
        let number = tail.accepted + 1;
        let before_us = match tail.accepted {
            0 => i64::MIN,
            last => query::accepted_at_us(self.connection, put.run, last)?,
        };
        // Another process may have another clock, and the one before this one had (P8).
        let accepted_at_us = self.at_us.max(before_us);
        let place = place(put.run, number).ok_or_else(|| out_of_places(put.run))?;
        self.connection
            .prepare_cached(
                "INSERT INTO inbox (place, run_no, request_id, kind, topic, payload, digest,
                   changed, accepted_at_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?
            .execute(params![
                place,
                put.run.0,
                put.request_id,
                put.kind as i32,
                put.topic,
                &put.payload[..],
                put.digest,
                put.changed,
                accepted_at_us,
            ])?;
        self.tails.set(put.run, Tail { accepted: number, ..tail });
        Ok(Answer::Accepted { number, accepted_at_us, changed: put.changed, first: true })
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

    fn unread(&mut self, run: RunNo, read: u64) -> rusqlite::Result<Vec<Unread>> {
        query::unread(self.connection, run, read)
    }

    fn accepted(&mut self, run: RunNo, request: &str) -> rusqlite::Result<Option<Accepted>> {
        query::accepted(self.connection, run, request)
    }

    fn newest(&mut self, namespace: &str, id: &str) -> rusqlite::Result<Option<RunInfo>> {
        query::newest(self.connection, namespace, id)
    }

    fn has_attention(&mut self, run: RunNo) -> rusqlite::Result<bool> {
        deletion::has_attention(self.connection, run)
    }

    fn is_called(&mut self, run: RunNo) -> rusqlite::Result<bool> {
        calls::is_called(self.connection, run)
    }
}

fn out_of_places(run: RunNo) -> StoreError {
    StoreError::new(
        ErrorKind::Rejected,
        format!("run {} has no room for another row: a journal holds 2^28 rows at most", run.0),
    )
}
