//! Ends of attempts: what becomes of the step, or of the undo.

use crate::event::{
    AbandonWhy, BlockKind, Blocked, StepAbandoned, StepAttemptFailed, StepFailed, StepSucceeded,
    UndoAttemptFailed, UndoFailed, UndoSucceeded,
};
use crate::failure::{Class, Failure, Origin};
use crate::id::Ordinal;
use crate::limits::DURATION_US_MAX;
use crate::retry::{OnExhausted, OnUndoFailure, Retry};
use crate::run::Phase;
use crate::session::{AttemptEnd, Session, StepEnd};
use crate::step::Step;

/// The process died during the attempt.
pub(super) fn lost() -> Failure {
    let message = "the process ended during the attempt; nobody knows whether it had its effect";
    Failure::new(Class::Transient, Origin::Lost, "Lost", message)
}

/// What follows a failed attempt.
enum Verdict {
    RetryAt(i64),
    Block,
    Fail,
}

impl Session {
    /// Whether the end gives the step an outcome (or would, if the run went forward).
    pub(super) fn is_outcome(&self, end: &StepEnd) -> bool {
        let Some(step) = self.in_flight(end) else { return false };
        match &end.end {
            AttemptEnd::Returned(_) => true,
            AttemptEnd::Failed(failure) => {
                matches!(self.verdict(end.ord, step, failure, end.finished_us), Verdict::Fail)
            }
            AttemptEnd::Dropped => false,
        }
    }

    /// The step whose attempt this end is about, if it is still in flight. A body that was left
    /// behind may end later; nobody waits for it.
    fn in_flight(&self, end: &StepEnd) -> Option<&Step> {
        self.run.step(end.ord).filter(|step| step.is_in_flight(end.attempt))
    }

    /// Writes down the end of an attempt. True if the step has an outcome now.
    pub(super) fn record_step_end(&mut self, end: StepEnd) -> bool {
        if self.in_flight(&end).is_none() {
            return false;
        }
        let StepEnd { ord, attempt, end, finished_us } = end;
        match end {
            AttemptEnd::Returned(output) => {
                self.push(StepSucceeded { ord, attempt, output, finished_us });
                true
            }
            AttemptEnd::Dropped => {
                self.push(StepAbandoned { ord, why: AbandonWhy::Cancelled as i32 });
                false
            }
            AttemptEnd::Failed(failure) => self.record_failure(ord, attempt, failure, finished_us),
        }
    }

    fn record_failure(
        &mut self,
        ord: Ordinal,
        attempt: u32,
        failure: Failure,
        finished_us: i64,
    ) -> bool {
        let failure = failure.bounded();
        let step = self.run.step(ord).expect("it is in flight");
        let unwanted = step.dropped || !matches!(self.run.phase, Phase::Forward);
        if unwanted && matches!(failure.origin(), Origin::Lost | Origin::Interrupted) {
            self.push(StepAbandoned { ord, why: AbandonWhy::Lost as i32 });
            return false;
        }
        let verdict = match unwanted {
            true => Verdict::Fail,
            false => self.verdict(ord, step, &failure, finished_us),
        };
        let retry_at_us = match verdict {
            Verdict::RetryAt(at_us) => Some(at_us),
            Verdict::Block | Verdict::Fail => None,
        };
        self.push(StepAttemptFailed {
            ord,
            attempt,
            failure: failure.clone(),
            retry_at_us,
            finished_us,
        });
        match verdict {
            Verdict::RetryAt(_) => false,
            Verdict::Block => {
                self.push(Blocked { what: BlockKind::Step as i32, ord: Some(ord), failure });
                false
            }
            Verdict::Fail => {
                self.push(StepFailed { ord, failure });
                true
            }
        }
    }

    fn verdict(&self, ord: Ordinal, step: &Step, failure: &Failure, finished_us: i64) -> Verdict {
        match failure.class() {
            Class::Permanent => return Verdict::Fail,
            Class::Attention => return Verdict::Block,
            Class::Transient => {}
        }
        let policy = self.newer.get(&ord).map_or(&step.policy, |(policy, _)| policy);
        let spent = step.spent + u32::from(failure.counts());
        let at_us =
            self.retry_at_us(&policy.retry, failure, spent, ord, step.attempts, finished_us);
        let too_late = policy.deadline_us.is_some_and(|deadline_us| {
            let end_us = step.budget_since_us.saturating_add_unsigned(deadline_us);
            at_us >= end_us
        });
        if spent < policy.retry.max_attempts && !too_late {
            return Verdict::RetryAt(at_us);
        }
        match policy.on_exhausted() {
            OnExhausted::Fail => Verdict::Fail,
            OnExhausted::Block => Verdict::Block,
        }
    }

    /// When the next attempt is due: at once after a loss or an orderly stop, else after the delay
    /// that the other side asked for, else after that of the policy.
    fn retry_at_us(
        &self,
        retry: &Retry,
        failure: &Failure,
        spent: u32,
        ord: Ordinal,
        attempt: u32,
        finished_us: i64,
    ) -> i64 {
        let delay_us = match (failure.origin(), failure.retry_after_us) {
            (Origin::Lost | Origin::Interrupted, _) => 0,
            (_, Some(asked_us)) => asked_us.min(DURATION_US_MAX),
            (_, None) => {
                let draw =
                    crate::id::draw(self.run.started.seed, u64::from(ord), u64::from(attempt));
                retry.delay_us(spent.max(1), draw)
            }
        };
        finished_us.saturating_add_unsigned(delay_us)
    }

    pub(super) fn record_undo_ends(&mut self) {
        while let Some(end) = self.undo_ends.pop_front() {
            self.record_undo_end(end);
        }
    }

    fn record_undo_end(&mut self, end: StepEnd) {
        let StepEnd { ord, attempt, end, finished_us } = end;
        let Some(step) = self.run.step(ord) else { return };
        let undo = &step.undo;
        if !undo.is_in_flight(attempt) {
            return;
        }
        let failure = match end {
            AttemptEnd::Returned(_) => {
                return self.push(UndoSucceeded { ord, attempt, finished_us });
            }
            // Undos are dropped only when the owner stops, or by kill.
            AttemptEnd::Dropped => Failure::new(
                Class::Transient,
                Origin::Interrupted,
                "Interrupted",
                "the undo was dropped",
            ),
            AttemptEnd::Failed(failure) => failure.bounded(),
        };
        let policy = self.newer.get(&ord).and_then(|(_, undo)| undo.as_ref());
        let policy = policy.or(undo.policy.as_ref()).expect("what was started has a policy");
        let spent = undo.spent + u32::from(failure.counts());
        let again = failure.class() == Class::Transient && spent < policy.retry.max_attempts;
        let at_us = self.retry_at_us(&policy.retry, &failure, spent, ord, attempt, finished_us);
        let holds = policy.on_failure() == OnUndoFailure::Halt;
        self.push(UndoAttemptFailed {
            ord,
            attempt,
            failure: failure.clone(),
            retry_at_us: again.then_some(at_us),
            finished_us,
        });
        if !again {
            self.push(UndoFailed { ord, failure, holds });
        }
    }
}
