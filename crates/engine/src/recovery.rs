//! Taking over the runs that an earlier owner left open.
//!
//! **Invariant:** one bad run never stops another: each is loaded by itself, and one that cannot be
//! read is left alone and listed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use backstitch_core::row::{Row, RowError};
use backstitch_store::{ErrorKind as StoreErrorKind, RunInfo, RunNo};
use tokio::sync::{Notify, Semaphore, oneshot};

use crate::calls;
use crate::driver::{Driver, Origin, unreadable};
use crate::engine::Shared;
use crate::error::{Error, ErrorKind};
use crate::live::{Leaving, Mail, Seat, Seating};

/// Journal rows read at a time.
const JOURNAL_PAGE: usize = 1_000;
/// Open runs listed at a time.
const RUNS_PAGE: usize = 500;

/// Reads a whole journal.
pub(crate) async fn read_journal(shared: &Shared, run: RunNo) -> Result<Vec<Row>, Error> {
    let mut rows: Vec<Row> = Vec::new();
    loop {
        let after = rows.last().map_or(0, |row| row.header.seq);
        let page = read_page(shared, run, after, JOURNAL_PAGE).await?;
        let last = page.len() < JOURNAL_PAGE;
        rows.extend(page);
        if last {
            return Ok(rows);
        }
    }
}

/// Up to `limit` rows of a journal after `after`.
pub(crate) async fn read_page(
    shared: &Shared,
    run: RunNo,
    after: u64,
    limit: usize,
) -> Result<Vec<Row>, Error> {
    let page = shared.store.journal(run, after, limit).await?;
    let mut rows = Vec::with_capacity(page.len());
    for bytes in page {
        match Row::decode(bytes) {
            Ok(row) => rows.push(row),
            Err(error) => {
                let info = shared.info(run).await?;
                return Err(undecodable(&info, after + rows.len() as u64 + 1, &error));
            }
        }
    }
    Ok(rows)
}

fn undecodable(info: &RunInfo, seq: u64, error: &RowError) -> Error {
    if error.is_too_new() {
        let message = format!(
            "row {seq} of the journal of execution {:?} is left alone (JournalTooNew): {error}",
            info.new.id
        );
        return Error::new(ErrorKind::Unreadable, message);
    }
    unreadable(info, &format!("row {seq}: {error}"))
}

/// Lists the open runs, and drives each in a task of its own.
pub(crate) async fn run(shared: &Arc<Shared>) -> Result<(), Error> {
    let mut after = RunNo(0);
    let mut found = Vec::new();
    loop {
        let page = shared.store.open_runs(after, RUNS_PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.run;
        found.extend(page);
    }
    if found.is_empty() {
        shared.all_loaded();
    } else {
        tracing::info!(runs = found.len(), "taking over open executions");
    }
    let all_loaded = Arc::new(AllLoaded::of(found.len(), Occasion::Opening));
    for info in found {
        let Seating::Seated(seat) = shared.live.take_seat(info.run) else {
            unreachable!("nothing was started yet")
        };
        let taken_over = take_over(shared.clone(), info, seat, all_loaded.clone());
        shared.runtime.spawn(taken_over);
    }
    Ok(())
}

/// Drives one run more, to which `mail` could not be told: one that was parked, is called, or has no
/// driver for another reason. It is looked up first, and left alone if it is not there any more, or
/// closed and not called.
pub(crate) fn fetch(shared: &Arc<Shared>, run: RunNo, mut mail: Mail) {
    if shared.is_left_alone(run) {
        return;
    }
    let mut seat = loop {
        match shared.live.take_seat(run) {
            Seating::Seated(seat) => break seat,
            Seating::Stopped => return,
            // Somebody else was faster; he may be leaving again.
            Seating::Taken => match shared.live.tell(run, mail) {
                Ok(()) => return,
                Err(untold) => mail = untold,
            },
        }
    };
    let is_called = matches!(mail, Mail::Called);
    // The driver reads its inbox when it begins; of a call it has to hear.
    let _ = seat.live.mail.send(mail);
    let shared = shared.clone();
    shared.runtime.clone().spawn(async move {
        match find(&shared, run).await {
            Some(info) if info.closed_at_us.is_none() || is_called => {
                take_over(shared, info, seat, Arc::new(AllLoaded::of(1, Occasion::Fetching))).await;
            }
            Some(_) | None => {
                shared.live.leave(run, Leaving::ForGood);
                // The first one brought us here; what came meanwhile is for the next one who looks.
                let _ = seat.mail.try_recv();
                while let Ok(mail) = seat.mail.try_recv() {
                    calls::forward(&shared, run, mail);
                }
                if let Some(workers) = &shared.workers {
                    workers.offer_again(&shared);
                }
            }
        }
    });
}

/// Looks a run up, however long that takes. `None` if there is none, if the store cannot say, or if
/// the engine is stopped.
async fn find(shared: &Shared, run: RunNo) -> Option<RunInfo> {
    loop {
        match shared.store.run(run).await {
            Ok(info) => return info,
            Err(_) if shared.is_stopping() => return None,
            Err(error) if error.kind() == StoreErrorKind::Corrupt => {
                tracing::error!(run = run.0, %error, "run left alone");
                shared.leave_alone(run, error.into());
                return None;
            }
            Err(error) => {
                tracing::warn!(run = run.0, %error, "run not read; trying again");
                shared.clock.sleep(shared.options.unavailable_retry).await;
            }
        }
    }
}

/// Where those who take runs over wait until the last of them has loaded its own. They go on in the
/// order in which they came: tokio's barrier lets them go in a random one, and a simulation has to go
/// the same way again.
struct AllLoaded {
    left: AtomicUsize,
    told: Notify,
    occasion: Occasion,
}

/// Why runs are taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// The store was opened: an earlier owner has left them.
    Opening,
    /// Something has happened to a run that was parked.
    Fetching,
}

