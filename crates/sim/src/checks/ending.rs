//! What is found when no fault is left, an operator has tried everything and time has passed:
//! nothing waits for nothing, and no debt is hidden.

use std::collections::BTreeMap;

use super::Violations;
use crate::history::{Entry, Found, Moment};
use crate::plan::{Plan, What};

pub(super) fn check(plan: &Plan, moments: &[Moment]) -> Violations {
    let mut founds: BTreeMap<usize, &Found> = BTreeMap::new();
    for moment in moments {
        if let Entry::Found { execution, found, .. } = &moment.entry {
            founds.insert(*execution, found);
        }
    }
    let mut violations = Violations::new();
    for execution in 0..plan.executions.len() {
        let starts =
            |deed: &crate::plan::Deed| deed.execution == execution && deed.what == What::Start;
        match founds.get(&execution) {
            None if plan.deeds.iter().any(starts) => {
                violations.push(format!("P1: e{execution} was started, and is nowhere"));
            }
            None => {}
            Some(found) if !found.status.is_closed() => {
                let (status, waits_for) = (found.status, &found.waits_for);
                let why = format!("liveness: e{execution} is {status} for ever ({waits_for})");
                violations.push(why);
            }
            Some(found) if !found.attention.is_empty() => {
                let open = &found.attention;
                let why = format!("liveness: matters of e{execution} stay open: {open:?}");
                violations.push(why);
            }
            Some(_) => {}
        }
    }
    violations
}
