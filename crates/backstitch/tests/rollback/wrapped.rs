//! A store whose changes and journals a test can meddle with.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstitch::core::event::Event;
use backstitch::core::inbox::{InboxKind, InboxRow, Verb};
use backstitch::store::memory::MemoryStore;
use backstitch::store::{
    Answer, Append, AttentionPlace, AttentionRow, Call, Change, InboxPut, RunInfo, RunNo, Store,
    StoreFuture,
};
use backstitch::{AttributeValue, Payload, RunId};
use bytes::Bytes;
use tokio::sync::watch;

type Commit = dyn Fn(&MemoryStore, Change) -> StoreFuture<Answer> + Send + Sync;
type Rows = dyn Fn(RunNo, Vec<Bytes>) -> Vec<Bytes> + Send + Sync;

/// Passes everything on, but for what is replaced.
pub struct Wrapped {
    inner: MemoryStore,
    commit: Box<Commit>,
    rows: Box<Rows>,
    holds: Box<dyn Fn(RunNo) -> bool + Send + Sync>,
}

impl Wrapped {
    pub fn new(inner: MemoryStore) -> Wrapped {
        let commit = |inner: &MemoryStore, change| inner.commit(change);
        let (rows, holds) = (|_, rows| rows, |_| true);
        Wrapped { inner, commit: Box::new(commit), rows: Box::new(rows), holds: Box::new(holds) }
    }

    /// Replaces what becomes of a change.
    pub fn on_commit<F>(mut self, commit: F) -> Wrapped
    where
        F: Fn(&MemoryStore, Change) -> StoreFuture<Answer> + Send + Sync + 'static,
    {
        self.commit = Box::new(commit);
        self
    }

    /// Puts a verb into the inbox just before the first row with an event of that name is
    /// committed, behind the back of the row's author.
    pub fn verb_before(self, event: &'static str, kind: InboxKind) -> Wrapped {
        let seen = AtomicUsize::new(0);
        self.on_commit(move |inner, change| {
            if has_event(&change, event) && seen.fetch_add(1, Ordering::SeqCst) == 0 {
                let Change::Append(append) = &change else { unreachable!("it has events") };
                drop(inner.commit(verb(append.run, kind, "put behind its back")));
            }
            inner.commit(change)
        })
    }

    /// Replaces what is read of a journal.
    pub fn on_rows(
        mut self,
        rows: impl Fn(RunNo, Vec<Bytes>) -> Vec<Bytes> + Send + Sync + 'static,
    ) -> Wrapped {
        self.rows = Box::new(rows);
        self
    }

    /// Replaces whether a run may be worked on.
    pub fn on_holds(mut self, holds: impl Fn(RunNo) -> bool + Send + Sync + 'static) -> Wrapped {
        self.holds = Box::new(holds);
        self
    }

    pub fn shared(self) -> Arc<dyn Store> {
        Arc::new(self)
    }
}

/// A verb as a client puts it into an inbox.
pub fn verb(run: RunNo, kind: InboxKind, request_id: &str) -> Change {
    let verb = Verb { by: "somebody".into(), reason: "just so".into(), ..Verb::default() };
    let payload = verb.to_bytes();
    let digest = Payload::json(payload.clone()).digest();
    let (request_id, topic) = (request_id.to_owned(), String::new());
    let (changed, rows_max, seen, guard) = (true, u64::MAX, 0, Vec::new());
    let put =
        InboxPut { run, kind, request_id, topic, payload, digest, changed, rows_max, seen, guard };
    put.into()
}

/// Whether the change appends an event of that name.
pub fn has_event(change: &Change, name: &str) -> bool {
    match change {
        Change::Append(append) => appended(append).iter().any(|event| event.name() == name),
        Change::Start(_)
        | Change::Inbox(_)
        | Change::Heard(_)
        | Change::Delete(_)
        | Change::Purge { .. } => false,
    }
}

/// The events of an append.
pub fn appended(append: &Append) -> Vec<Event> {
    let mut bytes = append.draft.events.clone();
    let mut events = Vec::new();
    while !bytes.is_empty() {
        events.push(Event::decode(&mut bytes).unwrap());
    }
    events
}

impl Store for Wrapped {
    fn commit(&self, change: Change) -> StoreFuture<Answer> {
        (self.commit)(&self.inner, change)
    }

    fn fence(&self) -> u64 {
        self.inner.fence()
    }

    fn holds(&self, run: RunNo) -> bool {
        (self.holds)(run)
    }

    fn news(&self) -> watch::Receiver<u64> {
        self.inner.news()
    }

    fn journal(&self, run: RunNo, after_seq: u64, limit: usize) -> StoreFuture<Vec<Bytes>> {
        let rows = self.inner.journal(run, after_seq, limit);
        let rows = futures_util::FutureExt::now_or_never(rows).expect("ready at once");
        let rows = rows.map(|rows| (self.rows)(run, rows));
        Box::pin(std::future::ready(rows))
    }

    fn newest(&self, namespace: &str, id: &str) -> StoreFuture<Option<RunInfo>> {
        self.inner.newest(namespace, id)
    }

    fn run_of(&self, namespace: &str, id: &str, run_id: RunId) -> StoreFuture<Option<RunInfo>> {
        self.inner.run_of(namespace, id, run_id)
    }

    fn run(&self, run: RunNo) -> StoreFuture<Option<RunInfo>> {
        self.inner.run(run)
    }

    fn inbox(&self, run: RunNo, after: u64, limit: usize) -> StoreFuture<Vec<InboxRow>> {
        self.inner.inbox(run, after, limit)
    }

    fn open_runs(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>> {
        self.inner.open_runs(after, limit)
    }

    fn runs(&self, before: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>> {
        self.inner.runs(before, limit)
    }

    fn find(
        &self,
        name: &str,
        value: &AttributeValue,
        before: RunNo,
        limit: usize,
    ) -> StoreFuture<Vec<RunInfo>> {
        self.inner.find(name, value, before, limit)
    }

    fn calls(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<Call>> {
        self.inner.calls(after, limit)
    }

    fn expired(&self, now_us: i64, limit: usize) -> StoreFuture<Vec<RunNo>> {
        self.inner.expired(now_us, limit)
    }

    fn attention(&self, after: AttentionPlace, limit: usize) -> StoreFuture<Vec<AttentionRow>> {
        self.inner.attention(after, limit)
    }

    fn close(&self) -> StoreFuture<()> {
        self.inner.close()
    }
}
