//! Whether the file that is open still stands where it was opened.
//!
//! A database that was deleted or moved under its owner would take every commit and show none of
//! them to whoever opens the path next; so no commit is acknowledged then (P1).

use std::path::Path;

use crate::{ErrorKind, StoreError};

/// Which file a path named when it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(Option<(u64, u64)>);

impl Place {
    /// The file that `path` names now.
    pub(super) fn of(path: &Path) -> Place {
        Place(identity(path))
    }

    /// Says if `path` no longer names the file.
    pub(super) fn check(self, path: &Path) -> Result<(), StoreError> {
        if Place::of(path) == self {
            return Ok(());
        }
        let message = format!(
            "{} was moved, deleted or replaced while it was in use, so nothing is acknowledged; put \
             the file back (with its -wal beside it), or stop the process and restore a backup",
            path.display()
        );
        Err(StoreError::new(ErrorKind::Unavailable, message))
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_path: &Path) -> Option<(u64, u64)> {
    None
}
