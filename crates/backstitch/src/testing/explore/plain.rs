//! What has to be true of the case in which nothing goes wrong, before anything is tried on it.

use std::collections::BTreeSet;

use backstitch_core::failure::Origin;

use super::one::Seen;
use super::report::{Finding, FindingKind, Report};

/// Why the workflow has not come to an end of its own: what stands behind that is not explored.
pub(super) fn trouble(plain: &Seen) -> Option<String> {
    if let Some(why) = &plain.gave_up {
        return Some(format!("the plain case does not come to its end: {why}"));
    }
    let failure = plain.outcome.failure.as_ref()?;
    let why = match failure.origin() {
        Origin::Body => return None,
        Origin::Timeout if failure.type_name == "EventTimeout" => {
            "nobody answered in time (a workflow that is meant to go on without it awaits \
             `.optional()`)"
        }
        Origin::Timeout
        | Origin::Panic
        | Origin::Lost
        | Origin::Interrupted
        | Origin::Limit
        | Origin::Decode
        | Origin::Engine => "this is no decision of the workflow",
    };
    Some(format!("the plain case does not come to its end: {failure}; {why}"))
}

/// The events that were told of and that nothing has ever waited for.
pub(super) fn never_taken(
    events: &[(String, serde_json::Value)],
    taken: &BTreeSet<String>,
    awaited: &BTreeSet<String>,
    report: &mut Report,
) {
    let told: BTreeSet<&String> = events.iter().map(|(event, _)| event).collect();
    for event in told.into_iter().filter(|event| !taken.contains(*event)) {
        let awaited: Vec<String> = awaited.iter().map(|event| format!("{event:?}")).collect();
        let there_are = match awaited.as_slice() {
            [] => "none was ever awaited".to_owned(),
            awaited => format!("awaited were {}", awaited.join(", ")),
        };
        let says = format!("no wait ever took the event of type {event:?}; {there_are}");
        let name = format!("event:{event}");
        report.findings.push(Finding::about(FindingKind::EventNotTaken, name, says));
    }
}
