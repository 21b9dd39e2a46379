//! The gRPC side: workers. `crates/api/proto` is its reference, docs/protocol.md tells how to use it.

mod mail;
mod worker;

pub use worker::WorkerService;
