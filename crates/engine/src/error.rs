//! The one error of this crate.

use std::fmt;

use backstitch_store::StoreError;

/// What kind of trouble the engine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// No such execution.
    NotFound,
    /// The id is in use, or was used, in a way that the policy does not allow.
    IdInUse,
    /// The id is in use with another input or another workflow.
    OtherInput,
    /// No workflow of that name and version is registered.
    UnknownWorkflow,
    /// A name, an id or a payload is not acceptable.
    Invalid,
    /// The verb does not apply to the execution as it stands.
    Refused,
    /// The execution keeps as many events as it may.
    Full,
    /// The journal of the execution cannot be read.
    Unreadable,
    /// The engine was stopped.
    Stopped,
    /// The store has trouble; see the store's own kind.
    Store(backstitch_store::ErrorKind),
}

/// Why the engine could not do what it was asked to. The message names the thing and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    /// An error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }

    /// What kind of trouble it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        Error::new(ErrorKind::Store(error.kind()), error.to_string())
    }
}
