//! Judging a history by the promises of the engine.
//!
//! A checker knows what could be seen from outside: effects, answers, and what was durable when.
//! It is a function of the history, so that it can be tested on a few made-up lines.

mod acknowledged;
mod answers;
mod attempts;
mod barrier;
mod debts;
mod delivery;
mod ending;
mod given_up;
mod held;
mod ledger;
#[cfg(test)]
mod story;

use crate::history::Moment;
use crate::plan::Plan;

/// Broken promises, as sentences that begin with the name of the promise.
type Violations = Vec<String>;

/// What every checker says.
pub(crate) fn all(plan: &Plan, moments: &[Moment]) -> Violations {
    let mut violations = Vec::new();
    violations.extend(attempts::check(moments));
    violations.extend(answers::check(moments));
    violations.extend(given_up::check(moments));
    violations.extend(held::check(moments));
    violations.extend(barrier::check(moments));
    violations.extend(debts::check(moments));
    violations.extend(delivery::check(moments));
    violations.extend(acknowledged::check(plan, moments));
    violations.extend(ending::check(plan, moments));
    violations
}
