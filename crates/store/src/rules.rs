//! The conditions of a change, judged in one order by every store that runs in this process.
//!
//! **Invariant:** a judgement only reads. Whoever gets `None` may write; an answer means that
//! nothing is to be written. An owner that is not the newest never gets `None` (P4): it hears again
//! what it was told, and no more.

use backstitch_core::id::RunId;
use backstitch_core::inbox::InboxKind;
use backstitch_core::row::{FORMAT, Header};
use bytes::Bytes;
use prost::Message;

use crate::role::{GUEST_FENCE, Role};
use crate::{Answer, Append, Expects, Guard, InboxPut, Refusal, RunInfo, RunNo, Start};

/// Where the journal and the inbox of a run end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The seq of the last row of its journal.
    pub last: u64,
    /// Whether the run is closed.
    pub closed: bool,
    /// The number of the last row of its inbox, 0 if there is none: how many it has got in all.
    pub accepted: u64,
}

/// An inbox row as far as a repeated request is compared with it.
pub(crate) struct Accepted {
    pub number: u64,
    pub kind: InboxKind,
    pub digest: [u8; 32],
    pub accepted_at_us: i64,
    pub changed: bool,
}

/// An inbox row as far as a guard is interested in it.
pub(crate) struct Unread {
    pub kind: InboxKind,
    pub topic: String,
}

/// What a judgement has to know; each is looked up only when it is needed.
pub(crate) trait Facts {
    /// Why a look-up can fail.
    type Error;

    /// The newest fence.
    fn fence(&self) -> u64;
    /// Where a run ends; `None` if there is no such run.
    fn tail(&mut self, run: RunNo) -> Result<Option<Tail>, Self::Error>;
    /// The sealed row at `seq`.
    fn row(&mut self, run: RunNo, seq: u64) -> Result<Option<Bytes>, Self::Error>;
    /// The inbox rows above `read`, in order of acceptance.
    fn unread(&mut self, run: RunNo, read: u64) -> Result<Vec<Unread>, Self::Error>;
    /// The inbox row with this request id.
    fn accepted(&mut self, run: RunNo, request: &str) -> Result<Option<Accepted>, Self::Error>;
    /// The newest run of an execution.
    fn newest(&mut self, namespace: &str, id: &str) -> Result<Option<RunInfo>, Self::Error>;
    /// Whether an attention item of the run is open.
    fn has_attention(&mut self, run: RunNo) -> Result<bool, Self::Error>;
    /// Whether the run is called.
    fn is_called(&mut self, run: RunNo) -> Result<bool, Self::Error>;
}

/// Judges a start. A first row under no fence is as good as one under the newest: it carries nothing
/// on.
pub(crate) fn judge_start<F: Facts>(
    facts: &mut F,
    role: Role,
    start: &Start,
) -> Result<Option<Answer>, F::Error> {
    let new = &start.execution;
    let found = facts.newest(&new.namespace, &new.id)?;
    if let Some(info) = &found
        && is_same_run(info, new.run_id)
    {
        return Ok(Some(Answer::Started {
            run: info.run,
            at_us: info.created_at_us,
            first: false,
        }));
    }
    if is_fenced(facts, role)
        || (!is_guests(start) && !may_go_on(facts, role, start.first.header.fence))
    {
        return refuse(Refusal::Fenced { newest: facts.fence() });
    }
    if start.first.header.seq != 1 {
        return refuse(Refusal::Seq { last: 0 });
    }
    match found {
        Some(info) if start.expected != Some(info.run) => Ok(Some(Answer::Exists(Box::new(info)))),
        // The caller expects a run that is not there: it has read another store, or a deleted run.
        None if start.expected.is_some() => refuse(Refusal::UnknownRun),
        Some(_) | None => Ok(None),
    }
}

/// Judges an append. A repeated one is recognised first, whoever owns the run by now.
pub(crate) fn judge_append<F: Facts>(
    facts: &mut F,
    role: Role,
    append: &Append,
) -> Result<Option<Answer>, F::Error> {
    let header = &append.draft.header;
    let Some(tail) = facts.tail(append.run)? else {
        return refuse(Refusal::UnknownRun);
    };
    if header.seq <= tail.last
        && let Some(at_us) = repeated(facts, append)?
    {
        return Ok(Some(Answer::Appended { at_us }));
    }
    if !may_go_on(facts, role, header.fence) {
        return refuse(Refusal::Fenced { newest: facts.fence() });
    }
    match append.expects {
        Expects::Open if tail.closed => return refuse(Refusal::Closed),
        Expects::Closed if !tail.closed => return refuse(Refusal::Open),
        Expects::Open | Expects::Closed => {}
    }
    if header.seq != tail.last + 1 {
        return refuse(Refusal::Seq { last: tail.last });
    }
    let Guard { kinds, topics } = &append.guard;
    if tail.accepted <= append.read {
        return Ok(None);
    }
    judge_unread(facts, append.run, append.read, (kinds, topics))
}

/// Judges by what stands in the inbox after row `read`: none may be of these kinds, and no event of these topics.
fn judge_unread<F: Facts>(
    facts: &mut F,
    run: RunNo,
    read: u64,
    (kinds, topics): (&[InboxKind], &[String]),
) -> Result<Option<Answer>, F::Error> {
    if kinds.is_empty() && topics.is_empty() {
        return Ok(None);
    }
    let mut unread = Vec::new();
    for Unread { kind, topic } in facts.unread(run, read)? {
        let is_awaited = kind == InboxKind::Event && topics.contains(&topic);
        if (is_awaited || kinds.contains(&kind)) && !unread.contains(&kind) {
            unread.push(kind);
        }
    }
    if unread.is_empty() { Ok(None) } else { refuse(Refusal::Unread(unread)) }
}

