//! The one thread that writes, and what it does with a batch.
//!
//! It takes everything that waits, applies it in one transaction, syncs once, and only then
//! answers, in order. While it syncs the next batch gathers by itself, so nothing is ever delayed
//! on purpose.
//!
//! When nothing waits it looks now and then whether others have written.
//!
//! **Invariant:** the lock outlives the connections: it is given up last, whatever happened.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::commit::Committer;
use super::lock::Lock;
use super::open;
use super::readers::ReaderThreads;
use crate::role::Role;
use crate::{Answer, Change, StoreError};

/// Most changes in one transaction. A sync takes as long for one as for hundreds; beyond that a
/// batch only makes the first one in it wait.
const BATCH_CHANGES_MAX: usize = 1024;

/// Most payload in one transaction, in bytes: what the page cache of the writer holds.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a row that is purged counts for, which does not say how large it is.
const ROW_BYTES: usize = 512;

/// How often the writer looks for what others have written while nobody asks it for anything.
const LOOK_AROUND: Duration = Duration::from_millis(20);

/// How often a file that could not be opened again is tried while nobody asks, in milliseconds.
const RETRY_MS: u64 = 200;

/// How long the writer looks for the next change before it goes to sleep. Waking a thread takes
/// about as long; a lone caller that goes on at once is answered a tenth sooner.
const LOOK: Duration = Duration::from_micros(30);

/// A change that comes so soon, the time to wake up included, would have been seen by looking.
const SOON: Duration = Duration::from_micros(100);

/// A change and who waits for the answer.
pub(super) struct Offer {
    pub change: Change,
    pub answer: oneshot::Sender<Result<Answer, StoreError>>,
}

impl Offer {
    pub(super) fn answer(self, answer: Result<Answer, StoreError>) {
        // Dropping the future does not take an offer back, so nobody may be waiting.
        let _ = self.answer.send(answer);
    }

    fn payload_bytes(&self) -> usize {
        match &self.change {
            Change::Start(start) => start.first.events.len(),
            Change::Append(append) => append.draft.events.len(),
            Change::Inbox(put) => put.payload.len(),
            Change::Heard(calls) => size_of_val(&calls[..]),
            Change::Delete(_) => 0,
            // What is freed is written as well; so many rows of a size that is usual.
            Change::Purge { rows } => rows.saturating_mul(ROW_BYTES),
        }
    }
}

/// What the store asks of its writer.
pub(super) enum Job {
    Offer(Offer),
    Close(oneshot::Sender<()>),
}

/// Everything that the thread owns. Fields are dropped in order: the lock last.
pub(super) struct Writer {
    committer: Committer,
    readers: ReaderThreads,
    path: Arc<Path>,
    idle: Idle,
    /// The owner's; a guest has none.
    lock: Option<Lock>,
}

/// What the writer does when nothing waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idle {
    /// Looks for a while: the last change came soon after its predecessor.
    Look,
    /// Goes to sleep at once.
    Sleep,
}

/// Who is told that the store is closed; nobody if its handle was dropped.
type Closing = Option<oneshot::Sender<()>>;

impl Writer {
    pub(super) fn new(
        committer: Committer,
        readers: ReaderThreads,
        path: Arc<Path>,
        lock: Option<Lock>,
    ) -> Writer {
        Writer { committer, readers, path, idle: Idle::Sleep, lock }
    }

    /// Works until the store is closed, or its handle is dropped and all offers are answered.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) -> Closing {
        let closing = loop {
            let mut batch = Vec::new();
            let end = match self.next(jobs) {
                Next::Job(Job::Offer(offer)) => {
                    batch.push(offer);
                    gather(jobs, &mut batch)
                }
                Next::Job(Job::Close(done)) => Some(Some(done)),
                Next::LookAround => {
                    self.committer.look_around();
                    None
                }
                Next::Retry => {
                    let _ = self.committer.recover();
                    None
                }
                Next::Gone => Some(None),
            };
            if !batch.is_empty() {
                self.committer.work(batch);
            }
            if let Some(closing) = end {
                break closing;
            }
        };
        self.shut_down();
        closing
    }

    fn next(&mut self, jobs: &Receiver<Job>) -> Next {
        if self.committer.is_sound() {
            let since = Instant::now();
            if self.idle == Idle::Look
                && let Some(job) = look(jobs, since)
            {
                return Next::Job(job);
            }
            let next = wait(jobs, LOOK_AROUND, Next::LookAround);
            self.idle = if since.elapsed() < SOON { Idle::Look } else { Idle::Sleep };
            return next;
        }
        wait(jobs, Duration::from_millis(RETRY_MS), Next::Retry)
    }

    fn shut_down(self) {
        let Writer { committer, readers, path, idle: _, lock } = self;
        readers.end();
        let role = committer.role();
        if let Some(connection) = committer.finish() {
            match role {
                Role::Owner { .. } => empty_log(&connection, &path),
                // It would hold up the owner, who does it in time.
                Role::Guest => {}
            }
        }
        drop(lock);
    }
}

fn empty_log(connection: &Connection, path: &Path) {
    if let Err(why) = open::checkpoint(connection) {
        // Nothing is lost: whoever opens the file next reads the log as well.
        tracing::warn!(path = %path.display(), %why, "the write-ahead log was left in place");
    }
}

fn wait(jobs: &Receiver<Job>, at_most: Duration, then: Next) -> Next {
    match jobs.recv_timeout(at_most) {
        Ok(job) => Next::Job(job),
        Err(RecvTimeoutError::Timeout) => then,
        Err(RecvTimeoutError::Disconnected) => Next::Gone,
    }
}

fn look(jobs: &Receiver<Job>, since: Instant) -> Option<Job> {
    loop {
        if let Ok(job) = jobs.try_recv() {
            return Some(job);
        }
        if since.elapsed() >= LOOK {
            return None;
        }
        std::hint::spin_loop();
    }
}

enum Next {
    Job(Job),
    /// Nobody asked for a while.
    LookAround,
    /// Nobody asked, and the file waits to be opened again.
    Retry,
    /// The handle was dropped.
    Gone,
}

/// Takes what waits, up to the bounds of a batch. Says if the store is to be closed after it.
fn gather(jobs: &Receiver<Job>, batch: &mut Vec<Offer>) -> Option<Closing> {
    let mut payload_bytes = batch.iter().map(Offer::payload_bytes).sum::<usize>();
    while batch.len() < BATCH_CHANGES_MAX && payload_bytes < BATCH_BYTES_MAX {
        match jobs.try_recv() {
            Ok(Job::Offer(offer)) => {
                payload_bytes += offer.payload_bytes();
                batch.push(offer);
            }
            Ok(Job::Close(done)) => return Some(Some(done)),
            Err(TryRecvError::Empty) => break,
            Err(TryRecvError::Disconnected) => return Some(None),
        }
    }
    None
}
