//! Appending one row, whoever composed it.

use std::sync::Arc;

use backstitch_core::attention::AttentionEdit;
use backstitch_core::inbox::InboxKind;
use backstitch_core::limits::DURATION_US_MAX;
use backstitch_core::row::Row;
use backstitch_core::run::Run;
use backstitch_core::session::RowOut;
use backstitch_store::{
    Answer, Append, AttentionChange, Change, ErrorKind, ExecutionUpdate, Expects, Guard, Refusal,
    RunNo,
};

use crate::engine::{Shared, fenced};
use crate::error::Error;
use crate::program::ExecutionFacts;

/// What came of a row.
pub(crate) enum Committed {
    /// It survives power loss, committed at this instant.
    Durable { at_us: i64 },
    /// Refused by a condition: whoever composed it no longer fits the journal.
    Void,
    /// Another owner has the run, or the engine is being stopped.
    NotOurs(String),
    /// The store will never take the row.
    Impossible(Error),
}

/// How long a row is offered to a store that is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Until it has it, or the engine is stopped.
    UntilStopped,
    /// Once: the engine is being stopped.
    Never,
}

/// The append of a row that is folded into `run` already.
pub(crate) fn compose(shared: &Shared, run_no: RunNo, run: &Run, row: RowOut) -> Arc<Append> {
    let kinds = if row.decides { InboxKind::DECISIVE.to_vec() } else { Vec::new() };
    let guard = Guard { kinds, topics: row.topics };
    let update = row.update.map(|(status, wake_at_us)| {
        let expires_at_us = if status.is_closed() { expires_at_us(shared, run) } else { None };
        ExecutionUpdate { status, wake_at_us, expires_at_us }
    });
    let expects = if row.after_close { Expects::Closed } else { Expects::Open };
    let attention = row.attention.into_iter().map(|edit| match edit {
        AttentionEdit::Opened(item) => AttentionChange::Open {
            ord: item.ord,
            kind: item.kind.name().to_owned(),
            message: item.message,
        },
        AttentionEdit::Closed { seq, ord } => AttentionChange::Close { seq, ord },
    });
    Arc::new(Append {
        run: run_no,
        draft: row.draft,
        expects,
        read: row.inbox_read,
        guard,
        update,
        attention: attention.collect(),
        attributes: row.attributes,
    })
}

/// When the run, closed now, may be deleted.
fn expires_at_us(shared: &Shared, run: &Run) -> Option<i64> {
    let kept = match run.started.retention_us {
        Some(us) => Some(us),
        None => {
            let usual = shared.options.retention;
            usual.map(|kept| u64::try_from(kept.as_micros()).unwrap_or(u64::MAX))
        }
    };
    let kept_us = kept.filter(|us| *us <= DURATION_US_MAX)?;
    Some(shared.clock.now_us().saturating_add_unsigned(kept_us))
}

/// Offers the row until the store has it or says why not. A store that is unavailable ends
/// nothing: the same row is offered again.
pub(crate) async fn offer(
    shared: &Shared,
    execution: &Arc<ExecutionFacts>,
    append: Arc<Append>,
    again: Again,
) -> Committed {
    loop {
        match shared.store.commit(Change::Append(append.clone())).await {
            Ok(Answer::Appended { at_us }) => {
                shared.health.available();
                call_a_person(execution, &append.attention);
                if shared.feed.is_watched() {
                    let row = Row::decode(append.draft.seal(at_us));
                    let row = row.expect("a row of our own decodes");
                    shared.feed.publish(execution, row);
                }
                return Committed::Durable { at_us };
            }
            Ok(Answer::Refused(Refusal::Unread(kinds))) => {
                tracing::debug!(id = %execution.id, ?kinds, "row refused: unread verbs");
                return Committed::Void;
            }
            Ok(answer @ Answer::Refused(Refusal::Fenced { .. })) => {
                shared.health.unavailable(&fenced());
                return Committed::NotOurs(format!("the row was refused: {answer:?}"));
            }
            Ok(answer) => {
                return Committed::NotOurs(format!("the row was refused: {answer:?}"));
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                shared.health.unavailable(&error);
                if again == Again::Never || wait_for_the_store(shared).await {
                    return Committed::NotOurs(format!("stopped while {error}"));
                }
            }
            Err(error) if error.kind() == ErrorKind::Closed => {
                return Committed::NotOurs(error.to_string());
            }
            Err(error) => return Committed::Impossible(error.into()),
        }
    }
}

/// Says once of each matter that it is open now. Why is not said: a failure may tell of the input.
fn call_a_person(execution: &ExecutionFacts, attention: &[AttentionChange]) {
    for change in attention {
        if let AttentionChange::Open { ord, kind, .. } = change {
            let (id, run_id) = (&execution.id, &execution.run_id);
            tracing::error!(%id, %run_id, kind, step = ord, "a person is needed");
        }
    }
}

/// Waits a little before something is tried again. True when the engine is being stopped.
pub(crate) async fn wait_for_the_store(shared: &Shared) -> bool {
    tokio::select! {
        () = shared.clock.sleep(shared.options.unavailable_retry) => false,
        () = shared.stop_asked() => true,
    }
}
