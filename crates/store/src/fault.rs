//! A store that dies, forgets its answer or runs full at a chosen change.
//!
//! Wrap any store in a [`FaultStore`] and hold on to the [`FaultPlan`]. Each call of
//! [`Store::commit`] is a *point*, numbered 1, 2, 3 … in the order in which the calls are made. Run
//! a program once with an empty plan to learn how many points it has ([`FaultPlan::count`]), then
//! once per point with a fault there, and after each death open the inner store again and see
//! whether every promise was kept.
//!
//! **Invariant:** once the plan is dead, nothing reaches the inner store, from no thread, and no
//! future resolves: to the caller it looks as if its process were gone. Whether a change is passed
//! on is decided, and the change passed on, under one lock.
//!
//! # Examples
//! ```
//! use std::sync::Arc;
//! use backstitch_store::fault::{FaultPlan, FaultStore};
//! use backstitch_store::memory::MemoryStore;
//!
//! let disk = MemoryStore::new(Arc::new(|| 0));
//! let plan = FaultPlan::new();
//! plan.die_after(3);
//! let store = FaultStore::new(Arc::new(disk.clone()), plan.clone());
//! // … run a program on `store` until `plan.died().await`, then look at `disk.reopen()`.
//! # assert!(!plan.is_dead());
//! # drop(store);
//! ```

use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstitch_core::attribute::AttributeValue;
use backstitch_core::id::RunId;
use backstitch_core::inbox::InboxRow;
use bytes::Bytes;
use tokio::sync::{Mutex as AsyncMutex, watch};

use crate::{
    Answer, AttentionPlace, AttentionRow, Call, Change, ErrorKind, RunInfo, RunNo, Store,
    StoreError, StoreFuture,
};

/// What is to go wrong, and what has. Clones are the same plan.
#[derive(Clone)]
pub struct FaultPlan {
    shared: Arc<Shared>,
}

struct Shared {
    faults: Mutex<Vec<(u64, Fault)>>,
    /// Written under the lock of `faults`; apart from it so that a hook of the inner store may read.
    count: AtomicU64,
    dead: watch::Sender<Life>,
    /// The change after which everything died: driven to its end by whoever waits for the death,
    /// because its own caller may never poll again.
    last: AsyncMutex<Option<StoreFuture<Answer>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    DieBefore,
    DieAfter,
    LoseAnswer,
    /// For so many points, beginning at this one.
    Unavailable(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Alive,
    Dead,
}

impl FaultPlan {
    /// A plan in which nothing goes wrong; points are counted.
    pub fn new() -> FaultPlan {
        FaultPlan {
            shared: Arc::new(Shared {
                faults: Mutex::new(Vec::new()),
                count: AtomicU64::new(0),
                dead: watch::Sender::new(Life::Alive),
                last: AsyncMutex::new(None),
            }),
        }
    }

    /// Dies instead of point `n`: it is not passed on, and neither is anything later.
    pub fn die_before(&self, n: u64) {
        self.add(n, Fault::DieBefore);
    }

    /// Dies after point `n`: it is passed on and becomes durable, but nobody hears of it, and
    /// nothing later is passed on.
    pub fn die_after(&self, n: u64) {
        self.add(n, Fault::DieAfter);
    }

    /// Dies now: nothing that is offered from here on is passed on.
    pub fn die(&self) {
        let _faults = self.shared.lock();
        self.shared.die();
    }

    /// Applies point `n` and answers [`ErrorKind::Unavailable`] nevertheless, as after a connection
    /// that broke between commit and answer. The caller will offer the change again.
    pub fn lose_answer(&self, n: u64) {
        self.add(n, Fault::LoseAnswer);
    }

    /// Answers `times` points, beginning at `n`, with [`ErrorKind::Unavailable`] and applies none
    /// of them, as on a full disk. A change that is offered again is a new point.
    pub fn unavailable(&self, n: u64, times: u64) {
        self.add(n, Fault::Unavailable(times));
    }

    /// How many points there were so far, the one of the death included.
    pub fn count(&self) -> u64 {
        self.shared.count.load(Ordering::SeqCst)
    }

    /// Whether the store is dead by now: nothing is passed on any more.
    pub fn is_dead(&self) -> bool {
        *self.shared.dead.borrow() == Life::Dead
    }

    /// Waits for the death, and after [`FaultPlan::die_after`] until the last change is durable.
    pub async fn died(&self) {
        let mut dead = self.shared.dead.subscribe();
        // The sender lives as long as this plan.
        let _ = dead.wait_for(|life| *life == Life::Dead).await;
        let mut last = self.shared.last.lock().await;
        if let Some(change) = last.as_mut() {
            // It may have been refused or have failed; it is over in any case.
            let _ = change.await;
            *last = None;
        }
    }

    fn add(&self, n: u64, fault: Fault) {
        self.shared.lock().push((n, fault));
    }
}

impl Default for FaultPlan {
    fn default() -> FaultPlan {
        FaultPlan::new()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Fault)>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn die(&self) {
        self.dead.send_replace(Life::Dead);
    }
}

impl Fault {
    /// How many points it takes.
    fn points(self) -> u64 {
        match self {
            Fault::DieBefore | Fault::DieAfter | Fault::LoseAnswer => 1,
            Fault::Unavailable(times) => times,
        }
    }
}

/// A store in which a [`FaultPlan`] happens.
///
/// Reads and [`Store::close`] are no points; they work until the death.
pub struct FaultStore {
    inner: Arc<dyn Store>,
    plan: FaultPlan,
}

impl FaultStore {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn Store>, plan: FaultPlan) -> FaultStore {
        FaultStore { inner, plan }
    }

