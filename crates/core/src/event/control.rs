//! What happens to a run from outside of its code.

use crate::attribute::AttributeChange;
use crate::failure::Failure;
use crate::id::Ordinal;
use crate::payload::Payload;

/// An outcome that stands in an engine row is made visible to the code here.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Shown {
    /// The step or timer.
    #[prost(uint32, tag = "1")]
    pub ord: Ordinal,
}

/// The ways to ask for a rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum CancelVerb {
    /// Bodies that would settle may settle; ends as `Cancelled`.
    Cancel = 0,
    /// No body is waited for; ends as `Terminated`.
    Terminate = 1,
    /// As cancel; the cause says that a person wanted it undone.
    Rollback = 2,
}

/// Somebody asked for the run to be rolled back.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CancelRequested {
    /// In which way.
    #[prost(enumeration = "CancelVerb", tag = "1")]
    pub verb: i32,
    /// Who.
    #[prost(string, tag = "2")]
    pub by: String,
    /// Why.
    #[prost(string, tag = "3")]
    pub reason: String,
    /// The number of the inbox row.
    #[prost(uint64, tag = "4")]
    pub inbox: u64,
}

/// Somebody asked that nothing new begins.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PauseRequested {
    /// When it was accepted; the run is paused from then on. Rows of versions that did not write it
    /// count from their own time.
    #[prost(int64, optional, tag = "4")]
    pub at_us: Option<i64>,
    /// Who.
    #[prost(string, tag = "1")]
    pub by: String,
    /// Why.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// The number of the inbox row.
    #[prost(uint64, tag = "3")]
    pub inbox: u64,
}

/// The pause is over.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Resumed {
    /// Who ended it.
    #[prost(string, tag = "1")]
    pub by: String,
    /// By how much open timers, waits and the deadline of the run move, in microseconds.
    #[prost(int64, tag = "2")]
    pub shift_us: i64,
    /// The number of the inbox row.
    #[prost(uint64, tag = "3")]
    pub inbox: u64,
    /// Why. Empty in rows of versions that did not write it.
    #[prost(string, tag = "4")]
    pub reason: String,
}

/// What is held by a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum BlockKind {
    /// One step, until an operator has it tried again.
    Step = 0,
    /// The run: its code does not fit its journal.
    Mismatch = 1,
    /// The run: its code awaits something that the engine does not know.
    ForeignWait = 2,
    /// The run: its journal cannot be read. Never written into one; said of the execution's row.
    Unreadable = 3,
}

/// Something is held until a person (or, for a mismatch, the old code) comes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Blocked {
    /// What.
    #[prost(enumeration = "BlockKind", tag = "1")]
    pub what: i32,
    /// The step, for [`BlockKind::Step`].
    #[prost(uint32, optional, tag = "2")]
    pub ord: Option<Ordinal>,
    /// Why.
    #[prost(message, required, tag = "3")]
    pub failure: Failure,
}

/// A block is over.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Unblocked {
    /// What.
    #[prost(enumeration = "BlockKind", tag = "1")]
    pub what: i32,
    /// The step, for [`BlockKind::Step`].
    #[prost(uint32, optional, tag = "2")]
    pub ord: Option<Ordinal>,
    /// Who or what ended it.
    #[prost(string, tag = "3")]
    pub by: String,
}

/// A verb was accepted into the inbox, and no longer applied when its turn came.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VerbRefused {
    /// The number of the inbox row.
    #[prost(uint64, tag = "1")]
    pub inbox: u64,
    /// The verb.
    #[prost(string, tag = "2")]
    pub verb: String,
    /// Who asked.
    #[prost(string, tag = "3")]
    pub by: String,
    /// Why it does not apply.
    #[prost(string, tag = "4")]
    pub why: String,
    /// The reason that was given for it. Like the fields below, absent in rows of versions that did
    /// not write it.
    #[prost(string, tag = "5")]
    pub reason: String,
    /// The step, of a verb about one.
    #[prost(uint32, optional, tag = "6")]
    pub ord: Option<Ordinal>,
    /// The type, of an event.
    #[prost(string, tag = "7")]
    pub event_type: String,
    /// The sender's id, of an event that has one.
    #[prost(string, tag = "8")]
    pub event_id: String,
}

/// The code passed a place that was patched, and takes the new way there.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MarkerRecorded {
    /// The name of the patch.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Room for markers that hold a value.
    #[prost(message, optional, tag = "2")]
    pub payload: Option<Payload>,
}

/// The code published a value for whoever looks from outside.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ValuePublished {
    /// Its key; a later value of the same key takes its place.
    #[prost(string, tag = "1")]
    pub key: String,
    /// The value.
    #[prost(message, required, tag = "2")]
    pub value: Payload,
}

/// Who set search attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum AttributeOrigin {
    /// Whoever started the run.
    Start = 0,
    /// The code.
    Code = 1,
    /// Somebody, by a verb.
    Verb = 2,
}

/// Search attributes were set or taken away.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AttributesSet {
    /// Which.
    #[prost(message, repeated, tag = "1")]
    pub changes: Vec<AttributeChange>,
    /// Who did it.
    #[prost(enumeration = "AttributeOrigin", tag = "2")]
    pub origin: i32,
    /// The name of whoever did it, for a verb.
    #[prost(string, tag = "3")]
    pub by: String,
    /// Why, for a verb.
    #[prost(string, tag = "4")]
    pub reason: String,
    /// The number of the inbox row, for a verb; else 0.
    #[prost(uint64, tag = "5")]
    pub inbox: u64,
}
