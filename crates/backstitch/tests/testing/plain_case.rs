//! An exploration of what is not there finds nothing, and says so instead of being clean.

use std::process::Command;

use backstitch::testing::{Finding, FindingKind, Report, explore};
use backstitch::{Class, Ctx, Failure, FailureExt, NoTimeout, Origin, Result, workflow};

use crate::shop::{Shop, order};

fn only(report: &Report, kind: FindingKind) -> &Finding {
    assert!(!report.is_clean(), "{report}");
    let mut of_kind = report.findings.iter().filter(|finding| finding.kind == kind);
    let found = of_kind.next().unwrap_or_else(|| panic!("{report}"));
    assert_eq!(of_kind.next(), None, "{report}");
    found
}

/// Ships what was approved, however long that takes.
#[workflow]
async fn approved(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("reserve", async move |_s| Ok(())).await?;
    let _: bool = ctx.wait_event("approval", "order-approved", NoTimeout).await?;
    ctx.step("ship", async move |_s| Ok(())).await
}

#[test]
fn a_wait_that_nobody_answers_is_a_finding() {
    let report = explore(approved, ()).world(|| ()).check(|(), _| ()).run().unwrap();
    let found = only(&report, FindingKind::PlainCase);
    assert!(found.says.contains("nobody answered what it waits for"), "{found:?}");
    assert!(found.says.contains("\"order-approved\" (wait \"approval#1\")"), "{found:?}");
    assert!(report.to_markdown().contains("not clean: 1 finding"), "{report}");
}

#[test]
fn an_event_that_no_wait_takes_is_a_finding_with_the_types_that_are_awaited() {
    let misspelt = explore(approved, ()).world(|| ()).event("approved", &true);
    let report = misspelt.check(|(), _| ()).run().unwrap();
    let found = only(&report, FindingKind::EventNotTaken);
    assert_eq!(
        found.says,
        "no wait ever took the event of type \"approved\"; awaited were \"order-approved\""
    );
    only(&report, FindingKind::PlainCase);

    let too_many = explore(approved, ()).world(|| ()).event("order-approved", &true);
    let report = too_many.event("order-paid", &true).check(|(), _| ()).run().unwrap();
    assert_eq!(only(&report, FindingKind::EventNotTaken).fault, "event:order-paid");
    assert!(report.worlds > 10, "{report}");
}

#[test]
fn an_event_that_does_not_decode_is_a_finding() {
    let report = explore(approved, ()).world(|| ()).event("order-approved", &"yes");
    let report = report.check(|(), _| ()).run().unwrap();
    let found = only(&report, FindingKind::PlainCase);
    assert!(found.says.contains("EventPayload"), "{found:?}");
    assert!(found.says.contains("this is no decision of the workflow"), "{found:?}");
}

/// Gives up by itself when nobody answers in time.
#[workflow]
async fn in_time(ctx: Ctx, _: ()) -> Result<bool> {
    ctx.wait_event::<bool>("approval", "order-approved", "7 days").await
}

#[test]
fn a_deadline_that_passes_in_the_plain_case_is_a_finding() {
    let report = explore(in_time, ()).world(|| ()).check(|(), _| ()).run().unwrap();
    let found = only(&report, FindingKind::PlainCase);
    assert!(found.says.contains("nobody answered in time"), "{found:?}");
}

#[test]
fn a_state_that_was_not_given_is_a_finding_with_its_type() {
    let report = explore(order, 10).check(|(), _| ()).run().unwrap();
    let found = only(&report, FindingKind::PlainCase);
    assert!(found.says.contains("step \"reserve#1\" is blocked"), "{found:?}");
    assert!(found.says.contains("NoState: no state of type "), "{found:?}");
    assert!(found.says.contains("Shop"), "{found:?}");
}

#[test]
fn a_plain_case_that_the_workflow_itself_declines_is_legal() {
    let report = explore(order, 2_000).world(Shop::default);
    let report = report.check(|_, outcome| assert!(!outcome.succeeded())).run().unwrap();
    assert!(report.is_clean(), "{report}");
}

