//! Between what goes over the wire and what the engine knows.

use backstitch_api::worker::{self as api, from_worker::Message};
use backstitch_core::id::RunId;
use backstitch_core::inbox::{InboxKind, InboxRow};
use backstitch_core::row::RowKind;
use backstitch_core::status::Status;
use backstitch_store::{Append, ExecutionUpdate, NewExecution, RunInfo, RunNo};

/// What is known of a run from its lease.
pub(crate) fn info(lease: &api::Lease) -> Result<RunInfo, String> {
    let run_id = RunId::from_slice(&lease.run_id)
        .ok_or_else(|| format!("the id of the run has {} bytes, not 16", lease.run_id.len()))?;
    let input_digest = lease.input_digest.as_slice().try_into().map_err(|_| {
        format!("the digest of the input has {} bytes, not 32", lease.input_digest.len())
    })?;
    Ok(RunInfo {
        run: RunNo(lease.run),
        new: NewExecution {
            namespace: lease.namespace.clone(),
            id: lease.id.clone(),
            run_id,
            workflow: lease.workflow.clone(),
            version: lease.version.clone(),
            input_digest,
            // A run is leased when the one before it is closed.
            after: None,
        },
        created_at_us: lease.created_at_us,
        // The server derives from the rows what it lists of a run.
        update: ExecutionUpdate { status: Status::Pending, wake_at_us: None, expires_at_us: None },
        closed_at_us: None,
    })
}

/// A row of an inbox.
pub(crate) fn inbox_row(row: api::InboxRow) -> Result<InboxRow, String> {
    let kind = i32::try_from(row.kind).ok().and_then(|kind| InboxKind::try_from(kind).ok());
    let kind = kind.ok_or_else(|| {
        format!("row {} of the inbox is of kind {}: it takes a newer worker", row.number, row.kind)
    })?;
    Ok(InboxRow {
        number: row.number,
        kind,
        request_id: row.request_id,
        topic: row.topic,
        payload: row.payload.into(),
        changed: row.changed,
        accepted_at_us: row.accepted_at_us,
    })
}

/// A row that is offered under the lease `fence`. The server makes out the rest of it by itself.
pub(crate) fn append(append: &Append, fence: u64) -> Message {
    let header = &append.draft.header;
    let turn_now_us = match header.kind() {
        RowKind::Turn => Some(header.now_us.unwrap_or_default()),
        RowKind::Engine => None,
    };
    Message::Append(api::Append {
        run: append.run.0,
        fence,
        append_id: header.append_id.clone(),
        seq: header.seq,
        turn_now_us,
        version: header.version.clone().unwrap_or_default(),
        events: append.draft.events.to_vec(),
    })
}

/// What goes into the stream.
pub(crate) fn from_worker(message: Message) -> api::FromWorker {
    api::FromWorker { message: Some(message) }
}
