//! Deleting closed runs when their time is over.
//!
//! **Invariant:** a run with an open matter is not deleted (the store refuses it). Each change is
//! small, so that no commit waits long for one.

use std::sync::Arc;
use std::time::Duration;

use backstitch_store::{Answer, Change, RunNo, StoreError};

use crate::engine::Shared;

/// How often expired runs are looked for.
const EVERY: Duration = Duration::from_secs(60);

/// Runs looked up at a time.
const RUNS_PAGE: usize = 100;

/// Rows freed in one change: a few milliseconds of work.
const ROWS_PER_CHANGE: usize = 500;

/// Deletes what has expired, until the engine is stopped.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut news = shared.store.news();
    loop {
        // A guest deletes runs, and leaves it to the owner to free their space.
        if news.has_changed().unwrap_or(false) {
            news.mark_unchanged();
            purge(&shared).await;
        }
        if let Err(error) = sweep(&shared).await {
            tracing::warn!(%error, "expired executions stay for now");
        }
        tokio::select! {
            () = shared.clock.chore(EVERY) => {}
            () = shared.stop_asked() => return,
        }
    }
}

async fn sweep(shared: &Shared) -> Result<(), StoreError> {
    loop {
        let expired = shared.store.expired(shared.clock.now_us(), RUNS_PAGE).await?;
        let mut deleted = 0;
        for run in &expired {
            if is_needed(shared, *run).await? {
                continue;
            }
            match shared.store.commit(Change::Delete(*run)).await? {
                Answer::Deleted => {
                    tracing::debug!(run = run.0, "expired");
                    deleted += 1;
                }
                // It was called, or opened again, in the meantime.
                answer => tracing::debug!(run = run.0, ?answer, "not deleted"),
            }
        }
        if deleted > 0 {
            // With what an earlier process may have left of its own.
            purge_all(shared).await?;
        }
        if deleted == 0 || expired.len() < RUNS_PAGE {
            return Ok(());
        }
    }
}

/// Whether the run leads to one that is still open, and so is found by a run that comes after both.
async fn is_needed(shared: &Shared, run: RunNo) -> Result<bool, StoreError> {
    let Some(info) = shared.store.run(run).await? else { return Ok(false) };
    Ok(shared.open_before(&info).await?.is_some())
}

/// Frees the space of deleted runs.
pub(crate) async fn purge(shared: &Shared) {
    if let Err(error) = purge_all(shared).await {
        tracing::warn!(%error, "space not freed; the next deletion does it");
    }
}

async fn purge_all(shared: &Shared) -> Result<(), StoreError> {
    loop {
        let change = Change::Purge { rows: ROWS_PER_CHANGE };
        match shared.store.commit(change).await? {
            Answer::Purged { more: true } => {}
            _ => return Ok(()),
        }
    }
}
