//! What servers, workers and callers say to each other, written down once.
//!
//! [`worker`] is the protocol of workers, made from `proto/backstitch/v1/worker.proto`, which is its
//! reference.

#[allow(missing_docs, clippy::all, rust_2018_idioms, reason = "made from the .proto file, where the comments are")]
#[rustfmt::skip]
#[path = "generated/backstitch.v1.rs"]
pub mod worker;

/// The newest protocol of workers, and the only one so far.
pub const PROTOCOL: u32 = 1;
