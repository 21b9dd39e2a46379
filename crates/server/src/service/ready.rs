//! Whether work is being done.

use std::time::Duration;

use backstitch::Status;
use backstitch::store::{RunInfo, RunNo};
use backstitch_api::http::{Problem, Readiness};

use super::{Service, told};

/// Open runs that are looked through, oldest first: a probe that comes every second must stay cheap.
const RUNS_SCANNED_MAX: usize = 10_000;

/// Open runs that are read at a time.
const RUNS_PAGE: usize = 1_000;

impl Service {
    /// Whether changes are made durable, and nothing that could run has waited for a worker for
    /// longer than `pending_max`.
    pub async fn ready(&self, pending_max: Option<Duration>) -> Readiness {
        let mut reasons = Vec::new();
        if let Some(trouble) = self.engine().trouble() {
            reasons.push(format!("nothing is made durable at the moment: {trouble}"));
        }
        if let Some(max) = pending_max {
            match self.pending_longer_than(max).await {
                Ok(overdue) => reasons.extend(overdue),
                Err(problem) => reasons.push(problem.detail),
            }
        }
        Readiness { ready: reasons.is_empty(), reasons }
    }

    async fn pending_longer_than(&self, max: Duration) -> Result<Option<String>, Problem> {
        let now_us = self.engine().clock().now_us();
        let max_us = i64::try_from(max.as_micros()).unwrap_or(i64::MAX);
        let (mut after, mut scanned) = (RunNo(i64::MIN), 0);
        while scanned < RUNS_SCANNED_MAX {
            let page = self.engine().open_runs(after, RUNS_PAGE).await.map_err(told)?;
            let Some(last) = page.last() else { break };
            (after, scanned) = (last.run, scanned + page.len());
            // A run that follows another one waits for that, not for a worker.
            let is_pending =
                |run: &&RunInfo| run.update.status == Status::Pending && run.new.after.is_none();
            for run in page.iter().filter(is_pending) {
                let since_us = run.update.wake_at_us.unwrap_or(0).max(run.created_at_us);
                let waited_us = now_us.saturating_sub(since_us);
                if waited_us > max_us {
                    return Ok(Some(format!(
                        "execution {:?} could have run for {} s, and no worker has workflow {:?} \
                         version {:?} (more than {} s are too many: `ready_pending_max`)",
                        run.new.id,
                        waited_us / 1_000_000,
                        run.new.workflow,
                        run.new.version,
                        max.as_secs()
                    )));
                }
            }
        }
        Ok(None)
    }
}