/// Judges an inbox row. A repeated one gets its first answer even after the run has closed.
pub(crate) fn judge_inbox<F: Facts>(
    facts: &mut F,
    role: Role,
    put: &InboxPut,
) -> Result<Option<Answer>, F::Error> {
    let Some(tail) = facts.tail(put.run)? else {
        return refuse(Refusal::UnknownRun);
    };
    if let Some(found) = facts.accepted(put.run, &put.request_id)? {
        if found.kind != put.kind || found.digest != put.digest {
            return refuse(Refusal::OtherRequest);
        }
        let Accepted { number, accepted_at_us, changed, .. } = found;
        return Ok(Some(Answer::Accepted { number, accepted_at_us, changed, first: false }));
    }
    // What it put for an open run would call nobody, because an owner looks there by itself.
    if is_fenced(facts, role) {
        return refuse(Refusal::Fenced { newest: facts.fence() });
    }
    if tail.closed && !put.kind.is_for_closed() {
        return refuse(Refusal::Closed);
    }
    if tail.accepted > put.seen
        && let Some(refused) = judge_unread(facts, put.run, put.seen, (&put.guard, &[]))?
    {
        return Ok(Some(refused));
    }
    if tail.accepted >= put.rows_max { refuse(Refusal::Full) } else { Ok(None) }
}

/// Judges what only the owner may do: taking calls off the list, freeing space.
pub(crate) fn judge_of_the_owner<F: Facts>(
    facts: &mut F,
    role: Role,
) -> Result<Option<Answer>, F::Error> {
    if may_go_on(facts, role, role.fence()) {
        Ok(None)
    } else {
        refuse(Refusal::Fenced { newest: facts.fence() })
    }
}

/// Judges a deletion.
pub(crate) fn judge_delete<F: Facts>(
    facts: &mut F,
    role: Role,
    run: RunNo,
) -> Result<Option<Answer>, F::Error> {
    match facts.tail(run)? {
        None => return refuse(Refusal::UnknownRun),
        Some(_) if is_fenced(facts, role) => {
            return refuse(Refusal::Fenced { newest: facts.fence() });
        }
        Some(tail) if !tail.closed => return refuse(Refusal::Open),
        Some(_) => {}
    }
    if facts.has_attention(run)? {
        return refuse(Refusal::Attention);
    }
    if facts.is_called(run)? { refuse(Refusal::Called) } else { Ok(None) }
}

/// Whether a start calls its run: nobody drives what a guest has begun.
pub(crate) fn is_guests(start: &Start) -> bool {
    start.first.header.fence == GUEST_FENCE
}

/// Whether an inbox row calls its run: its owner would not look there by itself.
pub(crate) fn put_calls(role: Role, tail: Tail) -> bool {
    match role {
        Role::Owner { .. } => tail.closed,
        Role::Guest => true,
    }
}

/// Whether an append calls its run, which ends at `tail` before it: it closes the run over something
/// that is for closed runs.
pub(crate) fn append_calls<F: Facts>(
    facts: &mut F,
    tail: Tail,
    append: &Append,
) -> Result<bool, F::Error> {
    let closes = append.expects == Expects::Open
        && append.update.as_ref().is_some_and(|update| update.status.is_closed());
    if !closes || tail.accepted <= append.read {
        return Ok(false);
    }
    let unread = facts.unread(append.run, append.read)?;
    Ok(unread.iter().any(|row| row.kind.is_for_closed()))
}

/// Whether a run is closed after an append that was judged to be good.
pub(crate) fn closed_after(append: &Append) -> bool {
    match (&append.update, append.expects) {
        (Some(update), Expects::Open | Expects::Closed) => update.status.is_closed(),
        (None, Expects::Open) => false,
        (None, Expects::Closed) => true,
    }
}

/// Whether this one may carry on under `fence`: its own, and the newest.
fn may_go_on<F: Facts>(facts: &F, role: Role, fence: u64) -> bool {
    match role {
        Role::Owner { fence: own } => fence == own && own == facts.fence(),
        Role::Guest => false,
    }
}

/// Whether this one has owned the store and another one came after it.
fn is_fenced<F: Facts>(facts: &F, role: Role) -> bool {
    match role {
        Role::Owner { fence } => fence != facts.fence(),
        Role::Guest => false,
    }
}

fn refuse<E>(refusal: Refusal) -> Result<Option<Answer>, E> {
    Ok(Some(Answer::Refused(refusal)))
}

fn is_same_run(info: &RunInfo, run_id: RunId) -> bool {
    info.new.run_id == run_id
}

/// When the row that this append offers was committed, if it was.
fn repeated<F: Facts>(facts: &mut F, append: &Append) -> Result<Option<i64>, F::Error> {
    let header = &append.draft.header;
    let stored = facts.row(append.run, header.seq)?;
    Ok(stored.and_then(|row| sealed_at_us(&row, header)))
}

/// When `row` was committed, if it is the one that was offered with `header`.
pub(crate) fn sealed_at_us(row: &[u8], header: &Header) -> Option<i64> {
    let stored = header_of(row)?;
    (stored.append_id == header.append_id).then_some(stored.at_us)
}

/// The header of a sealed row. The events behind it may be of any version, and a damaged row is
/// no row that anybody has offered again.
fn header_of(row: &[u8]) -> Option<Header> {
    let (format, mut rest) = row.split_first()?;
    if *format != FORMAT {
        return None;
    }
    Header::decode_length_delimited(&mut rest).ok()
}
