//! What can be asked of a store, in the words of the wire.

mod execution;
mod journal;
mod listing;
mod ready;
mod start;
mod verbs;

use backstitch::engine::Engine;
use backstitch::store::RunInfo;
use backstitch::{Client, Error, ErrorKind, RunId};
use backstitch_api::http::{Code, Problem};
use jiff::Timestamp;

pub use journal::Followed;
pub use listing::Filter;
pub use verbs::Verb;

/// The namespace of requests that name none.
pub const NAMESPACE_DEFAULT: &str = "default";

/// The operations, on a store that this process works on or is a guest of. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    client: Client,
}

/// Which execution is meant.
#[derive(Clone, Debug)]
pub struct Target {
    /// The namespace of the id.
    pub namespace: String,
    /// The business id.
    pub id: String,
    /// One of its runs; the newest, if none is named.
    pub run_id: Option<RunId>,
}

impl Service {
    /// The operations on what `client` is connected to.
    pub fn new(client: Client) -> Service {
        Service { client }
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.client.engine()
    }

    /// Whether this process works on the store, or is a guest of it.
    pub fn is_owner(&self) -> bool {
        self.engine().is_owner()
    }

    /// The largest input, output or event, in bytes.
    pub fn payload_bytes_max(&self) -> usize {
        self.engine().payload_bytes_max()
    }

    /// The run that is meant.
    async fn meant(&self, target: &Target) -> Result<RunInfo, Problem> {
        let Target { namespace, id, run_id } = target;
        let found = match run_id {
            None => self.engine().newest(namespace, id).await,
            Some(run_id) => self.engine().run_of(namespace, id, *run_id).await,
        };
        found.map_err(told)
    }

    /// Lets go of the store, for a guest.
    ///
    /// # Errors
    /// Trouble of the store.
    pub async fn close(self) -> Result<(), Problem> {
        self.client.close().await.map_err(told)
    }
}

/// What an error is on the wire.
pub fn told(error: impl Into<Error>) -> Problem {
    let error = error.into();
    let code = match error.kind() {
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::IdInUse => Code::IdInUse,
        ErrorKind::OtherInput => Code::OtherInput,
        ErrorKind::UnknownWorkflow => Code::UnknownWorkflow,
        ErrorKind::Invalid | ErrorKind::Decode => Code::Invalid,
        ErrorKind::Refused => Code::Refused,
        ErrorKind::Full => Code::Full,
        ErrorKind::Unreadable => Code::Unreadable,
        ErrorKind::Stopped => Code::Stopped,
        ErrorKind::Unavailable => Code::Unavailable,
        ErrorKind::StoreInUse => Code::StoreInUse,
        ErrorKind::StoreTooNew => Code::StoreTooNew,
        ErrorKind::NotAStore => Code::NotAStore,
        ErrorKind::Corrupt => Code::Corrupt,
        // Outcomes of executions, which are no problems here.
        _ => Code::Internal,
    };
    Problem::new(code, error.to_string())
}

/// Who asks; nobody is nameless.
fn who(by: Option<String>) -> String {
    by.filter(|by| !by.trim().is_empty()).unwrap_or_else(|| "an HTTP client".to_owned())
}

fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(Code::Invalid, detail)
}

fn instant(us: i64) -> Timestamp {
    Timestamp::from_microsecond(us).unwrap_or(Timestamp::MAX)
}
