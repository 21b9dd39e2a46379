//! What SQLite reports, as what it means for a change and for the file.

use std::path::Path;

use rusqlite::ffi;

use crate::{ErrorKind, StoreError};

/// An error that has not been told apart yet.
#[derive(Debug)]
pub(super) enum Trouble {
    /// As SQLite reports it.
    Sqlite(rusqlite::Error),
    /// As we say it.
    Said(StoreError),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Trouble {
        Trouble::Sqlite(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Trouble::Said(error)
    }
}

impl Trouble {
    /// Whether the change itself is at fault, or what it found; another change may succeed.
    pub(super) fn is_of_the_change(&self) -> bool {
        let kind = match self {
            Trouble::Sqlite(error) => kind_of(error),
            Trouble::Said(error) => error.kind(),
        };
        match kind {
            ErrorKind::Rejected | ErrorKind::Corrupt => true,
            ErrorKind::Unavailable
            | ErrorKind::InUse
            | ErrorKind::TooNew
            | ErrorKind::NotAStore
            | ErrorKind::Closed => false,
        }
    }

    /// The error for people, about the file at `path`.
    pub(super) fn about(self, path: &Path) -> StoreError {
        match self {
            Trouble::Sqlite(error) => explain(path, &error),
            Trouble::Said(error) => error,
        }
    }
}

/// Says what `error` means and what helps.
pub(super) fn explain(path: &Path, error: &rusqlite::Error) -> StoreError {
    let kind = kind_of(error);
    let path = path.display();
    let code = error.sqlite_error_code();
    let message = match kind {
        ErrorKind::NotAStore => {
            format!("{path} is not a SQLite database; name another file, or move this one away")
        }
        ErrorKind::Corrupt => format!(
            "{path} is damaged ({error}); runs that do not touch the damaged place go on; stop, \
             copy the file, and restore a backup"
        ),
        ErrorKind::Rejected => format!("{path} cannot hold this change, now or later: {error}"),
        ErrorKind::Unavailable if code == Some(ffi::ErrorCode::DiskFull) => {
            format!("the disk that holds {path} is full; free space and the work goes on")
        }
        ErrorKind::Unavailable if code == Some(ffi::ErrorCode::ReadOnly) => {
            format!("{path} is read-only; make it writable and the work goes on")
        }
        ErrorKind::Unavailable if code == Some(ffi::ErrorCode::DatabaseBusy) => format!(
            "{path} is kept busy by another process ({error}): the wait for a turn was given up, \
             and nothing was applied; try again when it has less to do"
        ),
        ErrorKind::Unavailable | ErrorKind::InUse | ErrorKind::TooNew | ErrorKind::Closed => {
            format!(
                "{path} cannot be used at the moment ({error}); when its disk is sound, the work goes on"
            )
        }
    };
    StoreError::new(kind, message)
}

fn kind_of(error: &rusqlite::Error) -> ErrorKind {
    use ffi::ErrorCode::{
        ConstraintViolation, DatabaseCorrupt, NotADatabase, ParameterOutOfRange, TooBig,
        TypeMismatch,
    };
    match error.sqlite_error_code() {
        Some(ConstraintViolation | TooBig | TypeMismatch | ParameterOutOfRange) => {
            ErrorKind::Rejected
        }
        Some(DatabaseCorrupt) => ErrorKind::Corrupt,
        Some(NotADatabase) => ErrorKind::NotAStore,
        Some(_) => ErrorKind::Unavailable,
        None => match error {
            rusqlite::Error::ToSqlConversionFailure(_) => ErrorKind::Rejected,
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::QueryReturnedNoRows
            | rusqlite::Error::Utf8Error(..) => ErrorKind::Corrupt,
            _ => ErrorKind::Unavailable,
        },
    }
}
