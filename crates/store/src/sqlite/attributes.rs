//! Search attributes: a row for each that a run carries.

use backstitch_core::attribute::{AttributeChange, AttributeValue};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, Result, params};

use super::query::{RUN, at_most, run_info};
use crate::{RunInfo, RunNo};

/// Sets them or takes them away, in order.
pub(super) fn set(connection: &Connection, run: RunNo, changes: &[AttributeChange]) -> Result<()> {
    for AttributeChange { name, value } in changes {
        match value {
            Some(value) => {
                let (kind, value) = parts(value);
                connection
                    .prepare_cached(
                        "INSERT OR REPLACE INTO attributes (run_no, name, kind, value)
                         VALUES (?1, ?2, ?3, ?4)",
                    )?
                    .execute(params![run.0, name, kind, value])?
            }
            None => connection
                .prepare_cached("DELETE FROM attributes WHERE run_no = ?1 AND name = ?2")?
                .execute(params![run.0, name])?,
        };
    }
    Ok(())
}

pub(super) fn find(
    connection: &Connection,
    name: &str,
    value: &AttributeValue,
    before: RunNo,
    limit: usize,
) -> Result<Vec<RunInfo>> {
    let sql = format!(
        "{RUN} WHERE run_no IN (
           SELECT run_no FROM attributes WHERE name = ?1 AND kind = ?2 AND value = ?3
             AND run_no < ?4 ORDER BY run_no DESC LIMIT ?5)
         ORDER BY run_no DESC"
    );
    let (kind, value) = parts(value);
    let mut query = connection.prepare_cached(&sql)?;
    query.query_map(params![name, kind, value, before.0, at_most(limit)], run_info)?.collect()
}

/// The number of a kind, which is never used for another one, and the bare value. SQLite makes
/// NULL of what is not a number, and NULL is not found.
fn parts(value: &AttributeValue) -> (i64, ToSqlOutput<'_>) {
    match value {
        AttributeValue::Text(text) => (0, ToSqlOutput::from(text.as_str())),
        AttributeValue::Integer(number) => (1, ToSqlOutput::from(*number)),
        AttributeValue::Real(number) => (2, ToSqlOutput::from(*number)),
        AttributeValue::Flag(flag) => (3, ToSqlOutput::from(*flag)),
        AttributeValue::Instant(at_us) => (4, ToSqlOutput::from(*at_us)),
    }
}
