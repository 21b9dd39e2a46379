//! Copying a store while it is worked on.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::error::{Trouble, explain};
use super::open;
use crate::{ErrorKind, StoreError};

/// Copies the store at `from` to `to`, which must not be there, and gives the size of the copy in
/// bytes. The store may be worked on meanwhile; nobody waits for the copy.
///
/// The copy holds all that was acknowledged before this was called, and of each change the whole or
/// nothing. When this returns it survives power loss. It is one file, a store like any other one:
/// whoever opens it goes on from there, with every open execution, as after a crash.
///
/// # Errors
/// - [`ErrorKind::NotAStore`], [`ErrorKind::TooNew`], [`ErrorKind::Corrupt`]: as for
///   [`SqliteStore::connect`](super::SqliteStore::connect).
/// - [`ErrorKind::Unavailable`]: there is no store, there is something at `to` already, or the copy
///   cannot be written. Nothing is left behind then.
pub fn backup(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<u64, StoreError> {
    let from = open::find(from.as_ref())?;
    let to = to.as_ref();
    // Said before the work is done; what comes there meanwhile is found at the end.
    if fs::symlink_metadata(to).is_ok() {
        return Err(taken(to));
    }
    let draft = Draft::beside(to)?;
    vacuum(&from, &draft.0)?;
    let kept = || {
        let file = File::open(&draft.0)?;
        file.sync_all()?;
        // A name that is there is never taken, and a copy never seen in part.
        fs::hard_link(&draft.0, to)?;
        sync_folder(to)?;
        Ok(file.metadata()?.len())
    };
    kept().map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => taken(to),
        _ => unwritten(to, &error),
    })
}

/// The copy under a name of its own, as long as it is not whole. Taken away in the end.
struct Draft(PathBuf);

impl Draft {
    fn beside(to: &Path) -> Result<Draft, StoreError> {
        let Some(name) = to.file_name() else {
            let message = format!("{} names no file; name one that is not there", to.display());
            return Err(StoreError::new(ErrorKind::Unavailable, message));
        };
        let mut draft = name.to_owned();
        draft.push(format!(".{}.part", std::process::id()));
        Ok(Draft(to.with_file_name(draft)))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It may never have been begun.
        let _ = fs::remove_file(&self.0);
    }
}

fn vacuum(from: &Path, draft: &Path) -> Result<(), StoreError> {
    let Some(name) = draft.to_str() else {
        let message = format!("{} is no text; name a file by one", draft.display());
        return Err(StoreError::new(ErrorKind::Unavailable, message));
    };
    let copied = || -> Result<(), Trouble> {
        let connection = open::join(from)?.connection;
        // One reading transaction: what is committed meanwhile is not in the copy.
        connection.execute("VACUUM INTO ?1", [name])?;
        Ok(())
    };
    copied().map_err(|trouble| match trouble {
        Trouble::Sqlite(error) => {
            let why = explain(from, &error);
            let message = format!("{} was not copied to {name}: {why}", from.display());
            StoreError::new(why.kind(), message)
        }
        trouble => trouble.about(from),
    })
}

/// Makes the name of a file survive power loss.
fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn taken(to: &Path) -> StoreError {
    let shown = to.display();
    let message = format!("there is a file {shown} already; name one that is not there");
    StoreError::new(ErrorKind::Unavailable, message)
}

fn unwritten(to: &Path, error: &io::Error) -> StoreError {
    let message = format!("the copy {} cannot be written: {error}", to.display());
    StoreError::new(ErrorKind::Unavailable, message)
}
