//! Sleeps.

use crate::id::{Key, Ordinal};

/// The code asked to sleep.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TimerStarted {
    /// The number that later events carry.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
    /// Its identity.
    #[prost(message, required, tag = "2")]
    pub key: Key,
    /// Never fired before.
    #[prost(int64, tag = "3")]
    pub fire_at_us: i64,
    /// Where in the source it was built.
    #[prost(string, tag = "4")]
    pub place: String,
}

/// The sleep is over.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TimerFired {
    /// The timer.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
}

/// The code dropped the sleep.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TimerCancelled {
    /// The timer.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
}
