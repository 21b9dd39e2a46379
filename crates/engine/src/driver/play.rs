//! The code of the workflow: attaching it, replaying it, playing live groups.

use std::sync::Arc;

use backstitch_core::event::BlockKind;
use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::session::{GroupStart, Mismatch, Patches};

use crate::code::{Played, RunningCode};
use crate::desk::Desk;
use crate::driver::{Driver, Origin as RunOrigin, Stopping};
use crate::live::{Attempted, Mail};
use crate::pending::Noted;
use crate::program::Program;

impl Driver {
    /// Brings a run that was just loaded to where its journal ends.
    pub(super) async fn begin(&mut self) {
        self.read_inbox_if_recovered().await;
        self.attach_if_it_is_time().await;
        self.recover();
    }

    async fn read_inbox_if_recovered(&mut self) {
        // A run that has just been started has an empty inbox; a verb that comes now sends mail.
        if self.origin == RunOrigin::Recovered {
            self.read_inbox().await;
        }
    }

    pub(super) fn recover(&mut self) {
        let now_us = self.shared.clock.now_us();
        let ends = std::mem::take(&mut self.ends);
        let ended = |what, ord| ends.iter().any(|end| end.what == what && end.ord == ord);
        let (steps, undos) = (&self.steps_running, &self.undos_running);
        self.session.recover(
            now_us,
            |ord| steps.contains_key(&ord) || ended(Attempted::Step, ord),
            |ord| undos.contains_key(&ord) || ended(Attempted::Undo, ord),
        );
        ends.iter().for_each(|end| self.hand_in(end));
        self.ends = ends;
    }

    /// Attaches the code, unless an earlier run of the same id is still open. The one before may have
    /// closed while it waited itself: then the run is after the one that that was after.
    pub(super) async fn attach_if_it_is_time(&mut self) {
        if self.session.has_code() || self.session.is_closed() {
            return;
        }
        while let Some(before) = self.after {
            self.shared.wake_after(before, self.run);
            match self.shared.store.run(before).await {
                Ok(Some(info)) if info.closed_at_us.is_none() => return,
                Ok(info) => self.after = info.and_then(|info| info.new.after),
                Err(error) => {
                    tracing::warn!(id = %self.execution.id, %error, "looking again later");
                    let again_us = self.shared.options.unavailable_retry.as_micros() as i64;
                    self.shared.alarm.set(self.shared.clock.now_us() + again_us, self.run);
                    return;
                }
            }
        }
        self.attach();
    }

    pub(super) fn attach(&mut self) {
        if self.session.is_to_be_killed() {
            // Without its code: it may be the code that takes the process down.
            return;
        }
        let run = self.session.run();
        let Some(program) = self.shared.program(&run.started.workflow, &run.version) else {
            if self.shared.workers.is_some() {
                return self.look_for_worker();
            }
            // Told once, however often it is looked at.
            if self.note_pending() == Noted::First {
                tracing::warn!(
                    id = %self.execution.id, workflow = %run.started.workflow, version = %run.version,
                    "no such workflow is registered; the execution waits for a worker that knows it"
                );
            }
            return;
        };
        let begun_blocked = run.turns == 0 && run.is_held_by_block();
        self.session.attach();
        match self.running_code(&*program) {
            Ok(code) => self.code = Some(code),
            Err(failure) => return self.block(BlockKind::Mismatch, failure),
        }
        if begun_blocked && self.is_still_foreign(&*program) {
            return self.block_foreign("is quiet with nothing outstanding");
        }
        self.replay();
    }

    fn running_code(&self, program: &dyn Program) -> Result<RunningCode, Failure> {
        let started = &self.session.run().started;
        let mail = self.live.mail.clone();
        let foreign = move || {
            let _ = mail.send(Mail::Foreign);
        };
        let desk = Desk::new(self.execution.clone(), started.seed, Box::new(foreign));
        let future = program.start(desk.clone(), &started.input)?;
        Ok(RunningCode::new(desk, future))
    }

    /// Whether code that was blocked before its first turn would be blocked again: found out on a
    /// copy of it, so that the journal is spared the try.
    fn is_still_foreign(&self, program: &dyn Program) -> bool {
        let now_us = self.shared.clock.now_us();
        let first = GroupStart { group: 1, now_us, show: None, patches: Patches::Live };
        let copy = self.running_code(program);
        copy.is_ok_and(|mut copy| !copy.play(&first).report.does_anything())
    }

