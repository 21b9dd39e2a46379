//! Ends of attempts: what becomes of the step, or of the undo.

use crate::event::{
    AbandonWhy, BlockKind, Blocked, StepAttemptFailed, StepFailed, StepSucceeded,
    UndoAttemptFailed, UndoFailed, UndoSucceeded,
};
use crate::failure::{Class, Failure, Origin};
use crate::id::Ordinal;
use crate::limits::DURATION_US_MAX;
use crate::retry::{OnExhausted, OnUndoFailure, Retry, StepPolicy};
use crate::run::Phase;
use crate::session::{AttemptEnd, Session, StepEnd};
use crate::step::Step;

/// The process died during the attempt.
pub(super) fn lost() -> Failure {
    let message = "the process ended during the attempt; nobody knows whether it had its effect";
    Failure::new(Class::Transient, Origin::Lost, "Lost", message)
}

/// A failed attempt that is to be judged.
#[derive(Clone, Copy)]
struct Failed<'a> {
    ord: Ordinal,
    attempt: u32,
    failure: &'a Failure,
    /// What the code's own function says.
    delay_us: Option<u64>,
    finished_us: i64,
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
            AttemptEnd::Failed { failure, delay_us } => {
                let StepEnd { ord, attempt, finished_us, .. } = *end;
                let failed = Failed { ord, attempt, failure, delay_us: *delay_us, finished_us };
                matches!(self.verdict(step, failed), Verdict::Fail)
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
                self.abandon(ord, AbandonWhy::Cancelled, Some(finished_us));
                false
            }
            AttemptEnd::Failed { failure, delay_us } => {
                self.record_failure(ord, attempt, failure, delay_us, finished_us)
            }
        }
    }

    fn record_failure(
        &mut self,
        ord: Ordinal,
        attempt: u32,
        failure: Failure,
        delay_us: Option<u64>,
        finished_us: i64,
    ) -> bool {
        let step = self.run.step(ord).expect("it is in flight");
        let failure = judged(&self.policy_of(ord, step).retry, failure);
        let unwanted = step.dropped || !matches!(self.run.phase, Phase::Forward);
        if unwanted && matches!(failure.origin(), Origin::Lost | Origin::Interrupted) {
            self.abandon(ord, AbandonWhy::Lost, None);
            return false;
        }
        let verdict = match unwanted {
            true => Verdict::Fail,
            false => {
                let failed = Failed { ord, attempt, failure: &failure, delay_us, finished_us };
                self.verdict(step, failed)
            }
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

    /// The policy that the code gives now, else that of the attempt.
    fn policy_of<'a>(&'a self, ord: Ordinal, step: &'a Step) -> &'a StepPolicy {
        self.newer.get(&ord).map_or(&step.policy, |(policy, _)| policy)
    }

    fn verdict(&self, step: &Step, failed: Failed<'_>) -> Verdict {
        let policy = self.policy_of(failed.ord, step);
        match policy.retry.class_of(failed.failure) {
            Class::Permanent => return Verdict::Fail,
            Class::Attention => return Verdict::Block,
            Class::Transient => {}
        }
        let spent = step.spent + u32::from(failed.failure.counts());
        let at_us = self.retry_at_us(&policy.retry, spent, failed);
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
    /// that the other side asked for, else after that of the code's function or of the policy.
    fn retry_at_us(&self, retry: &Retry, spent: u32, failed: Failed<'_>) -> i64 {
        let delay_us = match (failed.failure.origin(), failed.failure.retry_after_us) {
            (Origin::Lost | Origin::Interrupted, _) => 0,
            (_, Some(asked_us)) => asked_us.min(DURATION_US_MAX),
            (_, None) => {
                let (ord, attempt) = (u64::from(failed.ord), u64::from(failed.attempt));
                let draw = crate::id::draw(self.run.started.seed, ord, attempt);
                match failed.delay_us {
                    Some(computed_us) => retry.spread_us(computed_us, draw),
                    None => retry.delay_us(spent.max(1), draw),
                }
            }
        };
        failed.finished_us.saturating_add_unsigned(delay_us)
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
        let (failure, delay_us) = match end {
            AttemptEnd::Returned(_) => {
                return self.push(UndoSucceeded { ord, attempt, finished_us });
            }
            // Undos are dropped only when the owner stops, or by kill.
            AttemptEnd::Dropped => {
                let (class, origin) = (Class::Transient, Origin::Interrupted);
                (Failure::new(class, origin, "Interrupted", "the undo was dropped"), None)
            }
            AttemptEnd::Failed { failure, delay_us } => (failure, delay_us),
        };
        let policy = self.newer.get(&ord).and_then(|(_, undo)| undo.as_ref());
        let policy = policy.or(undo.policy.as_ref()).expect("what was started has a policy");
        let failure = judged(&policy.retry, failure);
        let spent = undo.spent + u32::from(failure.counts());
        let again = failure.class() == Class::Transient && spent < policy.retry.max_attempts;
        let failed = Failed { ord, attempt, failure: &failure, delay_us, finished_us };
        let at_us = self.retry_at_us(&policy.retry, spent, failed);
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

/// The failure as it is written down: with the class that counts. What it says of its effect stays:
/// a list knows nothing of that (R2).
fn judged(retry: &Retry, failure: Failure) -> Failure {
    let class = retry.class_of(&failure);
    let mut failure = failure.bounded();
    failure.set_class(class);
    failure
}
