//! Changes to offer, as plain as they can be. What a test is about it adds itself.

use backstitch_core::id::RunId;
use backstitch_core::inbox::InboxKind;
use backstitch_core::row::{Draft, Header, RowKind};
use backstitch_core::status::Status;
use bytes::Bytes;

use crate::{Append, ExecutionUpdate, Expects, Guard, InboxPut, NewExecution, RunNo, Start};

/// A start that expects nothing, of an id that is named by its number.
pub fn new_start(fence: u64, number: u32) -> Start {
    Start {
        execution: NewExecution {
            namespace: "default".into(),
            id: format!("order-{number}"),
            run_id: run_id(number),
            workflow: "order".into(),
            version: "v1".into(),
            input_digest: [7; 32],
            after: None,
        },
        first: draft(1, fence),
        expected: None,
        status: Status::Pending,
        attributes: Vec::new(),
    }
}

/// An append of nothing but a row.
pub fn new_append(fence: u64, run: RunNo, seq: u64) -> Append {
    Append {
        run,
        draft: draft(seq, fence),
        expects: Expects::Open,
        read: 0,
        guard: Guard::default(),
        update: None,
        attention: Vec::new(),
        attributes: Vec::new(),
    }
}

/// An append that closes the run.
pub fn new_closing(fence: u64, run: RunNo, seq: u64) -> Append {
    Append { update: Some(update(Status::Succeeded)), ..new_append(fence, run, seq) }
}

/// A request whose body is its id.
pub fn new_put(run: RunNo, kind: InboxKind, request_id: &str) -> InboxPut {
    let payload = Bytes::copy_from_slice(request_id.as_bytes());
    InboxPut {
        run,
        kind,
        request_id: request_id.into(),
        topic: String::new(),
        payload,
        digest: [3; 32],
        changed: true,
        rows_max: u64::MAX,
        seen: 0,
        guard: Vec::new(),
    }
}

/// An update that says nothing but a status.
pub fn update(status: Status) -> ExecutionUpdate {
    ExecutionUpdate { status, wake_at_us: None, expires_at_us: None }
}

/// A guard against unread rows of these kinds.
pub fn guard(kinds: &[InboxKind]) -> Guard {
    Guard { kinds: kinds.to_vec(), topics: Vec::new() }
}

/// The id of the run that [`new_start`] begins.
pub fn run_id(number: u32) -> RunId {
    RunId::from_slice(&u128::from(number).to_be_bytes()).expect("16 bytes")
}

/// A row with an append id of its own for each seq and fence, about 300 bytes long.
pub fn draft(seq: u64, fence: u64) -> Draft {
    let header = Header {
        seq,
        kind: RowKind::Turn as i32,
        at_us: 0,
        fence,
        append_id: (u128::from(fence) << 64 | u128::from(seq)).to_be_bytes().into(),
        now_us: Some(1),
        worker: Some("w".repeat(240)),
        version: Some("v1".into()),
    };
    Draft::new(header, &[])
}
