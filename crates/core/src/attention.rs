//! Open matters that only a person can settle, derived by the fold.

use crate::id::Ordinal;

/// Why a person is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttentionKind {
    /// A step is blocked.
    StepBlocked,
    /// The code does not fit the journal.
    Mismatch,
    /// The code awaits something that the engine does not know.
    ForeignWait,
    /// The journal cannot be read.
    Unreadable,
    /// An undo failed for good.
    UndoFailed,
    /// A body was left behind; its effect may land later.
    DidNotYield,
    /// The run was killed and owes undos.
    Killed,
}

impl AttentionKind {
    /// A short stable name.
    pub fn name(self) -> &'static str {
        match self {
            AttentionKind::StepBlocked => "step_blocked",
            AttentionKind::Mismatch => "mismatch",
            AttentionKind::ForeignWait => "foreign_wait",
            AttentionKind::Unreadable => "unreadable",
            AttentionKind::UndoFailed => "undo_failed",
            AttentionKind::DidNotYield => "did_not_yield",
            AttentionKind::Killed => "killed",
        }
    }
}

/// One open matter; its id is (run, seq, ord).
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionItem {
    /// The row that opened it.
    pub seq: u64,
    /// The step, or 0 for the run.
    pub ord: Ordinal,
    /// Why.
    pub kind: AttentionKind,
    /// A sentence for people.
    pub message: String,
}

/// What a row did to the open matters; the store keeps an index of them.
#[derive(Clone, Debug, PartialEq)]
pub enum AttentionEdit {
    /// Opened.
    Opened(AttentionItem),
    /// Settled.
    Closed {
        /// The row that had opened it.
        seq: u64,
        /// The step, or 0 for the run.
        ord: Ordinal,
    },
}
