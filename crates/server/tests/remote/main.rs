//! Working for a server: runs come as leases, and what happens to the connection does not show, as long as the
//! lease lasts. And asking a server.

#[path = "../../../backstitch/tests/world/mod.rs"]
mod world;

mod house;
mod net;

mod asking;
mod breaks;
mod ends;
mod leases;
mod long;
mod outcomes;
mod welcome;