/// Its undo never works.
#[workflow]
async fn owing(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("charge", async move |s| {
        s.state::<Shop>().note("charge");
        Ok(())
    })
    .rollback(async move |u| {
        u.state::<Shop>().note("try");
        Err(Failure::new(Class::Permanent, Origin::Body, "Closed", "the account is closed"))
    })
    .await?;
    ctx.step("ship", async move |_s| Ok(())).await
}

#[test]
fn an_undo_that_the_exploration_had_to_waive_is_a_finding_with_its_last_failure() {
    let report = explore(owing, ()).world(Shop::default).check(|shop, _| match shop.count("try") {
        0..=20 => Ok(()),
        times => Err(format!("tried {times} times")),
    });
    let report = report.run().unwrap();
    assert!(!report.is_clean(), "{report}");
    assert!(report.findings.iter().all(|found| found.kind == FindingKind::UndoWaived), "{report}");
    let says = &report.findings[0].says;
    assert!(says.starts_with("the undo of step \"charge#1\" fails"), "{says}");
    assert!(says.ends_with("was waived: Closed: the account is closed"), "{says}");
}

/// What a filter leaves of this exploration.
#[test]
fn explored_under_a_filter() {
    let report = explore(order, 10).named("filtered").world(Shop::default);
    let report = report.check(|_, _| ()).run();
    match &report {
        Ok(report) => println!("worlds {}, clean {}\n{report}", report.worlds, report.is_clean()),
        Err(error) => println!("{error}"),
    }
    assert!(report.is_ok_and(|report| report.is_clean() == (report.worlds > 0)));
}

/// The test above in a process of its own, in which the variable has this value.
fn under(value: &str) -> String {
    let mut this = Command::new(std::env::current_exe().unwrap());
    this.args(["plain_case::explored_under_a_filter", "--exact", "--nocapture"]);
    let output = this.env("BACKSTITCH_EXPLORE", value).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn an_exploration_that_was_filtered_away_is_not_clean_and_says_that_nothing_was_run() {
    let said = under("another: twice:charge#1");
    assert!(said.contains("worlds 0, clean false"), "{said}");
    assert!(said.contains("filtered: nothing was run"), "{said}");
    assert!(said.contains("names a world of another exploration"), "{said}");

    let said = under("filtered: twice:charge#1");
    assert!(said.contains("worlds 1, clean true"), "{said}");
    let said = under("");
    assert!(said.contains("clean true") && !said.contains("worlds 1,"), "{said}");
}

/// A decision, not a defect.
#[workflow]
async fn closed(_ctx: Ctx, _: ()) -> Result<()> {
    Err(backstitch::msg("closed on Sundays").permanent())
}

#[test]
fn a_workflow_without_a_step_that_declines_is_legal() {
    let report = explore(closed, ()).world(|| ()).check(|(), _| ()).run().unwrap();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_world_that_is_run_again_shows_what_was_done_to_it_at_its_place() {
    let said = under("filtered: twice:charge#1");
    let place = said.find("├─▶  charge\n").unwrap_or_else(|| panic!("{said}"));
    let behind = said[place..].lines().nth(1).unwrap();
    assert_eq!(behind.trim(), "│    ⚑ here the body runs a second time (twice:charge#1)", "{said}");

    let said = under("filtered: undo-twice:charge#1");
    let place = said.find("╣ undo charge\n").unwrap_or_else(|| panic!("{said}"));
    let behind = said[place..].lines().nth(1).unwrap();
    assert_eq!(
        behind.trim(),
        "║ ⚑ here the undo runs a second time (undo-twice:charge#1)",
        "{said}"
    );

    let said = under("filtered: lands-late:charge#1");
    assert!(said.contains("⚑ here the late effect of charge#1 lands"), "{said}");
}

#[test]
fn the_plain_case_has_a_name_and_is_drawn() {
    for name in ["filtered: plain", "plain"] {
        let said = under(name);
        assert!(said.contains("worlds 1, clean true"), "{said}");
        assert!(said.contains("├─▶  charge") && !said.contains('⚑'), "{said}");
    }
    let report = explore(order, 10).check(|(), _| ()).run().unwrap();
    assert!(report.findings[0].again.starts_with("BACKSTITCH_EXPLORE='order: plain' "), "{report}");
}
