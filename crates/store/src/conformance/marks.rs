//! Changes each part of which says to which row it belongs, so that half a change shows.

use backstitch_core::attribute::{AttributeChange, AttributeValue};
use backstitch_core::status::Status;

use super::changes::{new_append, new_start, update};
use crate::{Append, AttentionChange, ExecutionUpdate, RunNo, Start};

/// The search attribute that holds the seq of the row that has set it.
pub const MARK: &str = "Row";

/// A start that is marked with its row.
pub fn marked_start(fence: u64, number: u32) -> Start {
    Start { attributes: vec![mark(1)], ..new_start(fence, number) }
}

/// An append that puts its seq wherever an append can put something. The run must have been written
/// by this function alone since it was started.
pub fn marked_append(fence: u64, run: RunNo, seq: u64) -> Append {
    let opened = AttentionChange::Open { ord: 1, kind: "marked".into(), message: seq.to_string() };
    let wake_at_us = Some(seq as i64);
    Append {
        update: Some(ExecutionUpdate { wake_at_us, ..update(Status::Suspended) }),
        attention: vec![AttentionChange::Close { seq: seq - 1, ord: 1 }, opened],
        attributes: vec![mark(seq)],
        ..new_append(fence, run, seq)
    }
}

/// The same, and closes the run, which leaves no attention item open.
pub fn marked_closing(fence: u64, run: RunNo, seq: u64) -> Append {
    let at_us = Some(seq as i64);
    let status = Status::Succeeded;
    Append {
        update: Some(ExecutionUpdate { status, wake_at_us: at_us, expires_at_us: at_us }),
        attention: vec![AttentionChange::Close { seq: seq - 1, ord: 1 }],
        ..marked_append(fence, run, seq)
    }
}

fn mark(seq: u64) -> AttributeChange {
    let value = Some(AttributeValue::Integer(seq as i64));
    AttributeChange { name: MARK.into(), value }
}
