//! The retry policy, as a builder.

use backstitch_core::retry::{Backoff, Jitter};

use crate::duration::IntoDuration;

/// When to try again.
///
/// Defaults of a step: 6 attempts, 1 s, factor 2, cap 5 min, full jitter; of an undo: 10 attempts,
/// otherwise the same.
///
/// ```
/// use backstitch::Retry;
///
/// let _ = Retry::exponential("1s").factor(2.0).cap("5m").max_attempts(5);
/// let _ = Retry::none();
/// ```
#[derive(Clone, Debug)]
pub struct Retry {
    pub(crate) policy: backstitch_core::retry::Retry,
    pub(crate) defect: Option<String>,
}

impl Retry {
    /// Delays of `initial`, `initial · factor`, `initial · factor²` …
    pub fn exponential(initial: impl IntoDuration) -> Retry {
        Retry::with(Backoff::Exponential, initial)
    }

    /// Delays of `step`, `2 · step`, `3 · step` …
    pub fn linear(step: impl IntoDuration) -> Retry {
        Retry::with(Backoff::Linear, step)
    }

    /// The same delay each time. Without jitter unless it is asked for.
    pub fn constant(delay: impl IntoDuration) -> Retry {
        Retry::with(Backoff::Constant, delay).jitter(Jitter::None)
    }

    /// One attempt.
    pub fn none() -> Retry {
        Retry::constant(std::time::Duration::ZERO).max_attempts(1)
    }

    fn with(backoff: Backoff, initial: impl IntoDuration) -> Retry {
        let mut retry =
            Retry { policy: backstitch_core::retry::Retry::step_default(), defect: None };
        retry.policy.backoff = backoff as i32;
        retry.policy.initial_us = retry.us("delay", initial);
        // A first delay beyond the default cap is meant as it stands.
        retry.policy.cap_us = retry.policy.cap_us.max(retry.policy.initial_us);
        retry
    }

    /// Attempts in all, the first included. 0 is refused: a step that is never tried is not a
    /// step. `u32::MAX` means as long as it takes.
    pub fn max_attempts(mut self, attempts: u32) -> Retry {
        if attempts == 0 {
            let why = "max_attempts is 0; the least is 1, for a single attempt";
            self.defect.get_or_insert_with(|| why.to_owned());
        }
        self.policy.max_attempts = attempts;
        self
    }

    /// The factor of exponential growth; at least 1.
    pub fn factor(mut self, factor: f64) -> Retry {
        if !(factor.is_finite() && factor >= 1.0) {
            self.defect.get_or_insert_with(|| format!("the factor {factor} is less than 1"));
        }
        self.policy.factor = factor;
        self
    }

    /// No delay is longer (default: 5 min, or the first delay if that is longer). A delay that the
    /// other side asked for is not capped.
    pub fn cap(mut self, cap: impl IntoDuration) -> Retry {
        self.policy.cap_us = self.us("cap", cap);
        self
    }

    /// Whether delays are spread at random between zero and the computed delay.
    pub fn jitter(mut self, jitter: Jitter) -> Retry {
        self.policy.jitter = jitter as i32;
        self
    }

    fn us(&mut self, what: &str, duration: impl IntoDuration) -> u64 {
        duration.into_us().unwrap_or_else(|why| {
            self.defect.get_or_insert_with(|| format!("the {what}: {why}"));
            0
        })
    }
}
