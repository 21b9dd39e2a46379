//! The JSON of the HTTP API, read by its clients and by the command line as well.

mod value;

mod execution;
mod listing;
mod outcome;
mod start;

mod event;
mod verb;

mod journal;
mod matter;
mod worker;

mod problem;

pub use event::{EventAccepted, SendEvent};
pub use execution::{Block, Execution, Rollback, Status, Step, Undo, WaitsFor};
pub use journal::{Cause, Event, JournalPage, JournalRow};
pub use listing::{Listing, Summary};
pub use matter::{Matter, Matters};
pub use outcome::{Failure, Outcome};
pub use problem::{Code, Problem};
pub use start::{Conflict, Reuse, StartExecution, Started};
pub use value::{Attribute, Value};
pub use verb::{Asked, Deleted, Restart, Resume, Sent, SetAttributes, StepAsked, StepName};
pub use worker::{Readiness, Worker, Workers, Workflow};
