//! Trouble on order, for the tests of this crate.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;

/// What a test may do to the disk.
#[derive(Clone, Default)]
pub struct Testing {
    /// The database may not grow beyond so many pages; read before each transaction.
    pub pages_max: Option<Arc<AtomicU32>>,
    /// Asked at each [`DiskPoint`].
    pub disk: Option<Arc<dyn Fn(DiskPoint) -> Disk + Send + Sync>>,
}

/// Where a disk can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskPoint {
    /// Before a transaction is committed: it will not be there.
    BeforeCommit,
    /// After it was committed: it is there, and the writer does not know.
    AfterCommit,
    /// When the file is opened again.
    Reopen,
}

/// How a disk behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    /// As it should.
    Sound,
    /// It reports an error.
    Fails,
}

impl Testing {
    pub(super) fn limit_pages(&self, connection: &Connection) -> rusqlite::Result<()> {
        match &self.pages_max {
            Some(pages) => {
                let sql = format!("PRAGMA max_page_count = {}", pages.load(Ordering::SeqCst));
                connection.query_row(&sql, (), |_| Ok(()))
            }
            None => Ok(()),
        }
    }

    pub(super) fn at(&self, point: DiskPoint) -> rusqlite::Result<()> {
        match self.disk.as_ref().map_or(Disk::Sound, |disk| disk(point)) {
            Disk::Sound => Ok(()),
            Disk::Fails => {
                let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC);
                Err(rusqlite::Error::SqliteFailure(error, Some(format!("ordered: {point:?}"))))
            }
        }
    }
}

impl fmt::Debug for Testing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Testing").finish_non_exhaustive()
    }
}
