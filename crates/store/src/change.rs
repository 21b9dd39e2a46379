//! The changes that a store makes, and its answers.

use std::sync::Arc;

use backstitch_core::attribute::AttributeChange;
use backstitch_core::id::{Ordinal, RunId};
use backstitch_core::inbox::InboxKind;
use backstitch_core::row::Draft;
use backstitch_core::status::Status;
use bytes::Bytes;

use crate::{RunInfo, RunNo};

/// One atomic change.
///
/// An owner after which another one came is refused each of them as [`Refusal::Fenced`]; only what it
/// has offered before is recognised, and gets its first answer.
#[derive(Clone, Debug)]
pub enum Change {
    /// Begins a run.
    Start(Box<Start>),
    /// Appends one row to a journal. Shared, because the owner keeps it to offer it again.
    Append(Arc<Append>),
    /// Puts one row into an inbox.
    Inbox(Box<InboxPut>),
    /// Takes calls off the list that were heard. Refused as [`Refusal::Fenced`] unless the newest owner
    /// offers it.
    ///
    /// After an error read the list again instead of offering this one again: a run may have been
    /// heard and called anew, just as often as before.
    Heard(Vec<Call>),
    /// Deletes a run, at once for whoever reads; [`Change::Purge`] frees the space.
    ///
    /// Refused unless the run is closed ([`Refusal::Open`]), while an attention item of it is open
    /// ([`Refusal::Attention`]), and while it is called ([`Refusal::Called`]). Its number is never
    /// used again; its id is free, or has the run before it. A guest may offer it as well; offered again,
    /// it is refused as [`Refusal::UnknownRun`].
    Delete(RunNo),
    /// Frees the space of deleted runs, a little at a time: at most `rows` rows. Refused as
    /// [`Refusal::Fenced`] unless the newest owner offers it.
    Purge {
        /// So many at most.
        rows: usize,
    },
}

impl From<Start> for Change {
    fn from(start: Start) -> Change {
        Change::Start(Box::new(start))
    }
}

impl From<Append> for Change {
    fn from(append: Append) -> Change {
        Change::Append(Arc::new(append))
    }
}

impl From<InboxPut> for Change {
    fn from(put: InboxPut) -> Change {
        Change::Inbox(Box::new(put))
    }
}

/// Begins a run: its execution row and the first row of its journal.
///
/// Applied only if the newest run of the id is `expected` (`None`: the id has no run); otherwise
/// the answer is [`Answer::Exists`] with the run that was found. If that run has the `run_id`
/// offered here, the change was applied before, and the answer is [`Answer::Started`] again.
/// Refused if `expected` names a run of an id that has none, if the fence is not the newest, or if
/// the first row does not have seq 1. A guest starts runs under fence 0, which is always good
/// enough for a first row; such a run is called. Under another fence a guest is refused.
#[derive(Clone, Debug)]
pub struct Start {
    /// The execution's own row.
    pub execution: NewExecution,
    /// Row 1 of the journal.
    pub first: Draft,
    /// The newest run that the caller knows of.
    pub expected: Option<RunNo>,
    /// The first status: running if the caller goes on with it at once, else pending.
    pub status: Status,
    /// The first search attributes.
    pub attributes: Vec<AttributeChange>,
}

/// What is known of a run from its start; never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct NewExecution {
    /// The namespace of the id.
    pub namespace: String,
    /// The business id.
    pub id: String,
    /// The id of the run.
    pub run_id: RunId,
    /// The workflow.
    pub workflow: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of the input.
    pub input_digest: [u8; 32],
    /// The run that has to be closed before this one is dispatched.
    pub after: Option<RunNo>,
}

/// What the owner says of a run besides its journal; changes only when one of these does.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionUpdate {
    /// The derived status.
    pub status: Status,
    /// The next instant at which something is due, its deadline included.
    pub wake_at_us: Option<i64>,
    /// When a closed run may be deleted; never, if absent.
    pub expires_at_us: Option<i64>,
}

/// Appends one row to a journal.
///
/// An append whose seq and append id are already there was applied before: the answer is the
/// same again, and nothing changes (B96). Refused, whole, when the seq is not the next one, the
/// fence is not the newest, the run is not in the state that is expected, or the guard finds
/// something unread.
///
/// A row that closes a run while something for closed runs ([`InboxKind::is_for_closed`]) stands
/// unread in its inbox calls the run, so that it is not forgotten.
#[derive(Clone, Debug)]
pub struct Append {
    /// The run.
    pub run: RunNo,
    /// The row; its header names seq, fence and append id.
    pub draft: Draft,
    /// The state in which the row finds the run.
    pub expects: Expects,
    /// The last inbox row that the writer has read.
    pub read: u64,
    /// What must not stand unread in the inbox.
    pub guard: Guard,
    /// The new execution row, if it changes. A closed status stamps `closed_at_us` (anew, if the run
    /// was closed before); any other one takes it away.
    pub update: Option<ExecutionUpdate>,
    /// Attention items that this row opens or closes.
    pub attention: Vec<AttentionChange>,
    /// Search attributes that this row sets or takes away.
    pub attributes: Vec<AttributeChange>,
}

