//! Seeds that always run.

#[test]
fn the_same_seed_is_the_same_world_to_the_last_byte() {
    for seed in [0, 1, 7, 42, 1_000] {
        let (first, again) = (sim::run(seed), sim::run(seed));
        assert_eq!(first.trace, again.trace, "seed {seed}");
    }
}

#[test]
fn t6_random_worlds_keep_the_promises() {
    let broken = (0..200).map(sim::run).filter(|report| !report.violations.is_empty());
    let broken: Vec<_> = broken.map(|report| (report.seed, report.violations)).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Worlds in which an execution that had succeeded is undone on request, with nothing left to undo or
/// under a kill: a checker took them for wrong once.
#[test]
fn r8_the_outcome_of_a_rollback_is_that_of_the_last_one() {
    for seed in [6_787, 10_237, 34_167, 39_998] {
        assert_eq!(sim::run(seed).violations, [] as [&str; 0], "seed {seed}");
    }
}

#[test]
fn r8_killed_before_it_is_written_down_that_nothing_is_owed_the_rollback_is_complete() {
    assert_eq!(sim::run(30_010_414).violations, [] as [&str; 0]);
}

/// Runs that were in flight at two crashes in a row are tried one at a time: those that wait for their turn are
/// reached by a person all the same, in the end.
#[test]
fn t11_a_run_that_waits_for_its_turn_is_not_forgotten() {
    for seed in [30_135_659, 30_241_811, 30_282_204, 30_297_334] {
        assert_eq!(sim::run(seed).violations, [] as [&str; 0], "seed {seed}");
    }
}

/// Its sleep is over at the very instant at which nobody wants it any more.
#[test]
fn r5_a_body_that_ends_at_the_instant_of_its_cancel_may_tell_how() {
    assert_eq!(sim::run(40_086_380).violations, [] as [&str; 0]);
}
