//! Policies: how often, how long apart, how long at most, and for which failures.

use crate::failure::{Class, Failure, Origin};
use crate::limits::DURATION_US_MAX;

/// How the delay between attempts grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Backoff {
    /// `initial · factor^(n−1)`.
    Exponential = 0,
    /// `initial · n`.
    Linear = 1,
    /// `initial`.
    Constant = 2,
    /// By a function of the code, which is not written down. `initial` where it was not asked.
    Computed = 3,
}

/// Whether the delay is spread at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Jitter {
    /// Uniform between zero and the computed delay ("full jitter").
    Full = 0,
    /// The computed delay itself.
    None = 1,
}

/// When to try again.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Retry {
    /// Attempts in all, the first included; at least 1.
    #[prost(uint32, tag = "1")]
    pub max_attempts: u32,
    /// How the delay grows.
    #[prost(enumeration = "Backoff", tag = "2")]
    pub backoff: i32,
    /// The delay after the first attempt, in microseconds.
    #[prost(uint64, tag = "3")]
    pub initial_us: u64,
    /// The factor of exponential growth; at least 1.
    #[prost(double, tag = "4")]
    pub factor: f64,
    /// No delay is longer, in microseconds.
    #[prost(uint64, tag = "5")]
    pub cap_us: u64,
    /// Whether delays are spread.
    #[prost(enumeration = "Jitter", tag = "6")]
    pub jitter: i32,
    /// Failures whose class the policy decides; few policies do.
    #[prost(message, optional, boxed, tag = "7")]
    pub lists: Option<Box<ClassLists>>,
}

/// Type names and codes of failures, by the class that they have. None stands in two lists.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ClassLists {
    /// May heal.
    #[prost(string, repeated, tag = "1")]
    pub transient: Vec<String>,
    /// The business says no.
    #[prost(string, repeated, tag = "2")]
    pub permanent: Vec<String>,
    /// Call for a person.
    #[prost(string, repeated, tag = "3")]
    pub attention: Vec<String>,
}

impl ClassLists {
    /// The class of the list that names the failure: by its code in one list and its type in
    /// another, that which tries less often.
    fn class_of(&self, failure: &Failure) -> Option<Class> {
        let lists = [
            (Class::Permanent, &self.permanent),
            (Class::Attention, &self.attention),
            (Class::Transient, &self.transient),
        ];
        let names = |name: &String| *name == failure.type_name || *name == failure.code;
        lists.into_iter().find(|(_, list)| list.iter().any(names)).map(|(class, _)| class)
    }
}

impl Retry {
    /// The default of steps: 6 attempts, 1 s, factor 2, cap 5 min, full jitter.
    pub fn step_default() -> Retry {
        Retry {
            max_attempts: 6,
            backoff: Backoff::Exponential as i32,
            initial_us: 1_000_000,
            factor: 2.0,
            cap_us: 300_000_000,
            jitter: Jitter::Full as i32,
            lists: None,
        }
    }

    /// The default of undos: 10 attempts, otherwise as for steps.
    pub fn undo_default() -> Retry {
        Retry { max_attempts: 10, ..Retry::step_default() }
    }

    /// The class that counts: that of the list which names the failure, else its own. Lists speak
    /// only of what a body itself returned.
    pub fn class_of(&self, failure: &Failure) -> Class {
        match (&self.lists, failure.origin()) {
            (Some(lists), Origin::Body) => lists.class_of(failure).unwrap_or(failure.class()),
            (
                _,
                Origin::Body
                | Origin::Timeout
                | Origin::Panic
                | Origin::Lost
                | Origin::Interrupted
                | Origin::Limit
                | Origin::Decode
                | Origin::Engine,
            ) => failure.class(),
        }
    }

