//! Leaving a run that waits for something far away: its driver, its session and its code are
//! dropped, and built anew from the journal when something happens.
//!
//! **Invariant:** nothing is lost by it that a crash at the same moment would not lose, and a crash
//! there loses nothing: nothing runs, everything known is durable.

use crate::driver::{Driver, Stopping};

/// A run that waits for an instant farther away is parked at once, in microseconds. Building it anew
/// takes far less, and is done a thousand times before it costs what keeping it does.
const PARK_BEYOND_US: i64 = 30_000_000;

/// A run that waits for an event is kept loaded for so long after the last thing that happened, in
/// microseconds: events tend to come in a row.
const PARK_AFTER_US: i64 = 5_000_000;

impl Driver {
    /// Whether the driver may leave now. Call it when there was nothing to write.
    pub(super) fn may_be_parked(&mut self) -> bool {
        let now_us = self.shared.clock.now_us();
        self.idle_since_us.get_or_insert(now_us);
        self.is_parkable() && self.park_at_us().is_some_and(|at_us| at_us <= now_us)
    }

    /// When the driver may leave if nothing happens until then.
    pub(super) fn park_at_us(&self) -> Option<i64> {
        if !self.is_parkable() {
            return None;
        }
        let idle_since_us = self.idle_since_us?;
        let far_us = idle_since_us.saturating_add(PARK_BEYOND_US);
        if self.wake_at_us().is_some_and(|at_us| at_us < far_us) {
            return None;
        }
        match self.session.run().waits.is_empty() {
            true => Some(idle_since_us),
            false => Some(idle_since_us.saturating_add(PARK_AFTER_US)),
        }
    }

    fn is_parkable(&self) -> bool {
        let woken_by_others =
            self.code.as_ref().is_some_and(|code| code.desk.may_be_woken_by_others());
        self.stopping == Stopping::No
            && self.nothing_runs()
            && self.ends.is_empty()
            && self.graces.is_empty()
            && self.overdue.is_empty()
            && self.suspect.is_none()
            && self.called.is_none()
            && self.after.is_none()
            && !woken_by_others
    }
}
