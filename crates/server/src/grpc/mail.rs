//! From the engine's words to those on the wire.

use backstitch_api::worker as wire;
use backstitch_core::inbox::InboxRow;
use backstitch_engine::workers::{Leased, ToWorker, Written};
use wire::from_server::Message;

use crate::paging::PAGE_BYTES_SOFT_MAX;

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

/// As many of `rows` as one message has room for, one at least; and the rest.
fn first_of<T>(mut rows: Vec<T>, bytes: impl Fn(&T) -> usize) -> (Vec<T>, Vec<T>) {
    let mut sum = 0;
    let fits = |row: &T| {
        sum += bytes(row);
        sum <= PAGE_BYTES_SOFT_MAX
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