    /// Passes a call on if the plan is alive, and its answer if it still is by then.
    fn pass<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn Store) -> StoreFuture<T>,
    ) -> StoreFuture<T> {
        let faults = self.plan.shared.lock();
        if self.plan.is_dead() {
            return Box::pin(pending());
        }
        let future = call(&*self.inner);
        drop(faults);
        self.while_alive(future)
    }

    fn while_alive<T: Send + 'static>(&self, future: StoreFuture<T>) -> StoreFuture<T> {
        let plan = self.plan.clone();
        Box::pin(async move {
            let answer = future.await;
            if plan.is_dead() {
                return pending().await;
            }
            answer
        })
    }
}

impl Store for FaultStore {
    fn commit(&self, change: Change) -> StoreFuture<Answer> {
        let shared = &self.plan.shared;
        let faults = shared.lock();
        if self.plan.is_dead() {
            return Box::pin(pending());
        }
        let point = shared.count.fetch_add(1, Ordering::SeqCst) + 1;
        let fault = faults.iter().find(|(n, fault)| {
            // Wraps for points before `n`, which makes the difference large.
            point.wrapping_sub(*n) < fault.points()
        });
        match fault.map(|(_, fault)| *fault) {
            None => {
                let future = self.inner.commit(change);
                drop(faults);
                self.while_alive(future)
            }
            Some(Fault::DieBefore) => {
                shared.die();
                Box::pin(pending())
            }
            Some(Fault::DieAfter) => {
                // Nobody holds this lock yet: it is waited for after the death only.
                let mut last = shared.last.try_lock().expect("free until the death");
                *last = Some(self.inner.commit(change));
                shared.die();
                Box::pin(pending())
            }
            Some(Fault::LoseAnswer) => {
                let future = self.inner.commit(change);
                drop(faults);
                self.while_alive(Box::pin(async move {
                    // Only a change that was applied or judged has an answer to lose.
                    future.await?;
                    Err(unavailable("the answer was lost on its way; offer the change again"))
                }))
            }
            Some(Fault::Unavailable(_)) => {
                drop(faults);
                let error = unavailable("the disk is full by order; offer the change again");
                self.while_alive(Box::pin(std::future::ready(Err(error))))
            }
        }
    }

    fn fence(&self) -> u64 {
        self.inner.fence()
    }

    fn holds(&self, run: RunNo) -> bool {
        self.inner.holds(run)
    }

    fn attempt_fence(&self, run: RunNo) -> u64 {
        self.inner.attempt_fence(run)
    }

    fn left(&self, run: RunNo, trouble: Option<&str>) {
        // A process that has died tells nobody.
        if !self.plan.is_dead() {
            self.inner.left(run, trouble);
        }
    }

    fn news(&self) -> watch::Receiver<u64> {
        self.inner.news()
    }

    fn journal(&self, run: RunNo, after_seq: u64, limit: usize) -> StoreFuture<Vec<Bytes>> {
        self.pass(|inner| inner.journal(run, after_seq, limit))
    }

    fn newest(&self, namespace: &str, id: &str) -> StoreFuture<Option<RunInfo>> {
        self.pass(|inner| inner.newest(namespace, id))
    }

    fn run_of(&self, namespace: &str, id: &str, run_id: RunId) -> StoreFuture<Option<RunInfo>> {
        self.pass(|inner| inner.run_of(namespace, id, run_id))
    }

    fn run(&self, run: RunNo) -> StoreFuture<Option<RunInfo>> {
        self.pass(|inner| inner.run(run))
    }

    fn inbox(&self, run: RunNo, after: u64, limit: usize) -> StoreFuture<Vec<InboxRow>> {
        self.pass(|inner| inner.inbox(run, after, limit))
    }

    fn open_runs(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>> {
        self.pass(|inner| inner.open_runs(after, limit))
    }

    fn runs(&self, before: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>> {
        self.pass(|inner| inner.runs(before, limit))
    }

    fn find(
        &self,
        name: &str,
        value: &AttributeValue,
        before: RunNo,
        limit: usize,
    ) -> StoreFuture<Vec<RunInfo>> {
        self.pass(|inner| inner.find(name, value, before, limit))
    }

    fn calls(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<Call>> {
        self.pass(|inner| inner.calls(after, limit))
    }

    fn expired(&self, now_us: i64, limit: usize) -> StoreFuture<Vec<RunNo>> {
        self.pass(|inner| inner.expired(now_us, limit))
    }

    fn attention(&self, after: AttentionPlace, limit: usize) -> StoreFuture<Vec<AttentionRow>> {
        self.pass(|inner| inner.attention(after, limit))
    }

    fn close(&self) -> StoreFuture<()> {
        self.pass(|inner| inner.close())
    }
}

impl fmt::Debug for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultPlan")
            .field("count", &self.count())
            .field("faults", &*self.shared.lock())
            .field("life", &*self.shared.dead.borrow())
            .finish()
    }
}

impl fmt::Debug for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultStore").field("plan", &self.plan).finish_non_exhaustive()
    }
}

fn unavailable(message: &str) -> StoreError {
    StoreError::new(ErrorKind::Unavailable, message)
}
