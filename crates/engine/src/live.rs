//! The runs that this process has loaded, and who waits for them.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use backstitch_core::run::Run;
use backstitch_core::session::AttemptEnd;
use backstitch_store::RunNo;
use tokio::sync::{Notify, mpsc, watch};

use crate::clock::Clock;

/// What a driver is told.
#[derive(Debug)]
pub(crate) enum Mail {
    /// A body or an undo ended. In a box, so that a mailbox is small.
    Ended(Box<AttemptEnded>),
    /// Something new may stand in the inbox.
    Inbox,
    /// Something may be due, or the run before this one is closed.
    Look,
    /// The code was woken by something that the engine does not know.
    Foreign,
    /// Stop in good order.
    Stop,
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

/// A run that settled: closed, or stuck until a person comes.
pub(crate) type Settled = Option<Arc<Run>>;

/// How to reach the driver of a run.
#[derive(Clone)]
pub(crate) struct LiveRun {
    pub mail: mpsc::UnboundedSender<Mail>,
    pub settled: watch::Receiver<Settled>,
}

/// All loaded runs.
#[derive(Default)]
pub(crate) struct LiveRuns(Mutex<HashMap<RunNo, LiveRun>>);

impl LiveRuns {
    fn lock(&self) -> MutexGuard<'_, HashMap<RunNo, LiveRun>> {
        self.0.lock().expect("no code runs under this lock")
    }

    pub fn get(&self, run: RunNo) -> Option<LiveRun> {
        self.lock().get(&run).cloned()
    }

    /// Adds a run. False, and nothing is changed, if it is there.
    pub fn insert_new(&self, run: RunNo, live: LiveRun) -> bool {
        match self.lock().entry(run) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(live);
                true
            }
        }
    }

    pub fn remove(&self, run: RunNo) {
        self.lock().remove(&run);
    }

    pub fn tell(&self, run: RunNo, mail: Mail) {
        if let Some(live) = self.lock().get(&run) {
            // A driver that is gone has nothing left to be told.
            let _ = live.mail.send(mail);
        }
    }

    /// Tells every driver to stop; gives the mailboxes, each of which closes when its driver ends.
    pub fn stop_all(&self) -> Vec<mpsc::UnboundedSender<Mail>> {
        let runs = self.lock();
        let mails: Vec<_> = runs.values().map(|live| live.mail.clone()).collect();
        for mail in &mails {
            let _ = mail.send(Mail::Stop);
        }
        mails
    }
}

/// Wakes drivers at instants of the wall clock; one task for all of them.
#[derive(Default)]
pub(crate) struct Alarm {
    due: Mutex<BTreeSet<(i64, RunNo)>>,
    earlier: Notify,
}

impl Alarm {
    /// Has the driver of `run` look at `at_us`.
    pub fn set(&self, at_us: i64, run: RunNo) {
        let mut due = self.due.lock().expect("no code runs under this lock");
        due.insert((at_us, run));
        let first = due.first() == Some(&(at_us, run));
        drop(due);
        if first {
            self.earlier.notify_one();
        }
    }

    pub fn clear(&self, at_us: i64, run: RunNo) {
        self.due.lock().expect("no code runs under this lock").remove(&(at_us, run));
    }

    /// Runs for ever.
    pub async fn run(self: Arc<Alarm>, clock: Arc<dyn Clock>, live: Arc<LiveRuns>) {
        loop {
            let first = {
                let due = self.due.lock().expect("no code runs under this lock");
                due.first().copied()
            };
            match first {
                None => self.earlier.notified().await,
                Some((at_us, _)) => {
                    tokio::select! {
                        () = clock.sleep_until(at_us) => {}
                        () = self.earlier.notified() => continue,
                    }
                }
            }
            for run in self.take_due(clock.now_us()) {
                live.tell(run, Mail::Look);
            }
        }
    }

    fn take_due(&self, now_us: i64) -> Vec<RunNo> {
        let mut due = self.due.lock().expect("no code runs under this lock");
        let later = due.split_off(&(now_us + 1, RunNo(i64::MIN)));
        std::mem::replace(&mut *due, later).into_iter().map(|(_, run)| run).collect()
    }
}
