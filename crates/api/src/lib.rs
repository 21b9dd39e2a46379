//! What goes over the wire between a Backstitch server and those who talk to it, written down once.
//!
//! `http` (with the feature `http`) is the HTTP API: names are snake_case, instants are RFC 3339, and what a
//! request holds and nobody knows is refused by its name. `worker` (with the feature `worker`) is the protocol
//! of workers, and `client` that of callers, both made from the files in `proto/backstitch/v1`, which are their
//! reference, and share one package.
//!
//! **Invariant:** a field may be added, and is never taken away or given another meaning.

#[cfg(feature = "http")]
pub mod http;

#[cfg(feature = "worker")]
#[allow(
    missing_docs,
    clippy::all,
    rust_2018_idioms,
    reason = "made from the .proto file, where the comments are"
)]
#[rustfmt::skip]
#[path = "generated/backstitch.v1.rs"]
pub mod worker;

#[cfg(feature = "worker")]
pub use worker as client;

/// The newest protocol of workers and callers, and the only one so far.
#[cfg(feature = "worker")]
pub const PROTOCOL: u32 = 1;
