//! The events of a journal and how each is written down.
//!
//! An event is `kind: u16, version: u8, length: varint, body`; the body is a protobuf message.
//! Unknown fields of a known version are skipped. An unknown kind or version leaves the run alone
//! for a newer engine ([`EventError::is_too_new`]) and never fails it; so does an unknown value of an
//! enumeration.
//!
//! **Invariant:** kind numbers and field numbers are never reused; `docs/journal.md` lists them and
//! a golden file per kind and version guards them.

mod control;
mod execution;
mod known;
mod rollback;
mod step;
mod timer;
mod wait;

use bytes::{Buf, BufMut};
use prost::Message;

use known::Known;

pub use control::*;
pub use execution::*;
pub use rollback::*;
pub use step::*;
pub use timer::*;
pub use wait::*;

/// Why an event could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// Written by a newer engine.
    #[error(
        "event kind {kind} version {version} was written by a newer Backstitch; open it with that one"
    )]
    TooNew {
        /// The number of the kind.
        kind: u16,
        /// The version of its body.
        version: u8,
    },
    /// A known kind and version, in which a newer engine wrote a value that it added.
    #[error(
        "event kind {kind} has {value} in {field}, which a newer Backstitch wrote; open it with that one"
    )]
    NewValue {
        /// The number of the kind.
        kind: u16,
        /// The message and the field.
        field: &'static str,
        /// The number in it.
        value: i64,
    },
    /// Not the bytes of an event.
    #[error("event kind {kind} cannot be decoded: {why}")]
    Malformed {
        /// The number of the kind, 0 when not even that could be read.
        kind: u16,
        /// What is wrong.
        why: String,
    },
}

impl EventError {
    /// Whether a newer engine wrote it, so that this one leaves the run alone.
    pub fn is_too_new(&self) -> bool {
        match self {
            EventError::TooNew { .. } | EventError::NewValue { .. } => true,
            EventError::Malformed { .. } => false,
        }
    }
}

/// What an event holds of its body. The large ones are in a box: a row has few of them, and every
/// other event would be as large.
macro_rules! held {
    ($name:ident) => { $name };
    ($name:ident boxed) => { Box<$name> };
}

macro_rules! events {
    ($($kind:literal $version:literal $name:ident $($boxed:ident)?,)*) => {
        /// One entry of a journal.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "each variant is named after its body, which is documented")]
        pub enum Event { $($name(held!($name $($boxed)?)),)* }

        impl Event {
            /// The number, current version and name of every kind of event.
            pub const KINDS: &'static [(u16, u8, &'static str)] =
                &[$(($kind, $version, stringify!($name)),)*];

            /// The number that stands for this kind in a journal.
            pub fn kind(&self) -> u16 {
                match self { $(Event::$name(_) => $kind,)* }
            }

            /// The version in which bodies of this kind are written now.
            pub fn version(&self) -> u8 {
                match self { $(Event::$name(_) => $version,)* }
            }

            /// The name of the kind.
            pub fn name(&self) -> &'static str {
                match self { $(Event::$name(_) => stringify!($name),)* }
            }

            fn body_len(&self) -> usize {
                match self { $(Event::$name(body) => body.encoded_len(),)* }
            }

            fn put_body(&self, out: &mut Vec<u8>) {
                match self { $(Event::$name(body) => body.encode_raw(out),)* }
            }

            fn read_body(kind: u16, version: u8, body: bytes::Bytes) -> Result<Event, EventError> {
                match (kind, version) {
                    $(($kind, $version) => {
                        let body = $name::decode(body)
                            .map_err(|e| EventError::Malformed { kind, why: e.to_string() })?;
                        match body.newer() {
                            Some((field, value)) => {
                                Err(EventError::NewValue { kind, field, value })
                            }
                            None => Ok(body.into()),
                        }
                    })*
                    _ => Err(EventError::TooNew { kind, version }),
                }
            }
        }

        $(impl From<$name> for Event {
            fn from(body: $name) -> Event { Event::$name(body.into()) }
        })*
    };
}

events! {
    1 1 ExecutionStarted boxed,
    2 1 ExecutionSucceeded,
    3 1 ExecutionFailed,
    4 1 ExecutionCancelled,
    5 1 ExecutionTerminated,
    6 1 ExecutionKilled,

    16 1 StepScheduled boxed,
    17 1 StepStarted,
    18 1 StepSucceeded,
    19 1 StepAttemptFailed,
    20 1 StepFailed,
    21 1 StepCancelRequested,
    22 1 StepAbandoned,
    23 1 StepRetryRequested,

    32 1 TimerStarted,
    33 1 TimerFired,
    34 1 TimerCancelled,

    40 1 WaitStarted boxed,
    41 1 EventReceived boxed,
    42 1 WaitSatisfied,
    43 1 WaitTimedOut,
    44 1 WaitCancelled,

    48 1 Shown,
    49 1 CancelRequested,
    50 1 PauseRequested,
    51 1 Resumed,
    52 1 Blocked,
    53 1 Unblocked,
    54 1 VerbRefused,
    55 1 MarkerRecorded,
    56 1 ValuePublished,
    57 1 AttributesSet,

    64 1 RollbackStarted boxed,
    65 1 UndoStarted,
    66 1 UndoAttemptFailed,
    67 1 UndoSucceeded,
    68 1 UndoFailed,
    69 1 UndoNotNeeded,
    70 1 UndoRetryRequested,
    71 1 UndoWaived,
    72 1 RollbackFinished,
}

impl Event {
    /// Whether it closes the run or decides to roll it back. (A kill is decided by a person.)
    pub fn decides(&self) -> bool {
        matches!(
            self,
            Event::RollbackStarted(_)
                | Event::ExecutionSucceeded(_)
                | Event::ExecutionFailed(_)
                | Event::ExecutionCancelled(_)
                | Event::ExecutionTerminated(_)
        )
    }

    /// How many bytes [`Event::encode`] appends.
    pub fn encoded_len(&self) -> usize {
        let body = self.body_len();
        3 + prost::encoding::encoded_len_varint(body as u64) + body
    }

    /// Appends the event to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(self.kind());
        out.put_u8(self.version());
        // Its length goes before the body, and is known behind it: to ask for it first would go
        // through all messages in it once more. Most lengths need the one byte that is kept free.
        let place = out.len();
        out.put_u8(0);
        self.put_body(out);
        let length = out.len() - place - 1;
        match u8::try_from(length) {
            Ok(length @ 0..0x80) => out[place] = length,
            Ok(_) | Err(_) => {
                let mut prefix = Vec::new();
                prost::encoding::encode_varint(length as u64, &mut prefix);
                out.splice(place..=place, prefix);
            }
        }
    }

    /// Takes one event off the front of `input`.
    pub fn decode(input: &mut bytes::Bytes) -> Result<Event, EventError> {
        let short = |kind| EventError::Malformed { kind, why: "it ends too early".into() };
        if input.remaining() < 3 {
            return Err(short(0));
        }
        let kind = input.get_u16();
        let version = input.get_u8();
        let length = prost::encoding::decode_varint(input)
            .map_err(|e| EventError::Malformed { kind, why: e.to_string() })?;
        match usize::try_from(length) {
            Ok(length) if length <= input.remaining() => {
                Event::read_body(kind, version, input.split_to(length))
            }
            _ => Err(short(kind)),
        }
    }
}
