//! Carrying out what a durable row says: starting and stopping bodies and undos.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::event::RollbackCause;
use backstitch_core::id::Ordinal;
use backstitch_core::payload::Payload;
use backstitch_core::session::{AttemptEnd, Command};
use tracing::Instrument;

use crate::attempt::{self, AttemptOptions};
use crate::delays::DelayQuestion;
use crate::desk::Inside;
use crate::driver::Driver;
use crate::live::{AttemptEnded, Attempted, Mail};
use crate::program::{CancelToken, StepCall, UndoCall};

impl Driver {
    pub(super) fn carry_out(&mut self, commands: Vec<Command>) {
        for command in commands {
            match command {
                Command::StartStep { ord, attempt, timeout_us } => {
                    self.start_step(ord, attempt, timeout_us);
                }
                Command::StartUndo { ord, attempt, timeout_us } => {
                    self.start_undo(ord, attempt, timeout_us);
                }
                Command::SettleStep { ord, within_us } => {
                    if let Some(token) = self.steps_running.get(&ord) {
                        token.withdraw();
                        let grace = self.shared.clock.sleep(Duration::from_micros(within_us));
                        self.graces.entry(ord).or_insert(grace);
                    }
                }
                Command::CancelStep { ord, within_us } => {
                    // Told twice, it has still been told the first time.
                    let told = self.steps_running.get(&ord).filter(|token| !token.is_cancelled());
                    if let Some(token) = told {
                        token.cancel();
                        let grace = self.shared.clock.sleep(Duration::from_micros(within_us));
                        self.graces.insert(ord, grace);
                    }
                }
                Command::LeaveStep { ord } => {
                    self.steps_running.remove(&ord);
                    self.graces.remove(&ord);
                    self.overdue.remove(&ord);
                }
                Command::DropAll => {
                    for token in self.steps_running.values().chain(self.undos_running.values()) {
                        token.cancel();
                    }
                }
            }
        }
    }

    fn options(&self, what: Inside, timeout_us: u64, cancel: &CancelToken) -> AttemptOptions {
        let (store, clock) = (self.shared.store.clone(), self.shared.clock.clone());
        AttemptOptions { what, store, run: self.run, timeout_us, cancel: cancel.clone(), clock }
    }

    fn start_step(&mut self, ord: Ordinal, attempt: u32, timeout_us: u64) {
        let step = self.session.run().step(ord).expect("a command names a step");
        let (key, policy) = (step.key.clone(), step.policy.clone());
        let body = self.bodies.get(&ord).expect("a session starts only steps it was asked for");
        let body = body.clone();
        let delays = body.delays.clone().map(|delays| DelayQuestion {
            delays,
            owner: format!("step {key}"),
            what: Inside::Body,
            retry: policy.retry.clone(),
            attempt,
            spent: step.spent,
        });
        let cancel = CancelToken::default();
        let options = self.options(Inside::Body, timeout_us, &cancel);
        let span = tracing::info_span!(
            "step", id = %self.execution.id, step = %key, attempt, run_id = %self.execution.run_id
        );
        let call = Arc::new(StepCall {
            execution: self.facts(),
            ord,
            key,
            attempt,
            policy,
            fence: self.shared.store.attempt_fence(self.run),
            cancel: cancel.clone(),
        });
        self.steps_running.insert(ord, cancel);
        let (mail, clock) = (self.live.mail.clone(), self.shared.clock.clone());
        let intercept = self.shared.options.intercept.clone();
        let task = async move {
            let make = move || match intercept {
                None => (body.attempt)(call),
                Some(intercept) => intercept.step(call, &body),
            };
            let Some(end) = attempt::run(options, make, AttemptEnd::Returned).await else { return };
            let end = DelayQuestion::answer(delays, end);
            if let AttemptEnd::Failed { failure, .. } = &end {
                tracing::info!(failure = failure.to_string(), "attempt failed");
            }
            // A driver that is gone has no use for it.
            let (what, at_us) = (Attempted::Step, clock.now_us());
            let ended = AttemptEnded { what, ord, attempt, end, at_us };
            let _ = mail.send(Mail::Ended(Box::new(ended)));
        };
        self.shared.runtime.spawn(task.instrument(span));
    }

    fn start_undo(&mut self, ord: Ordinal, attempt: u32, timeout_us: u64) {
        let run = self.session.run();
        let step = run.step(ord).expect("a command names a step");
        let causes: Vec<RollbackCause> =
            run.rollback.as_ref().map(|rollback| rollback.causes.clone()).unwrap_or_default();
        let handler = self.handlers.get(&ord).expect("a session starts only undos at hand").clone();
        let policy = step.undo.policy.as_ref().expect("what is started has a policy");
        let delays = handler.delays.clone().map(|delays| DelayQuestion {
            delays,
            owner: format!("the undo of step {}", step.key),
            what: Inside::Undo,
            retry: policy.retry.clone(),
            attempt,
            spent: step.undo.spent,
        });
        let cancel = CancelToken::default();
        let options = self.options(Inside::Undo, timeout_us, &cancel);
        let span = tracing::info_span!(
            "undo", id = %self.execution.id, step = %step.key, attempt, run_id = %self.execution.run_id
        );
        let call = Arc::new(UndoCall {
            execution: self.facts(),
            ord,
            key: step.key.clone(),
            outcome: step.outcome(),
            step_attempts: step.attempts,
            causes,
            attempt,
            fence: self.shared.store.attempt_fence(self.run),
            cancel: cancel.clone(),
        });
        self.undos_running.insert(ord, cancel);
        let (mail, clock) = (self.live.mail.clone(), self.shared.clock.clone());
        let intercept = self.shared.options.intercept.clone();
        let task = async move {
            let done = |()| AttemptEnd::Returned(Payload::default());
            let make = move || match intercept {
                None => (handler.attempt)(call),
                Some(intercept) => intercept.undo(call, &handler),
            };
            let Some(end) = attempt::run(options, make, done).await else { return };
            let end = DelayQuestion::answer(delays, end);
            if let AttemptEnd::Failed { failure, .. } = &end {
                tracing::warn!(failure = failure.to_string(), "undo attempt failed");
            }
            let (what, at_us) = (Attempted::Undo, clock.now_us());
            let ended = AttemptEnded { what, ord, attempt, end, at_us };
            let _ = mail.send(Mail::Ended(Box::new(ended)));
        };
        self.shared.runtime.spawn(task.instrument(span));
    }
}
