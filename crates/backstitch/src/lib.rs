//! Durable workflows that know how to undo themselves.
//!
//! A workflow is an async function. Each [step](Ctx::step) with a side effect may carry its own
//! undo; when the workflow fails for good, is cancelled or terminated, the undos run, newest start
//! first, and survive crashes like everything else.
//!
//! ```
//! use backstitch::{Backstitch, Ctx, Result, workflow};
//!
//! #[workflow]
//! async fn greet(ctx: Ctx, name: String) -> Result<String> {
//!     let greeting = ctx
//!         .step("compose", backstitch::clone!(name => async move |_s| Ok(format!("Hello, {name}"))))
//!         .rollback(async move |u| {
//!             println!("took back {:?}", u.output());
//!             Ok(())
//!         })
//!         .await?;
//!     Ok(greeting)
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> std::result::Result<(), backstitch::Error> {
//! let app = Backstitch::open("memory:").register(greet).run().await?;
//! let handle = app.start(greet, "greeting-1", "Ada".to_owned()).await?;
//! assert_eq!(handle.result().await?, "Hello, Ada");
//! # app.shutdown().await
//! # }
//! ```
//!
//! # What order means
//!
//! Futures are lazy in Rust: a step is keyed when it is *built* (`ctx.step(…)`) and asked for when it
//! is first *polled*, so options can be chained onto it before anything happens. Await several at
//! once with [`join!`], [`select!`], [`race`], `futures::join!`, `join_all` or `FuturesUnordered`.
//! **Do not use `tokio::select!` without `biased;`, `futures::select!`, or `tokio::join!` without
//! `biased;`** in a workflow: they begin at another branch from poll to poll, and replay hands
//! outcomes to the wrong branch.

mod app;
mod attribute;
mod bounds;
mod client;
mod ctx;
mod duration;
mod error;
mod events;
mod failure;
mod handle;
mod http;
mod json;
mod life;
mod open;
mod race;
#[cfg(feature = "remote")]
mod remote;
mod retry;
mod select;
mod sleep;
mod start;
mod state;
mod step;
mod step_ref;
pub mod testing;
pub mod timeline;
mod undo;
mod verb;
mod wait;
mod workflow;

pub use app::App;
pub use attribute::{AttributeValue, IntoAttribute};
pub use bounds::{Data, PerAttempt};
pub use client::{Attention, Client, Summary};
pub use ctx::Ctx;
pub use duration::IntoDuration;
pub use error::{Error, ErrorKind};
pub use events::{EventAccepted, EventRequest, Follow};
pub use failure::{Classify, FailureExt, msg};
pub use handle::{ExecutionStatus, Handle, RollbackReport};
pub use http::http_failure;
pub use life::{DeleteRequest, Restart};
pub use open::{Backstitch, Builder};
pub use race::race;
pub use retry::Retry;
pub use sleep::Sleep;
pub use start::StartBuilder;
pub use step::{Step, StepCtx};
pub use step_ref::StepRef;
pub use undo::{StepInfo, Undo, UndoOutcome};
pub use verb::{VerbAnswer, VerbRequest};
pub use wait::{Event, IntoTimeout, NoTimeout, Optional, WaitAnyEvent, WaitEvent};
pub use workflow::{FnWorkflow, Workflow, workflow_fn};

pub use backstitch_macros::workflow;

pub use backstitch_core::event::{CauseKind, RollbackCause, RollbackOutcome};
pub use backstitch_core::failure::{Class, Effect, Failure, FailureData, Origin};
pub use backstitch_core::id::RunId;
pub use backstitch_core::limits::RunLimits;
pub use backstitch_core::payload::Payload;
pub use backstitch_core::retry::{Jitter, OnAbandon, OnExhausted, OnUndoFailure, UndoOn};
pub use backstitch_core::row::Row;
pub use backstitch_core::run::WaitsFor;
pub use backstitch_core::status::Status;
pub use backstitch_engine::feed::{Feed, FeedEvent, FeedItem};
pub use backstitch_engine::start::{Conflict, Reuse};

pub use {jiff, uuid};

/// The journal and its fold, for programs that look into it.
pub use backstitch_core as core;
/// Clocks, for tests.
pub use backstitch_engine as engine;
/// Stores, for programs that bring their own.
pub use backstitch_store as store;

/// What workflows, bodies and undos return.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

#[doc(hidden)]
pub mod private {
    pub use crate::select::Either;
    pub use backstitch_engine::program::BoxFuture;

    /// Boxes the future of a workflow, which may go on on another thread after each await.
    pub fn boxed<T>(workflow: impl Future<Output = T> + Send + 'static) -> BoxFuture<T> {
        Box::pin(workflow)
    }

    /// The return type of a workflow function: `Result<Output>`.
    #[diagnostic::on_unimplemented(
        message = "a workflow returns `backstitch::Result<Output>`, not `{Self}`",
        note = "the error type is `backstitch::Failure`; `?` turns any error into one"
    )]
    pub trait Returned {
        /// What it returns when all is well.
        type Output;
        fn into_result(self) -> Result<Self::Output, crate::Failure>;
    }

    impl<T> Returned for Result<T, crate::Failure> {
        type Output = T;
        fn into_result(self) -> Result<T, crate::Failure> {
            self
        }
    }
}

/// What is shown in the README and on the pages of docs/ runs as tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    pub struct Readme;
    #[doc = include_str!("../../../docs/events.md")]
    pub struct Events;
    #[doc = include_str!("../../../docs/failures.md")]
    pub struct Failures;
    #[doc = include_str!("../../../docs/life.md")]
    pub struct Life;
    #[doc = include_str!("../../../docs/looking-in.md")]
    pub struct LookingIn;
    #[doc = include_str!("../../../docs/replay.md")]
    pub struct Replay;
    #[doc = include_str!("../../../docs/testing.md")]
    pub struct Testing;
    #[doc = include_str!("../../../docs/verbs.md")]
    pub struct Verbs;
    #[doc = include_str!("../../../docs/versions.md")]
    pub struct Versions;
    #[doc = include_str!("../../../docs/way-back.md")]
    pub struct WayBack;
}
