//! Workers elsewhere: programs that have workflows, and to which this engine leases runs.
//!
//! **Invariants:** a run that is leased is driven by nobody else. A lease ends for all runs of a worker at
//! once, when it was not heard of for as long as the lease lasts; from then on it writes nothing (P4). A larger
//! fence goes with each lease.

mod connection;
mod grant;
mod rest;
mod tenancy;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use backstitch_core::inbox::InboxRow;
use backstitch_store::{NewExecution, RunNo};
use bytes::Bytes;
use tokio::sync::{oneshot, watch};

pub use connection::{Connection, Desk, Farewell, JOURNAL_PAGE_MAX};
pub(crate) use grant::Grant;
pub(crate) use tenancy::{Entry, Tenancy};
pub(crate) use worker::{Offer, Worker};

use crate::calls;
use crate::engine::Shared;
use crate::live::Mail;
use crate::workers::rest::Resting;

/// How long a lease lasts that is not renewed, by default. Workers renew it three times in that time.
pub const LEASE_DEFAULT: Duration = Duration::from_secs(15);

/// The shortest lease: a worker has to notice in time that it was not renewed.
pub const LEASE_MIN: Duration = Duration::from_millis(500);

/// The longest lease: so long is a run left alone after its worker died.
pub const LEASE_MAX: Duration = Duration::from_secs(3_600);

/// Most runs that one worker may have at a time: each is a task here, and loaded there.
pub const SLOTS_MAX: usize = 100_000;

/// Most workflows that one worker may name: all of them are looked through for each run.
pub const WORKFLOWS_MAX: usize = 1_000;

/// Most types of events that one workflow may name: they stand in the error that refuses another one.
pub const EVENT_TYPES_MAX: usize = 1_000;

/// Most workers at a time: each of them is a connection and two tasks.
pub const WORKERS_MAX: usize = 10_000;

/// The sixteen bytes by which a worker is known again when it comes back.
pub type SessionId = [u8; 16];

/// A name of a workflow, and a version.
pub type Code = (String, String);

/// What a worker says of itself.
#[derive(Clone, Debug)]
pub struct Introduction {
    /// Made once when the worker starts.
    pub session: SessionId,
    /// For people, and for the rows that it writes.
    pub name: String,
    /// For people: what it is written with.
    pub sdk: String,
    /// The workflows that it has.
    pub workflows: Vec<Code>,
    /// The types of the events that those of them take that tell.
    pub event_types: BTreeMap<Code, Vec<String>>,
    /// So many runs may be leased to it at a time.
    pub slots: usize,
    /// What it still has loaded from before it lost its connection.
    pub held: Vec<Held>,
}

/// A run that a worker still has loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The run.
    pub run: RunNo,
    /// The fence under which it was leased.
    pub fence: u64,
    /// The last row of its journal that the worker knows to be durable.
    pub seq: u64,
    /// The last row of its inbox that the worker was sent.
    pub inbox: u64,
}

/// What a worker is told.
#[derive(Clone, Debug)]
pub enum ToWorker {
    /// It has one run more.
    Lease(Box<Leased>),
    /// What became of its append.
    Answer {
        /// The run.
        run: RunNo,
        /// As it was sent.
        append_id: Vec<u8>,
        /// What became of it.
        answer: Written,
    },
    /// What came from outside.
    Inbox {
        /// The run.
        run: RunNo,
        /// As it was leased.
        fence: u64,
        /// The rows, in order.
        rows: Vec<InboxRow>,
    },
    /// It has the run no more.
    Revoke {
        /// The run.
        run: RunNo,
        /// As it was leased.
        fence: u64,
        /// For people.
        why: String,
        /// Whether it may end its bodies and record how, and then releases the run.
        in_good_order: bool,
    },
}

/// A run, as it is given to a worker.
#[derive(Clone, Debug)]
pub struct Leased {
    /// The run.
    pub run: RunNo,
    /// Larger than that of every owner before.
    pub fence: u64,
    /// What is known of it from its start.
    pub new: NewExecution,
    /// The version that is wanted.
    pub version: String,
    /// When it was started.
    pub created_at_us: i64,
    /// The first rows of its journal.
    pub rows: Vec<Bytes>,
    /// The last row there is.
    pub seq: u64,
    /// What stands unread in its inbox.
    pub inbox: Vec<InboxRow>,
}

/// What became of a row that a worker sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It survives power loss, committed at this instant.
    Durable {
        /// Microseconds since 1970.
        at_us: i64,
    },
    /// Something stands unread that has to be read first.
    Unread(String),
    /// The run is not the worker's any more.
    Lost(String),
    /// It does not follow from the journal.
    Illegal(String),
    /// The store will never take it.
    Rejected(String),
}

