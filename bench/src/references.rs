//! What the disk, and SQLite on it, can do at best: to compare with.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::Result;

/// Enough for a steady median in a fraction of a second on any disk that syncs.
const SAMPLES: usize = 300;

/// Medians, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct References {
    /// A plain append of 4 KiB and its `fdatasync`.
    pub fdatasync_p50_ms: f64,
    /// A transaction that inserts one row, with a write-ahead log and `synchronous = FULL`.
    pub sqlite_commit_p50_ms: f64,
}

pub fn measure(dir: &Path) -> Result<References> {
    Ok(References { fdatasync_p50_ms: fdatasync(dir)?, sqlite_commit_p50_ms: sqlite(dir)? })
}

fn fdatasync(dir: &Path) -> Result<f64> {
    let path = dir.join("reference.bin");
    let mut file = File::create(&path)?;
    let block = [0x5a; 4096];
    let p50_ms = median_ms(|_| {
        file.write_all(&block)?;
        file.sync_data()?;
        Ok(())
    })?;
    std::fs::remove_file(path)?;
    Ok(p50_ms)
}

fn sqlite(dir: &Path) -> Result<f64> {
    let dir = dir.join("reference");
    std::fs::create_dir(&dir)?;
    let connection = Connection::open(dir.join("reference.db"))?;
    connection.query_row("PRAGMA journal_mode = WAL", (), |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute("CREATE TABLE one (place INTEGER PRIMARY KEY, row BLOB NOT NULL)", ())?;
    let row = [0x5a; 200];
    let mut insert = connection.prepare("INSERT INTO one (place, row) VALUES (?1, ?2)")?;
    let p50_ms = median_ms(|i| {
        insert.execute((i as i64, row))?;
        Ok(())
    })?;
    drop(insert);
    connection.close().map_err(|(_, error)| error)?;
    std::fs::remove_dir_all(dir)?;
    Ok(p50_ms)
}

fn median_ms(mut once: impl FnMut(usize) -> Result<()>) -> Result<f64> {
    let mut took = Vec::with_capacity(SAMPLES);
    for i in 0..SAMPLES {
        let began = Instant::now();
        once(i)?;
        took.push(began.elapsed());
    }
    took.sort_unstable();
    Ok(took[SAMPLES / 2].as_secs_f64() * 1e3)
}

/// So many times `reference_ms`.
pub fn ratio(took: Duration, reference_ms: f64) -> f64 {
    took.as_secs_f64() * 1e3 / reference_ms
}
