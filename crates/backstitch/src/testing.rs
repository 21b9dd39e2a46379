//! Testing a workflow: what happens if the process dies here, what is doubled if this step runs
//! twice, and does every failure come all the way back?
//!
//! [`TestKit`] runs executions in memory, with a clock that skips, steps that are mocked, and faults
//! where the test says. [`explore`] tries all of them.

mod explore;
mod kit;
mod mock;
mod names;
mod process;
mod reached;
mod script;

pub use explore::{Column, Explore, Finding, FindingKind, Outcome, Report, Verdict, explore};
pub use kit::{Execution, TestKit};
pub use mock::Mock;
pub use process::Process;
pub use reached::Reached;
