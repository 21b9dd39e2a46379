//! What is read, by the writer for its conditions and by the readers for everybody else.

use backstitch_core::id::RunId;
use backstitch_core::inbox::{InboxKind, InboxRow};
use backstitch_core::status::Status;
use bytes::Bytes;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use crate::rules::{Accepted, Tail, Unread};
use crate::{AttentionPlace, AttentionRow, ExecutionUpdate, NewExecution, RunInfo, RunNo};

/// How many bits of a place count the rows of one run: 268 million, which no run that is still
/// replayed can come near. What is left numbers 34 thousand million runs.
const SEQ_BITS: u32 = 28;

/// The place of a row in `journal` or `inbox`; `None` beyond the last one that a place can name.
pub(super) fn place(run: RunNo, seq: u64) -> Option<i64> {
    let seq = i64::try_from(seq).ok().filter(|seq| *seq < 1 << SEQ_BITS)?;
    let run = Some(run.0).filter(|run| (0..1 << (63 - SEQ_BITS)).contains(run))?;
    Some((run << SEQ_BITS) | seq)
}

/// The seq that a place names.
pub(super) fn seq_at(place: i64) -> u64 {
    (place & ((1 << SEQ_BITS) - 1)) as u64
}

/// The places above `after` that belong to `run`, as bounds that are not included themselves.
/// Nothing lies between them if the run or the place cannot exist.
pub(super) fn places(run: RunNo, after: u64) -> (i64, i64) {
    let first = place(run, 0).unwrap_or(i64::MAX);
    (place(run, after).unwrap_or(i64::MAX), first.saturating_add(1 << SEQ_BITS))
}

pub(super) fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn journal(
    connection: &Connection,
    run: RunNo,
    after_seq: u64,
    limit: usize,
) -> Result<Vec<Bytes>> {
    let (after, before) = places(run, after_seq);
    let mut query = connection.prepare_cached(
        "SELECT row FROM journal WHERE place > ?1 AND place < ?2
           AND EXISTS (SELECT 1 FROM executions WHERE run_no = ?4) ORDER BY place LIMIT ?3",
    )?;
    let rows = query.query_map((after, before, at_most(limit), run.0), |row| {
        row.get::<_, Vec<u8>>(0).map(Bytes::from)
    })?;
    rows.collect()
}

/// One row; also of a run that was deleted, until it is purged.
pub(super) fn journal_row(connection: &Connection, run: RunNo, seq: u64) -> Result<Option<Bytes>> {
    let Some(place) = place(run, seq) else { return Ok(None) };
    connection
        .prepare_cached("SELECT row FROM journal WHERE place = ?1")?
        .query_row([place], |row| row.get::<_, Vec<u8>>(0).map(Bytes::from))
        .optional()
}

/// Where the journal of a run ends, from the rows themselves.
pub(super) fn tail(connection: &Connection, run: RunNo) -> Result<Option<Tail>> {
    let closed = connection
        .prepare_cached("SELECT closed_at_us IS NOT NULL FROM executions WHERE run_no = ?1")?
        .query_row([run.0], |row| row.get(0))
        .optional()?;
    let Some(closed) = closed else { return Ok(None) };
    let (last, accepted) =
        (last_place(connection, "journal", run)?, last_place(connection, "inbox", run)?);
    Ok(Some(Tail { last, closed, accepted }))
}

/// The number of the last row of a run in `table`, 0 if there is none.
fn last_place(connection: &Connection, table: &str, run: RunNo) -> Result<u64> {
    let sql = format!(
        "SELECT place FROM {table} WHERE place > ?1 AND place < ?2 ORDER BY place DESC LIMIT 1"
    );
    let last = connection.prepare_cached(&sql)?.query_row(places(run, 0), |row| row.get(0));
    Ok(last.optional()?.map_or(0, seq_at))
}

pub(super) const RUN: &str =
    "SELECT run_no, namespace, id, run_id, workflow, version, input_digest, after_run,
    created_at_us, status, wake_at_us, closed_at_us, expires_at_us FROM executions";

/// What a row of [`RUN`] says.
pub(super) fn run_info(row: &Row<'_>) -> Result<RunInfo> {
    let run_id: Vec<u8> = row.get(3)?;
    Ok(RunInfo {
        run: RunNo(row.get(0)?),
        new: NewExecution {
            namespace: row.get(1)?,
            id: row.get(2)?,
            run_id: RunId::from_slice(&run_id).ok_or_else(|| damaged(3, "not a run id"))?,
            workflow: row.get(4)?,
            version: row.get(5)?,
            input_digest: row.get(6)?,
            after: row.get::<_, Option<i64>>(7)?.map(RunNo),
        },
        created_at_us: row.get(8)?,
        update: ExecutionUpdate {
            status: Status::try_from(row.get::<_, i32>(9)?)
                .map_err(|_| damaged(9, "not a status"))?,
            wake_at_us: row.get(10)?,
            expires_at_us: row.get(12)?,
        },
        closed_at_us: row.get(11)?,
    })
}

pub(super) fn newest(
    connection: &Connection,
    namespace: &str,
    id: &str,
) -> Result<Option<RunInfo>> {
    connection
        .prepare_cached(&format!(
            "{RUN} WHERE namespace = ?1 AND id = ?2 ORDER BY run_no DESC LIMIT 1"
        ))?
        .query_row([namespace, id], run_info)
        .optional()
}

