//! What a run looks like now.

use std::sync::Arc;

use backstitch_core::row::Row;
use backstitch_core::run::Run;
use backstitch_core::status::Status;
use backstitch_store::{RunInfo, RunNo};

use crate::engine::{Engine, Role};
use crate::error::Error;
use crate::recovery::read_journal;

/// What a run looks like, with what is known of it besides its journal.
#[derive(Clone, Debug)]
pub struct RunView {
    /// The execution's own row.
    pub info: RunInfo,
    /// The fold of the journal.
    pub run: Arc<Run>,
    /// Whether a worker has its code.
    pub owned: bool,
    /// When it was looked at, microseconds since 1970.
    pub now_us: i64,
}

impl RunView {
    /// The derived status. A run for which no worker is there, and for which something has come due or the worker
    /// of which was lost in the middle of an attempt, is pending: the journal alone knows neither.
    pub fn status(&self) -> Status {
        match self.run.status(self.owned) {
            Status::Suspended | Status::Running
                if !self.owned && self.run.wants_code(self.now_us) =>
            {
                Status::Pending
            }
            status => status,
        }
    }
}

impl Engine {
    /// What a run looks like now, from its journal.
    ///
    /// # Errors
    /// `NotFound`; `Unreadable` when its journal cannot be read; trouble of the store.
    pub async fn view(&self, run: RunNo) -> Result<RunView, Error> {
        Ok(self.view_with_journal(run).await?.0)
    }

    /// What a run looks like now, and the rows from which that is known.
    ///
    /// # Errors
    /// As [`Engine::view`].
    pub async fn view_with_journal(&self, run: RunNo) -> Result<(RunView, Vec<Row>), Error> {
        let info = self.shared.info(run).await?;
        let rows = read_journal(&self.shared, run).await?;
        if rows.is_empty() {
            // Deleted a moment ago, or damaged.
            self.shared.info(run).await?;
        }
        let folded = Run::fold(&rows)
            .map_err(|illegal| crate::driver::unreadable(&info, &illegal.to_string()))?;
        let owned = match self.shared.role {
            Role::Owner => {
                let (workflow, version) = (&folded.started.workflow, &folded.version);
                let known = self.shared.program(workflow, version).is_some()
                    || self.shared.has_worker(run, workflow, version, &folded);
                known && info.new.after.is_none_or(|_| folded.turns > 0)
            }
            // What its owner has said last.
            Role::Guest => info.update.status != Status::Pending,
        };
        let (run, now_us) = (Arc::new(folded), self.shared.clock.now_us());
        Ok((RunView { info, run, owned, now_us }, rows))
    }
}
