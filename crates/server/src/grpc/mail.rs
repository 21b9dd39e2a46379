//! From the engine's words to those on the wire.

use backstitch_api::worker as wire;
use backstitch_core::inbox::InboxRow;
use backstitch_engine::Error;
use backstitch_engine::workers::{Leased, ToWorker, Written};
use bytes::Bytes;
use wire::from_server::Message;

/// So much of rows and inboxes goes into one message, in bytes, if it is more than one row: messages of many
/// runs share a connection, and none should wait long for another.
const MESSAGE_BYTES_SOFT_MAX: usize = 1024 * 1024;

/// Rows that are read at a time: each can be larger than a message, and what has no room is read again.
const ROWS_AT_ONCE: usize = 16;

/// What is sent for one message of the engine: one, or more if there is much in it.
pub(super) fn messages(mail: ToWorker) -> Vec<wire::FromServer> {
    let messages = match mail {
        ToWorker::Lease(lease) => lease_messages(*lease),
        ToWorker::Answer { run, append_id, answer } => {
            let answer = Some(answer_of(answer));
            vec![Message::Answer(wire::Answer { run: run.0, append_id, answer })]
        }
        ToWorker::Inbox { run, fence, rows } => inbox_messages(run.0, fence, rows),
        ToWorker::Revoke { run, fence, why, in_good_order } => {
            vec![Message::Revoke(wire::Revoke { run: run.0, fence, why, in_good_order })]
        }
    };
    let whole = |message| wire::FromServer { message: Some(message) };
    messages.into_iter().map(whole).collect()
}

fn lease_messages(lease: Leased) -> Vec<Message> {
    let Leased { run, fence, new, version, created_at_us, rows, seq, inbox } = lease;
    let mut inbox = inbox_messages(run.0, fence, inbox).into_iter();
    let first = match inbox.next() {
        Some(Message::Inbox(first)) => first.rows,
        _ => Vec::new(),
    };
    let lease = wire::Lease {
        run: run.0,
        fence,
        namespace: new.namespace,
        id: new.id,
        run_id: new.run_id.to_vec(),
        workflow: new.workflow,
        version,
        created_at_us,
        rows: first_of(rows.into_iter().map(Vec::from).collect(), Vec::len).0,
        seq,
        inbox: first,
        input_digest: new.input_digest.to_vec(),
    };
    [Message::Lease(lease)].into_iter().chain(inbox).collect()
}

fn inbox_messages(run: i64, fence: u64, rows: Vec<InboxRow>) -> Vec<Message> {
    let mut left: Vec<wire::InboxRow> = rows.into_iter().map(inbox_row).collect();
    let mut messages = Vec::new();
    while !left.is_empty() {
        let (rows, rest) = first_of(left, |row| row.payload.len());
        messages.push(Message::Inbox(wire::Inbox { run, fence, rows }));
        left = rest;
    }
    messages
}

pub(super) fn inbox_row(row: InboxRow) -> wire::InboxRow {
    wire::InboxRow {
        number: row.number,
        kind: row.kind as u32,
        request_id: row.request_id,
        topic: row.topic,
        payload: row.payload.into(),
        changed: row.changed,
        accepted_at_us: row.accepted_at_us,
    }
}

/// Reads rows of a journal, or of an inbox, for one message: a few at a time until there are `limit`, or as many as it
/// has room for. Gives them, and whether there are no more.
pub(super) async fn page<T, F>(
    after: u64,
    limit: usize,
    read: impl Fn(u64, usize) -> F,
    size_and_number: impl Fn(&T, u64) -> (usize, u64),
) -> Result<(Vec<T>, bool), Error>
where
    F: Future<Output = Result<Vec<T>, Error>>,
{
    let (mut rows, mut sum, mut last) = (Vec::new(), 0, after);
    while rows.len() < limit {
        let at_once = ROWS_AT_ONCE.min(limit - rows.len());
        let more = read(last, at_once).await?;
        let is_end = more.len() < at_once;
        for row in more {
            let (bytes, number) = size_and_number(&row, last);
            sum += bytes;
            if sum > MESSAGE_BYTES_SOFT_MAX && !rows.is_empty() {
                return Ok((rows, false));
            }
            rows.push(row);
            last = number;
        }
        if is_end {
            return Ok((rows, true));
        }
    }
    Ok((rows, false))
}

/// Of a row of a journal, after the row `last`: journals have no gaps.
pub(super) fn journal_row(row: &Bytes, last: u64) -> (usize, u64) {
    (row.len(), last + 1)
}

/// Of a row of an inbox.
pub(super) fn numbered(row: &InboxRow, _last: u64) -> (usize, u64) {
    (row.payload.len(), row.number)
}

/// As many of `rows` as one message has room for, one at least; and the rest.
fn first_of<T>(mut rows: Vec<T>, bytes: impl Fn(&T) -> usize) -> (Vec<T>, Vec<T>) {
    let mut sum = 0;
    let fits = |row: &T| {
        sum += bytes(row);
        sum <= MESSAGE_BYTES_SOFT_MAX
    };
    let fitting = rows.iter().map(fits).take_while(|fits| *fits).count();
    let rest = rows.split_off(fitting.max(1).min(rows.len()));
    (rows, rest)
}

fn answer_of(answer: Written) -> wire::answer::Answer {
    use wire::refused::Why;
    let (why, message) = match answer {
        Written::Durable { at_us } => return wire::answer::Answer::DurableAtUs(at_us),
        Written::Unread(message) => (Why::Unread, message),
        Written::Lost(message) => (Why::Lost, message),
        Written::Illegal(message) => (Why::Illegal, message),
        Written::Rejected(message) => (Why::Rejected, message),
    };
    wire::answer::Answer::Refused(wire::Refused { why: why as i32, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A page after `after` of a journal of 500 rows, and how many rows were read for it.
    async fn read(after: u64, limit: usize, row_bytes: usize) -> (usize, bool, usize) {
        let was_read = Cell::new(0);
        let journal = |after: u64, limit: usize| {
            let rows = usize::try_from(500_u64.saturating_sub(after)).unwrap().min(limit);
            was_read.set(was_read.get() + rows);
            std::future::ready(Ok(vec![Bytes::from(vec![0; row_bytes]); rows]))
        };
        let (rows, is_last) = page(after, limit, journal, journal_row).await.unwrap();
        (rows.len(), is_last, was_read.get())
    }

    #[tokio::test]
    async fn no_more_is_read_for_a_page_than_a_few_rows_beyond_it() {
        assert_eq!(read(0, 1_000, 300_000).await, (3, false, 16));
        assert_eq!(read(0, 1_000, 3_000_000).await, (1, false, 16));
        assert_eq!(read(480, 1_000, 30_000).await, (20, true, 20));
        assert_eq!(read(0, 1_000, 10).await, (500, true, 500));
        assert_eq!(read(0, 100, 10).await, (100, false, 100));
        assert_eq!(read(400, 100, 10).await, (100, false, 100));
        assert_eq!(read(500, 100, 10).await, (0, true, 0));
        assert_eq!(read(900, 100, 10).await, (0, true, 0));
    }
}
