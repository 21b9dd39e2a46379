//! The runs that this process has loaded, and who waits for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use backstitch_core::inbox::{InboxKind, InboxRow};
use backstitch_core::run::{Phase, Published, Run};
use backstitch_core::session::AttemptEnd;
use backstitch_core::status::Status;
use backstitch_store::RunNo;
use tokio::sync::{Notify, mpsc, watch};

use crate::clock::Clock;
use crate::program::ExecutionFacts;

/// What a driver is told.
#[derive(Debug)]
pub(crate) enum Mail {
    /// A body or an undo ended. In a box, so that a mailbox is small.
    Ended(Box<AttemptEnded>),
    /// Something new stands in the inbox: this, or something.
    Inbox(Option<Box<InboxRow>>),
    /// The run is called.
    Called,
    /// Something may be due, or the run before this one is closed.
    Look,
    /// The code was woken by something that the engine does not know.
    Foreign,
    /// Stop in good order.
    Stop,
    /// The run is not ours any more: drop everything, and write nothing.
    Lost,
}

impl Mail {
    /// Whether a closed run goes on by it.
    fn opens_again(&self) -> bool {
        match self {
            Mail::Inbox(Some(row)) => row.changed && row.kind == InboxKind::Rollback,
            Mail::Inbox(None)
            | Mail::Called
            | Mail::Ended(_)
            | Mail::Look
            | Mail::Foreign
            | Mail::Stop
            | Mail::Lost => false,
        }
    }
}

/// What was attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempted {
    Step,
    Undo,
}

/// The end of one attempt.
#[derive(Clone, Debug)]
pub(crate) struct AttemptEnded {
    pub what: Attempted,
    pub ord: u32,
    pub attempt: u32,
    pub end: AttemptEnd,
    pub at_us: i64,
}

/// What whoever waits for a run is shown of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The run, when it is closed, or stuck until a person comes.
    pub settled: Option<Arc<Run>>,
    /// What its code has published.
    pub published: Arc<BTreeMap<String, Published>>,
    /// The row of the inbox before which it is not shown as stuck: whoever knows that it was
    /// accepted must not be told of what was before.
    pub ahead: u64,
}

/// What callers may know of a driven run without reading its journal.
#[derive(Debug, Default)]
pub(crate) struct Gist {
    /// The execution, once its driver has read it.
    pub execution: OnceLock<Arc<ExecutionFacts>>,
    /// The last row of the inbox that is read.
    pub inbox_read: AtomicU64,
    /// Rows of the inbox that are read and hold no event that is still kept.
    pub inbox_done: AtomicU64,
    /// What the events that are kept say, in bytes.
    pub kept_bytes: AtomicU64,
    /// Whether the run goes forward, and so takes events.
    pub takes_events: AtomicBool,
}

/// How to reach the driver of a run.
#[derive(Clone)]
pub(crate) struct LiveRun {
    pub mail: mpsc::UnboundedSender<Mail>,
    pub seen: watch::Sender<Seen>,
    pub gist: Arc<Gist>,
}

impl LiveRun {
    /// What the run looks like to its waiters changes when it gets stuck, when that is over, and
    /// when it publishes. `unread` is the last row of its inbox.
    pub fn tell_waiters(&self, run: &Run, unread: u64) {
        self.tell_gist(run);
        let stuck = run.status(true) == Status::Stuck;
        self.seen.send_if_modified(|seen| {
            let seqs = |published: &BTreeMap<String, Published>| {
                published.values().map(|value| value.seq).collect::<Vec<_>>()
            };
            let published = !(run.published.is_empty() && seen.published.is_empty())
                && seqs(&seen.published) != seqs(&run.published);
            if published {
                seen.published = Arc::new(run.published.clone());
            }
            // Not while something stands unread that may end it.
            let stuck = stuck && run.inbox_read >= unread.max(seen.ahead);
            let settled = stuck || seen.settled.is_some();
            if settled {
                seen.settled = stuck.then(|| Arc::new(run.clone()));
            }
            published || settled
        });
    }

