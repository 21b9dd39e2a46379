//! What has to be true of the case in which nothing goes wrong, before anything is tried on it.

use std::collections::BTreeSet;

use backstitch_core::failure::{Class, Origin};

use super::super::mock::Side;
use super::asked::{Extent, difference};
use super::fault::{At, Fault};
use super::one::{Plan, Seen};
use super::report::{Finding, FindingKind, Report};
use crate::workflow::Workflow;

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

/// How the code goes another way the second time, or when it is run again from its journal.
pub(super) fn another_way<W: Workflow, S>(plan: &Plan<W, S>, plain: &Seen) -> Option<String> {
    let replays = "when a process dies and the next one replays it";
    let mut again = vec![("the second time", plan.run(&[]))];
    if plain.waits > 0 {
        again.push((replays, plan.run_replayed()));
    }
    for (when, seen) in again {
        let why = match seen {
            Err(endless) => Some(endless.to_string()),
            Ok(seen) => seen.misfit.or_else(|| {
                difference(&plain.asked, &seen.asked, Extent::UpToTheEnd).or_else(|| {
                    let (first, here) = (plain.outcome.status, seen.outcome.status);
                    (first != here).then(|| format!("it ends {here}, and the first time {first}"))
                })
            }),
        };
        if let Some(why) = why {
            return Some(format!("the code is not deterministic: {when} {why}"));
        }
    }
    // Without a wait an attempt is in flight when it dies, and may come out in another way.
    let dies = Fault::Dies(Side::After, plain.writes.saturating_sub(1).max(1));
    if plain.waits == 0
        && let Ok(seen) = plan.run(&[dies])
        && let Some(why) = seen.misfit
    {
        return Some(format!("the code is not deterministic: {replays} {why}"));
    }
    None
}

/// What the check says of a rollback in which nothing else goes wrong, if it does not hold: first
/// after success, then when the last step fails for good.
pub(super) fn rollback_leaves<W: Workflow, S>(
    plan: &Plan<W, S>,
    plain: &Seen,
    undone: Option<&Seen>,
) -> Vec<String> {
    let Some(after_success) = undone.and_then(|seen| seen.complaint.clone()) else {
        return Vec::new();
    };
    let last = plain.steps.last().map(|last| At { step: last.key.to_string(), attempt: 1 });
    let fails = last.map(|at| Fault::Fails(Side::Before, Class::Permanent, at));
    let seen = fails.and_then(|fails| plan.run(&[fails]).ok());
    let when_last_fails = seen.and_then(|seen| seen.complaint);
    std::iter::once(after_success).chain(when_last_fails).collect()
}