/// Whether a run is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expects {
    /// It is not; else [`Refusal::Closed`].
    Open,
    /// It is; else [`Refusal::Open`].
    Closed,
}

/// What must not stand unread when a row closes a run, starts a rollback or lets a wait time out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Guard {
    /// No unread row may be of one of these kinds.
    pub kinds: Vec<InboxKind>,
    /// No unread event may be of one of these types.
    pub topics: Vec<String>,
}

/// A run that its owner has to look at: something was put into its inbox by a guest, or for a closed
/// run; or a guest has started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The run.
    pub run: RunNo,
    /// How often it was called since it was last heard; a call that has grown meanwhile stays.
    pub times: u64,
}

/// A change of the index of attention items.
#[derive(Clone, Debug, PartialEq)]
pub enum AttentionChange {
    /// A new item, opened by this row.
    Open {
        /// The step, or 0 for the run.
        ord: Ordinal,
        /// A short stable name.
        kind: String,
        /// A sentence for people.
        message: String,
    },
    /// The item is settled.
    Close {
        /// The row that opened it.
        seq: u64,
        /// The step, or 0 for the run.
        ord: Ordinal,
    },
}

/// Puts one row into the inbox of a run: an open one, or a closed one for the kinds that are for
/// closed runs ([`InboxKind::is_for_closed`]), which calls it. A guest's row calls the run always.
///
/// The same request id with the same kind and digest is accepted again with its first number; with
/// another one it is [`Refusal::OtherRequest`].
#[derive(Clone, Debug)]
pub struct InboxPut {
    /// The run.
    pub run: RunNo,
    /// What it asks for.
    pub kind: InboxKind,
    /// The sender's id of the request; unique within the run.
    pub request_id: String,
    /// The type of an event; empty for a verb.
    pub topic: String,
    /// The body.
    pub payload: Bytes,
    /// SHA-256 of what the request says, before any codec.
    pub digest: [u8; 32],
    /// What the sender will be told, now and when it asks again.
    pub changed: bool,
    /// Refused as [`Refusal::Full`] when the inbox has got so many rows in all.
    pub rows_max: u64,
    /// The last row of the inbox with which the sender has judged it.
    pub seen: u64,
    /// Refused as [`Refusal::Unread`] when a row of one of these kinds stands after that one.
    pub guard: Vec<InboxKind>,
}

/// What a store answers to a change.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The run was begun (now, or by the same change before).
    Started {
        /// Its number.
        run: RunNo,
        /// The instant of the commit.
        at_us: i64,
        /// False if the same change had begun it before.
        first: bool,
    },
    /// The id has another newest run than expected.
    Exists(Box<RunInfo>),
    /// The row is durable (now, or by the same append before).
    Appended {
        /// The instant of the commit.
        at_us: i64,
    },
    /// The inbox row is durable.
    Accepted {
        /// Its number in the run.
        number: u64,
        /// The instant of its acceptance.
        accepted_at_us: i64,
        /// As it was put at first.
        changed: bool,
        /// False if the same request was accepted before.
        first: bool,
    },
    /// The calls that were heard are off the list.
    Heard,
    /// The run is gone.
    Deleted,
    /// Space was freed.
    Purged {
        /// Whether there is more to free.
        more: bool,
    },
    /// A condition did not hold; nothing was changed.
    Refused(Refusal),
}

/// Why a change was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// There is no such run.
    UnknownRun,
    /// The run is closed.
    Closed,
    /// The run is not closed.
    Open,
    /// An attention item of the run is open.
    Attention,
    /// The run is called, and its owner has not heard it yet.
    Called,
    /// The inbox of the run is full.
    Full,
    /// The journal ends elsewhere; `last` is its last row.
    Seq {
        /// The last seq of the journal.
        last: u64,
    },
    /// Another owner came after this one.
    Fenced {
        /// The newest fence.
        newest: u64,
    },
    /// Rows of guarded kinds stand unread in the inbox.
    Unread(Vec<InboxKind>),
    /// The request id was used before for something else.
    OtherRequest,
}
