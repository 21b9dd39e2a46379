//! Which worlds an exploration blames: not the code's own luck, and no step for every rollback.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use backstitch::testing::{Column, FindingKind, Report, explore};
use backstitch::{Class, Ctx, Result, workflow};

use crate::shop::{Shop, order};

/// The finding that the code goes another way each time.
fn luck(report: &Report) -> &str {
    let of_kind = |kind| report.findings.iter().find(move |found| found.kind == kind);
    let found = of_kind(FindingKind::NotDeterministic).unwrap_or_else(|| panic!("{report}"));
    assert!(found.says.starts_with("the code is not deterministic: "), "{found:?}");
    &found.says
}

/// Waits for so long as the world has not seen yet.
#[workflow]
async fn unsteady(ctx: Ctx, _: ()) -> Result<()> {
    static TIMES: AtomicU64 = AtomicU64::new(1);
    let seconds = TIMES.fetch_add(1, Ordering::SeqCst);
    ctx.step("charge", async move |_s| Ok(())).await?;
    ctx.sleep(Duration::from_secs(60 * seconds)).await
}

#[test]
fn a_sleep_that_lasts_another_time_is_not_deterministic() {
    let report = explore(unsteady, ()).world(|| ()).check(|(), _| ()).run().unwrap();
    let says = luck(&report);
    assert!(says.contains("the second time it asks for sleep "), "{says}");
    assert!(says.contains(" of 180s, where the first time it asks for sleep "), "{says}");
}

/// Draws lots between two carriers, as it is run again from the journal.
#[workflow]
async fn fickle(ctx: Ctx, _: ()) -> Result<()> {
    static TIMES: AtomicU32 = AtomicU32::new(0);
    // What sleeps for long is run again in any case: so twice through it, and up to the death.
    let name = match TIMES.fetch_add(1, Ordering::SeqCst) {
        0..=4 => "first carrier",
        _ => "second carrier",
    };
    ctx.step(name, async move |_s| Ok(())).await?;
    ctx.sleep(Duration::from_secs(60)).await
}

#[test]
fn code_that_replays_another_way_is_not_deterministic() {
    let report = explore(fickle, ()).world(|| ()).check(|(), _| ()).run().unwrap();
    let says = luck(&report);
    assert!(says.contains("when a process dies and the next one replays it"), "{says}");
    assert!(says.contains("is blocked"), "{says}");
}

/// Looks at something that is not in the journal, and only later than a second look would show.
#[workflow]
async fn late_luck(ctx: Ctx, _: ()) -> Result<()> {
    static WORLDS: AtomicU32 = AtomicU32::new(0);
    ctx.step("charge", async move |_s| Ok(())).await?;
    let name = match WORLDS.fetch_add(1, Ordering::SeqCst) {
        0..=20 => "ship",
        _ => "ship by air",
    };
    ctx.step(name, async move |_s| Ok(())).await
}

#[test]
fn a_step_that_is_asked_for_before_anything_went_wrong_is_not_called_unexplored() {
    let report = explore(late_luck, ()).world(|| ()).check(|(), _| ()).run().unwrap();
    let says = luck(&report);
    assert!(
        says.contains("before anything went wrong it asks for step \"ship by air#1\""),
        "{says}"
    );
    assert!(says.contains("where the first time it asks for step \"ship#1\""), "{says}");
}

/// Does two things at once, in branches and out of them.
#[workflow]
async fn parallel(ctx: Ctx, _: ()) -> Result<()> {
    let one = async |name: &'static str, seconds: u64| -> Result<()> {
        let ctx = ctx.branch(name);
        ctx.step("reserve", async move |_s| Ok(())).await?;
        ctx.sleep(Duration::from_secs(seconds)).await?;
        ctx.step("charge", async move |_s| Ok(())).await
    };
    let (west, east, south) = backstitch::join!(one("west", 60), one("east", 60), one("south", 30));
    west.and(east).and(south)
}

#[test]
fn branches_may_overtake_each_other() {
    let report = explore(parallel, ()).world(|| ()).check(|(), _| ()).run().unwrap();
    assert!(report.is_clean(), "{report}");
}

