//! The store of a process in a simulated world: changes are offered, made durable in batches when
//! the world says so, and answered when the world says so.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use backstitch::core::attribute::AttributeValue;
use backstitch::core::id::RunId;
use backstitch::core::inbox::InboxRow;
use backstitch::store::memory::MemoryStore;
use backstitch::store::{
    Answer, AttentionPlace, AttentionRow, Call, Change, ErrorKind, RunInfo, RunNo, Store,
    StoreError, StoreFuture,
};
use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use crate::guard;
use crate::history::{Entry, History};

/// The store as one process has it. Clones are the same one.
///
/// **Invariant:** of the changes that a process has offered, a prefix is durable.
#[derive(Clone)]
pub(crate) struct Disk {
    inner: MemoryStore,
    history: History,
    state: Arc<Mutex<State>>,
}

struct State {
    manner: Manner,
    space: Space,
    hearing: Hearing,
    sight: Sight,
    offered: VecDeque<Offered>,
    unanswered: VecDeque<(Teller, Told)>,
}

type Told = Result<Answer, StoreError>;
type Teller = oneshot::Sender<Told>;

struct Offered {
    change: Change,
    teller: Teller,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Everything is durable and answered at once.
    AtOnce,
    /// When the world says so.
    OnCall,
    /// The process has been superseded: only what the fence refuses is passed on.
    Superseded,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Left,
    Gone,
}

/// Whether answers arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hearing {
    Good,
    Lost,
}

/// Whether reads work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    Good,
    Lost,
}

impl Disk {
    pub(crate) fn new(inner: MemoryStore, history: History, manner: Manner) -> Disk {
        let state = State {
            manner,
            space: Space::Left,
            hearing: Hearing::Good,
            sight: Sight::Good,
            offered: VecDeque::new(),
            unanswered: VecDeque::new(),
        };
        Disk { inner, history, state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code runs under this lock")
    }

    pub(crate) fn set_space(&self, space: Space) {
        self.lock().space = space;
    }

    pub(crate) fn set_hearing(&self, hearing: Hearing) {
        self.lock().hearing = hearing;
    }

    pub(crate) fn set_sight(&self, sight: Sight) {
        self.lock().sight = sight;
    }

    /// The process has been superseded. What it has offered and no fence guards is lost.
    pub(crate) fn supersede(&self) {
        let mut state = self.lock();
        state.manner = Manner::Superseded;
        for Offered { change, teller } in std::mem::take(&mut state.offered) {
            if is_fenced(&change) {
                state.offered.push_back(Offered { change, teller });
            } else {
                state.unanswered.push_back((teller, Err(unavailable())));
            }
        }
    }

    /// How many changes wait to be made, and how many answers to be given.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        let state = self.lock();
        (state.offered.len(), state.unanswered.len())
    }

    /// Makes the first `count` changes durable.
    pub(crate) fn apply(&self, count: usize) {
        for _ in 0..count {
            let Some(Offered { change, teller }) = self.lock().offered.pop_front() else { return };
            let answer = self.commit_now(change);
            let mut state = self.lock();
            let answer = match (state.hearing, answer) {
                (Hearing::Good, answer) | (Hearing::Lost, answer @ Err(_)) => answer,
                (Hearing::Lost, Ok(_)) => Err(unavailable()),
            };
            state.unanswered.push_back((teller, answer));
        }
    }

    /// Gives the first `count` answers.
    pub(crate) fn answer(&self, count: usize) {
        for _ in 0..count {
            let Some((teller, answer)) = self.lock().unanswered.pop_front() else { return };
            // Whoever asked may have gone away.
            let _ = teller.send(answer);
        }
    }

