//! The embedded store: one SQLite file, owned by one process, and guests beside it.
//!
//! A change goes from [`SqliteStore`] through a channel to the one thread that writes
//! (`writer`), which applies what waits in one transaction (`commit`, `apply`). Reads go to two
//! threads with connections of their own (`readers`, `query`). `open` and `lock` guard the door.
//!
//! **Invariant:** what a writer remembers of the file holds only as long as nobody else has written:
//! each transaction looks for that first (`news`).

mod writer;

mod commit;
mod news;
mod traces;

mod apply;
mod tails;

mod attributes;
mod calls;
mod deletion;
mod query;
mod readers;

mod backup;
mod busy;
mod lock;
mod migrate;
mod open;
mod place;

mod error;
mod testing;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use backstitch_core::attribute::AttributeValue;
use backstitch_core::id::RunId;
use backstitch_core::inbox::InboxRow;
use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use crate::{
    AfterSync, Answer, AttentionPlace, AttentionRow, Call, Change, ErrorKind, NowUs, RunInfo,
    RunNo, Store, StoreError, StoreFuture,
};
pub use backup::{backup, give_up_backup};
use commit::Committer;
use lock::Lock;
use open::Opened;
use readers::{ReaderThreads, Readers};
#[doc(hidden)]
pub use testing::{Disk, DiskPoint, Testing};
use writer::{Job, Offer, Writer};

/// A store in a SQLite file.
///
/// One process owns the file at a time, from [`SqliteStore::open`] to [`Store::close`] or its
/// death. Others may write to it as guests ([`SqliteStore::connect`]). Beside the file stand `<path>-wal` and `<path>-shm`, which belong to it while it is open
/// and must be copied with it, and `<path>.lock`, which names the owner.
///
/// Dropping the store without closing it does not wait: its threads finish what was offered and
/// then give the file up. Only [`Store::close`] tells when that is done.
///
/// # Examples
/// ```
/// use backstitch_store::Store;
/// use backstitch_store::sqlite::{SqliteOptions, SqliteStore};
///
/// # let folder = std::env::temp_dir().join(format!("backstitch-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let store = SqliteStore::open(folder.join("orders.db"), SqliteOptions::default())?;
/// assert_eq!(store.fence(), 1);
/// store.close().await?;
///
/// let again = SqliteStore::open(folder.join("orders.db"), SqliteOptions::default())?;
/// assert_eq!(again.fence(), 2);
/// again.close().await?;
/// # Ok::<(), backstitch_store::StoreError>(())
/// # })?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SqliteStore {
    jobs: Sender<Job>,
    readers: Readers,
    path: Arc<Path>,
    fence: u64,
    news: watch::Sender<u64>,
}

/// How a store is opened.
#[derive(Clone)]
pub struct SqliteOptions {
    /// The clock; the system's by default.
    pub now: NowUs,
    /// Called after each sync, before the answers, on the thread that writes. It must not wait for
    /// this store; a panic in it is logged, and the work goes on.
    pub after_sync: Option<AfterSync>,
    /// Trouble on order, for the tests of this crate.
    #[doc(hidden)]
    pub testing: Testing,
}

impl Default for SqliteOptions {
    fn default() -> SqliteOptions {
        SqliteOptions {
            now: Arc::new(system_now_us),
            after_sync: None,
            testing: Testing::default(),
        }
    }
}

impl SqliteStore {
    /// Opens the store at `path`, and makes it if there is none.
    ///
    /// # Errors
    /// - [`ErrorKind::InUse`]: another process (or another handle in this one) owns it.
    /// - [`ErrorKind::NotAStore`]: the path names no file, or the file is not ours.
    /// - [`ErrorKind::TooNew`]: a newer version has migrated it.
    /// - [`ErrorKind::Corrupt`]: what has to be read first is damaged.
    /// - [`ErrorKind::Unavailable`]: the folder is missing, or the file cannot be written.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<SqliteStore, StoreError> {
        let path: Arc<Path> = open::resolve(path.as_ref())?.into();
        let lock = Lock::take(&path)?;
        let opened = open::own(&path)?;
        SqliteStore::begin(path, options, opened, Some(lock))
    }

    /// Opens the store at `path` as a guest, beside a process that owns it now or will own it later.
    ///
    /// A guest offers [`Change::Start`] under fence 0, [`Change::Inbox`] and [`Change::Delete`], and
    /// reads everything; what only the owner may do is refused as [`crate::Refusal::Fenced`]. It makes
    /// no file, migrates nothing, and holds up the owner for no longer than one transaction takes.
    /// While the owner has no pause, it waits for its turn for up to 10 s.
    ///
    /// # Errors
    /// - [`ErrorKind::NotAStore`]: the path names no file, or the file is not ours.
    /// - [`ErrorKind::TooNew`]: a newer version has migrated it.
    /// - [`ErrorKind::Corrupt`]: what has to be read first is damaged.
    /// - [`ErrorKind::Unavailable`]: the file is missing or empty, its owner has not migrated it to
    ///   the schema of this version yet, or it cannot be written.
    pub fn connect(
        path: impl AsRef<Path>,
        options: SqliteOptions,
    ) -> Result<SqliteStore, StoreError> {
        let path: Arc<Path> = open::find(path.as_ref())?.into();
        let opened = open::join(&path)?;
        SqliteStore::begin(path, options, opened, None)
    }

    fn begin(
        path: Arc<Path>,
        options: SqliteOptions,
        opened: Opened,
        lock: Option<Lock>,
    ) -> Result<SqliteStore, StoreError> {
        let (fence, news) = (opened.role.fence(), watch::Sender::new(0));
        let threads = ReaderThreads::start(&path)?;
        let readers = threads.readers();
        let committer = Committer::new(path.clone(), options, opened, news.clone());
        let writer = Writer::new(committer, threads, path.clone(), lock);
        let (jobs, offered) = channel();
        let thread = thread::Builder::new().name("backstitch-write".into());
        let run = move || {
            let closing = writer.run(&offered);
            // What was offered after the close is dropped before anybody hears that it is done.
            drop(offered);
            if let Some(done) = closing {
                let _ = done.send(());
            }
        };
        thread.spawn(run).map_err(no_thread)?;
        Ok(SqliteStore { jobs, readers, path, fence, news })
    }
}

