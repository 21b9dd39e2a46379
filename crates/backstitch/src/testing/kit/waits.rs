//! What an execution waits for, in words.

use backstitch_core::id::Ordinal;
use backstitch_core::run::{Ask, Run, WaitsFor};

use crate::handle::ExecutionStatus;

/// Each thing that it waits for, with the names that the code gave.
pub(in crate::testing) fn waits_in_words(status: &ExecutionStatus) -> Vec<String> {
    status.waits_for.iter().map(|waits| in_words(waits, &status.run)).collect()
}

/// The types of the events that it waits for.
pub(in crate::testing) fn awaited(status: &ExecutionStatus) -> Vec<String> {
    let types = status.waits_for.iter().filter_map(|waits| match waits {
        WaitsFor::Event { types, .. } => Some(types.as_slice()),
        WaitsFor::Worker { .. }
        | WaitsFor::EarlierRun { .. }
        | WaitsFor::Instant { .. }
        | WaitsFor::Step { .. }
        | WaitsFor::Person => None,
    });
    types.flatten().cloned().collect()
}

/// The first instant that it waits for itself, whatever else the engine has in mind.
pub(super) fn next_us(status: &ExecutionStatus) -> Option<i64> {
    let instants = status.waits_for.iter().filter_map(|waits| match waits {
        WaitsFor::Instant { at_us, .. } => Some(*at_us),
        WaitsFor::Event { until_us, .. } => *until_us,
        WaitsFor::Worker { .. }
        | WaitsFor::EarlierRun { .. }
        | WaitsFor::Step { .. }
        | WaitsFor::Person => None,
    });
    instants.min()
}

fn in_words(waits: &WaitsFor, run: &Run) -> String {
    match waits {
        WaitsFor::Worker { workflow, version } => {
            format!("a worker that knows workflow {workflow:?} in version {version:?}")
        }
        WaitsFor::EarlierRun { run_id } => format!("the end of the earlier run {run_id}"),
        WaitsFor::Instant { ord, at_us } => {
            let what = match ask(run, *ord) {
                Some(Ask::Step(step)) => format!("the next attempt of step \"{}\"", step.key),
                Some(Ask::Timer(timer)) => format!("the end of sleep \"{}\"", timer.key),
                Some(Ask::Wait(_)) | None => "an instant".to_owned(),
            };
            format!("{what} at {}", at(*at_us))
        }
        WaitsFor::Event { ord, types, until_us } => {
            let types: Vec<String> = types.iter().map(|name| format!("{name:?}")).collect();
            let until = until_us.map(|us| format!(" until {}", at(us))).unwrap_or_default();
            let name = ask(run, *ord).map(|ask| ask.key().to_string()).unwrap_or_default();
            format!("an event of type {}{until} (wait {name:?})", types.join(" or "))
        }
        WaitsFor::Step { ord } => {
            let name = ask(run, *ord).map(|ask| ask.key().to_string()).unwrap_or_default();
            format!("step {name:?}, which is running")
        }
        WaitsFor::Person => "a person".to_owned(),
    }
}

fn at(us: i64) -> String {
    jiff::Timestamp::from_microsecond(us).unwrap_or(jiff::Timestamp::MAX).to_string()
}

fn ask(run: &Run, ord: Ordinal) -> Option<&Ask> {
    run.asks.get((ord as usize).checked_sub(1)?)
}
