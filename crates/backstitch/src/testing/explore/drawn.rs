//! What the exploration did in a world, as lines of its timeline: no journal knows of it.

use super::super::mock::Side;
use super::fault::{At, Fault};

/// The timeline, with a line for each fault that leaves no trace of its own.
pub(super) fn with_faults(timeline: &str, faults: &[Fault]) -> String {
    let mut lines: Vec<String> = timeline.lines().map(str::to_owned).collect();
    for fault in faults {
        let Some((place, what)) = here(fault) else { continue };
        let (found, rail) = match place {
            Where::Body(at) => (lines.iter().position(|line| begins(line, "▶  ", at)), "│   "),
            Where::Undo(at) => (lines.iter().position(|line| begins(line, "undo ", at)), "║"),
        };
        let indent = if rail == "║" { "               " } else { "            " };
        let line = format!("{indent}{rail} ⚑ {what} ({fault})");
        lines.insert(found.map_or(lines.len(), |place| place + 1), line);
        if let Fault::Stale(at) = fault {
            lines.push(format!("               ⚑ here the late effect of {at} lands ({fault})"));
        }
    }
    lines.join("\n") + "\n"
}

enum Where<'a> {
    Body(&'a At),
    Undo(&'a At),
}

/// Whether the line is that at which this attempt begins.
fn begins(line: &str, sign: &str, at: &At) -> bool {
    let Some((_, what)) = line.split_once(sign) else { return false };
    // The first of its name is known by the name.
    let step = at.step.strip_suffix("#1").unwrap_or(&at.step);
    let (name, attempt) = match what.trim_end().split_once(", attempt ") {
        Some((name, attempt)) => (name, attempt.parse().unwrap_or(0)),
        None => (what.trim_end(), 1),
    };
    (name == step || name == at.step) && attempt == at.attempt
}

/// Where it happens, and what; nothing for what the journal tells by itself.
fn here(fault: &Fault) -> Option<(Where<'_>, &'static str)> {
    let body = |at, what| Some((Where::Body(at), what));
    let undo = |at, what| Some((Where::Undo(at), what));
    match fault {
        Fault::Dies(..)
        | Fault::CancelledAt(_)
        | Fault::Answered(..)
        | Fault::Unanswered(_)
        | Fault::Undone => None,
        Fault::Twice(at) => body(at, "here the body runs a second time"),
        Fault::DiesAt(_, at) => body(at, "here the process dies in the body"),
        Fault::Unrecorded(at) | Fault::UnrecordedCancelled(at) => {
            body(at, "here the process dies when the body has had its effect")
        }
        Fault::Stale(at) => body(at, "here the body is sent off by a process that stalls"),
        Fault::Fails(Side::Before, _, at) | Fault::FailsWith(_, at) => {
            body(at, "from here on it fails without an effect")
        }
        Fault::Fails(Side::After, _, at) => body(at, "from here on it fails after its effect"),
        Fault::Hangs(Side::Before, at) => body(at, "from here on it hangs without an effect"),
        Fault::Hangs(Side::After, at) => body(at, "from here on it hangs after its effect"),
        Fault::Cancelled(Side::Before, at) => body(at, "here it is cancelled before its effect"),
        Fault::Cancelled(Side::After, at) => body(at, "here it is cancelled after its effect"),
        Fault::UndoTwice(at) => undo(at, "here the undo runs a second time"),
        Fault::UndoDiesAt(_, at) => undo(at, "here the process dies in the undo"),
        Fault::UndoUnrecorded(at) => {
            undo(at, "here the process dies when the undo has had its effect")
        }
        Fault::UndoFails(Side::Before, at) => undo(at, "here the undo fails without an effect"),
        Fault::UndoFails(Side::After, at) => undo(at, "here the undo fails after its effect"),
    }
}
