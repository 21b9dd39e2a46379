//! How a worker comes, says something, and leaves.

use std::sync::Arc;

use backstitch_core::id::name_defect;
use backstitch_store::RunNo;
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::engine::{Engine, Shared, check_words};
use crate::error::{Error, ErrorKind};
use crate::workers::worker::MAIL_MAX;
use crate::workers::{
    EVENT_TYPES_MAX, Grant, Held, Introduction, Offer, OfferedRow, SLOTS_MAX, ToWorker,
    WORKERS_MAX, WORKFLOWS_MAX, Worker, WorkerView, Workers,
};

/// Longest name of a worker or an SDK, in bytes: it stands in every turn that the worker writes.
const NAME_BYTES_MAX: usize = 200;

/// Journal rows that are read at a time.
pub const JOURNAL_PAGE_MAX: usize = 1_000;

/// What a worker has when it was taken on.
pub struct Connection {
    /// What it is told from now on. Ends when the worker comes with another connection, and when its leases
    /// have ended.
    pub mail: mpsc::Receiver<ToWorker>,
    /// What it still has: the runs, and the fences under which it has them from now on. All others it has lost.
    pub kept: Vec<(RunNo, u64)>,
    /// How it says something.
    pub desk: Desk,
}

/// How a worker says something. When this is dropped, the worker has no connection; one that wanted no more runs and
/// has none is forgotten then.
pub struct Desk {
    shared: Arc<Shared>,
    worker: Arc<Worker>,
    number: u64,
}

/// Why a connection is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// The leases of the worker have ended.
    NotHeardOf,
    /// It has another connection.
    ConnectedAnew,
    /// The engine has stopped.
    Stopped,
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.worker.disconnect(self.number);
        if self.worker.has_left()
            && let Some(workers) = &self.shared.workers
        {
            self.worker.gone.send_replace(true);
            workers.remove(&self.worker);
        }
    }
}

impl Engine {
    /// How long a lease lasts; `None` if this engine leases nothing.
    pub fn lease(&self) -> Option<std::time::Duration> {
        self.shared.workers.as_ref().map(|workers| workers.lease)
    }

    /// The workers that are known, connected or within their leases.
    pub fn workers(&self) -> Vec<WorkerView> {
        self.shared.workers.as_ref().map(Workers::views).unwrap_or_default()
    }

    /// Takes a worker on, or on again.
    ///
    /// # Errors
    /// `Invalid` for what it says of itself; `Refused` if this engine leases nothing; `Full` if it has too many
    /// workers; `Stopped` when it is being stopped.
    pub async fn join(&self, introduction: Introduction) -> Result<Connection, Error> {
        check(&introduction)?;
        let shared = &self.shared;
        let Some(workers) = &shared.workers else {
            let message = "this engine leases no runs; connect to a Backstitch server";
            return Err(Error::new(ErrorKind::Refused, message));
        };
        // What an earlier owner left open may be claimed only when it is known.
        workers.until_loaded().await;
        if shared.is_stopping() {
            return Err(Error::new(ErrorKind::Stopped, "the server is being stopped"));
        }
        let (mail_in, mail) = mpsc::channel(MAIL_MAX);
        let Admitted { worker, number, kept } = workers.admit(shared, &introduction, mail_in)?;
        tracing::info!(
            worker = worker.name(),
            sdk = introduction.sdk,
            slots = introduction.slots,
            kept = kept.len(),
            "worker connected"
        );
        let desk = Desk { shared: shared.clone(), worker: worker.clone(), number };
        workers.offer_waiting(shared, &worker);
        Ok(Connection { mail, kept, desk })
    }
}

fn check(introduction: &Introduction) -> Result<(), Error> {
    let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
    for (what, name) in [("name", &introduction.name), ("sdk", &introduction.sdk)] {
        check_words(what, name)?;
        let bytes = name.len();
        if !(1..=NAME_BYTES_MAX).contains(&bytes) {
            return invalid(format!(
                "`{what}` has {bytes} bytes; it can have 1 to {NAME_BYTES_MAX}"
            ));
        }
    }
    let (slots, max) = (introduction.slots, SLOTS_MAX);
    if !(1..=max).contains(&slots) {
        return invalid(format!("`slots` is {slots}; it can be 1 to {max}"));
    }
    let (workflows, max) = (introduction.workflows.len(), WORKFLOWS_MAX);
    if !(1..=max).contains(&workflows) {
        return invalid(format!("the worker has {workflows} workflows; it can have 1 to {max}"));
    }
    for ((name, _), types) in &introduction.event_types {
        let (count, max) = (types.len(), EVENT_TYPES_MAX);
        if count > max {
            return invalid(format!(
                "the workflow {name:?} names {count} types of events; it can name {max}"
            ));
        }
        if let Some(defect) = types.iter().find_map(|t| name_defect("type of the event", t)) {
            return invalid(defect);
        }
    }
    for (name, version) in &introduction.workflows {
        let defect =
            name_defect("workflow name", name).or_else(|| name_defect("workflow version", version));
        if let Some(defect) = defect {
            return invalid(defect);
        }
    }
    Ok(())
}

/// A worker that was taken on.
struct Admitted {
    worker: Arc<Worker>,
    /// The number of its connection.
    number: u64,
    kept: Vec<(RunNo, u64)>,
}

