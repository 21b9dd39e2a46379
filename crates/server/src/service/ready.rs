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
            for run in &page {
                let Some(since_us) = could_run_since_us(run, now_us) else { continue };
                let waited_us = now_us.saturating_sub(since_us);
                if waited_us > max_us {
                    return Ok(Some(format!(
                        "execution {:?} could have gone on for {} s, and no worker goes on with it \
                         (workflow {:?} version {:?}; more than {} s are too many: \
                         `ready_pending_max`)",
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

/// Since when a run could go on that nobody goes on with, as far as its row says: its status may be of
/// a time when something was not due yet. When it lost its worker is not known, only when it began.
fn could_run_since_us(run: &RunInfo, now_us: i64) -> Option<i64> {
    let due_us = run.update.wake_at_us.filter(|at_us| *at_us <= now_us);
    match run.update.status {
        // A run that follows another one waits for that, not for a worker.
        Status::Pending if run.new.after.is_some() => None,
        Status::Pending => Some(due_us.unwrap_or(run.created_at_us)),
        Status::Suspended => due_us,
        Status::Running
        | Status::Paused
        | Status::Blocked
        | Status::RollingBack
        | Status::Stuck
        | Status::Succeeded
        | Status::Failed
        | Status::Cancelled
        | Status::Terminated => None,
    }
}
