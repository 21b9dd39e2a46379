//! The protocol of workers, spoken word by word with a server.

mod bad_input;
mod events;
mod leases;
mod peer;
