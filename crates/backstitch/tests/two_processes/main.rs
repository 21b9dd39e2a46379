//! Two processes on one file: one works, the other one asks. Each dies in turn, and nothing that was
//! acknowledged is lost.

#[path = "../checks/mod.rs"]
mod checks;
#[path = "../world/mod.rs"]
mod world;

mod job;
mod process;

mod asking;
mod busy;
mod connecting;
mod deaths;
mod settling;

use backstitch::Handle;
use backstitch::core::run::Run;

/// Checks the journal of an execution; gives the fold.
pub async fn checked<T>(handle: &Handle<T>) -> Run {
    checks::check(&handle.journal().await.unwrap())
}
