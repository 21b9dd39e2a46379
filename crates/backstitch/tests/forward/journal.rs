//! Looking things up in journals.

use std::time::Duration;

use backstitch::core::event::Event;
use backstitch::core::retry::StepPolicy;
use backstitch::core::run::Run;
use backstitch::{App, Failure, Handle, Origin};

use crate::checks::check;
use crate::world::eventually;

/// Longer than anything here takes; only a hang gets there.
const HANG: Duration = Duration::from_secs(30);

/// Awaits what comes soon, or never.
pub trait Soon: Future + Sized {
    async fn soon(self) -> Self::Output {
        tokio::time::timeout(HANG, self).await.expect("it never came")
    }
}

impl<F: Future> Soon for F {}

/// The journal of an execution after all checks.
pub struct Journal {
    pub events: Vec<Event>,
    pub run: Run,
    pub rows: usize,
}

pub async fn journal<T>(handle: &Handle<T>) -> Journal {
    let rows = handle.journal().await.unwrap();
    let run = check(&rows);
    let events = rows.iter().flat_map(|row| row.events.clone()).collect();
    Journal { events, run, rows: rows.len() }
}

/// The execution as the process `app` sees it.
pub async fn seen_by<T>(app: &App, handle: &Handle<T>) -> Handle<T> {
    app.handle(handle.id()).await.unwrap()
}

/// Waits until the journal has `times` events of the kind `name`.
pub async fn until_recorded<T>(handle: &Handle<T>, name: &str, times: usize) {
    eventually(name, || async { journal(handle).await.count(name) >= times }).await;
}

impl Journal {
    pub fn names(&self) -> Vec<&'static str> {
        self.events.iter().map(Event::name).collect()
    }

    pub fn count(&self, name: &str) -> usize {
        self.names().iter().filter(|seen| **seen == name).count()
    }

    /// The attempts of a step that were started, with the policies that were written down.
    pub fn starts(&self, wanted: u32) -> Vec<(u32, Option<StepPolicy>)> {
        let started = self.events.iter().filter_map(|event| match event {
            Event::StepStarted(e) if e.ord == wanted => Some((e.attempt, e.policy.clone())),
            _ => None,
        });
        started.collect()
    }

    /// The failed attempts of a step.
    pub fn failures(&self, wanted: u32) -> Vec<(u32, Failure)> {
        let failed = self.events.iter().filter_map(|event| match event {
            Event::StepAttemptFailed(e) if e.ord == wanted => Some((e.attempt, e.failure.clone())),
            _ => None,
        });
        failed.collect()
    }

    /// How its failed attempts ended.
    pub fn origins(&self, wanted: u32) -> Vec<Origin> {
        self.failures(wanted).iter().map(|(_, failure)| failure.origin()).collect()
    }

    /// From the end of each failed attempt of a step to the next, in microseconds.
    pub fn delays_us(&self, wanted: u32) -> Vec<i64> {
        let delays = self.events.iter().filter_map(|event| match event {
            Event::StepAttemptFailed(e) if e.ord == wanted => Some(e.retry_at_us? - e.finished_us),
            _ => None,
        });
        delays.collect()
    }
}
