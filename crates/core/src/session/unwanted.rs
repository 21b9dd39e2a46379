//! Attempts that nobody wants any more: their step was dropped, or the run rolls back (R5).

use crate::event::{AbandonWhy, StepAbandoned};
use crate::id::Ordinal;
use crate::limits::{DURATION_US_MAX, YIELD_GRACE_US};
use crate::session::{Command, Session};

/// What becomes of a body that is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unwanted {
    /// It may come to its end, within the timeout of its attempt.
    Settles,
    /// It gets its token and is dropped at its next await.
    Stops,
}

impl Session {
    /// What the policy of the step says.
    pub(super) fn unwanted(&self, ord: Ordinal) -> Unwanted {
        match self.run.step(ord).expect("what is in flight is a step").may_settle() {
            true => Unwanted::Settles,
            false => Unwanted::Stops,
        }
    }

    /// Gives up an attempt that is in flight. One whose start stands in this very row never
    /// begins: after a decision no body does (P5).
    pub(super) fn give_up(&mut self, ord: Ordinal, unwanted: Unwanted) {
        if self.take_back_start(ord) {
            return self.abandon(ord, AbandonWhy::Cancelled, None);
        }
        let grace_us = YIELD_GRACE_US;
        self.command(match unwanted {
            Unwanted::Settles => {
                let timeout_us = self.run.step(ord).map_or(0, |step| step.policy.timeout_us);
                let within_us = timeout_us.min(DURATION_US_MAX) + grace_us;
                Command::SettleStep { ord, within_us }
            }
            Unwanted::Stops => Command::CancelStep { ord, within_us: grace_us },
        });
    }

    fn take_back_start(&mut self, ord: Ordinal) -> bool {
        let commands = &mut self.open.as_mut().expect("a row is open").commands;
        let start = commands.iter().position(|command| match command {
            Command::StartStep { ord: started, .. } => *started == ord,
            Command::StartUndo { .. }
            | Command::SettleStep { .. }
            | Command::CancelStep { .. }
            | Command::LeaveStep { .. }
            | Command::DropAll => false,
        });
        start.map(|at| commands.remove(at)).is_some()
    }

    /// The attempt that is in flight ends without an outcome.
    pub(super) fn abandon(&mut self, ord: Ordinal, why: AbandonWhy, finished_us: Option<i64>) {
        let attempt = self.run.step(ord).expect("what is in flight is a step").attempts;
        self.push(StepAbandoned { ord, why: why as i32, attempt, finished_us });
    }

    /// Bodies that did not yield in time are left behind.
    pub(super) fn leave_behind(&mut self) {
        for ord in std::mem::take(&mut self.overdue) {
            if self.run.in_flight.contains(&ord) {
                self.abandon(ord, AbandonWhy::DidNotYield, None);
                self.command(Command::LeaveStep { ord });
            }
        }
    }
}
