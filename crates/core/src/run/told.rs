//! What the execution's own row was told of a run.

use crate::run::Run;
use crate::status::Status;

/// The status and the next instant, as they were written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub status: Status,
    pub wake_at_us: Option<i64>,
}

impl Told {
    /// What is to be written, if it has changed since it was written last. `owned` says whether a worker has
    /// the run.
    pub fn changed(&mut self, run: &Run, owned: bool) -> Option<(Status, Option<i64>)> {
        let status = run.status(owned);
        let wake_at_us = match status {
            Status::Suspended | Status::RollingBack => run.next_due_us(),
            Status::Pending | Status::Running | Status::Paused | Status::Blocked => {
                run.deadline_at_us()
            }
            Status::Stuck
            | Status::Succeeded
            | Status::Failed
            | Status::Cancelled
            | Status::Terminated => None,
        };
        let now = Told { status, wake_at_us };
        let before = std::mem::replace(self, now);
        (before != now).then_some((status, wake_at_us))
    }
}
