//! One step of a run, as the fold sees it.
//!
//! ```text
//! Scheduled ─▶ Running ─▶ Succeeded
//!                │  ▲ └──▶ Failed
//!                ▼  │ └──▶ Abandoned
//!             Waiting (for a retry) / Blocked (for a person)
//! ```

use crate::event::{
    AbandonWhy, StepAbandoned, StepAttemptFailed, StepFailed, StepScheduled, StepStarted,
    StepSucceeded, UndoSpec,
};
use crate::failure::{Effect, Failure};
use crate::id::Key;
use crate::payload::Payload;
use crate::retry::{OnAbandon, StepPolicy, UndoOn};
use crate::undo::Undo;

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepPhase {
    /// Asked for; its first attempt begins in the same row.
    Scheduled,
    /// The last attempt is in flight.
    Running,
    /// Waits until the instant for its next attempt.
    Waiting {
        /// When the next attempt is due.
        retry_at_us: i64,
    },
    /// Waits for a person.
    Blocked,
    /// Has its outcome: an output.
    Succeeded,
    /// Has its outcome: a failure.
    Failed,
    /// Given up; has no outcome and will have none.
    Abandoned(AbandonWhy),
}

/// What is known of a step's effect, as its undo is told.
#[derive(Clone, Debug, PartialEq)]
pub enum StepOutcome {
    /// It succeeded with this output.
    Succeeded(Payload),
    /// Its last attempt failed; the effect may have happened all the same.
    Failed(Failure),
    /// It was started and nobody knows: ask the other system by the step's key.
    Unknown,
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its identity.
    pub key: Key,
    /// Where in the source it was built.
    pub place: String,
    /// The policy of the last attempt.
    pub policy: StepPolicy,
    /// The undo that was declared.
    pub undo_spec: Option<UndoSpec>,
    /// Where it stands.
    pub phase: StepPhase,
    /// The number of the last attempt; 0 before the first.
    pub attempts: u32,
    /// Attempts that count against the present budget.
    pub spent: u32,
    /// When the first attempt of the present budget began.
    pub budget_since_us: i64,
    /// Some attempt may have had its effect without being the outcome.
    pub effect_possible: bool,
    /// The output, once it succeeded.
    pub output: Option<Payload>,
    /// The last failure.
    pub failure: Option<Failure>,
    /// The code has seen the outcome.
    pub shown: bool,
    /// The code has dropped it.
    pub dropped: bool,
    /// Where its undo stands.
    pub undo: Undo,
}

impl Step {
    pub(crate) fn scheduled(event: &StepScheduled) -> Step {
        Step {
            key: event.key.clone(),
            place: event.place.clone(),
            policy: event.policy.clone(),
            undo_spec: event.undo.clone(),
            phase: StepPhase::Scheduled,
            attempts: 0,
            spent: 0,
            budget_since_us: 0,
            effect_possible: false,
            output: None,
            failure: None,
            shown: false,
            dropped: false,
            undo: Undo::new(event.undo.as_ref().map(|undo| undo.policy.clone())),
        }
    }

    pub(crate) fn started(&mut self, event: &StepStarted, at_us: i64) -> Result<(), String> {
        match self.phase {
            StepPhase::Scheduled | StepPhase::Waiting { .. } => {}
            StepPhase::Running
            | StepPhase::Blocked
            | StepPhase::Succeeded
            | StepPhase::Failed
            | StepPhase::Abandoned(_) => return Err(format!("the step is {:?}", self.phase)),
        }
        if self.dropped {
            return Err("the code has dropped the step".into());
        }
        if event.attempt != self.attempts + 1 {
            return Err(format!("attempt {} follows attempt {}", event.attempt, self.attempts));
        }
        if self.spent == 0 {
            self.budget_since_us = at_us;
        }
        if let Some(policy) = &event.policy {
            self.policy = policy.clone();
        }
        self.attempts = event.attempt;
        self.phase = StepPhase::Running;
        Ok(())
    }

    pub(crate) fn succeeded(&mut self, event: &StepSucceeded) -> Result<(), String> {
        self.in_flight(event.attempt)?;
        self.phase = StepPhase::Succeeded;
        self.output = Some(event.output.clone());
        Ok(())
    }

    pub(crate) fn attempt_failed(&mut self, event: &StepAttemptFailed) -> Result<(), String> {
        self.in_flight(event.attempt)?;
        if event.failure.counts() {
            self.spent += 1;
        }
        if event.failure.effect() == Effect::Possible {
            self.effect_possible = true;
        }
        self.failure = Some(event.failure.clone());
        // Without a retry the next event of the row says what becomes of the step.
        self.phase = match event.retry_at_us {
            Some(retry_at_us) => StepPhase::Waiting { retry_at_us },
            None => StepPhase::Blocked,
        };
        Ok(())
    }

