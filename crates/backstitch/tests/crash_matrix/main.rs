//! Each workflow is stopped at each of its commits: before it; after it and before its answer; with
//! its answer lost; with the store full. However it is stopped, it comes out as if it never was.

#[path = "../checks/mod.rs"]
mod checks;

mod outside;
mod world;

mod random;
mod saga;
mod scenarios;
mod steps;

use backstitch::Row;
use backstitch::store::fault::FaultPlan;

use crate::world::{Final, Scenario, Threads, World};

/// A run without any fault: how it comes out, its journal, and how many commits it takes.
fn undisturbed(scenario: &Scenario) -> (Final, Vec<Row>, u64) {
    let (mut world, plan) = (World::new(Threads::One), FaultPlan::new());
    world.run(scenario, vec![plan.clone()], |_| unreachable!("nobody dies"));
    let (ended, rows) = world.outcome(scenario);
    assert_blocks(scenario, &rows, 0);
    (ended, rows, plan.count())
}

fn names(rows: &[Row]) -> Vec<&'static str> {
    rows.iter().flat_map(|row| row.events.iter().map(|event| event.name())).collect()
}

/// Replay fits the journal at every place, unless the code was changed on purpose.
fn assert_blocks(scenario: &Scenario, rows: &[Row], n: u64) {
    let blocked = names(rows).contains(&"Blocked");
    assert!(!blocked || scenario.name == "changed code", "{} at {n}: blocked", scenario.name);
}

/// Stops each scenario at each commit as `fault` says; the outcome must be the undisturbed one.
fn at_every_commit(fault: fn(&FaultPlan, u64), later: fn(u32) -> FaultPlan, dies: Dies) {
    at_every_commit_of(scenarios::all(), Threads::One, fault, later, dies);
}

fn at_every_commit_of(
    scenarios: Vec<Scenario>,
    threads: Threads,
    fault: fn(&FaultPlan, u64),
    later: fn(u32) -> FaultPlan,
    dies: Dies,
) {
    for scenario in scenarios {
        let (wanted, undisturbed_rows, commits) = undisturbed(&scenario);
        for n in 1..=commits {
            let (mut world, plan) = (World::new(threads), FaultPlan::new());
            fault(&plan, n);
            world.run(&scenario, vec![plan.clone()], later);
            let (ended, rows) = world.outcome(&scenario);
            let place = format!("{} at commit {n} of {commits}", scenario.name);
            assert_eq!(ended, wanted, "{place}: {:#?}", names(&rows));
            assert_blocks(&scenario, &rows, n);
            match (dies, threads) {
                (Dies::Yes, Threads::One) => {
                    assert!(plan.is_dead(), "{place}: it was to die there");
                }
                (Dies::No, Threads::One) => {
                    assert_nothing_doubled(&undisturbed_rows, &rows, &place);
                }
                // What stands in which row depends on who is faster.
                (Dies::Yes | Dies::No, Threads::Two) => {}
            }
        }
    }
}

fn no_fault(_process: u32) -> FaultPlan {
    FaultPlan::new()
}

#[derive(Clone, Copy)]
enum Dies {
    Yes,
    No,
}

/// Where nothing was lost, every step and every undo had as many attempts as without the fault.
fn assert_nothing_doubled(undisturbed: &[Row], rows: &[Row], place: &str) {
    for name in ["ExecutionStarted", "StepScheduled", "StepStarted", "RollbackStarted"] {
        let count = |rows| names(rows).iter().filter(|n| **n == name).count();
        assert_eq!(count(rows), count(undisturbed), "{place}: {name} in {:#?}", names(rows));
    }
    let lost = |rows: &[Row]| format!("{rows:?}").matches("origin: Lost").count();
    assert_eq!(lost(rows), 0, "{place}: nothing was lost");
}

/// How each scenario comes out: status, rollback, what stands, result.
const UNDISTURBED: &[(&str, &str)] = &[
    ("sequence", "succeeded, none, [a b c], done"),
    ("parallel join", "succeeded, none, [a b c d], ticket a ticket b ticket c ticket d"),
    ("sleep", "succeeded, none, [a b], ticket b"),
    ("retry with a delay", "succeeded, none, [a flaky], ticket a"),
    ("caught error", "succeeded, none, [a b], no"),
    ("race with a loser", "succeeded, complete, [quick then], ticket quick"),
    ("timeout around a step", "succeeded, complete, [a b], ticket b"),
    ("refused", "failed, complete, [], no"),
    ("failing sibling", "failed, complete, [], no"),
    ("two ends at once", "failed, complete, [], no"),
    ("two failures at once", "failed, complete, [], no"),
    ("undo on success", "failed, complete, [], no"),
    ("undo panics once", "failed, complete, [], no"),
    ("cancel", "cancelled, complete, [], Cancelled"),
    ("terminate", "terminated, complete, [], Terminated"),
    ("cancel during the rollback", "failed, complete, [], no"),
    ("pause during the rollback", "failed, complete, [], no"),
    ("undo retried", "failed, complete, [], no"),
    ("undo waived", "failed, incomplete, [b], no"),
    ("changed code", "failed, complete, [], no"),
    ("events in order", "succeeded, none, [a b c], 1 2 3"),
    ("a wait that times out", "succeeded, none, [a], None Some(7)"),
    ("the wait that lost", "succeeded, none, [a], b then a"),
    (
        "deadline",
        "failed, complete, [], DeadlinePassed: the deadline of the execution passed before it was over",
    ),
    ("published and patched", "succeeded, none, [a b c], done"),
    ("rolled back after success", "cancelled, complete, [], RolledBack"),
];

