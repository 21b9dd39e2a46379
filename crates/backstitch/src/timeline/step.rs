//! What happens to steps and sleeps.

use backstitch_core::event::{
    Event, StepAbandoned, StepAttemptFailed, StepCancelRequested, StepFailed, StepRetryRequested,
    StepScheduled, StepStarted, StepSucceeded, TimerStarted,
};
use backstitch_core::failure::Class;
use backstitch_core::id::Ordinal;

use super::rail::{Rail, Tone, Way};
use super::scribe::Scribe;
use super::words;

impl Scribe {
    /// Says nothing when its first attempt begins in the same row.
    pub fn step_scheduled(&mut self, event: &StepScheduled, rest: &[Event]) {
        self.call(event.ord, &event.key);
        let begins = |later: &Event| matches!(later, Event::StepStarted(e) if e.ord == event.ord);
        if !rest.iter().any(begins) {
            self.blank();
            let name = (Tone::Strong, self.name(event.ord));
            self.line(Rail::Ask, self.now_us, [name, (Tone::Faint, "  not yet begun".into())]);
        }
    }

    pub fn step_started(&mut self, event: &StepStarted) {
        if event.attempt == 1 {
            self.blank();
        }
        let attempt = later_attempt(event.attempt);
        let name = (Tone::Strong, self.name(event.ord));
        self.line(Rail::Ask, self.now_us, [name, (Tone::Plain, attempt)]);
    }

    pub fn step_succeeded(&mut self, event: &StepSucceeded) {
        let name = (Tone::Strong, self.name(event.ord));
        let output = match words::payload(&event.output).as_str() {
            "" => None,
            output => Some((Tone::Faint, format!("  {output}"))),
        };
        let said = [(Tone::Good, "✔ ".into()), name].into_iter().chain(output);
        self.note(event.finished_us, said);
    }

    pub fn step_attempt_failed(&mut self, event: &StepAttemptFailed) {
        let what = format!("{}{}", self.name(event.ord), later_attempt(event.attempt));
        let at_us = self.ended_at(&event.failure, event.finished_us);
        self.failed(at_us, &what, &event.failure);
        if let Some(at_us) = event.retry_at_us {
            self.retry_at(at_us);
        }
    }

    pub fn step_failed(&mut self, event: &StepFailed) {
        let why = match (event.failure.class(), self.way) {
            (Class::Permanent, _) => "permanent: it is not tried again",
            (Class::Attention, _) => "it needs a person, and nobody came in time",
            (Class::Transient, Way::Forward) => "its attempts are used up",
            (Class::Transient, Way::Back | Way::Over) => "it is not tried again on the way back",
        };
        self.more([(Tone::Faint, format!("  {why}"))]);
    }

    pub fn step_dropped(&mut self, event: &StepCancelRequested) {
        let name = (Tone::Strong, self.name(event.ord));
        let what = (Tone::Plain, " is dropped by the workflow".into());
        self.note(self.now_us, [(Tone::Wait, "– ".into()), name, what]);
    }

    pub fn step_abandoned(&mut self, event: &StepAbandoned) {
        let name = (Tone::Strong, self.name(event.ord));
        let what = (Tone::Plain, format!(" {}", words::abandoned(event.why())));
        let at_us = event.finished_us.unwrap_or(self.now_us);
        self.note(at_us, [(Tone::Bad, "– ".into()), name, what]);
    }

    pub fn step_retry_requested(&mut self, event: &StepRetryRequested) {
        let what = format!("has {} tried again", self.name(event.ord));
        self.person(&event.by, &what, &event.reason);
    }

    pub fn timer_started(&mut self, event: &TimerStarted) {
        self.call(event.ord, &event.key);
        self.blank();
        let name = (Tone::Strong, self.name(event.ord));
        let delay = words::time((event.fire_at_us - self.now_us).max(0));
        let until = format!("  ◷ until {}, for {delay}", self.since_start(event.fire_at_us));
        self.line(Rail::Ask, self.now_us, [name, (Tone::Wait, until)]);
    }

    pub fn timer_fired(&mut self, ord: Ordinal) {
        let over = (Tone::Plain, format!("{} is over", self.name(ord)));
        self.note(self.now_us, [(Tone::Good, "✔ ".into()), over]);
    }

    pub fn timer_cancelled(&mut self, ord: Ordinal) {
        let what = (Tone::Plain, format!("{} is dropped", self.name(ord)));
        self.note(self.now_us, [(Tone::Wait, "– ".into()), what]);
    }

    pub fn shown(&mut self, ord: Ordinal) {
        let what = format!("the workflow sees the outcome of {}", self.name(ord));
        self.note(self.now_us, [(Tone::Faint, what)]);
    }
}

/// Says the number of an attempt, unless it is the first.
pub(super) fn later_attempt(attempt: u32) -> String {
    match attempt {
        0 | 1 => String::new(),
        later => format!(", attempt {later}"),
    }
}
