//! A store in memory, for tests and simulations, with the same answers as the durable ones.
//!
//! The data belongs to no handle: [`MemoryStore::reopen`] acts as the next process on the same
//! disk, and fences off every handle before it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstitch_core::inbox::{InboxKind, InboxRow};
use backstitch_core::row::Draft;
use bytes::Bytes;

use crate::rules::{Accepted, Facts, Tail, judge_append, judge_inbox, judge_start};
use crate::{
    AfterSync, Answer, Append, AttentionChange, AttentionRow, Change, CommittedRow, ErrorKind,
    ExecutionUpdate, InboxPut, NowUs, RunInfo, RunNo, Start, Store, StoreError, StoreFuture,
};

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
}

#[derive(Default)]
struct Data {
    fence: u64,
    stamped_us: i64,
    runs: BTreeMap<RunNo, Run>,
    newest: HashMap<(String, String), RunNo>,
    open: BTreeSet<RunNo>,
    attention: BTreeMap<(RunNo, u64, u32), AttentionRow>,
}

struct Run {
    info: RunInfo,
    journal: Vec<Bytes>,
    inbox: Vec<(InboxRow, [u8; 32])>,
    /// The place of each request in `inbox`.
    requests: HashMap<String, usize>,
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
        let disk = Disk { data: Mutex::new(Data::default()), now, after_sync };
        MemoryStore::own(Arc::new(disk))
    }

    /// The next owner of the same data, as if the process had been started again.
    ///
    /// From now on older handles are refused as [`crate::Refusal::Fenced`]; they can still read.
    #[must_use = "the handle that this was called on can write no more"]
    pub fn reopen(&self) -> MemoryStore {
        MemoryStore::own(self.disk.clone())
    }

    fn own(disk: Arc<Disk>) -> MemoryStore {
        let fence = {
            let mut data = disk.lock();
            data.fence += 1;
            data.fence
        };
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
        let mut data = self.disk.lock();
        let at_us = data.stamped_us.max((self.disk.now)());
        data.stamped_us = at_us;
        let (answer, row) = match &change {
            Change::Start(start) => data.start(start, at_us),
            Change::Append(append) => data.append(append, at_us),
            Change::Inbox(put) => (data.put(put, at_us), None),
        };
        if let (Some(after_sync), Some(row)) = (&self.disk.after_sync, row) {
            after_sync(&[row]);
        }
        ready(Ok(answer))
    }

    fn fence(&self) -> u64 {
        self.fence
    }

    fn journal(&self, run: RunNo, after_seq: u64, limit: usize) -> StoreFuture<Vec<Bytes>> {
        let skip = usize::try_from(after_seq).unwrap_or(usize::MAX);
        self.read(|data| {
            let rows = data.runs.get(&run).map(|run| run.journal.iter());
            rows.into_iter().flatten().skip(skip).take(limit).cloned().collect()
        })
    }

    fn newest(&self, namespace: &str, id: &str) -> StoreFuture<Option<RunInfo>> {
        self.read(|data| data.newest(namespace, id).cloned())
    }

    fn run(&self, run: RunNo) -> StoreFuture<Option<RunInfo>> {
        self.read(|data| data.runs.get(&run).map(|run| run.info.clone()))
    }

    fn inbox(&self, run: RunNo, after: u64, limit: usize) -> StoreFuture<Vec<InboxRow>> {
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        self.read(|data| {
            let rows = data.runs.get(&run).map(|run| run.inbox.iter());
            rows.into_iter().flatten().skip(skip).take(limit).map(|(row, _)| row.clone()).collect()
        })
    }

    fn open_runs(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>> {
        self.read(|data| {
            let above = data.open.range((Bound::Excluded(after), Bound::Unbounded));
            above.take(limit).map(|run| data.runs[run].info.clone()).collect()
        })
    }

    fn runs(&self, before: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>> {
        self.read(|data| {
            let below = data.runs.range(..before).rev();
            below.take(limit).map(|(_, run)| run.info.clone()).collect()
        })
    }

    fn attention(&self, limit: usize) -> StoreFuture<Vec<AttentionRow>> {
        self.read(|data| {
            let mut open: Vec<_> = data.attention.values().cloned().collect();
            open.sort_by_key(|item| (item.opened_at_us, item.run, item.seq, item.ord));
            open.truncate(limit);
            open
        })
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

impl Data {
    fn start(&mut self, start: &Start, at_us: i64) -> (Answer, Option<CommittedRow>) {
        let Ok(judged) = judge_start(self, start);
        if let Some(answer) = judged {
            return (answer, None);
        }
        let run = RunNo(self.runs.last_key_value().map_or(1, |(last, _)| last.0 + 1));
        let new = start.execution.clone();
        let update = ExecutionUpdate { status: start.status, wake_at_us: None };
        self.newest.insert((new.namespace.clone(), new.id.clone()), run);
        self.open.insert(run);
        let info = RunInfo { run, new, created_at_us: at_us, update, closed_at_us: None };
        let (journal, inbox, requests) = (Vec::new(), Vec::new(), HashMap::new());
        self.runs.insert(run, Run { info, journal, inbox, requests });
        (Answer::Started { run, at_us }, Some(self.push(run, &start.first, at_us)))
    }

    fn append(&mut self, append: &Append, at_us: i64) -> (Answer, Option<CommittedRow>) {
        let Ok(judged) = judge_append(self, append);
        if let Some(answer) = judged {
            return (answer, None);
        }
        let row = self.push(append.run, &append.draft, at_us);
        if let Some(update) = &append.update {
            let info = &mut self.runs.get_mut(&append.run).expect("judged to be there").info;
            info.update = update.clone();
            if update.status.is_closed() {
                info.closed_at_us = Some(at_us);
                self.open.remove(&append.run);
            }
        }
        for change in &append.attention {
            self.change_attention(append, change, at_us);
        }
        (Answer::Appended { at_us }, Some(row))
    }

    fn push(&mut self, run: RunNo, draft: &Draft, at_us: i64) -> CommittedRow {
        let row = Bytes::from(draft.seal(at_us));
        self.runs.get_mut(&run).expect("judged to be there").journal.push(row.clone());
        CommittedRow { run, row }
    }

    fn change_attention(&mut self, append: &Append, change: &AttentionChange, at_us: i64) {
        let run = append.run;
        match change {
            AttentionChange::Open { ord, kind, message } => {
                let (seq, ord) = (append.draft.header.seq, *ord);
                let (kind, message) = (kind.clone(), message.clone());
                let row = AttentionRow { run, seq, ord, kind, message, opened_at_us: at_us };
                self.attention.insert((run, seq, ord), row);
            }
            AttentionChange::Close { seq, ord } => {
                self.attention.remove(&(run, *seq, *ord));
            }
        }
    }

    fn put(&mut self, put: &InboxPut, at_us: i64) -> Answer {
        let Ok(judged) = judge_inbox(self, put);
        if let Some(answer) = judged {
            return answer;
        }
        let run = self.runs.get_mut(&put.run).expect("judged to be there");
        let number = run.inbox.len() as u64 + 1;
        let row = InboxRow {
            number,
            kind: put.kind,
            request_id: put.request_id.clone(),
            payload: put.payload.clone(),
            accepted_at_us: at_us,
        };
        run.requests.insert(put.request_id.clone(), run.inbox.len());
        run.inbox.push((row, put.digest));
        Answer::Accepted { number, accepted_at_us: at_us, first: true }
    }

    fn newest(&self, namespace: &str, id: &str) -> Option<&RunInfo> {
        let run = self.newest.get(&(namespace.to_owned(), id.to_owned()))?;
        Some(&self.runs[run].info)
    }
}

impl Facts for Data {
    type Error = Infallible;

    fn fence(&self) -> u64 {
        self.fence
    }

    fn tail(&mut self, run: RunNo) -> Result<Option<Tail>, Infallible> {
        Ok(self.runs.get(&run).map(|run| Tail {
            last: run.journal.len() as u64,
            closed: run.info.closed_at_us.is_some(),
        }))
    }

    fn row(&mut self, run: RunNo, seq: u64) -> Result<Option<Bytes>, Infallible> {
        let place = seq.checked_sub(1).and_then(|place| usize::try_from(place).ok());
        let run = self.runs.get(&run);
        Ok(place.zip(run).and_then(|(place, run)| run.journal.get(place).cloned()))
    }

    fn unread(&mut self, run: RunNo, read: u64) -> Result<Vec<InboxKind>, Infallible> {
        let rows = self.runs.get(&run).map(|run| run.inbox.iter()).into_iter().flatten();
        Ok(rows.filter(|(row, _)| row.number > read).map(|(row, _)| row.kind).collect())
    }

    fn accepted(&mut self, run: RunNo, request: &str) -> Result<Option<Accepted>, Infallible> {
        Ok(self.runs.get(&run).and_then(|run| {
            let (row, digest) = &run.inbox[*run.requests.get(request)?];
            let InboxRow { number, kind, accepted_at_us, .. } = *row;
            Some(Accepted { number, kind, digest: *digest, accepted_at_us })
        }))
    }

    fn newest(&mut self, namespace: &str, id: &str) -> Result<Option<RunInfo>, Infallible> {
        Ok(Data::newest(self, namespace, id).cloned())
    }
}

fn ready<T: Send + 'static>(result: Result<T, StoreError>) -> StoreFuture<T> {
    Box::pin(std::future::ready(result))
}

fn closed() -> StoreError {
    StoreError::new(ErrorKind::Closed, "the store was closed; open it again")
}
