//! Policies: how often, how long apart, how long at most.

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
        }
    }

    /// The default of undos: 10 attempts, otherwise as for steps.
    pub fn undo_default() -> Retry {
        Retry { max_attempts: 10, ..Retry::step_default() }
    }

    /// The delay in microseconds after the `nth` attempt (from 1) has failed.
    ///
    /// `draw` is a random number; with full jitter it picks the point between zero and the
    /// computed delay. Never overflows; never longer than the cap.
    pub fn delay_us(&self, nth: u32, draw: u64) -> u64 {
        let cap = self.cap_us.min(DURATION_US_MAX);
        let full = match self.backoff() {
            Backoff::Constant => self.initial_us,
            Backoff::Linear => self.initial_us.saturating_mul(u64::from(nth)),
            Backoff::Exponential => {
                let exponent = i32::try_from(nth.saturating_sub(1)).unwrap_or(i32::MAX);
                let grown = self.initial_us as f64 * self.factor.max(1.0).powi(exponent);
                // A float that is too large (or infinite) saturates when cast.
                grown as u64
            }
        }
        .min(cap);
        match self.jitter() {
            Jitter::None => full,
            Jitter::Full => ((u128::from(draw) * (u128::from(full) + 1)) >> 64) as u64,
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
