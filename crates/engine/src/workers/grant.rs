//! The slot of a worker that one run has.

use std::sync::Arc;

use backstitch_store::RunNo;
use tokio::sync::mpsc;

use crate::engine::Shared;
use crate::workers::{Offer, Worker};

/// A run has this slot as long as this lives.
pub(crate) struct Grant {
    pub(super) shared: Arc<Shared>,
    pub(super) worker: Arc<Worker>,
    pub(super) run: RunNo,
    pub(super) fence: u64,
    /// What the worker sends for the run.
    pub(super) offers: mpsc::Receiver<Offer>,
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.worker.unseat(self.run, self.fence);
        if let Some(workers) = &self.shared.workers
            && !self.shared.is_stopping()
        {
            workers.offer_waiting(&self.shared, &self.worker);
        }
    }
}
