//! The HTTP API, through real sockets.

mod bad_input;
mod executions;
mod health;
mod journal;
mod runs;
mod verbs;

mod server;
