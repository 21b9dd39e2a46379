//! Worlds in which one kind of thing goes wrong, over and over: recipes from bugs of other engines,
//! cited by their ids.

use crate::plan::{Act, Ends, Fault, Plan, ProcessPlan, each_step};
use crate::{grow, report};

const SEEDS: u64 = 20;

/// Lets the worlds of some seeds go wrong in just this way; every promise has to hold.
fn all_keep_the_promises(change: impl Fn(&mut Plan)) {
    for seed in 0..SEEDS {
        let mut plan = grow::plan(seed);
        change(&mut plan);
        let report = report(&plan);
        assert_eq!(report.violations, [] as [&str; 0], "seed {seed}\n{}", report.trace);
    }
}

/// Four processes one after the other, each with these faults.
fn faulty(plan: &mut Plan, faults: impl Fn(u64) -> Vec<Fault>) {
    let code = crate::plan::Code::Usual;
    let process = |number| ProcessPlan { faults: faults(number), code };
    plan.processes = (0..4).map(process).collect();
}

#[test]
fn t1_death_before_and_after_a_commit_and_an_answer_that_gets_lost() {
    all_keep_the_promises(|plan| {
        faulty(plan, |number| {
            let deaf = Fault::Deaf { tick: 2 + number, ticks: 4 };
            vec![deaf, Fault::Die { tick: 8 + number, survive: number as usize }]
        });
    });
}

#[test]
fn t2_an_owner_that_stood_still_comes_back_to_another_one_and_begins_nothing() {
    all_keep_the_promises(|plan| {
        faulty(plan, |number| vec![Fault::Stall { tick: 5 + 3 * number, ticks: 6 }]);
    });
}

#[test]
fn t3_a_store_that_is_full_deaf_and_blind_by_turns() {
    all_keep_the_promises(|plan| {
        faulty(plan, |number| {
            let at = |n: u64| 1 + number + 7 * n;
            vec![
                Fault::Full { tick: at(0), ticks: 6 },
                Fault::Deaf { tick: at(1), ticks: 6 },
                Fault::Blind { tick: at(2), ticks: 6 },
                Fault::Full { tick: at(3), ticks: 2 },
                Fault::Die { tick: at(5), survive: 0 },
            ]
        });
    });
}

#[test]
fn t9_the_clock_jumps_by_78_minutes_and_back_by_10() {
    all_keep_the_promises(|plan| {
        faulty(plan, |number| {
            vec![
                Fault::Jump { tick: 4 + number, ms: 78 * 60_000 },
                Fault::Jump { tick: 12 + number, ms: -10 * 60_000 },
                Fault::Die { tick: 30, survive: 0 },
            ]
        });
    });
}

#[test]
fn t11_every_body_panics_at_first_and_the_workflow_at_the_end() {
    all_keep_the_promises(|plan| {
        for execution in &mut plan.executions {
            execution.program.ends = Ends::Panicking;
            each_step(&mut execution.program.nodes, &|spec| {
                spec.acts = vec![Act::Panic, Act::Panic];
                spec.undo.iter_mut().for_each(|undo| undo.acts = vec![Act::Panic]);
            });
        }
    });
}

#[test]
fn t17_stopped_in_good_order_at_each_moment() {
    all_keep_the_promises(|plan| faulty(plan, |number| vec![Fault::Stop { tick: 3 + 4 * number }]));
}

#[test]
fn t18_every_run_fails_and_every_undo_goes_wrong_before_it_goes_well() {
    all_keep_the_promises(|plan| {
        for execution in &mut plan.executions {
            execution.program.ends = Ends::Failing;
            each_step(&mut execution.program.nodes, &|spec| {
                let acts =
                    vec![Act::Fail, Act::SucceedAfter { ms: 6_000 }, Act::Panic, Act::Refuse];
                spec.undo.iter_mut().for_each(|undo| undo.acts.clone_from(&acts));
            });
        }
        faulty(plan, |number| vec![Fault::Die { tick: 20 + number, survive: 1 }]);
    });
}
