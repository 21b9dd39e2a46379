//! Drives executions on tokio: inbox → commit → dispatch.
//!
//! Follow one workflow: [`Engine::start`](engine::Engine::start) makes it durable and hands it to a
//! *driver*, the task that owns the run; the driver asks the session what to do next, polls the
//! code through the [`desk`], commits rows, and runs bodies and undos in tasks of their own.
//!
//! **Invariant:** only the driver of a run writes its journal. Everything from outside goes
//! through the inbox of the store.

pub mod clock;
pub mod error;

pub mod desk;
pub mod program;

mod append;
mod attempt;
mod code;
mod delays;
mod driver;
pub mod engine;
pub mod feed;
mod ids;
mod live;
mod pending;
mod reading;
mod recovery;
pub mod start;
pub mod view;

pub mod attributes;
mod calls;
pub mod events;
pub mod host;
pub mod life;
mod retention;
pub mod verbs;
mod waiting;

pub mod workers;

pub use clock::{Clock, ManualClock, SystemClock};
pub use engine::{Engine, EngineOptions, UnknownWorkflows};
pub use error::{Error, ErrorKind};
