//! What comes to a run from outside, before the owner copies it into the journal.

use prost::Message;

use crate::attribute::AttributeChange;
use crate::id::Ordinal;
use crate::payload::Payload;

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
    /// A typed message for the code.
    Event = 9,
    /// Change search attributes.
    SetAttributes = 10,
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
            InboxKind::Event => "event",
            InboxKind::SetAttributes => "set attributes",
        }
    }

    /// Whether it names a step.
    pub fn is_about_step(self) -> bool {
        match self {
            InboxKind::RetryStep | InboxKind::RetryUndo | InboxKind::WaiveUndo => true,
            InboxKind::Cancel
            | InboxKind::Terminate
            | InboxKind::Rollback
            | InboxKind::Kill
            | InboxKind::Pause
            | InboxKind::Resume
            | InboxKind::Event
            | InboxKind::SetAttributes => false,
        }
    }

    /// Whether a run takes it also after it was closed.
    pub fn is_for_closed(self) -> bool {
        match self {
            InboxKind::Rollback | InboxKind::WaiveUndo | InboxKind::SetAttributes => true,
            InboxKind::Cancel
            | InboxKind::Terminate
            | InboxKind::Kill
            | InboxKind::Pause
            | InboxKind::Resume
            | InboxKind::RetryStep
            | InboxKind::RetryUndo
            | InboxKind::Event => false,
        }
    }

    /// The kinds by which a run that is stuck goes on.
    pub const SETTLING: &'static [InboxKind] =
        &[InboxKind::RetryUndo, InboxKind::WaiveUndo, InboxKind::Kill];

    /// The kinds after which a run takes no event any more.
    pub const ENDING: &'static [InboxKind] =
        &[InboxKind::Cancel, InboxKind::Terminate, InboxKind::Rollback, InboxKind::Kill];

    /// The kinds by which the answer to a verb may become another one: all that are not events.
    pub const VERBS: &'static [InboxKind] = &[
        InboxKind::Cancel,
        InboxKind::Terminate,
        InboxKind::Rollback,
        InboxKind::Kill,
        InboxKind::Pause,
        InboxKind::Resume,
        InboxKind::RetryStep,
        InboxKind::RetryUndo,
        InboxKind::WaiveUndo,
        InboxKind::SetAttributes,
    ];

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
    /// Whether open timers move by the time that the run was paused, for resume.
    #[prost(bool, tag = "4")]
    pub shift_timers: bool,
    /// What is set, for set attributes.
    #[prost(message, repeated, tag = "5")]
    pub attributes: Vec<AttributeChange>,
}

impl Verb {
    /// The bytes that an inbox row holds.
    pub fn to_bytes(&self) -> bytes::Bytes {
        self.encode_to_vec().into()
    }
}

/// The body of an inbox row that carries an event; its type is the topic of the row.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EventMessage {
    /// Who sends it.
    #[prost(string, tag = "1")]
    pub by: String,
    /// The sender's id of it; empty if the sender gave none.
    #[prost(string, tag = "2")]
    pub event_id: String,
    /// What it says.
    #[prost(message, required, tag = "3")]
    pub payload: Payload,
}

impl EventMessage {
    /// The bytes that an inbox row holds.
    pub fn to_bytes(&self) -> bytes::Bytes {
        self.encode_to_vec().into()
    }

    /// Reads what [`EventMessage::to_bytes`] made; `None` if it is anything else.
    pub fn from_bytes(bytes: bytes::Bytes) -> Option<EventMessage> {
        EventMessage::decode(bytes).ok()
    }

    /// SHA-256 of the length of the type, the type and the payload: by this, whoever sends it, the
    /// sameness of two events is judged.
    pub fn digest(&self, event_type: &str) -> [u8; 32] {
        let mut hash = hmac_sha256::Hash::new();
        hash.update((event_type.len() as u64).to_be_bytes());
        hash.update(event_type);
        hash.update(&self.payload.data);
        hash.finalize()
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
    /// The type of an event; empty for a verb.
    pub topic: String,
    /// An encoded [`Verb`] or [`EventMessage`].
    pub payload: bytes::Bytes,
    /// Whether the sender was told that it changes something.
    pub changed: bool,
    /// The store's clock at acceptance, microseconds since 1970; never smaller than in the row before.
    pub accepted_at_us: i64,
}
