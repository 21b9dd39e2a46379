//! Whole lives of executions, simulated from a seed, with everything that can go wrong.
//!
//! A seed makes a plan of programs, of what people ask of them and of faults; the world lets it
//! happen, always in the same way; and the checkers judge the record of what could be seen from
//! outside by the promises of the engine.

mod caller;
mod checks;
mod clock;
mod code;
mod dice;
mod disk;
mod effect;
mod grow;
mod guard;
mod history;
mod plan;
#[cfg(test)]
mod recipes;
mod shrink;
mod world;

use std::fmt::Write;

use history::History;

/// What came of a seed.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Everything that was seen, a line each.
    pub trace: String,
    /// Broken promises.
    pub violations: Vec<String>,
    /// How much happened, in pieces of work.
    pub work: u64,
}

/// Simulates the world of a seed.
pub fn run(seed: u64) -> Report {
    report(&grow::plan(seed))
}

/// Simulates the world of a seed that breaks a promise, and then smaller and smaller ones that break
/// the same; gives the smallest, with its plan at the head of its trace.
pub fn shrink(seed: u64) -> Report {
    let plan = shrink::smallest(grow::plan(seed));
    let mut smallest = report(&plan);
    smallest.trace = format!("{plan:#?}\n{}", smallest.trace);
    smallest
}

fn report(plan: &plan::Plan) -> Report {
    let history = History::default();
    let (mut violations, work) = guard::over(|| world::run(plan, &history));
    let moments = history.moments();
    if violations.is_empty() {
        violations = checks::all(plan, &moments);
    }
    let mut trace = String::new();
    for moment in &moments {
        // Writing to a string does not fail.
        let _ = writeln!(trace, "{moment}");
    }
    Report { seed: plan.seed, trace, violations, work }
}
