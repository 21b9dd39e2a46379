//! What comes to a run from outside, before the owner copies it into the journal.

use prost::Message;

use crate::id::Ordinal;

/// What an inbox row asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum InboxKind {
    /// Roll back, end as cancelled.
    Cancel = 0,
    /// Roll back without waiting for bodies, end as terminated.
    Terminate = 1,
    /// Roll back because a person wants it undone.
    Rollback = 2,
    /// End without a rollback.
    Kill = 3,
    /// Begin nothing new.
    Pause = 4,
    /// Go on.
    Resume = 5,
    /// Try a blocked step again.
    RetryStep = 6,
    /// Try a failed undo again.
    RetryUndo = 7,
    /// Take an undo off the debts.
    WaiveUndo = 8,
}

impl InboxKind {
    /// The verb, as people type it.
    pub fn name(self) -> &'static str {
        match self {
            InboxKind::Cancel => "cancel",
            InboxKind::Terminate => "terminate",
            InboxKind::Rollback => "rollback",
            InboxKind::Kill => "kill",
            InboxKind::Pause => "pause",
            InboxKind::Resume => "resume",
            InboxKind::RetryStep => "retry step",
            InboxKind::RetryUndo => "retry undo",
            InboxKind::WaiveUndo => "waive undo",
        }
    }

    /// The kinds that must not be left unread by a row that closes a run or starts a rollback.
    pub const DECISIVE: &'static [InboxKind] = &[
        InboxKind::Cancel,
        InboxKind::Terminate,
        InboxKind::Rollback,
        InboxKind::Kill,
        InboxKind::Pause,
    ];
}

/// The body of an inbox row that carries a verb.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Verb {
    /// Who asks.
    #[prost(string, tag = "1")]
    pub by: String,
    /// Why.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// The step, for retry and waive.
    #[prost(uint32, tag = "3")]
    pub ord: Ordinal,
    /// By how much open timers move, for resume, in microseconds.
    #[prost(int64, tag = "4")]
    pub shift_us: i64,
}

impl Verb {
    /// The bytes that an inbox row holds.
    pub fn to_bytes(&self) -> bytes::Bytes {
        self.encode_to_vec().into()
    }
}

/// One inbox row, as the store gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct InboxRow {
    /// 1, 2, 3 … per run.
    pub number: u64,
    /// What it asks for.
    pub kind: InboxKind,
    /// The sender's id of the request.
    pub request_id: String,
    /// An encoded [`Verb`].
    pub payload: bytes::Bytes,
    /// The store's clock at acceptance, microseconds since 1970; never smaller than in the row before.
    pub accepted_at_us: i64,
}
