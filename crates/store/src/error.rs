//! The one error of this crate.

use std::fmt;

/// What kind of trouble a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Full, read-only, or its sync failed: nothing was applied; offer it again.
    Unavailable,
    /// Another process owns the store.
    InUse,
    /// The store was written by a newer version of Backstitch.
    TooNew,
    /// The file is not a store of Backstitch.
    NotAStore,
    /// What is stored is damaged.
    Corrupt,
    /// This one change cannot be stored, now or later.
    Rejected,
    /// The store was closed.
    Closed,
}

/// Why a store could not do what it was asked to. The message names the thing and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    kind: ErrorKind,
    message: String,
}

impl StoreError {
    /// An error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> StoreError {
        StoreError { kind, message: message.into() }
    }

    /// What kind of trouble it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}