    fn replay(&mut self) {
        while self.session.is_replaying() {
            let group = self.session.next_group().expect("replay has groups left");
            let code = self.code.as_mut().expect("replay has code");
            let played = code.play(&group);
            if self.take_down(played).is_none() {
                return;
            }
        }
        if !self.session.is_live() {
            // Only the handlers were wanted.
            self.code = None;
            return;
        }
        let fits = self.session.run().turns == 0 || !self.awaits_nothing();
        if fits {
            self.session.fits();
        } else {
            self.block_foreign("is quiet with nothing outstanding");
        }
    }

    /// Plays live groups as long as there is something to show.
    pub(super) fn play_live_groups(&mut self) {
        while let Some(group) = self.session.next_group() {
            let code = self.code.as_mut().expect("a live session has code");
            let played = code.play(&group);
            let ended = played.report.ended.is_some();
            if self.take_down(played).is_none() {
                return;
            }
            if ended {
                self.code = None;
                return;
            }
            // A bound may have been exceeded, and the run rolls back.
            let goes_on = self.session.is_live();
            if goes_on && self.awaits_nothing() && self.session.run().unshown.is_empty() {
                return self.block_foreign("is quiet with nothing outstanding");
            }
        }
    }

    fn awaits_nothing(&self) -> bool {
        self.code.as_ref().is_some_and(|code| !code.has_ended() && code.desk.is_quiet())
    }

    /// Hands what the code did to the session. `None` when the run is blocked by it.
    fn take_down(&mut self, played: Played) -> Option<()> {
        if played.spins {
            self.block_foreign("wakes itself without end");
            return None;
        }
        match self.session.end_group(played.report) {
            Ok(ords) => {
                let desk = self.code.as_ref().expect("it was just played").desk.clone();
                for ((slot, body, undo), ord) in played.closures.into_iter().zip(ords) {
                    desk.assign(slot, ord);
                    if let Some(body) = body {
                        self.bodies.insert(ord, body);
                    }
                    if let Some(undo) = undo {
                        self.handlers.insert(ord, undo);
                    }
                }
                Some(())
            }
            Err(mismatch) => {
                self.block_mismatch(&mismatch);
                None
            }
        }
    }

    /// Something outside of the engine woke the code. If the code makes progress by it, replay
    /// could not do the same.
    pub(super) fn poll_for_foreign_progress(&mut self) {
        let Some(code) = self.code.as_mut() else { return };
        code.desk.listen();
        if self.session.is_live() && code.poll().report.does_anything() {
            self.block_foreign("made progress without being shown anything");
        }
    }

    fn block_mismatch(&mut self, mismatch: &Mismatch) {
        tracing::error!(id = %self.execution.id, run_id = %self.execution.run_id, %mismatch);
        self.block(BlockKind::Mismatch, mismatch.to_failure());
    }

    fn block_foreign(&mut self, what: &str) {
        let place = self.code.as_ref().map(|code| code.desk.last_place()).unwrap_or_default();
        let message = format!(
            "the workflow {} {:?} {what}, {place}: it awaits something that the engine does not \
             know (a raw timer, a spawned task, a lock or channel from outside). Use ctx.sleep, or \
             put it into a step; with the mended code deployed the execution goes on; or cancel it",
            self.execution.workflow, self.execution.version
        );
        let failure = Failure::new(Class::Attention, Origin::Engine, "ForeignWait", message);
        tracing::error!(id = %self.execution.id, run_id = %self.execution.run_id, %failure);
        self.block(BlockKind::ForeignWait, failure);
    }

    fn block(&mut self, what: BlockKind, failure: Failure) {
        self.code = None;
        self.session.block(what, failure);
    }

    /// Drops the session and rebuilds it from the journal. Bodies go on; their ends are kept in
    /// the mailbox.
    pub(super) async fn rebuild(&mut self) -> Result<(), crate::Error> {
        let rows = crate::recovery::read_journal(&self.shared, self.run).await?;
        let info = self.shared.info(self.run).await?;
        self.code = None;
        self.bodies.clear();
        self.handlers.clear();
        self.session = super::load(&self.shared, &info, &rows)?;
        if self.stopping != Stopping::No {
            self.session.stop();
        }
        self.read_inbox().await;
        if self.after.is_none() {
            self.attach();
        }
        self.recover();
        self.overdue.iter().for_each(|ord| self.session.overdue(*ord));
        Ok(())
    }

    /// Attempts that run now have the facts of their execution from here.
    pub(super) fn facts(&self) -> Arc<crate::program::ExecutionFacts> {
        self.execution.clone()
    }
}
