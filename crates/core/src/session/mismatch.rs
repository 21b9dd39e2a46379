//! What is said when the code does something else than the journal says.

use std::fmt;

use crate::failure::{Class, Failure, Origin};
use crate::id::{Key, KeyKind, Ordinal};
use crate::session::{Asked, Report};

/// The code did something else than the journal says.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// The row of the journal.
    pub seq: u64,
    /// What was recorded there.
    pub recorded: String,
    /// What the code asked for instead.
    pub asked: String,
    /// The version that recorded it.
    pub recorded_version: String,
    /// The version that is running.
    pub running_version: String,
    /// Where it came up.
    pub found: Found,
}

/// Where a mismatch came up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// In a group that the journal has whole.
    InReplay,
    /// In a group that it cut short: the journal does not know what fitting code asks for there.
    Live,
}

/// The code of the failure of a block that cut its group short.
pub(super) const CUT_SHORT: &str = "cut_short";

impl Mismatch {
    /// The failure that the block carries.
    pub fn to_failure(&self) -> Failure {
        let text = self.to_string();
        let mut failure = Failure::new(Class::Attention, Origin::Engine, "Mismatch", text);
        failure.code = match self.found {
            Found::InReplay => String::new(),
            Found::Live => CUT_SHORT.to_owned(),
        };
        failure
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the code does not fit the journal at row {}: recorded by version {:?}: {}; \
             asked by version {:?}: {}. Deploy the code that began this execution, or cancel it",
            self.seq, self.recorded_version, self.recorded, self.running_version, self.asked
        )
    }
}

fn kind_of(key: &Key) -> &'static str {
    match key.kind() {
        KeyKind::Step => "step",
        KeyKind::Timer => "sleep",
        KeyKind::Wait => "wait",
    }
}

pub(super) fn listed(asks: &[(Ordinal, Key, String)]) -> String {
    if asks.is_empty() {
        return "nothing asked for".into();
    }
    let one =
        |(_, key, place): &(Ordinal, Key, String)| format!("{} {key} at {place}", kind_of(key));
    asks.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What the code did, for people. At its end it asks for nothing any more.
pub(super) fn said(report: &Report) -> String {
    match &report.ended {
        Some(Ok(_)) => return "the end of the workflow".into(),
        Some(Err(failure)) => return format!("the end of the workflow with {failure}"),
        None if report.asks.is_empty() => return "nothing".into(),
        None => {}
    }
    let one = |asked: &Asked| format!("{} {} at {}", kind_of(&asked.key), asked.key, asked.place);
    report.asks.iter().map(one).collect::<Vec<_>>().join(", ")
}
