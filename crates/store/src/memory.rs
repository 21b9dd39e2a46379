//! A store in memory, for tests and simulations, with the same answers as the durable ones.
//!
//! The data belongs to no handle: [`MemoryStore::reopen`] acts as the next process on the same
//! disk, and fences off every handle before it. There are no guests.

mod data;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstitch_core::attribute::AttributeValue;
use backstitch_core::id::RunId;
use backstitch_core::inbox::InboxRow;
use bytes::Bytes;
use tokio::sync::watch;

use crate::role::Role;
use crate::{
    AfterSync, Answer, AttentionPlace, AttentionRow, Call, Change, ErrorKind, NowUs, RunInfo,
    RunNo, Store, StoreError, StoreFuture,
};
use data::Data;

/// A handle to a store in memory. Clones are the same owner.
///
/// Every future is ready at once. "Durable" means: kept as long as any handle lives.
#[derive(Clone)]
pub struct MemoryStore {
    disk: Arc<Disk>,
    fence: u64,
    closed: Arc<AtomicBool>,
}

/// What outlives an owner.
struct Disk {
    data: Mutex<Data>,
    now: NowUs,
    after_sync: Option<AfterSync>,
    /// Never told anything: nobody else can change what is in here.
    news: watch::Sender<u64>,
}

impl MemoryStore {
    /// An empty store; its owner writes under fence 1.
    pub fn new(now: NowUs) -> MemoryStore {
        MemoryStore::create(now, None)
    }

    /// An empty store that calls `after_sync` after each change that appends a row, and before
    /// the answer. It is called under the store's lock: it must not call the store.
    pub fn with_after_sync(now: NowUs, after_sync: AfterSync) -> MemoryStore {
        MemoryStore::create(now, Some(after_sync))
    }

    fn create(now: NowUs, after_sync: Option<AfterSync>) -> MemoryStore {
        let (data, news) = (Mutex::new(Data::default()), watch::Sender::new(0));
        MemoryStore::own(Arc::new(Disk { data, now, after_sync, news }))
    }

    /// The next owner of the same data, as if the process had been started again.
    ///
    /// From now on older handles are refused as [`crate::Refusal::Fenced`]; they can still read.
    #[must_use = "the handle that this was called on can write no more"]
    pub fn reopen(&self) -> MemoryStore {
        MemoryStore::own(self.disk.clone())
    }

    fn own(disk: Arc<Disk>) -> MemoryStore {
        let fence = disk.lock().raise_fence();
        MemoryStore { disk, fence, closed: Arc::new(AtomicBool::new(false)) }
    }

    fn read<T>(&self, read: impl FnOnce(&Data) -> T) -> StoreFuture<T>
    where
        T: Send + 'static,
    {
        if self.closed.load(Ordering::Acquire) {
            return ready(Err(closed()));
        }
        ready(Ok(read(&self.disk.lock())))
    }
}

impl Store for MemoryStore {
    fn commit(&self, change: Change) -> StoreFuture<Answer> {
        if self.closed.load(Ordering::Acquire) {
            return ready(Err(closed()));
        }
        let role = Role::Owner { fence: self.fence };
        let mut data = self.disk.lock();
        let (answer, row) = data.change(role, &change, (self.disk.now)());
        if let (Some(after_sync), Some(row)) = (&self.disk.after_sync, row) {
            after_sync(&[row]);
        }
        ready(Ok(answer))
    }

    fn fence(&self) -> u64 {
        self.fence
    }

    fn news(&self) -> watch::Receiver<u64> {
        self.disk.news.subscribe()
    }

    fn journal(&self, run: RunNo, after_seq: u64, limit: usize) -> StoreFuture<Vec<Bytes>> {
        self.read(|data| data.journal(run, after_seq, limit))
    }

    fn newest(&self, namespace: &str, id: &str) -> StoreFuture<Option<RunInfo>> {
        self.read(|data| data.newest(namespace, id).cloned())
    }

    fn run_of(&self, namespace: &str, id: &str, run_id: RunId) -> StoreFuture<Option<RunInfo>> {
        self.read(|data| data.run_of(namespace, id, run_id))
    }

    fn run(&self, run: RunNo) -> StoreFuture<Option<RunInfo>> {
        self.read(|data| data.run(run))
    }

    fn inbox(&self, run: RunNo, after: u64, limit: usize) -> StoreFuture<Vec<InboxRow>> {
        self.read(|data| data.inbox(run, after, limit))
    }

    fn open_runs(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>> {
        self.read(|data| data.open_runs(after, limit))
    }

    fn runs(&self, before: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>> {
        self.read(|data| data.runs(before, limit))
    }

    fn find(
        &self,
        name: &str,
        value: &AttributeValue,
        before: RunNo,
        limit: usize,
    ) -> StoreFuture<Vec<RunInfo>> {
        self.read(|data| data.find(name, value, before, limit))
    }

    fn calls(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<Call>> {
        self.read(|data| data.calls(after, limit))
    }

    fn expired(&self, now_us: i64, limit: usize) -> StoreFuture<Vec<RunNo>> {
        self.read(|data| data.expired(now_us, limit))
    }

    fn attention(&self, after: AttentionPlace, limit: usize) -> StoreFuture<Vec<AttentionRow>> {
        self.read(|data| data.attention(after, limit))
    }

    fn close(&self) -> StoreFuture<()> {
        self.closed.store(true, Ordering::Release);
        ready(Ok(()))
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("fence", &self.fence).finish_non_exhaustive()
    }
}

impl Disk {
    fn lock(&self) -> MutexGuard<'_, Data> {
        // A hook that panics does so after the change was made whole.
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ready<T: Send + 'static>(result: Result<T, StoreError>) -> StoreFuture<T> {
    Box::pin(std::future::ready(result))
}

fn closed() -> StoreError {
    StoreError::new(ErrorKind::Closed, "the store was closed; open it again")
}
