//! The one error of this crate.

use std::fmt;

use backstitch_core::failure::Failure;
use backstitch_core::run::RollbackProgress;

/// What kind of trouble there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such execution.
    NotFound,
    /// The id is in use, or was used, in a way that the policy does not allow.
    IdInUse,
    /// The id is in use with another input or another workflow.
    OtherInput,
    /// No workflow of that name and version is registered.
    UnknownWorkflow,
    /// A name, an id, a payload or a setting is not acceptable.
    Invalid,
    /// The verb does not apply to the execution as it stands.
    Refused,
    /// The execution keeps as many events as it may; send this one again later.
    Full,
    /// A value could not be encoded, or does not decode as the type that was asked for.
    Decode,
    /// The journal of the execution cannot be read.
    Unreadable,
    /// Backstitch was stopped.
    Stopped,
    /// The store takes no changes at the moment (full, read-only, a failed sync). Try again.
    Unavailable,
    /// Another process has the store.
    StoreInUse,
    /// The store was written by a newer version.
    StoreTooNew,
    /// The file is not a store of Backstitch.
    NotAStore,
    /// The store is damaged.
    Corrupt,
    /// The execution failed; [`Error::failure`] has its error.
    Failed,
    /// The execution was cancelled.
    Cancelled,
    /// The execution was rolled back because a person asked for it, perhaps after it had succeeded.
    RolledBack,
    /// The execution was terminated or killed.
    Terminated,
    /// The execution is stuck in its rollback until a person settles what it owes.
    Stuck,
    /// A [`TestKit`](crate::testing::TestKit) cannot do what the test asks of it.
    Testing,
}

/// Why something could not be done. The message names the thing and the way out.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    failure: Option<Failure>,
    rollback: Option<RollbackProgress>,
}

impl ErrorKind {
    /// Whether it says how the execution came out (or that it is stuck), rather than that
    /// something could not be found out.
    pub fn is_outcome(self) -> bool {
        matches!(
            self,
            ErrorKind::Failed
                | ErrorKind::Cancelled
                | ErrorKind::RolledBack
                | ErrorKind::Terminated
                | ErrorKind::Stuck
        )
    }
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { kind, message: message.into(), failure: None, rollback: None }))
    }

    pub(crate) fn of_execution(
        kind: ErrorKind,
        message: String,
        failure: Option<Failure>,
        rollback: RollbackProgress,
    ) -> Error {
        Error(Box::new(Inner { kind, message, failure, rollback: Some(rollback) }))
    }

    /// What kind of trouble it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The error of the execution, as its workflow returned it.
    pub fn failure(&self) -> Option<&Failure> {
        self.0.failure.as_ref()
    }

    /// How the rollback of the execution came out, or stands.
    pub fn rollback(&self) -> Option<RollbackProgress> {
        self.0.rollback
    }
}

/// What a `main` prints that returns it.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

impl From<backstitch_engine::Error> for Error {
    fn from(error: backstitch_engine::Error) -> Error {
        use backstitch_engine::ErrorKind as Engine;
        let kind = match error.kind() {
            Engine::NotFound => ErrorKind::NotFound,
            Engine::IdInUse => ErrorKind::IdInUse,
            Engine::OtherInput => ErrorKind::OtherInput,
            Engine::UnknownWorkflow => ErrorKind::UnknownWorkflow,
            Engine::Invalid => ErrorKind::Invalid,
            Engine::Refused => ErrorKind::Refused,
            Engine::Full => ErrorKind::Full,
            Engine::Unreadable => ErrorKind::Unreadable,
            Engine::Stopped => ErrorKind::Stopped,
            Engine::Store(kind) => store_kind(kind),
        };
        Error::new(kind, error.to_string())
    }
}

impl From<backstitch_store::StoreError> for Error {
    fn from(error: backstitch_store::StoreError) -> Error {
        Error::new(store_kind(error.kind()), error.to_string())
    }
}

fn store_kind(kind: backstitch_store::ErrorKind) -> ErrorKind {
    use backstitch_store::ErrorKind as Store;
    match kind {
        Store::Unavailable => ErrorKind::Unavailable,
        Store::InUse => ErrorKind::StoreInUse,
        Store::TooNew => ErrorKind::StoreTooNew,
        Store::NotAStore => ErrorKind::NotAStore,
        Store::Corrupt => ErrorKind::Corrupt,
        Store::Rejected => ErrorKind::Invalid,
        Store::Closed => ErrorKind::Stopped,
    }
}