    fn commit_now(&self, change: Change) -> Told {
        let put = match &change {
            Change::Inbox(put) => Some((put.run, put.kind, put.topic.clone())),
            _ => None,
        };
        let answer = at_once(self.inner.commit(change));
        if let (
            Some((run, kind, topic)),
            Ok(Answer::Accepted { number, accepted_at_us, first: true, .. }),
        ) = (put, &answer)
        {
            let (number, at_us) = (*number, *accepted_at_us);
            self.history.push(Entry::Accepted { run, number, kind, topic, at_us });
        }
        answer
    }

    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&MemoryStore) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        guard::work();
        match self.lock().sight {
            Sight::Good => read(&self.inner),
            Sight::Lost => Box::pin(std::future::ready(Err(unavailable()))),
        }
    }
}

impl Store for Disk {
    fn commit(&self, change: Change) -> StoreFuture<Answer> {
        guard::work();
        let mut state = self.lock();
        let refused = match (state.manner, state.space) {
            (Manner::AtOnce, Space::Left) => {
                drop(state);
                return Box::pin(std::future::ready(self.commit_now(change)));
            }
            (_, Space::Gone) => true,
            (Manner::Superseded, Space::Left) => !is_fenced(&change),
            (Manner::OnCall, Space::Left) => false,
        };
        if refused {
            return Box::pin(std::future::ready(Err(unavailable())));
        }
        let (teller, told) = oneshot::channel();
        state.offered.push_back(Offered { change, teller });
        Box::pin(async move {
            match told.await {
                Ok(answer) => answer,
                // The process is dead.
                Err(_) => pending().await,
            }
        })
    }

    fn fence(&self) -> u64 {
        self.inner.fence()
    }

    fn news(&self) -> watch::Receiver<u64> {
        self.inner.news()
    }

    fn journal(&self, run: RunNo, after_seq: u64, limit: usize) -> StoreFuture<Vec<Bytes>> {
        self.read(|inner| inner.journal(run, after_seq, limit))
    }

    fn newest(&self, namespace: &str, id: &str) -> StoreFuture<Option<RunInfo>> {
        self.read(|inner| inner.newest(namespace, id))
    }

    fn run_of(&self, namespace: &str, id: &str, run_id: RunId) -> StoreFuture<Option<RunInfo>> {
        self.read(|inner| inner.run_of(namespace, id, run_id))
    }

    fn run(&self, run: RunNo) -> StoreFuture<Option<RunInfo>> {
        self.read(|inner| inner.run(run))
    }

    fn inbox(&self, run: RunNo, after: u64, limit: usize) -> StoreFuture<Vec<InboxRow>> {
        self.read(|inner| inner.inbox(run, after, limit))
    }

    fn open_runs(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>> {
        self.read(|inner| inner.open_runs(after, limit))
    }

    fn runs(&self, before: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>> {
        self.read(|inner| inner.runs(before, limit))
    }

    fn find(
        &self,
        name: &str,
        value: &AttributeValue,
        before: RunNo,
        limit: usize,
    ) -> StoreFuture<Vec<RunInfo>> {
        self.read(|inner| inner.find(name, value, before, limit))
    }

    fn calls(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<Call>> {
        self.read(|inner| inner.calls(after, limit))
    }

    fn expired(&self, now_us: i64, limit: usize) -> StoreFuture<Vec<RunNo>> {
        self.read(|inner| inner.expired(now_us, limit))
    }

    fn attention(&self, after: AttentionPlace, limit: usize) -> StoreFuture<Vec<AttentionRow>> {
        self.read(|inner| inner.attention(after, limit))
    }

    fn close(&self) -> StoreFuture<()> {
        // What was offered before has been answered: the engine has stopped.
        self.inner.close()
    }
}

/// Whether the store refuses it when another owner has come.
fn is_fenced(change: &Change) -> bool {
    match change {
        Change::Start(_) | Change::Append(_) | Change::Heard(_) | Change::Purge { .. } => true,
        Change::Inbox(_) | Change::Delete(_) => false,
    }
}

fn unavailable() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "by order of the simulation; offer it again")
}

/// The output of a future of a store in memory, which is ready.
fn at_once<T>(mut future: StoreFuture<T>) -> Result<T, StoreError> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a store in memory answers at once"),
    }
}
