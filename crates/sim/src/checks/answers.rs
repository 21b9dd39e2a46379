//! What a body or an undo answered is what becomes of it: its class, the delay that it asks for, and
//! what the journal says of it. P3, P9, R6, R7; `class` is the rule that no failure for good is tried
//! again.

use std::collections::{BTreeMap, BTreeSet};

use backstitch::core::event::Event;
use backstitch::core::id::Ordinal;
use backstitch::core::retry::{Backoff, Retry};
use backstitch::store::RunNo;
use backstitch::{Jitter, Origin};

use super::Violations;
use super::ledger::{Ledger, Step};
use crate::history::{Attempt, Entry, How, Kind, Moment};

#[derive(Default)]
struct Answers {
    ledger: Ledger,
    begun: BTreeMap<u64, Attempt>,
    /// By idempotency key and number of the attempt.
    ends: BTreeMap<(String, u32), How>,
    /// Keys that are not to be called again, unless a person asks for it.
    over: BTreeSet<String>,
    violations: Violations,
}

pub(super) fn check(moments: &[Moment]) -> Violations {
    let mut answers = Answers::default();
    for moment in moments {
        answers.take(&moment.entry);
        answers.ledger.take(moment);
    }
    answers.violations
}

/// The end of an attempt, as the journal has it.
struct Recorded<'a> {
    kind: Kind,
    ord: Ordinal,
    attempt: u32,
    fence: u64,
    origin: Origin,
    retry_in_us: Option<i64>,
    step: &'a Step,
}

impl Answers {
    fn take(&mut self, entry: &Entry) {
        match entry {
            Entry::Began(attempt) => {
                if self.over.contains(&attempt.key) && !self.ledger.is_superseded(attempt.process) {
                    let Attempt { kind, name, number, .. } = attempt;
                    let why = "after it was refused for good";
                    self.violations.push(format!("class: {kind:?} {name} {number} begins {why}"));
                }
                self.begun.insert(attempt.token, attempt.clone());
            }
            Entry::Ended { token, how } => {
                if let Some(attempt) = self.begun.get(token) {
                    self.ends.insert((attempt.key.clone(), attempt.number), how.clone());
                }
            }
            Entry::Durable { run, row } => {
                for event in &row.events {
                    self.read(*run, event, row.header.fence);
                }
            }
            Entry::Opened { .. }
            | Entry::Gone { .. }
            | Entry::WokeUp { .. }
            | Entry::ClockSet { .. }
            | Entry::Answered { .. }
            | Entry::Accepted { .. }
            | Entry::Listed(_)
            | Entry::Found { .. } => {}
        }
    }

    fn read(&mut self, run: RunNo, event: &Event, fence: u64) {
        let Some(book) = self.ledger.runs.get(&run) else { return };
        let step = |ord| book.steps.get(&ord);
        let found = match event {
            Event::StepAttemptFailed(e) => step(e.ord).map(|step| Recorded {
                kind: Kind::Body,
                ord: e.ord,
                attempt: e.attempt,
                fence,
                origin: e.failure.origin(),
                retry_in_us: e.retry_at_us.map(|at_us| at_us - e.finished_us),
                step,
            }),
            Event::UndoAttemptFailed(e) => step(e.ord).map(|step| Recorded {
                kind: Kind::Undo,
                ord: e.ord,
                attempt: e.attempt,
                fence,
                origin: e.failure.origin(),
                retry_in_us: e.retry_at_us.map(|at_us| at_us - e.finished_us),
                step,
            }),
            Event::StepRetryRequested(e) => {
                self.over.remove(&self.key(run, Kind::Body, e.ord));
                None
            }
            Event::UndoRetryRequested(e) => {
                self.over.remove(&self.key(run, Kind::Undo, e.ord));
                None
            }
            _ => None,
        };
        if let Some(recorded) = found {
            let key = self.key(run, recorded.kind, recorded.ord);
            let how = self.ends.get(&(key.clone(), recorded.attempt));
            let wrong = recorded.judge(how);
            if recorded.origin == Origin::Body
                && matches!(how, Some(How::Refused | How::CalledForHelp))
            {
                self.over.insert(key);
            }
            self.violations.extend(wrong);
        }
    }

    fn key(&self, run: RunNo, kind: Kind, ord: Ordinal) -> String {
        let run_id = self.ledger.runs.get(&run).and_then(|book| book.run_id);
        run_id.map_or_else(String::new, |run_id| match kind {
            Kind::Body => run_id.step_key(ord),
            Kind::Undo => run_id.undo_key(ord),
        })
    }
}

impl Recorded<'_> {
    fn judge(&self, how: Option<&How>) -> Option<String> {
        let Recorded { kind, attempt, step, .. } = self;
        let who = format!("{kind:?} {} attempt {attempt}", step.name);
        let (started, spent, retry) = match kind {
            Kind::Body => (&step.started, step.spent, &step.policy.retry),
            Kind::Undo => (&step.undo_started, step.undo_spent, &step.undo.as_ref()?.policy.retry),
        };
        if self.origin == Origin::Interrupted && !started.contains(&(*attempt, self.fence)) {
            return Some(format!("P4: {who} was lost, and is recorded as interrupted"));
        }
        if self.origin != Origin::Body {
            return None;
        }
        let because = match how? {
            How::Well(_) => format!("P3: {who} went well, and is recorded as failed"),
            How::Refused | How::CalledForHelp if self.retry_in_us.is_some() => {
                format!("class: {who} was refused for good, and is to be tried again")
            }
            How::Failed { later_ms } => {
                let (delay_us, due_us) = (self.retry_in_us?, due_us(retry, spent + 1, *later_ms)?);
                if delay_us == due_us {
                    return None;
                }
                format!("P9: {who} is tried again after {delay_us} µs, and not after {due_us}")
            }
            How::Refused | How::CalledForHelp | How::Panicked | How::Dropped => return None,
        };
        Some(because)
    }
}

/// The delay after a failure, where it is no matter of chance.
fn due_us(retry: &Retry, spent: u32, later_ms: Option<u64>) -> Option<i64> {
    let us = match later_ms {
        Some(ms) => ms * 1_000,
        // What a function gave stands nowhere else.
        None if retry.backoff() == Backoff::Computed => return None,
        None if retry.jitter() == Jitter::None => retry.delay_us(spent, 0),
        None => return None,
    };
    i64::try_from(us).ok()
}
