//! The undo of one step, as the fold sees it. Mirrors [`crate::step`].
//!
//! ```text
//! Idle ─▶ Due ─▶ Running ─▶ Succeeded
//!          ▲        │  ▲ └─▶ Failed ─▶ Due (an operator's retry) / Waived
//!          │        ▼  │
//!          │     Waiting (for a retry)
//! ```

use crate::event::{UndoAttemptFailed, UndoFailed, UndoStarted, UndoSucceeded};
use crate::failure::Failure;
use crate::retry::UndoPolicy;

/// Where an undo stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoPhase {
    /// No rollback has asked for it.
    Idle,
    /// In the plan, not yet started (or put back by an operator).
    Due,
    /// The last attempt is in flight.
    Running,
    /// Waits until the instant for its next attempt.
    Waiting {
        /// When the next attempt is due.
        retry_at_us: i64,
    },
    /// Failed for good: a debt.
    Failed,
    /// Done.
    Succeeded,
    /// Passed over, with the reason in the journal.
    NotNeeded,
    /// Taken off the debts by a named person.
    Waived,
}

/// The undo of one step.
#[derive(Clone, Debug)]
pub struct Undo {
    /// Where it stands.
    pub phase: UndoPhase,
    /// The policy of the last attempt; absent for a step without an undo.
    pub policy: Option<UndoPolicy>,
    /// The number of the last attempt; 0 before the first.
    pub attempts: u32,
    /// Attempts that count against the present budget.
    pub spent: u32,
    /// The last failure.
    pub failure: Option<Failure>,
}

impl Undo {
    pub(crate) fn new(policy: Option<UndoPolicy>) -> Undo {
        Undo { phase: UndoPhase::Idle, policy, attempts: 0, spent: 0, failure: None }
    }

    pub(crate) fn planned(&mut self) -> Result<(), String> {
        if self.policy.is_none() {
            return Err("the step has no undo".into());
        }
        match self.phase {
            UndoPhase::Idle | UndoPhase::Failed => {
                self.phase = UndoPhase::Due;
                self.spent = 0;
                Ok(())
            }
            UndoPhase::Due
            | UndoPhase::Running
            | UndoPhase::Waiting { .. }
            | UndoPhase::Succeeded
            | UndoPhase::NotNeeded
            | UndoPhase::Waived => Err(format!("the undo is {:?}", self.phase)),
        }
    }

    pub(crate) fn started(&mut self, event: &UndoStarted) -> Result<(), String> {
        match self.phase {
            UndoPhase::Due | UndoPhase::Waiting { .. } => {}
            UndoPhase::Idle
            | UndoPhase::Running
            | UndoPhase::Failed
            | UndoPhase::Succeeded
            | UndoPhase::NotNeeded
            | UndoPhase::Waived => return Err(format!("the undo is {:?}", self.phase)),
        }
        if event.attempt != self.attempts + 1 {
            return Err(format!("attempt {} follows attempt {}", event.attempt, self.attempts));
        }
        if let Some(policy) = &event.policy {
            self.policy = Some(policy.clone());
        }
        self.attempts = event.attempt;
        self.phase = UndoPhase::Running;
        Ok(())
    }

    pub(crate) fn attempt_failed(&mut self, event: &UndoAttemptFailed) -> Result<(), String> {
        self.in_flight(event.attempt)?;
        if event.failure.counts() {
            self.spent += 1;
        }
        self.failure = Some(event.failure.clone());
        self.phase = match event.retry_at_us {
            Some(retry_at_us) => UndoPhase::Waiting { retry_at_us },
            None => UndoPhase::Due,
        };
        Ok(())
    }

    pub(crate) fn succeeded(&mut self, event: &UndoSucceeded) -> Result<(), String> {
        self.in_flight(event.attempt)?;
        self.phase = UndoPhase::Succeeded;
        Ok(())
    }

    pub(crate) fn failed(&mut self, event: &UndoFailed) -> Result<(), String> {
        match self.phase {
            // Waiting: its handler is missing when its retry is due.
            UndoPhase::Due | UndoPhase::Waiting { .. } => {}
            UndoPhase::Idle
            | UndoPhase::Running
            | UndoPhase::Failed
            | UndoPhase::Succeeded
            | UndoPhase::NotNeeded
            | UndoPhase::Waived => return Err(format!("the undo is {:?}", self.phase)),
        }
        self.failure = Some(event.failure.clone());
        self.phase = UndoPhase::Failed;
        Ok(())
    }

    pub(crate) fn not_needed(&mut self) -> Result<(), String> {
        if self.phase != UndoPhase::Due {
            return Err(format!("the undo is {:?}, not due", self.phase));
        }
        self.phase = UndoPhase::NotNeeded;
        Ok(())
    }

    pub(crate) fn retry_requested(&mut self) -> Result<(), String> {
        if self.phase != UndoPhase::Failed {
            return Err(format!("the undo is {:?}, not failed", self.phase));
        }
        self.phase = UndoPhase::Due;
        self.spent = 0;
        Ok(())
    }

    /// Whether this attempt is in flight.
    pub fn is_in_flight(&self, attempt: u32) -> bool {
        self.phase == UndoPhase::Running && attempt == self.attempts
    }

    fn in_flight(&self, attempt: u32) -> Result<(), String> {
        if !self.is_in_flight(attempt) {
            return Err(format!(
                "attempt {attempt} is not in flight: the undo is {:?}, its last attempt {}",
                self.phase, self.attempts
            ));
        }
        Ok(())
    }

    /// Whether nothing is owed any more.
    pub fn is_settled(&self) -> bool {
        match self.phase {
            UndoPhase::Succeeded | UndoPhase::NotNeeded | UndoPhase::Waived => true,
            UndoPhase::Idle
            | UndoPhase::Due
            | UndoPhase::Running
            | UndoPhase::Waiting { .. }
            | UndoPhase::Failed => false,
        }
    }

    /// Whether an operator may waive it: it failed, or it has not started.
    pub fn may_be_waived(&self) -> bool {
        match self.phase {
            UndoPhase::Failed | UndoPhase::Due => true,
            UndoPhase::Idle
            | UndoPhase::Running
            | UndoPhase::Waiting { .. }
            | UndoPhase::Succeeded
            | UndoPhase::NotNeeded
            | UndoPhase::Waived => false,
        }
    }
}
