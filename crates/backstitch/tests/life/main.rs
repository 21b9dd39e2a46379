//! The whole life of an execution: events and waits, deadlines, verbs on closed executions, patches.

#[path = "../checks/mod.rs"]
mod checks;
#[path = "../world/mod.rs"]
mod world;

mod closed;
mod deadline;
mod edges;
mod events;
mod parked;
mod patched;
mod published;

use backstitch::Handle;
use backstitch::core::run::Run;

/// Checks the journal of an execution; gives the fold.
pub async fn checked<T>(handle: &Handle<T>) -> Run {
    checks::check(&handle.journal().await.unwrap())
}
