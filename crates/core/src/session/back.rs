//! The decision to roll back, and the way back.

use crate::event::{
    CancelVerb, CauseKind, EndKind, EndsIn, Event, ExecutionCancelled, ExecutionFailed,
    ExecutionSucceeded, ExecutionTerminated, RollbackCause, RollbackFinished, RollbackStarted,
    UndoFailed, UndoNotNeeded, UndoStarted,
};
use crate::failure::{Class, Failure, Origin};
use crate::id::Ordinal;
use crate::limits::DURATION_US_MAX;
use crate::payload::Payload;
use crate::retry::UndoOn;
use crate::run::Phase;
use crate::session::unwanted::Unwanted;
use crate::session::{Code, Session, Stopping};
use crate::undo::UndoPhase;

/// What becomes of attempts that are in flight at the decision.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InFlight {
    /// Those that may settle, settle.
    Settle,
    /// All are stopped.
    Stop,
}

impl Session {
    /// The code returned `output`. What it dropped and owes is undone first (R13).
    pub(super) fn code_succeeded(&mut self, output: Payload) {
        let plan = self.run.dropped_and_owed();
        if plan.is_empty() {
            self.returned = Some(output);
            return;
        }
        let cause = RollbackCause { kind: CauseKind::Dropped as i32, ..RollbackCause::default() };
        let ends_in =
            EndsIn { kind: EndKind::Succeeded as i32, failure: None, output: Some(output) };
        self.start_rollback(cause, plan, ends_in, InFlight::Settle);
    }

    /// Closes a run whose code has returned, as soon as nothing is in flight.
    pub(super) fn finish_return(&mut self) {
        if matches!(self.run.phase, Phase::Forward)
            && self.run.in_flight.is_empty()
            && let Some(output) = self.returned.take()
        {
            self.push(ExecutionSucceeded { output });
        }
    }

    /// The code failed: decide, in the row of the outcome that caused it (P5).
    pub(super) fn code_failed(&mut self, failure: Failure) {
        let ends_in =
            EndsIn { kind: EndKind::Failed as i32, failure: Some(failure.clone()), output: None };
        self.decide(RollbackCause::failed(failure), ends_in, InFlight::Settle);
    }

    /// Whether the deadline of the run has passed. While it is paused it does not.
    pub(super) fn is_late(&self, now_us: i64) -> bool {
        self.run.deadline_at_us().is_some_and(|deadline_at_us| deadline_at_us <= now_us)
    }

    /// Rolls back a run whose deadline has passed; that needs no code.
    pub(super) fn decide_if_late(&mut self, now_us: i64) {
        if !self.is_late(now_us) || self.closes_in.is_some() {
            return;
        }
        let message = "the deadline of the execution passed before it was over";
        let failure = Failure::new(Class::Permanent, Origin::Timeout, "DeadlinePassed", message);
        let cause = RollbackCause {
            kind: CauseKind::Deadline as i32,
            failure: Some(failure.clone()),
            ..RollbackCause::default()
        };
        let ends_in = EndsIn { kind: EndKind::Failed as i32, failure: Some(failure), output: None };
        self.decide(cause, ends_in, InFlight::Settle);
        self.close_as_decided();
    }

    /// Somebody asked for a run to be undone that had succeeded (R8).
    pub(super) fn undone_after_success(&mut self, cause: RollbackCause) {
        let ends_in = EndsIn { kind: EndKind::Cancelled as i32, failure: None, output: None };
        let plan = self.run.plan();
        self.start_rollback(cause, plan, ends_in, InFlight::Settle);
    }

    /// Somebody asked for it.
    pub(super) fn cancelled(&mut self, verb: CancelVerb, cause: RollbackCause) {
        let (kind, in_flight) = match verb {
            CancelVerb::Cancel | CancelVerb::Rollback => (EndKind::Cancelled, InFlight::Settle),
            CancelVerb::Terminate => (EndKind::Terminated, InFlight::Stop),
        };
        let ends_in = EndsIn { kind: kind as i32, failure: None, output: None };
        self.decide(cause, ends_in, in_flight);
    }

    fn decide(&mut self, cause: RollbackCause, ends_in: EndsIn, in_flight: InFlight) {
        let plan = self.run.plan();
        if plan.is_empty() && self.run.in_flight.is_empty() {
            self.closes_in = Some(ends_in);
            return;
        }
        self.start_rollback(cause, plan, ends_in, in_flight);
    }

    /// Closes a run that owes nothing as it was decided. Not at once: what else stands in the inbox
    /// is copied first, because a closed run copies nothing, and no accepted verb may be left unread.
    pub(super) fn close_as_decided(&mut self) {
        if let Some(ends_in) = self.closes_in.take()
            && !self.is_closed()
        {
            self.push(closing_event(ends_in));
        }
    }

