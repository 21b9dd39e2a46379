//! The conditions of a change, judged in one order by every store that runs in this process.
//!
//! **Invariant:** a judgement only reads. Whoever gets `None` may write; an answer means that
//! nothing is to be written.

use backstitch_core::id::RunId;
use backstitch_core::inbox::InboxKind;
use backstitch_core::row::{FORMAT, Header};
use bytes::Bytes;
use prost::Message;

use crate::{Answer, Append, InboxPut, Refusal, RunInfo, RunNo, Start};

/// Where a journal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The seq of its last row.
    pub last: u64,
    /// Whether a closing row was appended.
    pub closed: bool,
}

/// An inbox row as far as a repeated request is compared with it.
pub(crate) struct Accepted {
    pub number: u64,
    pub kind: InboxKind,
    pub digest: [u8; 32],
    pub accepted_at_us: i64,
}

/// What a judgement has to know; each is looked up only when it is needed.
pub(crate) trait Facts {
    /// Why a look-up can fail.
    type Error;

    /// The newest fence.
    fn fence(&self) -> u64;
    /// Where the journal of a run ends; `None` if there is no such run.
    fn tail(&mut self, run: RunNo) -> Result<Option<Tail>, Self::Error>;
    /// The sealed row at `seq`.
    fn row(&mut self, run: RunNo, seq: u64) -> Result<Option<Bytes>, Self::Error>;
    /// The kinds of the inbox rows above `read`, in order of acceptance.
    fn unread(&mut self, run: RunNo, read: u64) -> Result<Vec<InboxKind>, Self::Error>;
    /// The inbox row with this request id.
    fn accepted(&mut self, run: RunNo, request: &str) -> Result<Option<Accepted>, Self::Error>;
    /// The newest run of an execution.
    fn newest(&mut self, namespace: &str, id: &str) -> Result<Option<RunInfo>, Self::Error>;
}

/// Judges a start.
pub(crate) fn judge_start<F: Facts>(
    facts: &mut F,
    start: &Start,
) -> Result<Option<Answer>, F::Error> {
    let new = &start.execution;
    let found = facts.newest(&new.namespace, &new.id)?;
    if let Some(info) = &found
        && is_same_run(info, new.run_id)
    {
        return Ok(Some(Answer::Started { run: info.run, at_us: info.created_at_us }));
    }
    if start.first.header.fence != facts.fence() {
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
    if header.fence != facts.fence() {
        return refuse(Refusal::Fenced { newest: facts.fence() });
    }
    if tail.closed {
        return refuse(Refusal::Closed);
    }
    if header.seq != tail.last + 1 {
        return refuse(Refusal::Seq { last: tail.last });
    }
    let Some(guard) = &append.guard else { return Ok(None) };
    let mut unread = Vec::new();
    for kind in facts.unread(append.run, guard.read)? {
        if guard.kinds.contains(&kind) && !unread.contains(&kind) {
            unread.push(kind);
        }
    }
    if unread.is_empty() { Ok(None) } else { refuse(Refusal::Unread(unread)) }
}

/// Judges an inbox row. A repeated one gets its first answer even after the run has closed.
pub(crate) fn judge_inbox<F: Facts>(
    facts: &mut F,
    put: &InboxPut,
) -> Result<Option<Answer>, F::Error> {
    let Some(tail) = facts.tail(put.run)? else {
        return refuse(Refusal::UnknownRun);
    };
    if let Some(found) = facts.accepted(put.run, &put.request_id)? {
        if found.kind != put.kind || found.digest != put.digest {
            return refuse(Refusal::OtherRequest);
        }
        let Accepted { number, accepted_at_us, .. } = found;
        return Ok(Some(Answer::Accepted { number, accepted_at_us, first: false }));
    }
    if tail.closed { refuse(Refusal::Closed) } else { Ok(None) }
}

fn refuse<E>(refusal: Refusal) -> Result<Option<Answer>, E> {
    Ok(Some(Answer::Refused(refusal)))
}

fn is_same_run(info: &RunInfo, run_id: RunId) -> bool {
    info.new.run_id == run_id
}

/// When the row that this append offers was committed, if it was.
pub(crate) fn repeated<F: Facts>(facts: &mut F, append: &Append) -> Result<Option<i64>, F::Error> {
    let header = &append.draft.header;
    let stored = facts.row(append.run, header.seq)?;
    Ok(stored
        .and_then(|row| header_of(&row))
        .filter(|stored| stored.append_id == header.append_id)
        .map(|stored| stored.at_us))
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