/// A row, as a worker sends it.
#[derive(Clone, Debug)]
pub struct OfferedRow {
    /// The run.
    pub run: RunNo,
    /// As it was leased.
    pub fence: u64,
    /// Sixteen bytes that no other append has.
    pub append_id: Vec<u8>,
    /// The number of the row.
    pub seq: u64,
    /// For a turn: the time that the code saw.
    pub turn_now_us: Option<i64>,
    /// For a turn: the version of the workflow that ran it.
    pub version: String,
    /// The events, encoded.
    pub events: Bytes,
}

/// A worker, for whoever looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// As it calls itself.
    pub name: String,
    /// What it is written with.
    pub sdk: String,
    /// What it has.
    pub workflows: Vec<Code>,
    /// So many runs it takes.
    pub slots: usize,
    /// So many it has.
    pub leased: usize,
    /// Whether it has a connection at the moment.
    pub connected: bool,
    /// Whether it wants no more runs.
    pub draining: bool,
}

/// All workers, and the runs that wait for one.
pub(crate) struct Workers {
    /// How long a lease lasts.
    pub lease: Duration,
    pool: Mutex<Pool>,
    /// Whether all runs that an earlier owner left open are loaded.
    loaded: watch::Sender<bool>,
}

#[derive(Default)]
struct Pool {
    workers: BTreeMap<SessionId, Arc<Worker>>,
    /// Runs that could go on if somebody had a slot for them, oldest first.
    waiting: BTreeMap<Code, BTreeSet<RunNo>>,
    /// Runs with an attempt in flight at a worker that has lost its server.
    orphans: BTreeMap<RunNo, Orphan>,
    /// Runs that wait for a worker to be mended: one has sent what does not follow from their journals, or its
    /// code does not fit them.
    unmended: BTreeMap<Code, BTreeSet<RunNo>>,
    /// Such runs, when another worker has come: it is the newest one that may be mended.
    for_the_newest: BTreeSet<RunNo>,
    /// Runs that were given back in vain.
    resting: Resting,
    /// Leases so far.
    leases: u32,
    /// Workers so far.
    joined: u64,
}

struct Orphan {
    code: Code,
    seq: u64,
    claim: oneshot::Sender<Grant>,
}