/// Does things at once without branches, each several times, and lets the first of two win.
#[workflow]
async fn entangled(ctx: Ctx, _: ()) -> Result<()> {
    let one = async |name: &'static str, seconds: u64| -> Result<()> {
        ctx.step(name, async move |s| {
            // The first attempt always fails.
            if s.attempt() == 1 { Err(backstitch::msg("busy")) } else { Ok(()) }
        })
        .await?;
        ctx.sleep(Duration::from_secs(seconds)).await?;
        ctx.step(&format!("{name} again"), async move |_s| Ok(())).await
    };
    let (west, east) = backstitch::join!(one("west", 60), one("east", 60));
    west.and(east)?;
    let said = ctx.wait_event::<bool>("approval", "approved", "1 day").optional().await?;
    if said.is_some() {
        ctx.sleep(Duration::from_secs(60)).await?;
    }
    ctx.step("ship", async move |_s| Ok(())).await
}

#[test]
fn what_happens_at_once_and_is_tried_again_is_no_matter_of_luck() {
    let report = explore(entangled, ()).world(|| ()).event("approved", &true);
    let report = report.check(|(), _| ()).run().unwrap();
    assert!(report.is_clean(), "{report}");
}

/// The undo of its first step does nothing.
#[workflow]
async fn leaky(ctx: Ctx, _: ()) -> Result<()> {
    for name in ["reserve", "charge", "ship"] {
        let undone = format!("un{name}");
        ctx.step(name, async move |s| {
            s.state::<Shop>().note(name);
            Ok(())
        })
        .rollback(async move |u| {
            if undone != "unreserve" {
                u.state::<Shop>().note(undone);
            }
            Ok(())
        })
        .await?;
    }
    Ok(())
}

#[test]
fn what_every_rollback_leaves_is_said_first_and_blamed_on_no_other_step() {
    let report = explore(leaky, ())
        .world(Shop::default)
        .check(|shop, outcome| match shop.standing("reserve") > 0 && !outcome.succeeded() {
            true => Err("reserved for ever"),
            false => Ok(()),
        })
        .run()
        .unwrap();
    let first = &report.findings[0];
    assert_eq!(first.kind, FindingKind::EveryRollback, "{report}");
    assert!(first.says.starts_with("every rollback leaves: reserved for ever ("), "{first:?}");
    assert_eq!(first.fault, "undone-after-success");
    assert_eq!(report.findings.len(), 1, "{report}");
    assert_eq!(report.steps[1].1[&Column::Cancelled], "every rollback");
    assert!(!report.to_markdown().contains("| **not ok"), "{report}");
}

#[test]
fn a_step_that_is_to_blame_for_more_than_the_rollback_is_still_named() {
    let report = explore(order, 10)
        .world(Shop::default)
        .check(|shop, outcome| match (shop.count("ship"), shop.count("charge")) {
            (1.., _) if !outcome.succeeded() => Err("shipped for nothing".to_owned()),
            (_, times @ 2..) => Err(format!("charged {times} times")),
            _ => Ok(()),
        })
        .run()
        .unwrap();
    assert_eq!(report.findings[0].kind, FindingKind::EveryRollback, "{report}");
    let twice = report.findings.iter().find(|found| found.fault == "twice:charge#1").unwrap();
    assert_eq!((twice.kind, twice.column), (FindingKind::World, Some(Column::RunTwice)));
}

/// A failure of a class that the code looks at.
#[workflow]
async fn second_card(ctx: Ctx, _: ()) -> Result<()> {
    let first = ctx.step("first card", async move |_s| Ok(())).await;
    if first.is_err_and(|failure| failure.class() == Class::Permanent) {
        ctx.step("second card", async move |_s| Ok(())).await?;
    }
    Ok(())
}

#[test]
fn a_step_behind_a_failure_is_unexplored_and_no_matter_of_luck() {
    let report = explore(second_card, ()).world(|| ()).check(|(), _| ()).run().unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.unexplored, ["second card#1"]);
}
