//! The heart of Backstitch, without I/O, clock, randomness or tokio.
//!
//! Read it in the order of the modules: what is written down ([`event`], [`row`]), what the rows
//! mean ([`run`]), and what to write and to run next ([`session`]).
//!
//! **Invariant:** nothing else in the workspace interprets events: the engine and the worker both
//! use the fold [`run::Run::apply`].

pub mod limits;

pub mod attribute;
pub mod failure;
pub mod id;
pub mod payload;
pub mod retry;

pub mod event;
pub mod row;

pub mod inbox;

pub mod attention;
pub mod rollback;
pub mod run;
pub mod status;
pub mod step;
pub mod timer;
pub mod undo;
pub mod wait;

pub mod follow;
pub mod session;
