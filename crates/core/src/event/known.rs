//! Values of enumerations that a newer engine wrote.
//!
//! Protobuf keeps a number that it has no name for, and the accessor of the field would read it as
//! the first value. So each message is asked for such numbers once, when it is decoded.

use super::*;
use crate::failure::{Class, Effect, Failure, FailureData, Origin};
use crate::id::{Key, KeyKind};
use crate::retry::{
    Backoff, Jitter, OnAbandon, OnExhausted, OnUndoFailure, Retry, StepPolicy, UndoOn, UndoPolicy,
};

/// A field, and the number in it that this engine does not know.
pub(super) type Newer = (&'static str, i64);

/// What every event implements, and every message with an enumeration that an event holds.
pub(super) trait Known {
    /// The first number of which this engine does not know what it means.
    fn newer(&self) -> Option<Newer>;
}

impl<T: Known> Known for Option<T> {
    fn newer(&self) -> Option<Newer> {
        self.as_ref().and_then(Known::newer)
    }
}

impl<T: Known> Known for Vec<T> {
    fn newer(&self) -> Option<Newer> {
        self.iter().find_map(Known::newer)
    }
}

/// `Message { enumerations: Type, …; fields that hold such, … }`
macro_rules! known {
    ($($message:ident { $($field:ident: $values:ty),*; $($within:ident),* })*) => {
        $(impl Known for $message {
            fn newer(&self) -> Option<Newer> {
                $(if !<$values>::is_valid(self.$field) {
                    let field = concat!(stringify!($message), ".", stringify!($field));
                    return Some((field, self.$field.into()));
                })*
                $(if let Some(newer) = self.$within.newer() {
                    return Some(newer);
                })*
                None
            }
        })*
    };
}

known! {
    ExecutionSucceeded { ; }
    ExecutionFailed { ; failure }
    ExecutionCancelled { ; }
    ExecutionTerminated { ; }
    ExecutionKilled { ; }

    StepScheduled { ; key, policy, undo }
    StepStarted { ; policy }
    StepSucceeded { ; }
    StepAttemptFailed { ; failure }
    StepFailed { ; failure }
    StepCancelRequested { ; }
    StepAbandoned { why: AbandonWhy; }
    StepRetryRequested { ; }

    TimerStarted { ; key }
    TimerFired { ; }
    TimerCancelled { ; }

    WaitStarted { ; key }
    EventReceived { ; }
    WaitSatisfied { ; }
    WaitTimedOut { ; }
    WaitCancelled { ; }

    Shown { ; }
    CancelRequested { verb: CancelVerb; }
    PauseRequested { ; }
    Resumed { ; }
    Blocked { what: BlockKind; failure }
    Unblocked { what: BlockKind; }
    VerbRefused { ; }
    MarkerRecorded { ; }
    ValuePublished { ; }
    AttributesSet { origin: AttributeOrigin; }

    RollbackStarted { ; causes, ends_in }
    UndoStarted { ; policy }
    UndoAttemptFailed { ; failure }
    UndoSucceeded { ; }
    UndoFailed { ; failure }
    UndoNotNeeded { ; }
    UndoRetryRequested { ; }
    UndoWaived { ; }
    RollbackFinished { outcome: RollbackOutcome; }

    Key { kind: KeyKind; }
    FailureData { class: Class, origin: Origin, effect: Effect; }
    Retry { backoff: Backoff, jitter: Jitter; }
    StepPolicy { on_exhausted: OnExhausted, undo_on: UndoOn, on_abandon: OnAbandon; retry }
    UndoPolicy { on_failure: OnUndoFailure; retry }
    UndoSpec { ; policy }
    RollbackCause { kind: CauseKind; failure }
    EndsIn { kind: EndKind; failure }
}

impl Known for Failure {
    fn newer(&self) -> Option<Newer> {
        FailureData::newer(self)
    }
}

/// Its rules of delivery decide what the whole journal means.
impl Known for ExecutionStarted {
    fn newer(&self) -> Option<Newer> {
        let semantics = self.semantics;
        (semantics > SEMANTICS).then(|| ("ExecutionStarted.semantics", semantics.into()))
    }
}
