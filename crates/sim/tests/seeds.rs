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
