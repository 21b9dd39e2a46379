//! Taking over the runs that an earlier owner left open.
//!
//! **Invariant:** one bad run never stops another: each is loaded by itself, and one that cannot be
//! read is left alone and listed.

use std::sync::Arc;

use backstitch_core::row::{Row, RowError};
use backstitch_store::{Call, RunInfo, RunNo};
use tokio::sync::Barrier;

use crate::calls;
use crate::driver::{Driver, Origin, unreadable};
use crate::engine::Shared;
use crate::error::{Error, ErrorKind};
use crate::live::{Leaving, Mail, Seat};

/// Journal rows read at a time.
const JOURNAL_PAGE: usize = 1_000;
/// Open runs listed at a time.
const RUNS_PAGE: usize = 500;

/// Reads a whole journal.
pub(crate) async fn read_journal(shared: &Shared, run: RunNo) -> Result<Vec<Row>, Error> {
    let mut rows: Vec<Row> = Vec::new();
    loop {
        let after = rows.last().map_or(0, |row| row.header.seq);
        let page = shared.store.journal(run, after, JOURNAL_PAGE).await?;
        let last = page.len() < JOURNAL_PAGE;
        for bytes in page {
            match Row::decode(bytes) {
                Ok(row) => rows.push(row),
                Err(error) => {
                    let info = shared.info(run).await?;
                    return Err(undecodable(&info, rows.len() as u64 + 1, &error));
                }
            }
        }
        if last {
            return Ok(rows);
        }
    }
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
    if !found.is_empty() {
        tracing::info!(runs = found.len(), "taking over open executions");
    }
    let all_loaded = Arc::new(Barrier::new(found.len()));
    for info in found {
        let seat = shared.live.take_seat(info.run).expect("nothing was started yet");
        let taken_over = take_over(shared.clone(), info, seat, None, all_loaded.clone());
        shared.runtime.spawn(taken_over);
    }
    Ok(())
}

/// Drives one run more: one that was parked, is called, or has no driver for another reason. It is
/// looked up first, and left alone if it is not there any more, or closed and not called.
pub(crate) fn fetch(shared: &Arc<Shared>, run: RunNo, call: Option<Call>) {
    if shared.is_left_alone(run) || shared.is_stopping() {
        return;
    }
    let Some(mut seat) = shared.live.take_seat(run) else {
        // Somebody else was faster.
        let _ = shared.live.tell(run, call.map_or(Mail::Look, Mail::Call));
        return;
    };
    let shared = shared.clone();
    let runtime = shared.runtime.clone();
    runtime.spawn(async move {
        match find(&shared, run).await {
            Some(info) if info.closed_at_us.is_none() || call.is_some() => {
                take_over(shared, info, seat, call, Arc::new(Barrier::new(1))).await;
            }
            Some(_) | None => {
                shared.live.leave(run, Leaving::ForGood);
                if let Some(call) = call {
                    shared.calls.answered(call);
                }
                // What came meanwhile is for the next one who looks.
                while let Ok(mail) = seat.mail.try_recv() {
                    calls::forward(&shared, run, mail);
                }
            }
        }
    });
}

/// Looks a run up, however long that takes. `None` if there is none, or the engine is stopped.
async fn find(shared: &Shared, run: RunNo) -> Option<RunInfo> {
    loop {
        match shared.store.run(run).await {
            Ok(info) => return info,
            Err(_) if shared.is_stopping() => return None,
            Err(error) => {
                tracing::warn!(run = run.0, %error, "run not read; trying again");
                shared.clock.sleep(shared.options.unavailable_retry).await;
            }
        }
    }
}

async fn take_over(
    shared: Arc<Shared>,
    info: RunInfo,
    seat: Seat,
    call: Option<Call>,
    all_loaded: Arc<Barrier>,
) {
    let rows = loop {
        match read_journal(&shared, info.run).await {
            Ok(rows) => break Ok(rows),
            Err(error) if matches!(error.kind(), ErrorKind::Store(_)) && !shared.is_stopping() => {
                if error.kind() == ErrorKind::Store(backstitch_store::ErrorKind::Corrupt) {
                    break Err(error);
                }
                tracing::warn!(id = %info.new.id, %error, "journal not read; trying again");
                shared.clock.sleep(shared.options.unavailable_retry).await;
            }
            Err(error) => break Err(error),
        }
    };
    let driver =
        rows.and_then(|rows| Driver::new(shared.clone(), &info, seat, Origin::Recovered, &rows));
    let driver = driver.map(|mut driver| {
        driver.answers(call);
        driver
    });
    match driver {
        Ok(mut driver) if driver.is_suspect() => {
            // It was in flight at two crashes in a row: last, and one at a time.
            all_loaded.wait().await;
            tokio::select! {
                permit = shared.suspects.clone().acquire_owned() => {
                    driver.hold(permit.expect("the semaphore is never closed"));
                    driver.drive().await;
                }
                () = shared.stop_asked() => {}
            }
        }
        Ok(driver) => {
            let driven = shared.runtime.spawn(driver.drive());
            all_loaded.wait().await;
            let _ = driven.await;
        }
        Err(error) => {
            tracing::error!(id = %info.new.id, run_id = %info.new.run_id, %error, "run left alone");
            shared.leave_alone(info.run, error);
            shared.live.leave(info.run, Leaving::ForGood);
            shared.tell_successors(info.run);
            all_loaded.wait().await;
        }
    }
}
