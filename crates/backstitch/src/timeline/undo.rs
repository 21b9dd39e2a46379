//! The way back. Mirrors [`super::step`].

use backstitch_core::event::{
    RollbackFinished, RollbackStarted, UndoAttemptFailed, UndoFailed, UndoNotNeeded,
    UndoRetryRequested, UndoStarted, UndoSucceeded, UndoWaived,
};
use backstitch_core::failure::Class;

use super::rail::{Rail, Tone, WORDS_COLUMNS, Way, wrap};
use super::scribe::Scribe;
use super::step::later_attempt;
use super::words;

/// Lines that a cause and the plan of a rollback may take, each.
const LINES_MAX: usize = 3;

impl Scribe {
    pub fn rollback_started(&mut self, event: &RollbackStarted) {
        self.blank();
        self.way = Way::Back;
        let number = if event.no > 1 { format!(" {}", event.no) } else { String::new() };
        self.line(Rail::Turn, self.now_us, [(Tone::Heading, format!("ROLLBACK{number}"))]);
        for (i, cause) in event.causes.iter().enumerate() {
            let and = if i == 0 { "because" } else { "and because" };
            self.wrapped(Tone::Plain, &format!("{and} {}", words::cause(cause)));
        }
        let plan = match event.plan.as_slice() {
            [] => "nothing is owed".to_owned(),
            plan => format!("to undo, newest start first: {}", self.list(plan)),
        };
        self.wrapped(Tone::Faint, &plan);
    }

    fn wrapped(&mut self, tone: Tone, text: &str) {
        for line in wrap(text, WORDS_COLUMNS, WORDS_COLUMNS, LINES_MAX) {
            self.more([(tone, line)]);
        }
    }

    pub fn undo_started(&mut self, event: &UndoStarted) {
        if event.attempt == 1 {
            self.blank();
        }
        let name = (Tone::Strong, format!("undo {}", self.name(event.ord)));
        let attempt = (Tone::Plain, later_attempt(event.attempt));
        self.line(Rail::Undo, self.now_us, [name, attempt]);
    }

    pub fn undo_succeeded(&mut self, event: &UndoSucceeded) {
        let name = (Tone::Strong, self.name(event.ord));
        let undone = (Tone::Plain, " is undone".into());
        self.note(event.finished_us, [(Tone::Good, "↺ ".into()), name, undone]);
    }

    pub fn undo_attempt_failed(&mut self, event: &UndoAttemptFailed) {
        let what = format!("undo {}{}", self.name(event.ord), later_attempt(event.attempt));
        let at_us = self.ended_at(&event.failure, event.finished_us);
        self.failed(at_us, &what, &event.failure);
        if let Some(at_us) = event.retry_at_us {
            self.retry_at(at_us);
        }
    }

    pub fn undo_failed(&mut self, event: &UndoFailed) {
        let why = match event.failure.class() {
            Class::Permanent => "permanent",
            Class::Attention => "it needs a person",
            Class::Transient => "its attempts are used up",
        };
        let then = if event.holds { "; the rollback waits for it" } else { "" };
        let debt = format!(
            "  {why}: {} stays owed until a person retries or waives it{then}",
            self.name(event.ord)
        );
        self.more([(Tone::Bad, debt)]);
    }

    pub fn undo_not_needed(&mut self, event: &UndoNotNeeded) {
        self.blank();
        let name = (Tone::Strong, format!("undo {}", self.name(event.ord)));
        let why = (Tone::Plain, format!(" is not needed: {}", event.why));
        self.line(Rail::Undo, self.now_us, [name, why]);
    }

    pub fn undo_retry_requested(&mut self, event: &UndoRetryRequested) {
        let what = format!("has the undo of {} tried again", self.name(event.ord));
        self.person(&event.by, &what, &event.reason);
    }

    pub fn undo_waived(&mut self, event: &UndoWaived) {
        let what = format!("waives the undo of {}", self.name(event.ord));
        self.person(&event.by, &what, &event.reason);
    }

    pub fn rollback_finished(&mut self, event: &RollbackFinished) {
        self.blank();
        let outcome = words::rollback_outcome(event.outcome()).to_owned();
        self.line(Rail::Home, self.now_us, [(Tone::Back, outcome)]);
        self.way = Way::Forward;
    }
}
