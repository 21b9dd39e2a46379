//! Events from outside, and waits for them.

use crate::id::{Key, Ordinal};
use crate::payload::Payload;

/// The code asked for an event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WaitStarted {
    /// The number that later events carry.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// Its identity.
    #[prost(message, required, tag = "2")]
    pub key: Key,
    /// An event of any of these types satisfies it.
    #[prost(string, repeated, tag = "3")]
    pub types: Vec<String>,
    /// Events that are accepted later do not satisfy it; absent for a wait without end.
    #[prost(int64, optional, tag = "4")]
    pub until_us: Option<i64>,
    /// Where in the source it was built.
    #[prost(string, tag = "5")]
    pub place: String,
}

/// An event was copied from the inbox. It is kept until a wait wants it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EventReceived {
    /// The number of the inbox row.
    #[prost(uint64, tag = "1")]
    pub inbox: u64,
    /// The sender's id of the event; empty if it gave none.
    #[prost(string, tag = "2")]
    pub event_id: String,
    /// Its type.
    #[prost(string, tag = "3")]
    pub event_type: String,
    /// What it says.
    #[prost(message, required, tag = "4")]
    pub payload: Payload,
    /// When it was accepted.
    #[prost(int64, tag = "5")]
    pub accepted_at_us: i64,
    /// Who sent it.
    #[prost(string, tag = "6")]
    pub by: String,
}

/// A wait took an event, and the code is shown it here.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WaitSatisfied {
    /// The wait.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// The inbox row of the event.
    #[prost(uint64, tag = "2")]
    pub inbox: u64,
}

/// No event came in time, and the code is shown so here.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WaitTimedOut {
    /// The wait.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
}

/// The code dropped the wait. An event that it had been shown and never took is there again.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WaitCancelled {
    /// The wait.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
}
