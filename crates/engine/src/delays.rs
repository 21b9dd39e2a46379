//! Delays that the code computes itself. Its function is called beside the body, after an attempt
//! that is to be followed by another.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use backstitch_core::failure::{Cause, Class, Failure, Origin};
use backstitch_core::limits::DURATION_US_MAX;
use backstitch_core::retry::Retry;
use backstitch_core::session::AttemptEnd;

use crate::code::panicked;
use crate::desk::{Inside, inside};

/// The delay function of a retry policy. Cheap to clone.
#[derive(Clone)]
pub struct Delays(Arc<DelayFn>);

/// The number of the attempt and its failure in, the delay out.
type DelayFn = dyn Fn(u32, &Failure) -> Duration + Send + Sync;

impl Delays {
    /// Delays that `delay` computes.
    pub fn new(delay: impl Fn(u32, &Failure) -> Duration + Send + Sync + 'static) -> Delays {
        Delays(Arc::new(delay))
    }
}

impl fmt::Debug for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Delays")
    }
}

/// What is to be asked after an attempt.
pub(crate) struct DelayQuestion {
    pub delays: Delays,
    /// Whose policy it is, for people.
    pub owner: String,
    pub what: Inside,
    pub retry: Retry,
    pub attempt: u32,
    /// How many attempts of the present budget were spent before this one.
    pub spent: u32,
}

impl DelayQuestion {
    /// The end of the attempt with the delay that the function gives, if there is one to be asked.
    /// A function that gives none ends the step: nobody knows any more when to try again.
    pub fn answer(question: Option<DelayQuestion>, end: AttemptEnd) -> AttemptEnd {
        let (question, mut failure) = match (question, end) {
            (Some(question), AttemptEnd::Failed { failure, .. }) => (question, failure),
            (_, end) => return end,
        };
        if !question.is_asked(&failure) {
            return AttemptEnd::Failed { failure, delay_us: None };
        }
        failure.set_class(Class::Transient);
        match question.delay_us(&failure) {
            Ok(delay_us) => AttemptEnd::Failed { failure, delay_us: Some(delay_us) },
            Err(failure) => AttemptEnd::Failed { failure, delay_us: None },
        }
    }

    fn is_asked(&self, failure: &Failure) -> bool {
        let at_once = matches!(failure.origin(), Origin::Lost | Origin::Interrupted);
        self.retry.class_of(failure) == Class::Transient
            && !at_once
            && failure.retry_after_us.is_none()
            && self.spent.saturating_add(1) < self.retry.max_attempts
    }

    fn delay_us(&self, failure: &Failure) -> Result<u64, Failure> {
        let ask = || catch_unwind(AssertUnwindSafe(|| (self.delays.0)(self.attempt, failure)));
        let delay = inside(self.what, ask).map_err(|panic| {
            let why = panicked("the delay function", panic).message.clone();
            self.refusal(Origin::Panic, &why, failure)
        })?;
        match u64::try_from(delay.as_micros()) {
            Ok(us) if us <= DURATION_US_MAX => Ok(us),
            _ => {
                let why = format!("the delay function returned {delay:?}, more than 100 years");
                Err(self.refusal(Origin::Engine, &why, failure))
            }
        }
    }

    fn refusal(&self, origin: Origin, why: &str, failure: &Failure) -> Failure {
        let DelayQuestion { owner, attempt, .. } = self;
        let message = format!(
            "the retry policy of {owner}: {why}; asked after attempt {attempt}, which had failed: \
             {failure}"
        );
        let mut refusal = Failure::new(Class::Permanent, origin, "BadDelay", message);
        let cause =
            Cause { type_name: failure.type_name.clone(), message: failure.message.clone() };
        refusal.causes.push(cause);
        refusal.causes.extend(failure.causes.iter().cloned());
        refusal
    }
}