    fn start_rollback(
        &mut self,
        cause: RollbackCause,
        plan: Vec<Ordinal>,
        ends_in: EndsIn,
        in_flight: InFlight,
    ) {
        self.returned = None;
        self.returned_in_replay = None;
        let no = self.run.rollback.as_ref().map_or(1, |rollback| rollback.no + 1);
        self.push(RollbackStarted { no, scope: Vec::new(), causes: vec![cause], plan, ends_in });
        let running: Vec<Ordinal> = self.run.in_flight.iter().copied().collect();
        for ord in running {
            match in_flight {
                InFlight::Settle => self.give_up(ord, self.unwanted(ord)),
                InFlight::Stop => self.give_up(ord, Unwanted::Stops),
            }
        }
    }

    /// Starts the next undo, or finishes: newest start first, one at a time, never under a step
    /// that is in flight (R3, P7).
    pub(super) fn advance_rollback(&mut self, now_us: i64) {
        while matches!(self.run.phase, Phase::RollingBack)
            && self.run.in_flight.is_empty()
            && self.run.pause.is_none()
            && self.closing_down == Stopping::No
        {
            let rollback = self.run.rollback.as_ref().expect("a rollback is under way");
            if rollback.is_paid() {
                return self.finish_rollback();
            }
            let Some(ord) = self.undo_to_start(now_us) else { return };
            if self.is_not_needed(ord) {
                let why = "the step failed, and certainly had no effect".to_owned();
                self.push(UndoNotNeeded { ord, why });
                continue;
            }
            if self.handlers.contains(&ord) {
                return self.start_undo(ord);
            }
            match self.code {
                Code::Absent | Code::Replaying => return,
                Code::Live | Code::Ended | Code::Unfit => {
                    let failure = self.handler_missing(ord);
                    self.push(UndoFailed { ord, failure, holds: true });
                }
            }
        }
    }

    fn undo_to_start(&self, now_us: i64) -> Option<Ordinal> {
        let rollback = self.run.rollback.as_ref()?;
        match rollback.current {
            None => rollback.next(),
            Some(ord) => match self.run.step(ord)?.undo.phase {
                UndoPhase::Waiting { retry_at_us } if retry_at_us <= now_us => Some(ord),
                UndoPhase::Waiting { .. }
                | UndoPhase::Idle
                | UndoPhase::Due
                | UndoPhase::Running
                | UndoPhase::Failed
                | UndoPhase::Succeeded
                | UndoPhase::NotNeeded
                | UndoPhase::Waived => None,
            },
        }
    }

    fn is_not_needed(&self, ord: Ordinal) -> bool {
        let step = self.run.step(ord).expect("the plan names steps");
        step.policy.undo_on() == UndoOn::Succeeded
            && step.undo.phase == UndoPhase::Due
            && step.certainly_without_effect()
    }

    fn start_undo(&mut self, ord: Ordinal) {
        let undo = &self.run.step(ord).expect("the plan names steps").undo;
        let attempt = undo.attempts + 1;
        let newer = self.newer.get(&ord).and_then(|(_, policy)| policy.clone());
        let policy = newer.filter(|newer| undo.policy.as_ref() != Some(newer));
        self.push(UndoStarted { ord, attempt, policy });
    }

    fn handler_missing(&self, ord: Ordinal) -> Failure {
        let step = self.run.step(ord).expect("the plan names steps");
        let message = format!(
            "the code of {} {:?} no longer reaches step {} (built at {}), so its undo is not at \
             hand; deploy the code that has it and retry the undo, or waive it",
            self.run.started.workflow, self.run.version, step.key, step.place
        );
        Failure::new(Class::Attention, Origin::Engine, "HandlerMissing", message)
    }

    fn finish_rollback(&mut self) {
        let rollback = self.run.rollback.as_ref().expect("a rollback is under way");
        let (no, outcome) = (rollback.no, rollback.verdict() as i32);
        let closing = closing_event(rollback.ends_in.clone());
        self.push(RollbackFinished { no, outcome });
        self.push(closing);
    }
}

impl Session {
    /// What the fold says an undo may take, in microseconds.
    pub(super) fn undo_timeout_us(&self, ord: Ordinal) -> u64 {
        let undo = &self.run.step(ord).expect("the plan names steps").undo;
        undo.policy.as_ref().map_or(DURATION_US_MAX, |policy| policy.timeout_us)
    }
}

fn closing_event(ends_in: EndsIn) -> Event {
    match ends_in.kind() {
        EndKind::Failed => {
            let failure = ends_in.failure.expect("a failed end has its failure");
            ExecutionFailed { failure }.into()
        }
        EndKind::Succeeded => {
            ExecutionSucceeded { output: ends_in.output.unwrap_or_default() }.into()
        }
        EndKind::Cancelled => ExecutionCancelled {}.into(),
        EndKind::Terminated => ExecutionTerminated {}.into(),
    }
}