    pub fn tell_gist(&self, run: &Run) {
        let gist = &self.gist;
        let done = run.inbox_read.saturating_sub(run.kept.len() as u64);
        // Before `inbox_read`, which is read before it: who finds it true has not counted a cancel as seen.
        let forward = matches!(run.phase, Phase::Forward);
        gist.takes_events.store(forward, Ordering::SeqCst);
        gist.inbox_read.store(run.inbox_read, Ordering::SeqCst);
        gist.inbox_done.store(done, Ordering::SeqCst);
        gist.kept_bytes.store(run.kept.bytes(), Ordering::SeqCst);
    }
}

/// A run that somebody here is concerned with.
enum Place {
    /// It has a driver.
    Driven(LiveRun),
    /// It has none at the moment, and somebody waits for what becomes of it.
    Waited(watch::Sender<Seen>),
}

/// All runs that this process has loaded, or that somebody waits for.
#[derive(Default)]
pub(crate) struct LiveRuns(Mutex<Places>);

#[derive(Default)]
struct Places {
    /// In the order of their numbers they are told to stop: a simulation goes the same way again.
    runs: BTreeMap<RunNo, Place>,
    /// The engine was stopped: nobody takes a seat any more.
    stopped: bool,
}

/// What becomes of somebody who wants to drive a run.
pub(crate) enum Seating {
    /// He does.
    Seated(Seat),
    /// The run has a driver: it never has two.
    Taken,
    /// The engine was stopped.
    Stopped,
}

/// The two ends of a run's mailbox, and what its waiters see. Whoever has it drives the run.
pub(crate) struct Seat {
    pub mail: mpsc::UnboundedReceiver<Mail>,
    pub live: LiveRun,
}

/// How a driver leaves its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It is over, or for another process.
    ForGood,
    /// Until something happens; waiters go on waiting.
    Parked,
}

impl LiveRuns {
    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().expect("no code runs under this lock")
    }

    /// The seat of the driver of a run.
    pub fn take_seat(&self, run: RunNo) -> Seating {
        let places = &mut *self.lock();
        if places.stopped {
            return Seating::Stopped;
        }
        let seen = match places.runs.get(&run) {
            Some(Place::Driven(_)) => return Seating::Taken,
            Some(Place::Waited(seen)) => seen.clone(),
            None => watch::Sender::default(),
        };
        let (mail_in, mail) = mpsc::unbounded_channel();
        let live = LiveRun { mail: mail_in, seen, gist: Arc::default() };
        places.runs.insert(run, Place::Driven(live.clone()));
        Seating::Seated(Seat { mail, live })
    }

    /// The driver leaves its run.
    pub fn leave(&self, run: RunNo, leaving: Leaving) {
        let runs = &mut self.lock().runs;
        let Some(Place::Driven(live)) = runs.remove(&run) else { return };
        if leaving == Leaving::Parked && live.seen.receiver_count() > 0 {
            runs.insert(run, Place::Waited(live.seen));
        }
    }

    /// The driver of a run that is closed leaves it, and tells its waiters how it ended; not if
    /// something is in its mailbox that opens the run again: whoever sent that is not to be told of
    /// the old end. Gives what is in the mailbox.
    pub fn leave_closed(
        &self,
        run: RunNo,
        ended: Arc<Run>,
        mailbox: &mut mpsc::UnboundedReceiver<Mail>,
    ) -> Vec<Mail> {
        let runs = &mut self.lock().runs;
        let mail: Vec<Mail> = std::iter::from_fn(|| mailbox.try_recv().ok()).collect();
        let Some(Place::Driven(live)) = runs.remove(&run) else { return mail };
        if !mail.iter().any(Mail::opens_again) {
            live.seen.send_modify(|seen| seen.settled = Some(ended));
        } else if live.seen.receiver_count() > 0 {
            runs.insert(run, Place::Waited(live.seen));
        }
        mail
    }

    /// What becomes of a run, and whether it has a driver now.
    pub fn watch(&self, run: RunNo) -> (watch::Receiver<Seen>, Driven) {
        let runs = &mut self.lock().runs;
        match runs.entry(run).or_insert_with(|| Place::Waited(watch::Sender::default())) {
            Place::Driven(live) => (live.seen.subscribe(), Driven::Yes),
            Place::Waited(seen) => (seen.subscribe(), Driven::No),
        }
    }

    /// Row `number` of its inbox has a run that is stuck go on.
    pub fn unstick(&self, run: RunNo, number: u64) {
        let runs = &self.lock().runs;
        let seen = match runs.get(&run) {
            Some(Place::Driven(live)) => &live.seen,
            Some(Place::Waited(seen)) => seen,
            None => return,
        };
        seen.send_modify(|seen| {
            seen.ahead = seen.ahead.max(number);
            seen.settled
                .take_if(|run| run.inbox_read < number && run.status(true) == Status::Stuck);
        });
    }

    /// Somebody has stopped waiting for a run.
    pub fn unwatch(&self, run: RunNo) {
        let runs = &mut self.lock().runs;
        if let Some(Place::Waited(seen)) = runs.get(&run)
            && seen.receiver_count() == 0
        {
            runs.remove(&run);
        }
    }

    /// What is known of a run that has a driver.
    pub fn gist(&self, run: RunNo) -> Option<Arc<Gist>> {
        match self.lock().runs.get(&run) {
            Some(Place::Driven(live)) => Some(live.gist.clone()),
            Some(Place::Waited(_)) | None => None,
        }
    }

    /// Tells the driver of a run. Gives the mail back if there is none.
    pub fn tell(&self, run: RunNo, mail: Mail) -> Result<(), Mail> {
        match self.lock().runs.get(&run) {
            Some(Place::Driven(live)) => live.mail.send(mail).map_err(|unsent| unsent.0),
            Some(Place::Waited(_)) | None => Err(mail),
        }
    }

    /// Tells every driver to stop; gives the mailboxes, each of which closes when its driver ends.
    /// Nobody waits any longer for what has no driver.
    pub fn stop_all(&self) -> Vec<mpsc::UnboundedSender<Mail>> {
        let places = &mut *self.lock();
        places.stopped = true;
        let runs = &mut places.runs;
        runs.retain(|_, place| matches!(place, Place::Driven(_)));
        let mails: Vec<_> = runs
            .values()
            .filter_map(|place| match place {
                Place::Driven(live) => Some(live.mail.clone()),
                Place::Waited(_) => None,
            })
            .collect();
        for mail in &mails {
            let _ = mail.send(Mail::Stop);
        }
        mails
    }
}