#[test]
fn t1_each_undisturbed_scenario_comes_out_as_it_should() {
    let all: Vec<_> = scenarios::all().iter().map(|scenario| scenario.name.clone()).collect();
    assert!(all.iter().eq(UNDISTURBED.iter().map(|(name, _)| name)), "{all:#?}");
    for (scenario, (_, wanted)) in scenarios::all().iter().zip(UNDISTURBED) {
        assert_eq!(undisturbed(scenario).0.to_string(), *wanted, "{}", scenario.name);
    }
    for scenario in saga::all() {
        let ended = undisturbed(&scenario).0;
        assert!(ended.standing.is_empty(), "{}: {ended}", scenario.name);
        assert_eq!(ended.outcome, backstitch::RollbackOutcome::Complete, "{}", scenario.name);
        assert!(!ended.to_string().contains("BadOption"), "{}: {ended}", scenario.name);
    }
}

#[test]
fn t1_p5_death_before_any_commit_changes_nothing_in_the_end() {
    at_every_commit(FaultPlan::die_before, no_fault, Dies::Yes);
}

#[test]
fn t1_p1_w34_death_after_any_commit_and_before_its_answer_changes_nothing_in_the_end() {
    at_every_commit(FaultPlan::die_after, no_fault, Dies::Yes);
}

#[test]
fn t1_p4_processes_that_all_die_after_a_few_commits_change_nothing_in_the_end() {
    // The repeated start, the record of what was lost, and a few more: each gets a little further.
    let later = |process| {
        let plan = FaultPlan::new();
        plan.die_after(3 + u64::from(process % 3));
        plan
    };
    at_every_commit(FaultPlan::die_after, later, Dies::Yes);
}

#[test]
fn b96_a_lost_answer_to_any_commit_doubles_nothing() {
    at_every_commit(FaultPlan::lose_answer, no_fault, Dies::No);
}

#[test]
fn b66_a_store_that_is_full_at_any_commit_ends_nothing() {
    at_every_commit(|plan, n| plan.unavailable(n, 3), no_fault, Dies::No);
}

#[test]
fn t1_death_after_any_commit_changes_nothing_when_bodies_run_beside_the_driver() {
    let all = scenarios::all();
    at_every_commit_of(all, Threads::Two, FaultPlan::die_after, no_fault, Dies::Yes);
}

#[test]
fn b96_a_lost_answer_doubles_nothing_when_bodies_run_beside_the_driver() {
    let all = scenarios::all();
    at_every_commit_of(all, Threads::Two, FaultPlan::lose_answer, no_fault, Dies::No);
}

#[test]
fn t18_each_end_at_each_step_with_each_kind_of_undo_survives_death_after_any_commit() {
    at_every_commit_of(saga::all(), Threads::One, FaultPlan::die_after, no_fault, Dies::Yes);
}

#[test]
fn t18_each_end_at_each_step_with_each_kind_of_undo_survives_death_before_any_commit() {
    at_every_commit_of(saga::all(), Threads::One, FaultPlan::die_before, no_fault, Dies::Yes);
}

/// A random program under random faults.
fn random(seed: u64, threads: Threads) {
    let (mut world, scenario) = (World::new(threads), random::scenario(seed));
    // The last line that a failing test shows.
    println!("seed {seed}, {threads:?}");
    world.run(&scenario, random::faults(seed), no_fault);
    let (ended, rows) = world.outcome(&scenario);
    println!("{ended:?} after {} rows", rows.len());
    let what = format!("seed {seed}, {threads:?}: {ended:?} {:#?}", names(&rows));
    random::assert_accounted_for(&checks::check(&rows), &ended.standing, &what);
    assert_blocks(&scenario, &rows, seed);
}

/// Where the seeds begin, and how many there are; more on request.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str, default| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let from = number("BACKSTITCH_SEED", 0);
    from..from + number("BACKSTITCH_SEEDS", 300)
}

#[test]
fn t6_random_programs_under_random_faults_and_verbs_keep_the_promises() {
    seeds().for_each(|seed| random(seed, Threads::One));
}

#[test]
fn t6_random_programs_whose_bodies_run_beside_the_driver_keep_the_promises() {
    seeds().for_each(|seed| random(seed, Threads::Two));
}
