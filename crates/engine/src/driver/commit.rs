//! Committing the rows of one run.

use std::sync::Arc;

use backstitch_core::attention::AttentionEdit;
use backstitch_core::inbox::InboxKind;
use backstitch_core::limits::DURATION_US_MAX;
use backstitch_core::row::Row;
use backstitch_core::session::{Command, RowOut};
use backstitch_store::{
    Answer, Append, AttentionChange, Change, ErrorKind, ExecutionUpdate, Expects, Guard, Refusal,
};

use crate::driver::{Driver, Stopping, Written};
use crate::engine::fenced;
use crate::error::Error;
use crate::program::CancelToken;

impl Driver {
    /// Composes one row, makes it durable, and carries out its commands.
    pub(super) async fn write_row(&mut self) -> Written {
        self.session.open_row(self.shared.clock.now_us());
        self.play_live_groups();
        let append_id = self.shared.ids.append();
        let Some(mut row) = self.session.close_row(append_id) else { return Written::Nothing };
        let commands = std::mem::take(&mut row.commands);
        // No body begins while a decision is on its way: once it is durable, none may (P5).
        let held: Vec<CancelToken> = match row.decides {
            true => self.steps_running.values().cloned().collect(),
            false => Vec::new(),
        };
        held.iter().for_each(CancelToken::hold);
        let written = self.write(row, commands).await;
        // Who has lost the run begins nothing any more (P4).
        if written != Written::Lost {
            held.iter().for_each(CancelToken::release);
        }
        written
    }

    /// Makes the row durable, and carries out its commands.
    async fn write(&mut self, row: RowOut, commands: Vec<Command>) -> Written {
        match self.commit(row).await {
            Committed::Durable => {
                self.forget_durable_ends();
                if !self.session.is_live() {
                    // From the decision on only the handlers are wanted.
                    self.code = None;
                }
                self.trace_status();
                self.carry_out(commands);
                self.tell_waiters();
                Written::Row
            }
            Committed::Void => match self.rebuild_until_it_works().await {
                Ok(()) => Written::Row,
                Err(error) => self.lose(error),
            },
            Committed::NotOurs(why) => {
                tracing::warn!(id = %self.execution.id, run_id = %self.execution.run_id, why, "run given up");
                Written::Lost
            }
            Committed::Impossible(error) => self.lose(error),
        }
    }

    /// Leaves the run alone, listed, until the store is opened again.
    pub(super) fn lose(&mut self, error: Error) -> Written {
        tracing::error!(id = %self.execution.id, run_id = %self.execution.run_id, %error, "run left alone");
        if !self.shared.is_stopping() {
            self.shared.leave_alone(self.run, error);
        }
        Written::Lost
    }

    /// Offers the row until the store has it or says why not. A store that is unavailable ends
    /// nothing: the same row is offered again.
    async fn commit(&mut self, row: RowOut) -> Committed {
        let append = Arc::new(self.append(row));
        loop {
            match self.shared.store.commit(Change::Append(append.clone())).await {
                Ok(Answer::Appended { at_us }) => {
                    self.shared.health.available();
                    if self.shared.feed.is_watched() {
                        let row = Row::decode(append.draft.seal(at_us));
                        let row = row.expect("a row of our own decodes");
                        self.shared.feed.publish(&self.execution, row);
                    }
                    return Committed::Durable;
                }
                Ok(Answer::Refused(Refusal::Unread(kinds))) => {
                    tracing::debug!(id = %self.execution.id, ?kinds, "row refused: unread verbs");
                    return Committed::Void;
                }
                Ok(answer @ Answer::Refused(Refusal::Fenced { .. })) => {
                    self.shared.health.unavailable(&fenced());
                    return Committed::NotOurs(format!("the row was refused: {answer:?}"));
                }
                Ok(answer) => {
                    return Committed::NotOurs(format!("the row was refused: {answer:?}"));
                }
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    self.shared.health.unavailable(&error);
                    if self.stopping != Stopping::No || self.wait_for_the_store().await {
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

    /// Waits a little before the row is offered again. True when the engine is being stopped.
    async fn wait_for_the_store(&mut self) -> bool {
        let clock = self.shared.clock.clone();
        tokio::select! {
            () = clock.sleep(self.shared.options.unavailable_retry) => false,
            () = self.shared.stop_asked() => true,
        }
    }

    fn append(&self, row: RowOut) -> Append {
        let kinds = if row.decides { InboxKind::DECISIVE.to_vec() } else { Vec::new() };
        let guard = Guard { kinds, topics: row.topics };
        let update = row.update.map(|(status, wake_at_us)| {
            let expires_at_us = if status.is_closed() { self.expires_at_us() } else { None };
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
        Append {
            run: self.run,
            draft: row.draft,
            expects,
            read: row.inbox_read,
            guard,
            update,
            attention: attention.collect(),
            attributes: row.attributes,
        }
    }

    /// When the run, closed now, may be deleted.
    fn expires_at_us(&self) -> Option<i64> {
        let own = self.session.run().started.retention_us;
        let kept = match own {
            Some(us) => Some(us),
            None => {
                let usual = self.shared.options.retention;
                usual.map(|kept| u64::try_from(kept.as_micros()).unwrap_or(u64::MAX))
            }
        };
        let kept_us = kept.filter(|us| *us <= DURATION_US_MAX)?;
        Some(self.shared.clock.now_us().saturating_add_unsigned(kept_us))
    }

    async fn rebuild_until_it_works(&mut self) -> Result<(), Error> {
        loop {
            match self.rebuild().await {
                Err(error)
                    if error.kind() == crate::ErrorKind::Store(ErrorKind::Unavailable)
                        && self.stopping == Stopping::No =>
                {
                    if self.wait_for_the_store().await {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    fn trace_status(&mut self) {
        let run = self.session.run();
        if run.lost_streak == 0 {
            self.suspect = None;
        }
        tracing::debug!(
            id = %self.execution.id, run_id = %self.execution.run_id,
            seq = run.seq, status = run.status(true).name(), "row committed"
        );
    }
}

enum Committed {
    Durable,
    /// Refused by a condition: the session no longer fits the journal.
    Void,
    /// Another owner has the run, or the engine is being stopped.
    NotOurs(String),
    /// The store will never take the row.
    Impossible(Error),
}