/// Whether a run has a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driven {
    Yes,
    No,
}

/// Wakes drivers at instants of the wall clock, one for each run; one task for all of them.
#[derive(Default)]
pub(crate) struct Alarm {
    set: Mutex<Set>,
    earlier: Notify,
}

#[derive(Default)]
struct Set {
    by_time: BTreeSet<(i64, RunNo)>,
    by_run: BTreeMap<RunNo, i64>,
}

impl Set {
    fn clear(&mut self, run: RunNo) {
        if let Some(at_us) = self.by_run.remove(&run) {
            self.by_time.remove(&(at_us, run));
        }
    }
}

impl Alarm {
    fn lock(&self) -> MutexGuard<'_, Set> {
        self.set.lock().expect("no code runs under this lock")
    }

    /// Has the run looked at at `at_us`, and not when it was said before.
    pub fn set(&self, at_us: i64, run: RunNo) {
        let mut set = self.lock();
        set.clear(run);
        set.by_run.insert(run, at_us);
        set.by_time.insert((at_us, run));
        let first = set.by_time.first() == Some(&(at_us, run));
        drop(set);
        if first {
            self.earlier.notify_one();
        }
    }

    pub fn clear(&self, run: RunNo) {
        self.lock().clear(run);
    }

    /// Gives the runs that are due, for ever; waits as long as there is none.
    pub async fn due(&self, clock: &dyn Clock) -> Vec<RunNo> {
        loop {
            let first = self.lock().by_time.first().copied();
            match first {
                None => self.earlier.notified().await,
                Some((at_us, _)) => {
                    tokio::select! {
                        () = clock.sleep_until(at_us) => {}
                        () = self.earlier.notified() => continue,
                    }
                }
            }
            let due = self.take_due(clock.now_us());
            if !due.is_empty() {
                return due;
            }
        }
    }

    fn take_due(&self, now_us: i64) -> Vec<RunNo> {
        let mut set = self.lock();
        let later = set.by_time.split_off(&(now_us + 1, RunNo(i64::MIN)));
        let due = std::mem::replace(&mut set.by_time, later);
        due.into_iter()
            .map(|(_, run)| {
                set.by_run.remove(&run);
                run
            })
            .collect()
    }
}