    pub(crate) fn failed(&mut self, event: &StepFailed) -> Result<(), String> {
        match self.phase {
            StepPhase::Blocked | StepPhase::Waiting { .. } => {}
            StepPhase::Scheduled
            | StepPhase::Running
            | StepPhase::Succeeded
            | StepPhase::Failed
            | StepPhase::Abandoned(_) => return Err(format!("the step is {:?}", self.phase)),
        }
        self.failure = Some(event.failure.clone());
        self.phase = StepPhase::Failed;
        Ok(())
    }

    /// The code has let go of it, before it took an outcome.
    pub(crate) fn dropped(&mut self) -> Result<(), String> {
        if self.dropped {
            return Err("the step was dropped before".into());
        }
        self.dropped = true;
        Ok(())
    }

    pub(crate) fn abandoned(&mut self, event: &StepAbandoned) -> Result<(), String> {
        // 0: of before it was written.
        if event.attempt != 0 && event.attempt != self.attempts {
            return Err(format!("attempt {} is given up, not {}", event.attempt, self.attempts));
        }
        if self.phase != StepPhase::Running {
            return Err(format!("the step is {:?}, not running", self.phase));
        }
        self.phase = StepPhase::Abandoned(event.why());
        self.effect_possible = true;
        Ok(())
    }

    /// An operator wants a blocked step tried again: a new budget, due at once.
    pub(crate) fn retry_requested(&mut self, at_us: i64) -> Result<(), String> {
        if self.phase != StepPhase::Blocked || self.dropped {
            return Err(format!("the step is {:?}, not blocked", self.phase));
        }
        self.phase = StepPhase::Waiting { retry_at_us: at_us };
        self.spent = 0;
        Ok(())
    }

    /// Whether this attempt is in flight.
    pub fn is_in_flight(&self, attempt: u32) -> bool {
        self.phase == StepPhase::Running && attempt == self.attempts
    }

    fn in_flight(&self, attempt: u32) -> Result<(), String> {
        if !self.is_in_flight(attempt) {
            return Err(format!(
                "attempt {attempt} is not in flight: the step is {:?}, its last attempt {}",
                self.phase, self.attempts
            ));
        }
        Ok(())
    }

    /// Whether it has an outcome that the code may see.
    pub fn is_recorded(&self) -> bool {
        match self.phase {
            StepPhase::Succeeded | StepPhase::Failed => true,
            StepPhase::Scheduled
            | StepPhase::Running
            | StepPhase::Waiting { .. }
            | StepPhase::Blocked
            | StepPhase::Abandoned(_) => false,
        }
    }

    /// What its undo is told. A step that waits for a retry or a person has ended with its last
    /// failure.
    pub fn outcome(&self) -> StepOutcome {
        match (self.phase, &self.output, &self.failure) {
            (StepPhase::Succeeded, Some(output), _) => StepOutcome::Succeeded(output.clone()),
            (StepPhase::Failed | StepPhase::Waiting { .. } | StepPhase::Blocked, _, Some(f)) => {
                StepOutcome::Failed(f.clone())
            }
            _ => StepOutcome::Unknown,
        }
    }

    /// Whether it is certain that the step had no effect: it ended in failure, and every attempt
    /// ended in a failure that the body itself returned as permanent or attention.
    pub fn certainly_without_effect(&self) -> bool {
        match self.phase {
            StepPhase::Failed | StepPhase::Blocked | StepPhase::Waiting { .. } => {
                !self.effect_possible
            }
            StepPhase::Scheduled
            | StepPhase::Running
            | StepPhase::Succeeded
            | StepPhase::Abandoned(_) => false,
        }
    }

    /// Whether a rollback that is decided now owes its undo (R2).
    pub fn is_owed(&self) -> bool {
        let passed_over = self.policy.undo_on() == UndoOn::Succeeded
            && self.phase != StepPhase::Running
            && self.certainly_without_effect();
        self.undo_spec.is_some() && self.attempts > 0 && !self.undo.is_settled() && !passed_over
    }

    /// Whether a running attempt that is no longer wanted may finish.
    pub fn may_settle(&self) -> bool {
        match self.policy.on_abandon() {
            OnAbandon::Auto => self.undo_spec.is_some(),
            OnAbandon::Settle => true,
            OnAbandon::Cancel => false,
        }
    }
}