impl Store for SqliteStore {
    fn commit(&self, change: Change) -> StoreFuture<Answer> {
        let (answer, answered) = oneshot::channel();
        // The queue has no bound of its own: an owner has a few changes per run under way, no more.
        // If the writer is gone, the offer is dropped, and with it the other end.
        let _ = self.jobs.send(Job::Offer(Offer { change, answer }));
        let path = self.path.clone();
        Box::pin(async move { answered.await.unwrap_or_else(|_| Err(closed(&path))) })
    }

    fn fence(&self) -> u64 {
        self.fence
    }

    fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    fn journal(&self, run: RunNo, after_seq: u64, limit: usize) -> StoreFuture<Vec<Bytes>> {
        self.readers.read(move |connection| query::journal(connection, run, after_seq, limit))
    }

    fn newest(&self, namespace: &str, id: &str) -> StoreFuture<Option<RunInfo>> {
        let (namespace, id) = (namespace.to_owned(), id.to_owned());
        self.readers.read(move |connection| query::newest(connection, &namespace, &id))
    }

    fn run_of(&self, namespace: &str, id: &str, run_id: RunId) -> StoreFuture<Option<RunInfo>> {
        let (namespace, id) = (namespace.to_owned(), id.to_owned());
        self.readers.read(move |connection| query::run_of(connection, &namespace, &id, run_id))
    }

    fn run(&self, run: RunNo) -> StoreFuture<Option<RunInfo>> {
        self.readers.read(move |connection| query::run(connection, run))
    }

    fn inbox(&self, run: RunNo, after: u64, limit: usize) -> StoreFuture<Vec<InboxRow>> {
        self.readers.read(move |connection| query::inbox(connection, run, after, limit))
    }

    fn open_runs(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>> {
        self.readers.read(move |connection| query::open_runs(connection, after, limit))
    }

    fn runs(&self, before: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>> {
        self.readers.read(move |connection| query::runs(connection, before, limit))
    }

    fn find(
        &self,
        name: &str,
        value: &AttributeValue,
        before: RunNo,
        limit: usize,
    ) -> StoreFuture<Vec<RunInfo>> {
        let (name, value) = (name.to_owned(), value.clone());
        self.readers
            .read(move |connection| attributes::find(connection, &name, &value, before, limit))
    }

    fn calls(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<Call>> {
        self.readers.read(move |connection| calls::list(connection, after, limit))
    }

    fn expired(&self, now_us: i64, limit: usize) -> StoreFuture<Vec<RunNo>> {
        self.readers.read(move |connection| deletion::expired(connection, now_us, limit))
    }

    fn attention(&self, after: AttentionPlace, limit: usize) -> StoreFuture<Vec<AttentionRow>> {
        self.readers.read(move |connection| query::attention(connection, after, limit))
    }

    fn close(&self) -> StoreFuture<()> {
        let (done, closed) = oneshot::channel();
        let _ = self.jobs.send(Job::Close(done));
        // An error means that it was closed before.
        Box::pin(async move { closed.await.or(Ok(())) })
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        f.debug_struct("SqliteStore")
            .field("path", &format_args!("{path}"))
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions").finish_non_exhaustive()
    }
}

fn closed(path: &Path) -> StoreError {
    StoreError::new(
        ErrorKind::Closed,
        format!("the store {} was closed; open it again", path.display()),
    )
}

fn no_thread(why: std::io::Error) -> StoreError {
    StoreError::new(
        ErrorKind::Unavailable,
        format!("the system gives this process no further thread: {why}"),
    )
}

fn system_now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
