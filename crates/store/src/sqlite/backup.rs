//! Copying a store while it is worked on.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

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
/// - [`ErrorKind::Rejected`]: there is something at `to` already.
/// - [`ErrorKind::Unavailable`]: there is no store, or the copy cannot be written. Nothing is left behind then; what a
///   process leaves that dies meanwhile, the next copy to `to` takes away.
pub fn backup(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<u64, StoreError> {
    let from = open::find(from.as_ref())?;
    let to = to.as_ref();
    // Said before the work is done; what comes there meanwhile is found at the end.
    if fs::symlink_metadata(to).is_ok() {
        return Err(taken(to));
    }
    let draft = Draft::begin(to)?;
    vacuum(&from, to, &draft.path)?;
    let kept = || {
        let file = File::open(&draft.path)?;
        file.sync_all()?;
        // A name that is there is never taken, and a copy never seen in part.
        fs::hard_link(&draft.path, to)?;
        sync_folder(to)?;
        Ok(file.metadata()?.len())
    };
    kept().map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => taken(to),
        _ => unwritten(to, &error),
    })
}

/// Takes away what this process has written of a copy to `to`. For a program that is told to stop in the middle of
/// one; if it cannot, the next copy to `to` does.
pub fn give_up_backup(to: impl AsRef<Path>) {
    if let Ok((_, draft)) = draft_of(to.as_ref()) {
        remove(&draft);
    }
}

/// The copy under a name of its own, as long as it is not whole. Taken away in the end.
struct Draft {
    path: PathBuf,
    /// Locked: what nobody holds was left behind.
    _file: File,
}

impl Draft {
    fn begin(to: &Path) -> Result<Draft, StoreError> {
        let (name, path) = draft_of(to)?;
        sweep(to, name);
        let file = File::create_new(&path).map_err(|error| unwritten(to, &error))?;
        // Elsewhere a lock would keep out SQLite too.
        if cfg!(unix) {
            file.try_lock().map_err(|why| unwritten(to, &why.into()))?;
        }
        Ok(Draft { path, _file: file })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// The name of the copy, and where this process writes it.
fn draft_of(to: &Path) -> Result<(&str, PathBuf), StoreError> {
    let wrong = |why: &str| {
        let message = format!("{} {why}", to.display());
        StoreError::new(ErrorKind::Unavailable, message)
    };
    let name = to.file_name().ok_or_else(|| wrong("names no file; name one that is not there"))?;
    let name = name.to_str().ok_or_else(|| wrong("is no text; name a file by one"))?;
    Ok((name, to.with_file_name(format!("{name}.{}.part", std::process::id()))))
}

/// Takes away what processes have left that died in the middle of a copy to `to`.
fn sweep(to: &Path, name: &str) {
    let Ok(files) = fs::read_dir(folder_of(to)).map(Iterator::flatten) else { return };
    for file in files.filter(|_| cfg!(unix)) {
        let found = file.file_name();
        let of = |found: &str| -> Option<u32> {
            found.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".part")?.parse().ok()
        };
        let is_draft = found.to_str().and_then(of).is_some();
        if is_draft && File::open(file.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            remove(&file.path());
        }
    }
}

/// Removes a draft and its journal, of which neither need be there.
fn remove(draft: &Path) {
    let mut journal = draft.as_os_str().to_owned();
    journal.push("-journal");
    let _ = fs::remove_file(draft);
    let _ = fs::remove_file(journal);
}

fn vacuum(from: &Path, to: &Path, draft: &Path) -> Result<(), StoreError> {
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
        Trouble::Sqlite(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
            let message =
                format!("the disk that holds {} is full; free space and copy again", to.display());
            StoreError::new(ErrorKind::Unavailable, message)
        }
        Trouble::Sqlite(error) => {
            let why = explain(from, &error);
            let message = format!("{} was not copied to {}: {why}", from.display(), to.display());
            StoreError::new(why.kind(), message)
        }
        trouble => trouble.about(from),
    })
}

fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Makes the name of a file survive power loss.
fn sync_folder(file: &Path) -> io::Result<()> {
    File::open(folder_of(file))?.sync_all()
}

fn taken(to: &Path) -> StoreError {
    let shown = to.display();
    let message = format!("there is a file {shown} already; name one that is not there");
    StoreError::new(ErrorKind::Rejected, message)
}

fn unwritten(to: &Path, error: &io::Error) -> StoreError {
    let message = format!("the copy {} cannot be written: {error}", to.display());
    StoreError::new(ErrorKind::Unavailable, message)
}
