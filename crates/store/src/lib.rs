//! Where Backstitch keeps its journals.
//!
//! [`Store`] is the whole of what the engine asks of a database: one atomic change at a time
//! ([`Change`]), and reads. [`memory`] keeps everything in memory; [`sqlite`] is the embedded
//! default; [`conformance`] is the suite that every store has to pass; [`fault`] wraps a store and
//! makes it die, forget its answer or run full at a chosen change.
//!
//! **Invariant:** an answer means that the change survives power loss (P1). A change is applied
//! whole or not at all. One change that cannot be applied never harms another (B97).

pub mod change;
pub mod conformance;
pub mod error;
pub mod fault;
pub mod memory;
mod role;
mod rules;
pub mod sqlite;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use backstitch_core::attribute::AttributeValue;
use backstitch_core::id::RunId;
use backstitch_core::inbox::InboxRow;
use bytes::Bytes;
use tokio::sync::watch;

pub use change::{
    Answer, Append, AttentionChange, Call, Change, ExecutionUpdate, Expects, Guard, InboxPut,
    NewExecution, Refusal, Start,
};
pub use error::{ErrorKind, StoreError};

/// A boxed future of a store.
pub type StoreFuture<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'static>>;

/// The number of a run within its store, allocated upwards; journals are clustered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunNo(pub i64);

/// What the execution's own row says about a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// The number of the run.
    pub run: RunNo,
    /// What was given at the start.
    pub new: NewExecution,
    /// When it was started, microseconds since 1970.
    pub created_at_us: i64,
    /// What the owner said last.
    pub update: ExecutionUpdate,
    /// When it was closed.
    pub closed_at_us: Option<i64>,
}

/// An open matter that only a person can settle, as the index lists it. Rebuilt from journals.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionRow {
    /// The run.
    pub run: RunNo,
    /// The row of the journal that opened it.
    pub seq: u64,
    /// The step, or 0 for the run itself.
    pub ord: u32,
    /// A short stable name, for example `undo_failed`.
    pub kind: String,
    /// A sentence for people.
    pub message: String,
    /// When it was opened.
    pub opened_at_us: i64,
}

impl AttentionRow {
    /// Where it stands in the list.
    pub fn place(&self) -> AttentionPlace {
        let AttentionRow { opened_at_us, run, seq, ord, .. } = *self;
        AttentionPlace { opened_at_us, run, seq, ord }
    }
}

/// A place in the list of open matters, which is in the order of these fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AttentionPlace {
    /// When it was opened.
    pub opened_at_us: i64,
    /// The run.
    pub run: RunNo,
    /// The row of the journal that opened it.
    pub seq: u64,
    /// The step, or 0 for the run itself.
    pub ord: u32,
}

impl AttentionPlace {
    /// Before all that there can be.
    pub const START: AttentionPlace =
        AttentionPlace { opened_at_us: i64::MIN, run: RunNo(0), seq: 0, ord: 0 };
}

/// A journal row that has just become durable.
#[derive(Clone, Debug)]
pub struct CommittedRow {
    /// The run.
    pub run: RunNo,
    /// The sealed row; [`backstitch_core::row::Row::decode`] reads it.
    pub row: Bytes,
}

/// Called by the store after a sync and before anybody hears of it, with the rows of the batch in
/// order. Meant for live feeds and for fault injection; it holds up every commit, so be quick.
pub type AfterSync = Arc<dyn Fn(&[CommittedRow]) + Send + Sync>;

/// The clock of a store: microseconds since 1970.
pub type NowUs = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A database for journals, owned by one process (or, later, by the holders of leases).
///
/// Every future may be awaited on any executor. Reads see everything that was acknowledged
/// before they were asked for.
pub trait Store: Send + Sync + 'static {
    /// Offers one change. It is offered when this is *called*, not when the future is first
    /// polled, so two calls in a row are applied in that order; dropping the future does not take
    /// it back.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when nothing could be made durable: nothing was applied, and the
    /// same change can be offered again. A refusal by a condition is an [`Answer`], not an error.
    fn commit(&self, change: Change) -> StoreFuture<Answer>;

    /// The fence under which this owner writes: larger than that of every owner before it. A guest
    /// has 0, under which no journal is carried on.
    fn fence(&self) -> u64;

    /// Changes when somebody else has changed the store: a guest, for the owner; the owner or
    /// another guest, for a guest. Told within 20 ms or so. A hint: what has changed is to be
    /// read, and now and then nothing has.
    fn news(&self) -> watch::Receiver<u64>;

    /// Up to `limit` sealed rows of the journal after `after_seq`, in order.
    fn journal(&self, run: RunNo, after_seq: u64, limit: usize) -> StoreFuture<Vec<Bytes>>;

    /// The newest run of an execution.
    fn newest(&self, namespace: &str, id: &str) -> StoreFuture<Option<RunInfo>>;

    /// The run of an execution that has this id, the newest or an earlier one.
    fn run_of(&self, namespace: &str, id: &str, run_id: RunId) -> StoreFuture<Option<RunInfo>>;

    /// One run.
    fn run(&self, run: RunNo) -> StoreFuture<Option<RunInfo>>;

    /// Inbox rows of a run with a number above `after`, in order.
    fn inbox(&self, run: RunNo, after: u64, limit: usize) -> StoreFuture<Vec<InboxRow>>;

    /// Runs that are not closed, by number, above `after`.
    fn open_runs(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>>;

    /// All runs, newest first, below `before`.
    fn runs(&self, before: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>>;

    /// Runs that carry a search attribute with this value, newest first, below `before`.
    fn find(
        &self,
        name: &str,
        value: &AttributeValue,
        before: RunNo,
        limit: usize,
    ) -> StoreFuture<Vec<RunInfo>>;

    /// Runs that the owner has to look at, by number, above `after`.
    fn calls(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<Call>>;

    /// Closed runs that may be deleted at `now_us`: expired, without an open attention item, and
    /// not called. Those that expired first come first.
    fn expired(&self, now_us: i64, limit: usize) -> StoreFuture<Vec<RunNo>>;

    /// Open attention items, oldest first, behind `after`.
    fn attention(&self, after: AttentionPlace, limit: usize) -> StoreFuture<Vec<AttentionRow>>;

    /// Whether the run may be worked on now; asked right before each attempt begins. Once it has said no to a
    /// run that has a driver, whoever works on the store gives that driver up. For a store that its owner has
    /// as a whole, always.
    fn holds(&self, run: RunNo) -> bool {
        let _ = run;
        true
    }

    /// What attempts of this run are shown as their fence: larger than that of every owner of the run before,
    /// also if one of them had the whole store, and another a lease of this run alone. A store gives out its
    /// own fence in the upper half, and whoever leases counts in the lower one.
    fn attempt_fence(&self, run: RunNo) -> u64 {
        let _ = run;
        self.fence() << 32
    }

    /// Told when a driver leaves a run: nothing of it begins any more. `trouble` says why it can never be
    /// driven here, if that is so. A store of leases gives the run back.
    fn left(&self, run: RunNo, trouble: Option<&str>) {
        let _ = (run, trouble);
    }

    /// Finishes what was offered, gives up the ownership and closes. Later calls answer
    /// [`ErrorKind::Closed`].
    fn close(&self) -> StoreFuture<()>;
}
