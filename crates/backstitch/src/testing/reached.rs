//! How far a step has got.

use std::fmt;

use backstitch_core::run::{Ask, Run};
use backstitch_core::step::StepPhase;
use backstitch_core::undo::UndoPhase;

use super::names::is_named;

/// Something that a step comes to on its way. For [`TestKit::wait_until`](super::TestKit::wait_until).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// Its first attempt has begun.
    Started,
    /// It has succeeded.
    Succeeded,
    /// It has failed for good.
    Failed,
    /// It is blocked, and waits for a person.
    Blocked,
    /// Its undo has succeeded, or was not needed.
    Undone,
    /// Its undo has failed for good.
    UndoFailed,
}

impl Reached {
    /// Whether the step has been there; an error, if there is no such step, or it never gets there.
    pub(super) fn look(self, run: &Run, step: &str) -> Result<bool, String> {
        let steps = run.asks.iter().filter_map(|ask| match ask {
            Ask::Step(step) => Some(step),
            _ => None,
        });
        let steps: Vec<_> = steps.collect();
        let found = steps.iter().find(|found| {
            found.key.to_string() == step || (is_named(&found.key, step) && found.key.count == 1)
        });
        let Some(found) = found else {
            let names: Vec<String> = steps.iter().map(|step| step.key.to_string()).collect();
            let there_are = match names.as_slice() {
                [] => "there are none".to_owned(),
                names => format!("there are {}", names.join(", ")),
            };
            return Err(format!("the execution has no such step; {there_are}"));
        };
        Ok(match self {
            Reached::Started => found.attempts > 0,
            Reached::Succeeded => found.phase == StepPhase::Succeeded,
            Reached::Failed => found.phase == StepPhase::Failed,
            Reached::Blocked => found.phase == StepPhase::Blocked,
            Reached::Undone => {
                matches!(found.undo.phase, UndoPhase::Succeeded | UndoPhase::NotNeeded)
            }
            Reached::UndoFailed => found.undo.phase == UndoPhase::Failed,
        })
    }
}

/// What has this name and is no step, in words.
pub(super) fn no_step(run: &Run, name: &str) -> Option<&'static str> {
    run.asks.iter().filter(|ask| is_named(ask.key(), name)).find_map(|ask| match ask {
        Ask::Step(_) => None,
        Ask::Timer(_) => Some("a sleep"),
        Ask::Wait(_) => Some("a wait for an event"),
    })
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reached::Started => "started",
            Reached::Succeeded => "succeeded",
            Reached::Failed => "failed",
            Reached::Blocked => "blocked",
            Reached::Undone => "undone",
            Reached::UndoFailed => "whose undo failed",
        })
    }
}
