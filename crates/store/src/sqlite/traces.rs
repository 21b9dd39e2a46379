//! What a batch has left in the file, when the outcome of its commit is unknown.
//!
//! A batch is there whole or not at all, so one change that has left a trace of its own decides for
//! all of them. Other processes may have gone on meanwhile; what they can have done as well is no
//! trace. (A run that was begun, closed, deleted and purged before this one could look leaves none.)

use rusqlite::{Connection, Result};

use super::{calls, query};
use crate::rules::sealed_at_us;
use crate::{Answer, Change};

/// What a search has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traces {
    /// The batch is there.
    There,
    /// It is not.
    Absent,
}

/// Searches for the changes that were written, each with the answer that it would have got.
///
/// # Errors
/// Each place where a trace might be is damaged.
pub(super) fn search<'a>(
    connection: &Connection,
    written: impl Iterator<Item = (&'a Change, &'a Answer)>,
) -> Result<Traces> {
    let mut failed = None;
    let mut without = Vec::new();
    for (change, answer) in written {
        match trace_of(connection, change, answer) {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => without.push(change),
            Err(error) => failed = Some(error),
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    // Nobody else depends on these, so it is enough that what they ask for is so.
    for change in &without {
        if !is_so(connection, change)? {
            return Ok(Traces::Absent);
        }
    }
    Ok(if without.is_empty() { Traces::Absent } else { Traces::There })
}

/// Whether a change is there, if it leaves something that nobody else can have written.
fn trace_of(connection: &Connection, change: &Change, answer: &Answer) -> Result<Option<Traces>> {
    let is_there = match change {
        Change::Start(start) => {
            let Answer::Started { run, .. } = answer else { unreachable!("a start was written") };
            match query::run(connection, *run)? {
                Some(info) => info.new.run_id == start.execution.run_id,
                // It may have been deleted since.
                None => query::journal_row(connection, *run, 1)?
                    .is_some_and(|row| sealed_at_us(&row, &start.first.header).is_some()),
            }
        }
        Change::Append(append) => {
            let header = &append.draft.header;
            query::journal_row(connection, append.run, header.seq)?
                .is_some_and(|row| sealed_at_us(&row, header).is_some())
        }
        Change::Inbox(put) => {
            let Answer::Accepted { number, accepted_at_us, .. } = answer else {
                unreachable!("an inbox row was written")
            };
            // Another process may have put the same request meanwhile.
            query::accepted(connection, put.run, &put.request_id)?.is_some_and(|found| {
                (found.number, found.accepted_at_us) == (*number, *accepted_at_us)
            })
        }
        Change::Heard(_) | Change::Delete(_) | Change::Purge { .. } => return Ok(None),
    };
    Ok(Some(if is_there { Traces::There } else { Traces::Absent }))
}

/// Whether what a change without a trace asks for is so, whoever has done it.
fn is_so(connection: &Connection, change: &Change) -> Result<bool> {
    match change {
        Change::Heard(heard) => {
            for call in heard {
                if calls::stands(connection, call)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Change::Delete(run) => Ok(query::run(connection, *run)?.is_none()),
        // Offered again, it frees what is left.
        Change::Purge { .. } => Ok(false),
        Change::Start(_) | Change::Append(_) | Change::Inbox(_) => {
            unreachable!("leaves a trace")
        }
    }
}
