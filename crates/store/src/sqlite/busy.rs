//! How long a writer waits for its turn.
//!
//! Whoever writes holds the one lock of the file for the time of a transaction, and lets go of it
//! for less than a millisecond before the next one. The longer the pauses between two tries, the
//! less often is the lock found free: so it is tried every millisecond. (SQLite's own pauses grow to
//! 100 ms. With them an owner waited 4.6 s beside one guest that had no pause; with these 0.1 s.)

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// Waits a little, or says that it has been long enough; given how often it was asked before.
pub(super) type Wait = fn(i32) -> bool;

/// The owner waits for guests, or for a backup tool.
pub(super) const OWNER: Wait = |tries| wait(tries, Duration::from_secs(5));

/// A guest waits for an owner that writes all the time.
pub(super) const GUEST: Wait = |tries| wait(tries, Duration::from_secs(10));

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(1);

// By a unique reference, because later versions of rusqlite ask for one.
pub(super) fn set(connection: &mut Connection, wait: Wait) -> rusqlite::Result<()> {
    connection.busy_handler(Some(wait))
}

fn wait(tries: i32, patience: Duration) -> bool {
    // SQLite asks on the thread that waits, and counts from 0 for each lock that it waits for.
    thread_local! {
        static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    let now = Instant::now();
    let since = match SINCE.get() {
        Some(since) if tries > 0 => since,
        Some(_) | None => now,
    };
    SINCE.set(Some(since));
    if now.duration_since(since) >= patience {
        return false;
    }
    thread::sleep(PAUSE);
    true
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::ErrorKind;
    use crate::sqlite::error::explain;

    #[test]
    fn whoever_waits_in_vain_is_told_that_others_are_busy() {
        let name = format!("backstitch-busy-{}.db", std::process::id());
        let path = std::env::temp_dir().join(name);
        let holder = Connection::open(&path).unwrap();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut waiter = Connection::open(&path).unwrap();
        set(&mut waiter, |tries| wait(tries, Duration::from_millis(30))).unwrap();
        for _ in 0..2 {
            let since = Instant::now();
            let error = waiter.execute_batch("BEGIN IMMEDIATE").unwrap_err();
            assert!(since.elapsed() >= Duration::from_millis(30), "each wait begins anew");
            let error = explain(Path::new("orders.db"), &error);
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            let message = error.to_string();
            assert!(message.contains("orders.db is kept busy by another process"), "{message}");
        }
        holder.execute_batch("COMMIT").unwrap();
        waiter.execute_batch("BEGIN IMMEDIATE; COMMIT").unwrap();
        drop((holder, waiter));
        std::fs::remove_file(&path).unwrap();
    }
}