    /// The delay in microseconds after the `nth` attempt (from 1) has failed.
    ///
    /// `draw` is a random number; with full jitter it picks the point between zero and the
    /// computed delay. Never overflows; never longer than the cap.
    pub fn delay_us(&self, nth: u32, draw: u64) -> u64 {
        let full_us = match self.backoff() {
            Backoff::Constant | Backoff::Computed => self.initial_us,
            Backoff::Linear => self.initial_us.saturating_mul(u64::from(nth)),
            Backoff::Exponential => {
                let exponent = i32::try_from(nth.saturating_sub(1)).unwrap_or(i32::MAX);
                let grown = self.initial_us as f64 * self.factor.max(1.0).powi(exponent);
                // A float that is too large (or infinite) saturates when cast.
                grown as u64
            }
        };
        self.spread_us(full_us, draw)
    }

    /// The delay `full_us`, within the cap, with the jitter that `draw` picks.
    pub fn spread_us(&self, full_us: u64, draw: u64) -> u64 {
        let full_us = full_us.min(self.cap_us).min(DURATION_US_MAX);
        match self.jitter() {
            Jitter::None => full_us,
            Jitter::Full => ((u128::from(draw) * (u128::from(full_us) + 1)) >> 64) as u64,
        }
    }
}

/// What happens when the attempts are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum OnExhausted {
    /// The step fails into the code.
    Fail = 0,
    /// The step is blocked for a person.
    Block = 1,
}

/// For which outcomes a step is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum UndoOn {
    /// For every step that was started.
    Started = 0,
    /// Passed over only when it is certain that the step had no effect.
    Succeeded = 1,
}

/// What happens to a running attempt when its step is dropped or the run rolls back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum OnAbandon {
    /// `Settle` for a step with an undo, `Cancel` for one without.
    Auto = 0,
    /// It may finish, up to its timeout.
    Settle = 1,
    /// It gets the cancellation token and is dropped at its next await.
    Cancel = 2,
}

/// Everything that governs the attempts of one step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StepPolicy {
    /// When to try again.
    #[prost(message, required, tag = "1")]
    pub retry: Retry,
    /// The longest that one attempt may take, in microseconds.
    #[prost(uint64, tag = "2")]
    pub timeout_us: u64,
    /// The longest that all attempts and delays may take together, in microseconds.
    #[prost(uint64, optional, tag = "3")]
    pub deadline_us: Option<u64>,
    /// What happens when the attempts are used up.
    #[prost(enumeration = "OnExhausted", tag = "4")]
    pub on_exhausted: i32,
    /// For which outcomes the step is undone.
    #[prost(enumeration = "UndoOn", tag = "5")]
    pub undo_on: i32,
    /// What happens to a running attempt that is no longer wanted.
    #[prost(enumeration = "OnAbandon", tag = "6")]
    pub on_abandon: i32,
    /// A dropped step is not undone because of the drop alone.
    #[prost(bool, tag = "7")]
    pub keep_when_dropped: bool,
}

/// The default timeout of one attempt: 10 minutes, in microseconds.
pub const TIMEOUT_US_DEFAULT: u64 = 600_000_000;

impl StepPolicy {
    /// The defaults of a step.
    pub fn step_default() -> StepPolicy {
        StepPolicy {
            retry: Retry::step_default(),
            timeout_us: TIMEOUT_US_DEFAULT,
            deadline_us: None,
            on_exhausted: OnExhausted::Fail as i32,
            undo_on: UndoOn::Started as i32,
            on_abandon: OnAbandon::Auto as i32,
            keep_when_dropped: false,
        }
    }
}

/// What a rollback does after an undo has failed for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum OnUndoFailure {
    /// Goes on with the next undo.
    Continue = 0,
    /// Waits for a person.
    Halt = 1,
}

/// Everything that governs the attempts of one undo.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UndoPolicy {
    /// When to try again.
    #[prost(message, required, tag = "1")]
    pub retry: Retry,
    /// The longest that one attempt may take, in microseconds.
    #[prost(uint64, tag = "2")]
    pub timeout_us: u64,
    /// What happens after it failed for good.
    #[prost(enumeration = "OnUndoFailure", tag = "3")]
    pub on_failure: i32,
}

impl UndoPolicy {
    /// The defaults of an undo.
    pub fn undo_default() -> UndoPolicy {
        UndoPolicy {
            retry: Retry::undo_default(),
            timeout_us: TIMEOUT_US_DEFAULT,
            on_failure: OnUndoFailure::Continue as i32,
        }
    }
}
