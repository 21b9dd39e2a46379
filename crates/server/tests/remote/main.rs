//! Working for a server: runs come as leases, and what happens to the connection does not show, as long as the
//! lease lasts.

#[path = "../../../backstitch/tests/world/mod.rs"]
mod world;

mod house;
mod net;

mod breaks;
mod ends;
mod leases;
mod welcome;
