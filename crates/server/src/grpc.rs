//! The gRPC side: workers and callers. `crates/api/proto` is its reference, docs/protocol.md tells how to use it.

mod client;
mod mail;
mod outgoing;
mod worker;

pub use client::ClientService;
pub use worker::WorkerService;

use backstitch_api::worker as wire;
use backstitch_engine::Engine;

/// The bounds of a run on its way forward.
fn limits(engine: &Engine) -> wire::Limits {
    let limits = engine.limits();
    wire::Limits {
        payload_bytes_max: engine.payload_bytes_max() as u64,
        asks_max: limits.asks_max as u64,
        waits_open_max: limits.waits_open_max as u64,
        journal_bytes_max: limits.journal_bytes_max,
        append_bytes_max: worker::append_bytes_max(engine) as u64,
    }
}
