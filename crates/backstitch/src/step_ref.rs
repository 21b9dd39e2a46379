//! Naming a step of an execution from outside.

use std::fmt;

use backstitch_core::id::Ordinal;
use backstitch_core::run::Run;

use crate::error::{Error, ErrorKind};

/// A step of an execution: by its ordinal, or by its key as it is printed (`name`, `name#2`,
/// `branch/name#1`). A name without a count means the first of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepRef {
    /// By ordinal.
    Ordinal(Ordinal),
    /// By key.
    Key(String),
}

impl From<Ordinal> for StepRef {
    fn from(ord: Ordinal) -> StepRef {
        StepRef::Ordinal(ord)
    }
}

impl From<&str> for StepRef {
    fn from(key: &str) -> StepRef {
        StepRef::Key(key.to_owned())
    }
}

impl fmt::Display for StepRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepRef::Ordinal(ord) => write!(f, "{ord}"),
            StepRef::Key(key) => write!(f, "{key:?}"),
        }
    }
}

impl StepRef {
    /// The ordinal of the step in `run`.
    pub(crate) fn resolve(&self, run: &Run) -> Result<Ordinal, Error> {
        let found = match self {
            StepRef::Ordinal(ord) => run.step(*ord).map(|_| *ord),
            // A name may look like a key, so what is printed exactly so goes first.
            StepRef::Key(wanted) => find(run, wanted).or_else(|| find(run, &format!("{wanted}#1"))),
        };
        found.ok_or_else(|| {
            let known: Vec<String> = run.steps().map(|(_, step)| step.key.to_string()).collect();
            let known = if known.is_empty() { "none yet".into() } else { known.join(", ") };
            let message = format!("the execution has no step {self}; its steps are: {known}");
            Error::new(ErrorKind::NotFound, message)
        })
    }
}

fn find(run: &Run, wanted: &str) -> Option<Ordinal> {
    run.steps().find(|(_, step)| step.key.to_string() == wanted).map(|(ord, _)| ord)
}
