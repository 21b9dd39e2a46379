//! When an attempt may begin: P2, P3, P4, P5.

use std::collections::BTreeSet;

use super::Violations;
use super::ledger::Ledger;
use crate::history::{Attempt, Entry, Kind, Moment};

pub(super) fn check(moments: &[Moment]) -> Violations {
    let (mut ledger, mut begun, mut violations) =
        (Ledger::default(), BTreeSet::new(), Violations::new());
    for moment in moments {
        if let Entry::Began(attempt) = &moment.entry {
            let who = format!("{:?} {} attempt {}", attempt.kind, attempt.name, attempt.number);
            let what = (attempt.process, attempt.key.clone(), attempt.number);
            if !begun.insert(what) {
                violations.push(format!("P4: {who} begins twice in one process"));
            }
            for (promise, why) in judge(&ledger, attempt) {
                violations.push(format!("{promise}: {who} begins {why}"));
            }
        }
        ledger.take(moment);
    }
    violations
}

fn judge(ledger: &Ledger, attempt: &Attempt) -> Vec<(&'static str, String)> {
    let mut broken = Vec::new();
    let Some((_, _, book, step)) = ledger.step(&attempt.step_key) else {
        return vec![("P2", "without a durable step of its key".to_owned())];
    };
    if ledger.fence_of(attempt.process) != Some(attempt.fence) {
        broken.push(("P4", format!("under fence {}, which is another one's", attempt.fence)));
    }
    let intent = (attempt.number, attempt.fence);
    let (intents, spent, policy) = match attempt.kind {
        Kind::Body => (&step.started, step.spent, Some(&step.policy.retry)),
        Kind::Undo => {
            let policy = step.undo.as_ref().map(|undo| &undo.policy.retry);
            (&step.undo_started, step.undo_spent, policy)
        }
    };
    if !intents.contains(&intent) {
        broken.push(("P2", "before its intent is durable under its fence".to_owned()));
    }
    if ledger.is_superseded(attempt.process) {
        // What had left before is for the other side to refuse, by the fence.
        return broken;
    }
    if attempt.fence < ledger.fence {
        broken.push(("P4", format!("under fence {}, and {} is up", attempt.fence, ledger.fence)));
    }
    if let Some(policy) = policy
        && spent >= policy.max_attempts
    {
        let most = policy.max_attempts;
        broken.push(("P4", format!("after {spent} attempts, and {most} are allowed")));
    }
    match attempt.kind {
        Kind::Body if step.has_outcome => {
            broken.push(("P3", "after its outcome is durable".to_owned()));
        }
        Kind::Body if book.rolling_back || book.closed => {
            broken.push(("P5", "after the decision is durable".to_owned()));
        }
        Kind::Undo if !book.rolling_back => {
            broken.push(("P5", "without a decision to roll back".to_owned()));
        }
        Kind::Undo if step.undo_settled => {
            broken.push(("P3", "after its debt is settled".to_owned()));
        }
        Kind::Body | Kind::Undo => {}
    }
    broken
}
