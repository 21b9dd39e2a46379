//! The short examples, as real processes, by what they print.

mod process;

/// What an example prints, when all is well.
fn printed(example: &str) -> String {
    let run = process::run(example, &[]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    run.stdout
}

/// Checks that the lines are there, in this order.
fn in_order(text: &str, lines: &[&str]) {
    let mut rest = text;
    for line in lines {
        let at = rest.find(line);
        let at = at.unwrap_or_else(|| panic!("{line:?} is missing in what is left:\n{rest}"));
        rest = &rest[at + line.len()..];
    }
}

#[test]
fn approval_waits_for_a_person_and_is_undone_when_nobody_comes() {
    let said = printed("approval");
    let begin = "bought a chair, approved by Ada\n\n\
                 execution \"yacht\" failed: nobody approved a yacht in time (everything was undone)\n";
    assert!(said.starts_with(begin), "{said}");
    in_order(
        &said,
        &[
            "├─▶  approval  waits for approved",
            "no event came in time",
            "because the workflow failed: nobody approved a yacht in time",
            "↺ reserve-budget is undone",
            "■    failed: nobody approved a yacht in time",
        ],
    );
}

#[test]
fn subscription_is_renewed_each_month_of_a_year_and_then_cancelled() {
    let wanted = "\
2026-01-31  renew 1
2026-02-28  renew 2
2026-03-31  renew 3
2026-04-30  renew 4
2026-05-31  renew 5
2026-06-30  renew 6
2026-07-31  renew 7
2026-08-31  renew 8
2026-09-30  renew 9
2026-10-31  renew 10
2026-11-30  renew 11
2026-12-31  renew 12
2027-01-31  renew 13
newspaper: 13 renewals, then moved away
";
    assert_eq!(printed("subscription"), wanted);
}

#[test]
fn fan_out_keeps_the_bound_and_gives_each_item_its_own_outcome() {
    let wanted = "1000 of 1000 items have their own label\n\
                  in parallel, and never more than 50 at a time: true\n";
    assert_eq!(printed("fan_out"), wanted);
}

#[test]
fn hedged_undoes_the_loser_before_it_says_success() {
    let said = printed("hedged");
    let begin = "blue-taxi has booked\nred-taxi has booked\nred-taxi has cancelled\n\
                 booked: a ride with blue-taxi\n";
    assert!(said.starts_with(begin), "{said}");
    in_order(
        &said,
        &[
            "red-taxi is dropped by the workflow",
            "because the workflow succeeded and owes steps that it dropped",
            "↺ red-taxi is undone",
            "rollback complete",
            "■    succeeded: \"a ride with blue-taxi\"",
        ],
    );
}

#[test]
fn each_short_example_is_short_and_says_in_two_lines_what_it_shows() {
    for (name, text) in [
        ("approval", include_str!("../short/approval.rs")),
        ("subscription", include_str!("../short/subscription.rs")),
        ("fan_out", include_str!("../short/fan_out.rs")),
        ("hedged", include_str!("../short/hedged.rs")),
    ] {
        assert!(text.lines().count() < 80, "{name} is long");
        let docs = text.lines().take_while(|line| line.starts_with("//! ")).count();
        assert_eq!(docs, 2, "{name}");
    }
}

#[test]
fn explore_fulfilment_finds_both_planted_mistakes_and_nothing_else() {
    let said = printed("explore_fulfilment");
    in_order(
        &said,
        &[
            "# flawed",
            "| step ",
            "| charge-card   | **not ok: 1** ",
            "flawed: the check does not hold in 10 of 60 worlds",
            "1. charged 4900 cents too much",
            "again: BACKSTITCH_EXPLORE='flawed: twice:charge-card#1' ",
            "again: BACKSTITCH_EXPLORE='flawed: undo-twice:charge-card#1' ",
            "# mended",
            "mended: the check holds in all ",
        ],
    );
    assert_eq!(said.split_once("# mended").unwrap().1.matches("**").count(), 0, "{said}");
}

#[test]
fn a_world_of_an_exploration_is_run_again_by_its_name() {
    let only = |name| process::run_with("explore_fulfilment", "BACKSTITCH_EXPLORE", name);
    let run = only("flawed: undo-twice:charge-card#1");
    in_order(
        &run.stdout,
        &[
            "undo-twice:charge-card#1",
            "◀══╣ undo charge-card",
            "refunded 4900",
            "BACKSTITCH_EXPLORE names a world of another exploration",
            "mended: nothing was run",
        ],
    );
    // A death that never comes shows nothing.
    let run = only("flawed: twice:charge-card#1 + dies-after-write:99");
    let says = "is another world: crash_after(99) never took effect; there were ";
    assert!(run.stderr.contains(says), "{run:?}");
    let run = only("undo-twice:charge-crad#1");
    assert_eq!(run.code, Some(1), "{run:?}");
    let says = "workflow \"flawed\" has no such world; it has twice:reserve-stock#1, ";
    assert!(run.stderr.contains(says), "{run:?}");
}
