//! Whether work is being done.

use std::time::Duration;

use backstitch::engine::ErrorKind;
use backstitch_api::http::{Problem, Readiness};

use super::{Service, told};

/// Runs that are looked up to find one that is open still: a probe that comes every second must stay cheap.
const RUNS_LOOKED_AT_MAX: usize = 100;

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
        let before_us = now_us.saturating_sub(max_us);
        for (run, since_us) in self.engine().pending_since(before_us, RUNS_LOOKED_AT_MAX) {
            let info = match self.engine().info(run).await {
                Ok(info) if info.closed_at_us.is_none() => info,
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(told(error)),
                // It was closed a moment ago.
                Ok(_) | Err(_) => continue,
            };
            return Ok(Some(format!(
                "execution {:?} could have gone on for {} s, and no worker goes on with it \
                 (workflow {:?}; more than {} s are too many: `ready_pending_max`)",
                info.new.id,
                now_us.saturating_sub(since_us) / 1_000_000,
                info.new.workflow,
                max.as_secs()
            )));
        }
        Ok(None)
    }
}
