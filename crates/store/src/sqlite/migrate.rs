//! The schema, as numbered files that are applied in order and never edited.
//!
//! **Invariant:** a file is either at a version that this program knows from the first migration
//! to the last, byte for byte, or it is left alone.

use std::path::Path;

use rusqlite::Connection;

use super::error::Trouble;
use crate::{ErrorKind, StoreError};

/// Every migration; number n stands at place n - 1.
const MIGRATIONS: &[&str] =
    &[include_str!("migrations/001_journals.sql"), include_str!("migrations/002_guests.sql")];

/// Brings the schema up to date, inside the transaction that the caller has open.
pub(super) fn migrate(connection: &Connection, path: &Path) -> Result<(), Trouble> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS migrations (
           number   INTEGER PRIMARY KEY,
           checksum INTEGER NOT NULL
         )",
    )?;
    let applied = known(connection, path)?;
    for (place, sql) in MIGRATIONS.iter().enumerate().skip(applied) {
        connection.execute_batch(sql)?;
        connection.execute(
            "INSERT INTO migrations (number, checksum) VALUES (?1, ?2)",
            (number_at(place), crc32c::crc32c(sql.as_bytes())),
        )?;
        tracing::info!(path = %path.display(), number = number_at(place), "migrated");
    }
    Ok(())
}

/// Refuses a schema that is not up to date; for whoever may not migrate it.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), Trouble> {
    let applied = known(connection, path)?;
    if applied < MIGRATIONS.len() { Err(too_old(path, applied).into()) } else { Ok(()) }
}

/// How many migrations were applied, all of which are known here.
fn known(connection: &Connection, path: &Path) -> Result<usize, Trouble> {
    let applied = applied(connection)?;
    for (place, (number, checksum)) in applied.iter().enumerate() {
        let Some(sql) = MIGRATIONS.get(place) else {
            return Err(too_new(path, *number).into());
        };
        if *number != number_at(place) || *checksum != i64::from(crc32c::crc32c(sql.as_bytes())) {
            return Err(other_schema(path, *number).into());
        }
    }
    Ok(applied.len())
}

fn number_at(place: usize) -> i64 {
    place as i64 + 1
}

fn applied(connection: &Connection) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut query =
        connection.prepare_cached("SELECT number, checksum FROM migrations ORDER BY number")?;
    query.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn too_new(path: &Path, number: i64) -> StoreError {
    StoreError::new(
        ErrorKind::TooNew,
        format!(
            "{} has schema {number}, and this Backstitch knows {} at most; open it with the \
             version that wrote it, or a later one",
            path.display(),
            MIGRATIONS.len()
        ),
    )
}

fn too_old(path: &Path, applied: usize) -> StoreError {
    StoreError::new(
        ErrorKind::Unavailable,
        format!(
            "{} has schema {applied}, and this Backstitch needs {}; let the process that owns it open \
             it once with this version, which migrates it, then connect again",
            path.display(),
            MIGRATIONS.len()
        ),
    )
}

fn other_schema(path: &Path, number: i64) -> StoreError {
    StoreError::new(
        ErrorKind::NotAStore,
        format!(
            "{}: migration {number} is not the one that this Backstitch knows under that number, \
             so its tables may differ; open the file with the build that made it, or restore a \
             backup",
            path.display()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that was edited would shut out every store that it was applied to. A new migration
    /// gets a line here.
    #[test]
    fn migrations_are_never_edited() {
        let sums: Vec<u32> = MIGRATIONS.iter().map(|sql| crc32c::crc32c(sql.as_bytes())).collect();
        assert_eq!(sums, [1_742_759_899, 2_438_468_422]);
    }
}
