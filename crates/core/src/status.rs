//! The status of a run, as people and programs see it.

use std::fmt;

/// What a run is doing; derived from its journal by [`crate::run::Run::status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Status {
    /// Could go on, and no worker has it.
    Pending = 0,
    /// A worker has it and something runs.
    Running = 1,
    /// Waits for an instant, an event or a retry.
    Suspended = 2,
    /// Held by a person.
    Paused = 3,
    /// Waits for a person to settle a block.
    Blocked = 4,
    /// Pays the undos it owes.
    RollingBack = 5,
    /// Owes something, and nothing can run until a person settles it.
    Stuck = 6,
    /// Closed: the code returned a value.
    Succeeded = 7,
    /// Closed: the code failed.
    Failed = 8,
    /// Closed: cancelled, or rolled back on request.
    Cancelled = 9,
    /// Closed: terminated or killed.
    Terminated = 10,
}

impl Status {
    /// The name in JSON and tables, in snake_case.
    pub fn name(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Running => "running",
            Status::Suspended => "suspended",
            Status::Paused => "paused",
            Status::Blocked => "blocked",
            Status::RollingBack => "rolling_back",
            Status::Stuck => "stuck",
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::Terminated => "terminated",
        }
    }

    /// Whether nothing more will happen in the run.
    pub fn is_closed(self) -> bool {
        match self {
            Status::Succeeded | Status::Failed | Status::Cancelled | Status::Terminated => true,
            Status::Pending
            | Status::Running
            | Status::Suspended
            | Status::Paused
            | Status::Blocked
            | Status::RollingBack
            | Status::Stuck => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
