//! How things are said.

use backstitch_core::event::{AbandonWhy, CauseKind, RollbackCause, RollbackOutcome};
use backstitch_core::failure::Failure;
use backstitch_core::payload::Payload;

/// A time since the first row, or a length of time.
pub(super) fn time(us: i64) -> String {
    let ms = us.saturating_add(500).div_euclid(1_000);
    let in_units_of = |unit_ms: f64, unit: &str| format!("{:.1} {unit}", ms as f64 / unit_ms);
    match ms.unsigned_abs() {
        0..100_000 => format!("{ms} ms"),
        100_000..6_000_000 => in_units_of(1_000.0, "s"),
        6_000_000..36_000_000 => in_units_of(60_000.0, "min"),
        36_000_000..864_000_000 => in_units_of(3_600_000.0, "h"),
        _ => in_units_of(86_400_000.0, "d"),
    }
}

/// JSON as it stands, nothing for what says nothing; of everything else its size.
pub(super) fn payload(payload: &Payload) -> String {
    let text = std::str::from_utf8(&payload.data).ok();
    match text.filter(|_| payload.encoding() == "json") {
        Some("null") => String::new(),
        Some(text) => text.to_owned(),
        None => format!("{} bytes of {}", payload.data.len(), payload.encoding()),
    }
}

/// What went wrong, and below it the error from which that came.
pub(super) fn failure(failure: &Failure) -> String {
    let mut said = match failure.type_name.as_str() {
        // The type name of a failure that is only a sentence says nothing.
        "Message" => failure.message.clone(),
        _ => failure.to_string(),
    };
    if !failure.code.is_empty() {
        said.push_str(&format!(" [{}]", failure.code));
    }
    for cause in &failure.causes {
        said.push_str(&format!(" ← {}", cause.message));
    }
    said
}

pub(super) fn cause(cause: &RollbackCause) -> String {
    let asked = |what: &str| {
        let reason = if cause.reason.is_empty() { "" } else { ": " };
        format!("{what} by {}{reason}{}", cause.by, cause.reason)
    };
    match cause.kind() {
        CauseKind::Failed => match &cause.failure {
            Some(why) => format!("the workflow failed: {}", failure(why)),
            None => "the workflow failed".into(),
        },
        CauseKind::Cancelled => asked("it was cancelled"),
        CauseKind::Terminated => asked("it was terminated"),
        CauseKind::Requested => asked("it was asked for"),
        CauseKind::Deadline => "the deadline of the run passed".into(),
        CauseKind::Dropped => "the workflow succeeded and owes steps that it dropped".into(),
    }
}

pub(super) fn abandoned(why: AbandonWhy) -> &'static str {
    match why {
        AbandonWhy::Cancelled => "was given up: no longer wanted, its effect is unknown",
        AbandonWhy::Lost => "was given up: the process died, its effect is unknown",
        AbandonWhy::DidNotYield => "was left behind: it did not yield, its effect may land later",
    }
}

pub(super) fn rollback_outcome(outcome: RollbackOutcome) -> &'static str {
    match outcome {
        RollbackOutcome::None => "nothing was owed",
        RollbackOutcome::Complete => "rollback complete",
        RollbackOutcome::Incomplete => "rollback incomplete",
    }
}

/// `: reason`, or nothing.
pub(super) fn reason(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}
