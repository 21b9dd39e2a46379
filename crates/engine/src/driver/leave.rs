//! Leaving a run.

use std::sync::Arc;

use backstitch_core::run::Run;
use backstitch_store::RunNo;
use tokio::sync::mpsc;

use crate::calls;
use crate::engine::{Engine, Shared};
use crate::live::{Leaving, Mail};

/// In which state a run is left.
pub(crate) enum Departure {
    /// Durably closed; this is what it looks like.
    Closed(Arc<Run>),
    /// Open, for the next owner.
    ForGood,
    /// Until something happens, at this instant at the latest.
    Parked { wake_at_us: Option<i64> },
}

/// Leaves a run, and sees to it that what came meanwhile is for the next one.
pub(crate) fn leave(
    shared: &Arc<Shared>,
    run: RunNo,
    departure: Departure,
    mailbox: &mut mpsc::UnboundedReceiver<Mail>,
) {
    // Before the seat is free: who comes for the run from now on finds the mailbox.
    shared.tell_left(run);
    let mut left_over = || std::iter::from_fn(|| mailbox.try_recv().ok()).collect();
    let unread: Vec<Mail> = match departure {
        Departure::Closed(ended) => shared.live.leave_closed(run, ended, mailbox),
        Departure::ForGood => {
            shared.live.leave(run, Leaving::ForGood);
            left_over()
        }
        Departure::Parked { wake_at_us } => {
            // A run that was leased is for others to wake.
            if let Some(at_us) = wake_at_us.filter(|_| shared.store.holds(run)) {
                shared.alarm.set(at_us, run);
            }
            shared.live.leave(run, Leaving::Parked);
            left_over()
        }
    };
    if !shared.is_stopping() {
        unread.into_iter().for_each(|mail| calls::forward(shared, run, mail));
    }
    shared.tell_successors(run);
}

impl Engine {
    /// Drops a run with everything that runs of it, and writes nothing more: it is not this process's any
    /// more. For stores that do not [hold](backstitch_store::Store::holds) every run for ever.
    pub fn give_up(&self, run: RunNo) {
        // A run without a driver is given up already.
        let _ = self.shared.live.tell(run, Mail::Lost);
    }

    /// Stops one run in good order, as [`Engine::stop`] stops them all.
    pub fn hand_back(&self, run: RunNo) {
        // A run without a driver is handed back already.
        let _ = self.shared.live.tell(run, Mail::Stop);
    }
}
