//! Reading for those who show it to others: journals page by page, as they grow, and what this
//! process is.

use std::collections::HashMap;

use backstitch_core::row::Row;
use backstitch_store::{RunInfo, RunNo};

use crate::engine::{Engine, EngineOptions, Role};
use crate::error::Error;
use crate::feed::FeedEvent;
use crate::recovery::read_page;
use crate::waiting::stopped;

impl Engine {
    /// How this engine is set.
    pub fn options(&self) -> &EngineOptions {
        &self.shared.options
    }

    /// Whether this process drives the runs of the store, or only visits it.
    pub fn is_owner(&self) -> bool {
        self.shared.role == Role::Owner
    }

    /// The workflows, each with its version, that a worker of this process knows; in order.
    pub fn workflows(&self) -> Vec<(String, String)> {
        let programs = self.shared.programs.values().flat_map(HashMap::values);
        let mut known: Vec<(String, String)> =
            programs.map(|known| (known.name().to_owned(), known.version().to_owned())).collect();
        known.sort();
        known
    }

    /// Runs that are not closed, by number, above `after`.
    ///
    /// # Errors
    /// Trouble of the store.
    pub async fn open_runs(&self, after: RunNo, limit: usize) -> Result<Vec<RunInfo>, Error> {
        Ok(self.shared.store.open_runs(after, limit).await?)
    }

    /// Up to `limit` rows of a journal after row `after`, in order.
    ///
    /// # Errors
    /// As [`Engine::view`].
    pub async fn journal_after(
        &self,
        run: RunNo,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        read_page(&self.shared, run, after, limit).await
    }

    /// The rows of a journal after row `after`, at least one and at most `limit`; waits until there
    /// is one. Empty when the run is closed, and there is none.
    ///
    /// # Errors
    /// As [`Engine::view`]; `Stopped` when the engine stops meanwhile.
    pub async fn next_rows(&self, run: RunNo, after: u64, limit: usize) -> Result<Vec<Row>, Error> {
        // Whatever is committed while the store is read is in one of the two.
        let (mut feed, mut news) = (self.feed(), self.shared.store.news());
        let run_id = self.info(run).await?.new.run_id;
        loop {
            news.borrow_and_update();
            let is_closed = self.info(run).await?.closed_at_us.is_some();
            let rows = self.journal_after(run, after, limit).await?;
            if is_closed || !rows.is_empty() {
                return Ok(rows);
            }
            let told = async {
                loop {
                    match feed.next().await {
                        Some(FeedEvent::Row(item)) if item.execution.run_id != run_id => {}
                        told => return told,
                    }
                }
            };
            tokio::select! {
                told = told, if self.is_owner() => drop(told.ok_or_else(stopped)?),
                changed = news.changed() => changed.map_err(|_| stopped())?,
                () = self.shared.stop_asked() => return Err(stopped()),
                () = self.shared.home_gone(), if self.is_owner() => return Err(stopped()),
            }
        }
    }
}
