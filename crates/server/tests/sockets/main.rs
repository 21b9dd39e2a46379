//! Bad sockets: crowds, peers that stop half way, peers that do not read, and what the log says of it all.

#![cfg(target_os = "linux")]

#[path = "../cli/binary.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod binary;
#[path = "../protocol/peer.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod peer;
#[path = "../http/server.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod server;

mod crowd;
mod endpoints;
mod half_open;
mod http2;
mod secrets;
mod slow;
mod stopping;

mod frames;
mod line;
