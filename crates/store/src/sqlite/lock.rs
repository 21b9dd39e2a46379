//! Who owns the file.
//!
//! **Invariant:** whoever carries journals on holds the operating system's lock on the file beside
//! the database, `<path>.lock`. The kernel releases the lock when its holder dies, however it dies;
//! the file itself stays, because deleting it would let two processes lock two files of the same
//! name. Guests hold no lock but that of each transaction.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::{ErrorKind, StoreError};

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the database at `path`, and writes our process id into it.
    pub(super) fn take(path: &Path) -> Result<Lock, StoreError> {
        let beside = beside(path);
        let cannot = |why: std::io::Error| {
            StoreError::new(
                ErrorKind::Unavailable,
                format!(
                    "cannot write {}: {why}; the process needs write access to the folder of {}",
                    beside.display(),
                    path.display()
                ),
            )
        };
        let mut options = OpenOptions::new();
        // Not truncated: until it is locked, the process id in it is another's.
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&beside).map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(path, &mut file)),
            Err(TryLockError::Error(why)) => return Err(cannot(why)),
        }
        // The id is only a hint for people. A full disk must not keep a store from being read.
        let noted = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        if let Err(why) = noted {
            tracing::warn!(path = %beside.display(), %why, "cannot note the process id");
        }
        Ok(Lock { _file: file })
    }
}

/// `<path>.lock`
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

fn in_use(path: &Path, file: &mut File) -> StoreError {
    let mut held_by = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut held_by));
    let holder = match (read, held_by.trim().parse::<u32>()) {
        (Ok(_), Ok(pid)) if pid == std::process::id() => {
            "this process itself (shut it down there)".to_owned()
        }
        (Ok(_), Ok(pid)) => format!("process {pid}"),
        (Ok(_), Err(_)) | (Err(_), _) => "another process".to_owned(),
    };
    StoreError::new(
        ErrorKind::InUse,
        format!(
            "{} is in use by {holder}; stop it first, or give this one a file of its own",
            path.display()
        ),
    )
}
