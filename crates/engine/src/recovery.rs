//! Taking over the runs that an earlier owner left open.
//!
//! **Invariant:** one bad run never stops another: each is loaded by itself, and one that cannot be
//! read is left alone and listed.

use std::sync::Arc;

use backstitch_core::row::{Row, RowError};
use backstitch_store::{RunInfo, RunNo};
use tokio::sync::Barrier;

use crate::driver::{Driver, Origin, Seat, take_seat, unreadable};
use crate::engine::Shared;
use crate::error::{Error, ErrorKind};

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
        let seat = take_seat(shared, info.run).expect("nothing was started yet");
        let taken_over = take_over(shared.clone(), info, seat, all_loaded.clone());
        shared.runtime.spawn(taken_over);
    }
    Ok(())
}

/// Drives one open run more.
pub(crate) fn adopt(shared: &Arc<Shared>, info: RunInfo, seat: Seat) {
    shared.runtime.spawn(take_over(shared.clone(), info, seat, Arc::new(Barrier::new(1))));
}

async fn take_over(shared: Arc<Shared>, info: RunInfo, seat: Seat, all_loaded: Arc<Barrier>) {
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
            shared.live.remove(info.run);
            shared.tell_successors(info.run);
            all_loaded.wait().await;
        }
    }
}
