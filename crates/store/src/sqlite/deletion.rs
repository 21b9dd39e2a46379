//! Deleting runs: at once for whoever reads, and a little at a time for the disk.
//!
//! **Invariant:** every read of a journal or an inbox asks whether the run is there, because its
//! rows stay until they are purged. Numbers of runs are never used twice, so that the rows of a
//! deleted run never become those of another one.

use rusqlite::{Connection, OptionalExtension, Result};

use super::query::{at_most, places};
use crate::RunNo;

/// The number of the next run.
pub(super) fn next_run(connection: &Connection) -> Result<RunNo> {
    connection
        .prepare_cached(
            "SELECT 1 + max(coalesce((SELECT max(run_no) FROM executions), 0),
               (SELECT value FROM meta WHERE name = 'run_last'))",
        )?
        .query_row((), |row| row.get(0).map(RunNo))
}

/// Deletes a run that is closed, not called and without attention items.
pub(super) fn delete(connection: &Connection, run: RunNo) -> Result<()> {
    for sql in [
        "DELETE FROM executions WHERE run_no = ?1",
        "DELETE FROM attributes WHERE run_no = ?1",
        "INSERT INTO doomed (run_no) VALUES (?1)",
        "UPDATE meta SET value = ?1 WHERE name = 'run_last' AND value < ?1",
    ] {
        connection.prepare_cached(sql)?.execute([run.0])?;
    }
    Ok(())
}

/// Frees at most so many rows of deleted runs; says if there are more.
pub(super) fn purge(connection: &Connection, mut rows: usize) -> Result<bool> {
    while let Some(run) = first_doomed(connection)? {
        for sql in [
            "DELETE FROM journal WHERE place IN (
               SELECT place FROM journal WHERE place > ?1 AND place < ?2 LIMIT ?3)",
            "DELETE FROM inbox WHERE place IN (
               SELECT place FROM inbox WHERE place > ?1 AND place < ?2 LIMIT ?3)",
        ] {
            let (after, before) = places(run, 0);
            let freed = connection.prepare_cached(sql)?.execute((after, before, at_most(rows)))?;
            rows -= freed;
        }
        if has_rows(connection, run)? {
            return Ok(true);
        }
        connection.prepare_cached("DELETE FROM doomed WHERE run_no = ?1")?.execute([run.0])?;
    }
    Ok(false)
}

fn first_doomed(connection: &Connection) -> Result<Option<RunNo>> {
    connection
        .prepare_cached("SELECT run_no FROM doomed ORDER BY run_no LIMIT 1")?
        .query_row((), |row| row.get(0).map(RunNo))
        .optional()
}

fn has_rows(connection: &Connection, run: RunNo) -> Result<bool> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM journal WHERE place > ?1 AND place < ?2)
               OR EXISTS (SELECT 1 FROM inbox WHERE place > ?1 AND place < ?2)",
        )?
        .query_row(places(run, 0), |row| row.get(0))
}

/// Closed runs that may be deleted, those first that expired first.
pub(super) fn expired(connection: &Connection, now_us: i64, limit: usize) -> Result<Vec<RunNo>> {
    let mut query = connection.prepare_cached(
        "SELECT run_no FROM executions INDEXED BY executions_expiring WHERE expires_at_us <= ?1
           AND NOT EXISTS (SELECT 1 FROM attention WHERE attention.run_no = executions.run_no)
           AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.run_no = executions.run_no)
         ORDER BY expires_at_us, run_no LIMIT ?2",
    )?;
    query.query_map((now_us, at_most(limit)), |row| row.get(0).map(RunNo))?.collect()
}

pub(super) fn has_attention(connection: &Connection, run: RunNo) -> Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM attention WHERE run_no = ?1)")?
        .query_row([run.0], |row| row.get(0))
}