impl Workers {
    /// Finds the worker, or makes it, and gives it back what it held.
    fn admit(
        &self,
        shared: &Arc<Shared>,
        introduction: &Introduction,
        mail: mpsc::Sender<ToWorker>,
    ) -> Result<Admitted, Error> {
        let pool = &mut *self.lock();
        let known = pool.workers.get(&introduction.session).filter(|worker| !worker.is_gone());
        let worker = match known {
            Some(worker) => worker.clone(),
            None if pool.workers.len() >= WORKERS_MAX => {
                let message = format!("there are {WORKERS_MAX} workers, and no room for another");
                return Err(Error::new(ErrorKind::Full, message));
            }
            None => {
                pool.joined += 1;
                let worker = Arc::new(Worker::new(pool.joined, introduction));
                pool.workers.insert(introduction.session, worker.clone());
                pool.look_again(shared, &worker);
                shared.runtime.spawn(watch_lease(shared.clone(), worker.clone()));
                worker
            }
        };
        worker.renew();
        let number = worker.connect(mail);
        let mut kept = Vec::new();
        for (run, fence) in worker.leases() {
            let held = introduction.held.iter().find(|held| (held.run, held.fence) == (run, fence));
            let offer = match held {
                Some(held) => {
                    kept.push((run, fence));
                    Offer::Resumed { inbox: held.inbox }
                }
                None => Offer::Forgotten,
            };
            let Some(offers) = worker.seat_of(run, fence) else { continue };
            shared.runtime.spawn(async move { offers.send(offer).await });
        }
        for held in &introduction.held {
            kept.extend(pool.adopt(shared, &worker, held));
        }
        Ok(Admitted { worker, number, kept })
    }
}

impl super::Pool {
    /// A run that was leased by an earlier owner of the store, and is still held by its worker.
    fn adopt(
        &mut self,
        shared: &Arc<Shared>,
        worker: &Arc<Worker>,
        held: &Held,
    ) -> Option<(RunNo, u64)> {
        let orphan = self.orphans.get(&held.run)?;
        // The answer to its last append may have been lost.
        let is_near = held.seq == orphan.seq || held.seq + 1 == orphan.seq;
        if !is_near || !worker.knows(&orphan.code) {
            return None;
        }
        let orphan = self.orphans.remove(&held.run)?;
        let fence = self.next_fence(shared);
        let offers = worker.seat_anyway(held.run, fence);
        let (shared, worker, run) = (shared.clone(), worker.clone(), held.run);
        let grant = Grant { shared, worker, run, fence, offers };
        match orphan.claim.send(grant) {
            Ok(()) => Some((run, fence)),
            Err(unclaimed) => {
                // Not here: it looks for others when it is dropped.
                let runtime = unclaimed.shared.runtime.clone();
                runtime.spawn(async move { drop(unclaimed) });
                None
            }
        }
    }
}

/// Ends the leases of a worker that is not heard of any more.
async fn watch_lease(shared: Arc<Shared>, worker: Arc<Worker>) {
    let workers = shared.workers.as_ref().expect("there is one of them");
    let mut heard = worker.heard.subscribe();
    loop {
        heard.mark_unchanged();
        tokio::select! {
            biased;
            _ = heard.changed() => {}
            () = worker.until_gone() => return,
            () = shared.clock.sleep(workers.lease) => break,
        }
    }
    worker.gone.send_replace(true);
    workers.remove(&worker);
    if !shared.is_stopping() {
        let (name, leases) = (worker.name(), worker.leases().len());
        tracing::warn!(
            worker = name,
            leases,
            "worker not heard of any more; its leases have ended"
        );
    }
}

impl Desk {
    /// Renews all leases of the worker.
    pub fn ping(&self) {
        if self.is_current() {
            self.worker.renew();
        }
    }

    /// Whether the worker has not come with another connection since, and its leases have not ended.
    pub fn is_current(&self) -> bool {
        self.worker.is_connected_by(self.number) && !self.worker.is_gone()
    }

    /// Completes when the connection is of no use any more.
    pub async fn until_over(&self) -> Farewell {
        tokio::select! {
            () = self.worker.until_gone() => Farewell::NotHeardOf,
            () = self.worker.until_connected_anew(self.number) => Farewell::ConnectedAnew,
            () = self.shared.has_stopped() => Farewell::Stopped,
        }
    }

    /// Offers a row. The answer comes by mail; at once if the worker has not got the run under this fence.
    pub async fn append(&self, row: OfferedRow) {
        let (run, fence, append_id) = (row.run, row.fence, row.append_id.clone());
        let lost = match self.worker.seat_of(run, fence) {
            Some(offers) => offers.send(Offer::Row(row)).await.is_err(),
            None => true,
        };
        if lost {
            let why = format!("the run is not leased to this worker under fence {fence}");
            let answer = super::Written::Lost(why);
            self.worker.send(ToWorker::Answer { run, append_id, answer }).await;
        }
    }

    /// Gives a run back; with `trouble` if it cannot be worked on at all. One that the worker has not got is passed
    /// over.
    pub async fn release(&self, run: RunNo, fence: u64, trouble: Option<String>) {
        if let Some(offers) = self.worker.seat_of(run, fence) {
            // Somebody else was faster.
            let _ = offers.send(Offer::Release { trouble }).await;
        }
    }

    /// The worker wants no more runs.
    pub fn drain(&self) {
        self.worker.drain();
    }
}

impl Engine {
    /// Rows of the journal of a run that a worker has under this fence.
    ///
    /// # Errors
    /// `Refused` if it has not; trouble of the store.
    pub async fn journal_for_worker(
        &self,
        session: &super::SessionId,
        (run, fence): (RunNo, u64),
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<Bytes>, Error> {
        let has_it = self.shared.workers.as_ref().is_some_and(|workers| {
            let pool = workers.lock();
            pool.workers.get(session).is_some_and(|worker| worker.seat_of(run, fence).is_some())
        });
        if !has_it {
            let message = format!("run {} is not leased to this worker under fence {fence}", run.0);
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let limit = limit.clamp(1, JOURNAL_PAGE_MAX);
        Ok(self.shared.store.journal(run, after_seq, limit).await?)
    }
}
