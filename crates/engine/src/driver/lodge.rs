//! Giving a run to a worker elsewhere, if this process has no code for it.

use crate::driver::{Driver, Left};
use crate::pending::Noted;
use crate::workers::{Entry, Tenancy};

impl Driver {
    /// Looks for a worker elsewhere that has the code, if the run could go on with it. If there is none, the run is
    /// looked at again when there is.
    pub(super) fn look_for_worker(&mut self) {
        let Some(workers) = &self.shared.workers else { return };
        let run = self.session.run();
        let code = (run.started.workflow.clone(), run.version.clone());
        if self.grant.is_some() {
            return;
        }
        if self.shared.is_stopping() || !run.wants_code(self.shared.clock.now_us()) {
            self.shared.pending.forget(self.run);
            workers.forget(&code, self.run);
            return workers.offer_again(&self.shared);
        }
        let granted = workers.take(&self.shared, &code, self.run);
        self.grant = granted.map(|grant| (grant, Entry::Leased));
        if self.grant.is_some() {
            self.shared.pending.forget(self.run);
        } else if self.note_pending() == Noted::First {
            let (workflow, version) = code;
            tracing::debug!(id = %self.execution.id, workflow, version, "waits for a worker");
        }
    }

    /// Notes that nobody here can go on with the run.
    pub(super) fn note_pending(&self) -> Noted {
        let (run, now_us) = (self.session.run(), self.shared.clock.now_us());
        // Whether other code would fit one that is held is not known.
        let could_go_on = run.wants_code(now_us) && !run.is_held_by_block();
        self.shared.pending.note(self.run, could_go_on.then_some(now_us))
    }

    /// A worker may still run an attempt that an earlier owner of the store has leased to it. Until its lease
    /// has ended for sure, the attempt is not lost, and the worker may come back with it.
    pub fn expect_claim(&mut self) {
        let Some(workers) = &self.shared.workers else { return };
        let run = self.session.run();
        let undo = run.rollback.as_ref().and_then(|rollback| rollback.current);
        let in_flight = !run.in_flight.is_empty() || undo.is_some();
        let (workflow, version) = (run.started.workflow.clone(), run.version.clone());
        if in_flight && self.shared.program(&workflow, &version).is_none() {
            let claimed = workers.expect_claim((workflow, version), self.run, run.seq);
            self.claimed = Some((claimed, self.shared.clock.sleep(workers.lease)));
        }
    }

    /// Whether the run is not this driver's: a worker has come back with it. Nothing must be written here then, not
    /// even what stands in the inbox: the worker goes on where the journal ended for it, and perhaps has a row of its
    /// own under way.
    /// Nor when this process stops before it is known: the next one waits again.
    pub(super) async fn left_to_its_worker(&mut self) -> Option<Left> {
        let (claimed, too_late) = self.claimed.take()?;
        let workers = self.shared.workers.as_ref().expect("who expects a claim has workers");
        tokio::select! {
            claimed = claimed => {
                self.grant = claimed.ok().map(|grant| (grant, Entry::Adopted));
            }
            () = too_late => workers.expect_no_claim(self.run),
            () = self.shared.stop_asked() => {
                workers.expect_no_claim(self.run);
                return Some(Left::Open);
            }
        }
        self.grant.is_some().then_some(Left::Lodged)
    }

    /// Hands the run to the worker, until it has it no more.
    pub(super) async fn lodge(mut self: Box<Self>) {
        let (grant, entry) = self.grant.take().expect("who lodges has a slot");
        let called = self.called;
        let first = self.first.filter(|_| self.session.run().seq == 1);
        let mailbox = (self.mail, self.live);
        let follower = self.session.into_follower();
        let tenancy = Tenancy::new(self.shared, self.run, self.execution, follower, mailbox, grant);
        tenancy.keep(self.info, entry, first, called).await;
    }

    /// When there is something to do by itself: for this process, or for a worker.
    pub(super) fn wake_at_us(&self) -> Option<i64> {
        let own = self.session.wake_at_us();
        if self.session.has_code() || self.shared.workers.is_none() {
            return own;
        }
        let now_us = self.shared.clock.now_us();
        let due_us = self.session.run().next_due_us().filter(|at_us| *at_us > now_us);
        own.into_iter().chain(due_us).min()
    }
}
