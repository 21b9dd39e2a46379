//! The list of runs that their owner has to look at.

use rusqlite::{Connection, Result};

use super::query::at_most;
use crate::{Call, RunNo};

/// Calls a run, once more.
pub(super) fn call(connection: &Connection, run: RunNo) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO calls (run_no, times) VALUES (?1, 1)
             ON CONFLICT (run_no) DO UPDATE SET times = times + 1",
        )?
        .execute([run.0])?;
    Ok(())
}

/// Takes those off the list that were not called again since.
pub(super) fn heard(connection: &Connection, calls: &[Call]) -> Result<()> {
    let mut delete =
        connection.prepare_cached("DELETE FROM calls WHERE run_no = ?1 AND times = ?2")?;
    for Call { run, times } in calls {
        delete.execute([run.0, *times as i64])?;
    }
    Ok(())
}

pub(super) fn list(connection: &Connection, after: RunNo, limit: usize) -> Result<Vec<Call>> {
    let mut query = connection.prepare_cached(
        "SELECT run_no, times FROM calls WHERE run_no > ?1 ORDER BY run_no LIMIT ?2",
    )?;
    let calls = query.query_map((after.0, at_most(limit)), |row| {
        Ok(Call { run: RunNo(row.get(0)?), times: row.get::<_, i64>(1)? as u64 })
    })?;
    calls.collect()
}

pub(super) fn is_called(connection: &Connection, run: RunNo) -> Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM calls WHERE run_no = ?1)")?
        .query_row([run.0], |row| row.get(0))
}

/// Whether this call stands on the list, neither heard nor grown.
pub(super) fn stands(connection: &Connection, call: &Call) -> Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM calls WHERE run_no = ?1 AND times = ?2)")?
        .query_row([call.run.0, call.times as i64], |row| row.get(0))
}