/// Looks through the runs of the id, which are few.
pub(super) fn run_of(
    connection: &Connection,
    namespace: &str,
    id: &str,
    run_id: RunId,
) -> Result<Option<RunInfo>> {
    let sql = format!(
        "{RUN} INDEXED BY executions_by_id WHERE namespace = ?1 AND id = ?2 AND run_id = ?3"
    );
    connection
        .prepare_cached(&sql)?
        .query_row(params![namespace, id, run_id.to_vec()], run_info)
        .optional()
}

pub(super) fn run(connection: &Connection, run: RunNo) -> Result<Option<RunInfo>> {
    connection
        .prepare_cached(&format!("{RUN} WHERE run_no = ?1"))?
        .query_row([run.0], run_info)
        .optional()
}

pub(super) fn open_runs(
    connection: &Connection,
    after: RunNo,
    limit: usize,
) -> Result<Vec<RunInfo>> {
    let sql = format!(
        "{RUN} INDEXED BY executions_open WHERE closed_at_us IS NULL AND run_no > ?1
         ORDER BY run_no LIMIT ?2"
    );
    let mut query = connection.prepare_cached(&sql)?;
    query.query_map((after.0, at_most(limit)), run_info)?.collect()
}

pub(super) fn runs(connection: &Connection, before: RunNo, limit: usize) -> Result<Vec<RunInfo>> {
    let sql = format!("{RUN} WHERE run_no < ?1 ORDER BY run_no DESC LIMIT ?2");
    let mut query = connection.prepare_cached(&sql)?;
    query.query_map((before.0, at_most(limit)), run_info)?.collect()
}

pub(super) fn inbox(
    connection: &Connection,
    run: RunNo,
    after: u64,
    limit: usize,
) -> Result<Vec<InboxRow>> {
    let (after, before) = places(run, after);
    let mut query = connection.prepare_cached(
        "SELECT place, kind, request_id, topic, payload, changed, accepted_at_us FROM inbox
         WHERE place > ?1 AND place < ?2
           AND EXISTS (SELECT 1 FROM executions WHERE run_no = ?4) ORDER BY place LIMIT ?3",
    )?;
    let rows = query.query_map((after, before, at_most(limit), run.0), |row| {
        Ok(InboxRow {
            number: seq_at(row.get(0)?),
            kind: inbox_kind(row, 1)?,
            request_id: row.get(2)?,
            topic: row.get(3)?,
            payload: row.get::<_, Vec<u8>>(4)?.into(),
            changed: row.get(5)?,
            accepted_at_us: row.get(6)?,
        })
    })?;
    rows.collect()
}

/// The inbox rows above `read`, in order.
pub(super) fn unread(connection: &Connection, run: RunNo, read: u64) -> Result<Vec<Unread>> {
    let mut query = connection.prepare_cached(
        "SELECT kind, topic FROM inbox WHERE place > ?1 AND place < ?2 ORDER BY place",
    )?;
    let rows = query.query_map(places(run, read), |row| {
        Ok(Unread { kind: inbox_kind(row, 0)?, topic: row.get(1)? })
    })?;
    rows.collect()
}

/// When row `number` of the inbox was accepted.
pub(super) fn accepted_at_us(connection: &Connection, run: RunNo, number: u64) -> Result<i64> {
    connection
        .prepare_cached("SELECT accepted_at_us FROM inbox WHERE place = ?1")?
        .query_row([place(run, number)], |row| row.get(0))
}

pub(super) fn accepted(
    connection: &Connection,
    run: RunNo,
    request_id: &str,
) -> Result<Option<Accepted>> {
    connection
        .prepare_cached(
            "SELECT place, kind, digest, accepted_at_us, changed FROM inbox
             WHERE run_no = ?1 AND request_id = ?2",
        )?
        .query_row(params![run.0, request_id], |row| {
            Ok(Accepted {
                number: seq_at(row.get(0)?),
                kind: inbox_kind(row, 1)?,
                digest: row.get(2)?,
                accepted_at_us: row.get(3)?,
                changed: row.get(4)?,
            })
        })
        .optional()
}

pub(super) fn attention(
    connection: &Connection,
    after: AttentionPlace,
    limit: usize,
) -> Result<Vec<AttentionRow>> {
    let mut query = connection.prepare_cached(
        "SELECT run_no, seq, ord, kind, message, opened_at_us FROM attention
         WHERE (opened_at_us, run_no, seq, ord) > (?1, ?2, ?3, ?4)
         ORDER BY opened_at_us, run_no, seq, ord LIMIT ?5",
    )?;
    let AttentionPlace { opened_at_us, run, seq, ord } = after;
    // What cannot be stored is behind everything that is.
    let seq = i64::try_from(seq).unwrap_or(i64::MAX);
    let rows = query.query_map(params![opened_at_us, run.0, seq, ord, at_most(limit)], |row| {
        Ok(AttentionRow {
            run: RunNo(row.get(0)?),
            seq: row.get::<_, i64>(1)? as u64,
            ord: row.get(2)?,
            kind: row.get(3)?,
            message: row.get(4)?,
            opened_at_us: row.get(5)?,
        })
    })?;
    rows.collect()
}

fn inbox_kind(row: &Row<'_>, column: usize) -> Result<InboxKind> {
    InboxKind::try_from(row.get::<_, i32>(column)?)
        .map_err(|_| damaged(column, "not an inbox kind"))
}

fn damaged(column: usize, what: &'static str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, what.into())
}
