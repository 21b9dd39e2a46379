//! The parts of the binary `backstitch`: a server with an HTTP API, and a command line.
//!
//! [`service`] is what can be asked, in the words of the wire; [`http`] serves it, and [`cli`] asks it,
//! over HTTP or of a file. [`config`] says how a server is set, [`dev`] is the worker of
//! `backstitch dev`.
//!
//! **Invariant:** nothing but `service` asks the engine, so that both ways give the same answers.

pub mod config;
mod paging;
pub mod service;

pub mod grpc;
pub mod http;

pub mod cli;
pub mod dev;
