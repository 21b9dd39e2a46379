//! Bodies and undos: what they do outside, and the record of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backstitch::engine::Clock;
use backstitch::{Failure, FailureExt, StepCtx, Undo, UndoOutcome};

use crate::clock::SimClock;
use crate::code::failure;
use crate::history::{Attempt, Entry, History, How, Kind, Told};
use crate::plan::{Act, StepSpec, UndoSpec};

/// The world outside, as one process sees it.
#[derive(Clone)]
pub(crate) struct Outside {
    pub process: u32,
    pub clock: SimClock,
    pub history: History,
    /// Up when the process is gone. What stops with it stops in no order: it is not written down.
    pub gone: Arc<AtomicBool>,
}

impl Outside {
    fn begin(&self, attempt: Attempt) -> AtWork {
        let token = self.history.token();
        let attempt = Attempt { token, process: self.process, ..attempt };
        self.history.push(Entry::Began(attempt));
        AtWork { outside: self.clone(), token, how: How::Dropped }
    }

    /// Does what the act says; whatever it is, the record has it.
    async fn perform(
        &self,
        act: Act,
        mut at_work: AtWork,
        value: String,
    ) -> Result<String, Failure> {
        let pass = |ms| self.clock.sleep(Duration::from_millis(ms));
        let (how, result) = match act {
            Act::Succeed => (How::Well(value.clone()), Ok(value)),
            Act::SucceedAfter { ms } => {
                pass(ms).await;
                (How::Well(value.clone()), Ok(value))
            }
            Act::Fail => (How::Failed { later_ms: None }, Err(failure("not now"))),
            Act::FailAfter { ms } => {
                pass(ms).await;
                (How::Failed { later_ms: None }, Err(failure("not then")))
            }
            Act::AskForLater { ms } => {
                let later = failure("later").retry_after(Duration::from_millis(ms));
                (How::Failed { later_ms: Some(ms) }, Err(later))
            }
            Act::Refuse => (How::Refused, Err(failure("no").permanent())),
            Act::CallForHelp => (How::CalledForHelp, Err(failure("help").attention())),
            Act::Panic => {
                at_work.how = How::Panicked;
                drop(at_work);
                std::panic::resume_unwind(Box::new("by order"));
            }
        };
        at_work.how = how;
        result
    }
}

/// An attempt at work; it is over when this is gone.
struct AtWork {
    outside: Outside,
    token: u64,
    how: How,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if !self.outside.gone.load(Ordering::Relaxed) {
            let (token, how) = (self.token, self.how.clone());
            self.outside.history.push(Entry::Ended { token, how });
        }
    }
}

/// One attempt of a body.
pub(crate) async fn body(s: StepCtx, spec: &StepSpec) -> Result<String, Failure> {
    let outside = s.state::<Outside>().clone();
    let key = s.idempotency_key();
    let at_work = outside.begin(Attempt {
        token: 0,
        process: 0,
        kind: Kind::Body,
        step_key: key.clone(),
        key,
        name: s.name().to_owned(),
        number: s.attempt(),
        fence: of_owner(s.fence()),
        told: Told::Nothing,
    });
    let value = format!("{} by attempt {}", s.name(), s.attempt());
    outside.perform(spec.act(s.attempt()), at_work, value).await
}

/// One attempt of an undo.
pub(crate) async fn undo(u: Undo<String>, spec: &UndoSpec) -> Result<(), Failure> {
    let outside = u.state::<Outside>().clone();
    let step = u.step();
    let told = match (u.outcome(), u.output()) {
        (UndoOutcome::Succeeded, Some(output)) => Told::Succeeded(output.clone()),
        (UndoOutcome::Succeeded, None) => Told::Succeeded(String::new()),
        (UndoOutcome::Failed(_), _) => Told::Failed,
        (UndoOutcome::Unknown, _) => Told::Unknown,
    };
    let at_work = outside.begin(Attempt {
        token: 0,
        process: 0,
        kind: Kind::Undo,
        key: u.idempotency_key(),
        step_key: step.idempotency_key,
        name: step.name,
        number: u.attempt(),
        fence: of_owner(u.fence()),
        told,
    });
    outside.perform(spec.act(u.attempt()), at_work, String::new()).await.map(drop)
}

/// The fence of the owner of the store, of which an attempt is given a multiple: below it is room for those to
/// whom the owner leases.
fn of_owner(fence: u64) -> u64 {
    fence >> 32
}