impl AllLoaded {
    fn of(runs: usize, occasion: Occasion) -> AllLoaded {
        AllLoaded { left: AtomicUsize::new(runs), told: Notify::new(), occasion }
    }

    async fn wait(&self, shared: &Shared) {
        let told = self.told.notified();
        tokio::pin!(told);
        // Before it is counted: the last one tells only those who listen.
        told.as_mut().enable();
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            if self.occasion == Occasion::Opening {
                shared.all_loaded();
            }
            self.told.notify_waiters();
        } else {
            told.await;
        }
    }
}

/// How long a run that was in flight at two crashes in a row has a place of its own. What takes the process down
/// does so at once, mostly; one that has a long body must not keep all others waiting for its end.
const TRIAL: Duration = Duration::from_secs(30);

/// After so many that the process has survived there is room for one more at a time.
const SURVIVED_FOR_ONE_MORE: u32 = 4;

/// Where runs wait that were in flight at two crashes in a row. They are tried one at a time, so that the one that
/// kills the process is found; more at a time the longer it lives, so that a thousand others do not wait for hours.
pub(crate) struct Suspects {
    places: Arc<Semaphore>,
    survived: AtomicU32,
}

/// The turn of such a run. It is over when this is dropped, or when the trial has lasted long enough.
pub(crate) struct Turn {
    _over: oneshot::Sender<()>,
}

impl Default for Suspects {
    fn default() -> Suspects {
        Suspects { places: Arc::new(Semaphore::new(1)), survived: AtomicU32::new(0) }
    }
}

impl Suspects {
    async fn turn(self: Arc<Self>, shared: &Arc<Shared>) -> Turn {
        let place = self.places.clone().acquire_owned().await;
        let place = place.expect("the semaphore is never closed");
        let (over, is_over) = oneshot::channel();
        let clock = shared.clock.clone();
        shared.runtime.spawn(async move {
            let more = tokio::select! {
                _ = is_over => {
                    let survived = self.survived.fetch_add(1, Ordering::Relaxed) + 1;
                    survived.is_multiple_of(SURVIVED_FOR_ONE_MORE)
                }
                () = clock.chore(TRIAL) => true,
            };
            self.places.add_permits(usize::from(more));
            drop(place);
        });
        Turn { _over: over }
    }
}

async fn take_over(shared: Arc<Shared>, info: RunInfo, seat: Seat, all_loaded: Arc<AllLoaded>) {
    let rows = loop {
        match read_journal(&shared, info.run).await {
            Ok(rows) => break Ok(rows),
            Err(error)
                if matches!(error.kind(), ErrorKind::Store(_))
                    && !shared.is_stopping()
                    && shared.store.holds(info.run) =>
            {
                if error.kind() == ErrorKind::Store(StoreErrorKind::Corrupt) {
                    break Err(error);
                }
                tracing::warn!(id = %info.new.id, %error, "journal not read; trying again");
                shared.clock.sleep(shared.options.unavailable_retry).await;
            }
            Err(error) => break Err(error),
        }
    };
    let driver = rows
        .and_then(|rows| Driver::new(shared.clone(), info.clone(), seat, Origin::Recovered, &rows));
    let driver = driver.map(|mut driver| {
        if all_loaded.occasion == Occasion::Opening {
            driver.expect_claim();
        }
        driver
    });
    match driver {
        Ok(mut driver) if driver.is_suspect() => {
            // It was in flight at two crashes in a row: last, and one at a time.
            all_loaded.wait(&shared).await;
            let turn = tokio::select! {
                turn = shared.suspects.clone().turn(&shared) => Some(turn),
                () = driver.until_killed() => None,
                () = shared.stop_asked() => return,
            };
            driver.hold(turn);
            driver.drive().await;
        }
        Ok(driver) => {
            let driven = shared.runtime.spawn(driver.drive());
            all_loaded.wait(&shared).await;
            let _ = driven.await;
        }
        Err(error) => {
            if !shared.is_stopping() {
                tracing::error!(id = %info.new.id, run_id = %info.new.run_id, %error, "run left alone");
                shared.leave_alone(info.run, error);
            }
            shared.tell_left(info.run);
            shared.live.leave(info.run, Leaving::ForGood);
            shared.tell_successors(info.run);
            all_loaded.wait(&shared).await;
        }
    }
}