impl Workers {
    pub fn new(lease: Duration) -> Workers {
        Workers { lease, pool: Mutex::default(), loaded: watch::Sender::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().expect("no code runs under this lock")
    }

    /// Whether a worker has the workflow, with or without a free slot.
    pub fn know(&self, code: &Code) -> bool {
        self.lock().workers.values().any(|worker| worker.knows(code))
    }

    /// The types of the events that the workflow takes, at one or another of the workers that have it. `None` if
    /// nobody has it, or if one of them has not told.
    pub fn event_types(&self, code: &Code) -> Option<BTreeSet<String>> {
        let pool = self.lock();
        let mut with_it = pool.workers.values().filter(|worker| worker.has_code(code)).peekable();
        with_it.peek()?;
        let told: Option<Vec<_>> = with_it.map(|worker| worker.event_types(code)).collect();
        Some(told?.into_iter().flatten().cloned().collect())
    }

    /// All workers.
    pub fn views(&self) -> Vec<WorkerView> {
        self.lock().workers.values().map(|worker| worker.view()).collect()
    }

    /// Whether the run is leased.
    pub fn have(&self, run: RunNo) -> bool {
        self.lock().workers.values().any(|worker| worker.has(run))
    }

    /// A slot for the run at the worker that has the most of them free, and has not just given it back. If there is
    /// none, the run is looked at again when there is one.
    pub fn take(&self, shared: &Arc<Shared>, code: &Code, run: RunNo) -> Option<Grant> {
        let pool = &mut *self.lock();
        let free = pool.workers.values().filter(|worker| worker.knows(code) && worker.has_room());
        let best = match pool.for_the_newest.remove(&run) {
            true => free.max_by_key(|worker| worker.number()).cloned(),
            false => {
                let is_other = |worker: &Worker| !pool.resting.is_by(run, worker);
                free.max_by_key(|worker| (is_other(worker), worker.free_slots())).cloned()
            }
        };
        let granted = best.and_then(|worker| grant(shared, pool.next_fence(shared), worker, run));
        match &granted {
            Some(_) => pool.no_longer_waits(code, run),
            None => {
                pool.waiting.entry(code.clone()).or_default().insert(run);
            }
        }
        granted
    }

    /// The run does not wait for a worker any more.
    pub fn forget(&self, code: &Code, run: RunNo) {
        self.lock().no_longer_waits(code, run);
    }

    /// The run is closed: no worker is anything to it any more.
    pub fn forget_closed(&self, code: &Code, run: RunNo) {
        let pool = &mut *self.lock();
        pool.no_longer_waits(code, run);
        remove_from(&mut pool.unmended, code, run);
        pool.for_the_newest.remove(&run);
        pool.resting.forget(run);
    }

    /// A run may have been looked at for a slot that it does not take: the next one is looked at.
    pub fn offer_again(&self, shared: &Arc<Shared>) {
        if shared.is_stopping() {
            return;
        }
        let workers: Vec<_> = self.lock().workers.values().cloned().collect();
        workers.iter().for_each(|worker| self.offer_waiting(shared, worker));
    }

    /// Has runs looked at that wait for what `worker` has, as many as it has room for.
    fn offer_waiting(&self, shared: &Arc<Shared>, worker: &Worker) {
        let woken = self.lock().pop_waiting(worker);
        for run in woken {
            calls::wake(shared, run, Mail::Look);
        }
    }

    /// How long a run rests that a worker has no more: `in_vain` is one that could have gone on with it, has given it
    /// back with nothing written, and would take it again.
    pub fn rest(&self, run: RunNo, code: &Code, in_vain: Option<&Worker>) -> Option<Duration> {
        let resting = &mut self.lock().resting;
        let Some(worker) = in_vain.filter(|worker| worker.knows(code)) else {
            resting.forget(run);
            return None;
        };
        Some(resting.rest(run, worker))
    }

    /// The run waits until another worker comes that has its workflow.
    pub fn wait_until_mended(&self, code: Code, run: RunNo) {
        self.lock().unmended.entry(code).or_default().insert(run);
    }

    /// A worker may still run an attempt of `run`, which ends at row `seq`: whoever claims it has it.
    pub fn expect_claim(&self, code: Code, run: RunNo, seq: u64) -> oneshot::Receiver<Grant> {
        let (claim, claimed) = oneshot::channel();
        self.lock().orphans.insert(run, Orphan { code, seq, claim });
        claimed
    }

    /// Nobody claims the run any more.
    pub fn expect_no_claim(&self, run: RunNo) {
        self.lock().orphans.remove(&run);
    }

    /// All open runs are loaded.
    pub fn all_loaded(&self) {
        self.loaded.send_replace(true);
    }

    async fn until_loaded(&self) {
        let mut loaded = self.loaded.subscribe();
        // The sender lives as long as this.
        let _ = loaded.wait_for(|loaded| *loaded).await;
    }

    /// The worker has not been heard of for too long, or has left.
    fn remove(&self, worker: &Arc<Worker>) {
        let workers = &mut self.lock().workers;
        if workers.get(worker.session()).is_some_and(|known| Arc::ptr_eq(known, worker)) {
            workers.remove(worker.session());
        }
    }
}

impl Pool {
    fn no_longer_waits(&mut self, code: &Code, run: RunNo) {
        remove_from(&mut self.waiting, code, run);
    }

    /// A worker has come that may be a mended one: what another one could not go on with, it may.
    fn look_again(&mut self, shared: &Shared, worker: &Worker) {
        for code in worker.workflows() {
            for run in self.unmended.remove(code).unwrap_or_default() {
                shared.no_longer_left_alone(run);
                self.for_the_newest.insert(run);
                self.waiting.entry(code.clone()).or_default().insert(run);
            }
        }
    }

    fn pop_waiting(&mut self, worker: &Worker) -> Vec<RunNo> {
        let (mut popped, mut free) = (Vec::new(), worker.free_slots());
        for code in worker.workflows() {
            let Some(runs) = self.waiting.get_mut(code) else { continue };
            while free > 0
                && let Some(run) = runs.pop_first()
            {
                popped.push(run);
                free -= 1;
            }
            if runs.is_empty() {
                self.waiting.remove(code);
            }
        }
        popped
    }

    fn next_fence(&mut self, shared: &Shared) -> u64 {
        self.leases = self.leases.checked_add(1).expect("a process gives fewer leases in its life");
        (shared.store.fence() << 32) | u64::from(self.leases)
    }
}

fn remove_from(sets: &mut BTreeMap<Code, BTreeSet<RunNo>>, code: &Code, run: RunNo) {
    if let Some(runs) = sets.get_mut(code) {
        runs.remove(&run);
        if runs.is_empty() {
            sets.remove(code);
        }
    }
}

/// A slot of `worker`, if it has one.
fn grant(shared: &Arc<Shared>, fence: u64, worker: Arc<Worker>, run: RunNo) -> Option<Grant> {
    let offers = worker.seat(run, fence)?;
    Some(Grant { shared: shared.clone(), worker, run, fence, offers })
}
