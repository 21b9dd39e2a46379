//! Committing the rows of one run.

use backstitch_core::session::{Command, RowOut};
use backstitch_store::ErrorKind;

use crate::append::{self, Again, Committed};
use crate::driver::{Driver, Stopping, Written};
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
        let append = append::compose(&self.shared, self.run, self.session.run(), row);
        let again = match self.stopping {
            Stopping::No => Again::UntilStopped,
            Stopping::Until(_) => Again::Never,
        };
        match append::offer(&self.shared, &self.execution, append, again).await {
            Committed::Durable { .. } => {
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

    async fn rebuild_until_it_works(&mut self) -> Result<(), Error> {
        loop {
            match self.rebuild().await {
                Err(error)
                    if error.kind() == crate::ErrorKind::Store(ErrorKind::Unavailable)
                        && self.stopping == Stopping::No =>
                {
                    if append::wait_for_the_store(&self.shared).await {
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
