//! Whether somebody else has written to the file.

use rusqlite::Connection;
use tokio::sync::watch;

/// The number by which SQLite tells a connection what others have committed. It means something
/// only beside another one from the same connection.
pub(super) fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row((), |row| row.get(0))
}

/// Looks for what others have written, and tells whoever wants to hear of it.
pub(super) struct News {
    /// What was seen last; `None` on a new connection, to which everything is new.
    seen: Option<i64>,
    tell: watch::Sender<u64>,
}

/// What others have done since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    /// Nothing.
    WereQuiet,
    /// They have written, or may have.
    Wrote,
}

impl News {
    /// On a connection whose version was `seen` before anything was read.
    pub(super) fn new(seen: i64, tell: watch::Sender<u64>) -> News {
        News { seen: Some(seen), tell }
    }

    pub(super) fn look(&mut self, connection: &Connection) -> rusqlite::Result<Others> {
        let version = data_version(connection)?;
        if self.seen.replace(version) == Some(version) {
            return Ok(Others::WereQuiet);
        }
        self.tell.send_modify(|news| *news = news.wrapping_add(1));
        Ok(Others::Wrote)
    }

    /// The next look is on another connection.
    pub(super) fn forget(&mut self) {
        self.seen = None;
    }
}
