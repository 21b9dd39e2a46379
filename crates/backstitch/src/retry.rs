//! The retry policy, as a builder.

use std::time::Duration;

use backstitch_core::failure::Failure;
use backstitch_core::limits::{CLASS_NAMES_MAX, DURATION_US_MAX, FAILURE_NAME_BYTES_MAX};
use backstitch_core::retry::{Backoff, ClassLists, Jitter};
use backstitch_engine::program::Delays;

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
    /// Not written down: goes beside the body.
    pub(crate) delays: Option<Delays>,
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

    /// Delays that `delay` computes from the number of the attempt that failed and its failure,
    /// whatever its origin. Neither cap nor jitter unless they are asked for.
    ///
    /// It is not asked where there is nothing to compute: after a loss or an orderly stop the next
    /// attempt begins at once; a delay that the other side asked for stands; nor after the last
    /// attempt. The instant of the next attempt is written down, so a crash does not change it.
    ///
    /// One that panics or returns more than 100 years ends the step with a permanent failure
    /// `BadDelay` (an undo: it has failed for good), which quotes the failure of the attempt.
    ///
    /// ```
    /// use std::time::Duration;
    /// use backstitch::{Retry, Origin};
    ///
    /// let _ = Retry::delays(|attempt, failure| match failure.origin() {
    ///     Origin::Timeout => Duration::from_secs(60),
    ///     _ => Duration::from_secs(u64::from(attempt).pow(2)),
    /// });
    /// ```
    pub fn delays(delay: impl Fn(u32, &Failure) -> Duration + Send + Sync + 'static) -> Retry {
        let mut retry = Retry::step_default();
        retry.policy.backoff = Backoff::Computed as i32;
        retry.policy.cap_us = DURATION_US_MAX;
        retry.delays = Some(Delays::new(delay));
        retry.jitter(Jitter::None)
    }

    /// One attempt.
    pub fn none() -> Retry {
        Retry::constant(Duration::ZERO).max_attempts(1)
    }

    fn step_default() -> Retry {
        let policy = backstitch_core::retry::Retry::step_default();
        Retry { policy, delays: None, defect: None }
    }

    fn with(backoff: Backoff, initial: impl IntoDuration) -> Retry {
        let mut retry = Retry::step_default();
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

    /// Failures that may heal, whatever the body said of them: tried again.
    ///
    /// A name is that of the failure's type (`type_name`) or its code, letter by letter. The lists
    /// speak only of failures that the body itself returned: not of timeouts, panics or losses.
    /// They are written down with the policy, and the failure is written down with the class that
    /// they give it. What it says of its effect stays as it was: a failure that only a list makes
    /// permanent may have had its effect. A list that is given twice holds the names of both.
    ///
    /// A name in two lists, an empty one, one of more than 256 bytes, or more than 100 names make
    /// the step fail permanently.
    ///
    /// ```
    /// use backstitch::Retry;
    ///
    /// let _ = Retry::exponential("1s")
    ///     .permanent_on(["CardDeclined", "card_expired"])
    ///     .attention_on(["Unauthorized"])
    ///     .transient_on(["Timeout"]);
    /// ```
    pub fn transient_on<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Retry {
        self.list(|lists| &mut lists.transient, names)
    }

    /// Failures to which the business says no, whatever the body said of them: not tried again. See
    /// [`Retry::transient_on`].
    pub fn permanent_on<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Retry {
        self.list(|lists| &mut lists.permanent, names)
    }

    /// Failures that call for a person, whatever the body said of them: the step is blocked. See
    /// [`Retry::transient_on`].
    pub fn attention_on<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Retry {
        self.list(|lists| &mut lists.attention, names)
    }

    fn list<N: Into<String>>(
        mut self,
        list: fn(&mut ClassLists) -> &mut Vec<String>,
        names: impl IntoIterator<Item = N>,
    ) -> Retry {
        for name in names {
            let (name, mut lists) = (name.into(), self.policy.lists.take().unwrap_or_default());
            if !list(&mut lists).contains(&name) {
                match name_defect(&lists, &name) {
                    None => list(&mut lists).push(name),
                    Some(why) => self.defect = self.defect.or(Some(why)),
                }
            }
            self.policy.lists = Some(lists);
        }
        self
    }

    fn us(&mut self, what: &str, duration: impl IntoDuration) -> u64 {
        duration.into_us().unwrap_or_else(|why| {
            self.defect.get_or_insert_with(|| format!("the {what}: {why}"));
            0
        })
    }
}

/// Says why `name` cannot be added to the lists.
fn name_defect(lists: &ClassLists, name: &str) -> Option<String> {
    let all = [&lists.transient, &lists.permanent, &lists.attention];
    if name.is_empty() {
        return Some("a list of failures has an empty name; leave it out".into());
    }
    if name.len() > FAILURE_NAME_BYTES_MAX {
        let bytes = name.len();
        return Some(format!(
            "a list of failures has a name of {bytes} bytes; no failure has more than \
             {FAILURE_NAME_BYTES_MAX}"
        ));
    }
    if all.iter().any(|list| list.iter().any(|other| other == name)) {
        return Some(format!("{name:?} is in two lists of failures; a failure has one class"));
    }
    (all.iter().map(|list| list.len()).sum::<usize>() >= CLASS_NAMES_MAX).then(|| {
        format!(
            "the lists of failures have more than {CLASS_NAMES_MAX} names; classify in the body"
        )
    })
}
