//! The schema, as numbered files that are applied in order and never edited.
//!
//! **Invariant:** a file is either at a version that this program knows from the first migration
//! to the last, byte for byte, or it is left alone.

use std::path::Path;

use rusqlite::Connection;

use super::error::Trouble;
use crate::{ErrorKind, StoreError};

/// Every migration; number n stands at place n - 1.
const MIGRATIONS: &[&str] = &[include_str!("migrations/001_journals.sql")];

/// Brings the schema up to date, inside the transaction that the caller has open.
pub(super) fn migrate(connection: &Connection, path: &Path) -> Result<(), Trouble> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS migrations (
           number   INTEGER PRIMARY KEY,
           checksum INTEGER NOT NULL
         )",
    )?;
    let applied = applied(connection)?;
    for (place, (number, checksum)) in applied.iter().enumerate() {
        let Some(sql) = MIGRATIONS.get(place) else {
            return Err(too_new(path, *number).into());
        };
        if *number != number_at(place) || *checksum != i64::from(crc32c::crc32c(sql.as_bytes())) {
            return Err(other_schema(path, *number).into());
        }
    }
    for (place, sql) in MIGRATIONS.iter().enumerate().skip(applied.len()) {
        connection.execute_batch(sql)?;
        connection.execute(
            "INSERT INTO migrations (number, checksum) VALUES (?1, ?2)",
            (number_at(place), crc32c::crc32c(sql.as_bytes())),
        )?;
        tracing::info!(path = %path.display(), number = number_at(place), "migrated");
    }
    Ok(())
}

fn number_at(place: usize) -> i64 {
    place as i64 + 1
}

fn applied(connection: &Connection) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut query =
        connection.prepare("SELECT number, checksum FROM migrations ORDER BY number")?;
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
