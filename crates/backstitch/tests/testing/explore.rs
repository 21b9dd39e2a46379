//! Every world of a workflow.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use backstitch::testing::{Column, FindingKind, Outcome, explore};
use backstitch::{Class, Ctx, ErrorKind, FailureExt, Result, workflow};

use crate::shop::{Shop, order};

/// A shop that knows its keys: what stands, by key.
#[derive(Clone, Default)]
struct Keyed(Arc<Mutex<BTreeMap<String, bool>>>);

impl Keyed {
    fn set(&self, key: &str, stands: bool) {
        self.0.lock().unwrap().insert(key.to_owned(), stands);
    }

    /// What came later under the key of something that was undone is refused.
    fn do_once(&self, key: &str) {
        self.0.lock().unwrap().entry(key.to_owned()).or_insert(true);
    }

    fn standing(&self) -> usize {
        self.0.lock().unwrap().values().filter(|stands| **stands).count()
    }
}

async fn keyed(ctx: &Ctx, name: &str) -> Result<()> {
    ctx.step(name, async move |s| {
        s.state::<Keyed>().do_once(&s.idempotency_key());
        Ok(())
    })
    .rollback(async move |u| {
        u.state::<Keyed>().set(&u.step().idempotency_key, false);
        Ok(())
    })
    .await
}

/// Two steps, a month between them, and an approval in the end.
#[workflow]
async fn careful(ctx: Ctx, _: ()) -> Result<()> {
    keyed(&ctx, "first").await?;
    ctx.sleep(std::time::Duration::from_secs(30 * 86_400)).await?;
    keyed(&ctx, "second").await?;
    let approved = ctx.wait_event::<bool>("approval", "approved", "7 days").await?;
    assert!(approved);
    Ok(())
}

fn all_or_nothing(shop: &Keyed, outcome: &Outcome) -> std::result::Result<(), String> {
    let wanted = if outcome.succeeded() { 2 } else { 0 };
    match shop.standing() {
        standing if standing == wanted => Ok(()),
        standing => Err(format!("{standing} stand, not {wanted}")),
    }
}

#[test]
fn a_workflow_that_is_idempotent_is_clean_in_every_world_and_in_pairs_of_faults() {
    let report = explore(careful, ())
        .world(Keyed::default)
        .event("approved", &true)
        .check(all_or_nothing)
        .pairs()
        .run()
        .unwrap();
    assert!(report.is_clean(), "{report}");
    assert!(report.worlds > 200, "{report}");
    let names: Vec<&str> = report.steps.iter().map(|(step, _)| step.as_str()).collect();
    assert_eq!(names, ["first#1", "second#1"]);
    let cells = &report.steps[0].1;
    assert_eq!(cells[&Column::RunTwice], "ok");
    assert_eq!(cells[&Column::FailsForGood], "rolled back");
    assert_eq!(cells[&Column::UndoFails], "Stuck, listed");
    assert!(report.execution.iter().any(|(what, how)| {
        what == "cancelled at each of its waits" && how.starts_with("ok (")
    }));
}

#[test]
fn a_step_that_is_not_idempotent_is_named_with_the_fault_that_shows_it() {
    let report = explore(order, 10)
        .world(Shop::default)
        .check(|shop, outcome| {
            let wanted = i64::from(outcome.succeeded());
            match shop.standing("charge") {
                standing if standing == wanted => Ok(()),
                standing => Err(format!("charged {standing} times, not {wanted}")),
            }
        })
        .run()
        .unwrap();
    let twice = report.findings.iter().find(|finding| finding.fault == "twice:charge#1").unwrap();
    assert_eq!(twice.says, "charged 2 times, not 1");
    assert_eq!((twice.step.as_deref(), twice.column), (Some("charge#1"), Some(Column::RunTwice)));
    assert!(
        twice.again.starts_with("BACKSTITCH_EXPLORE='order: twice:charge#1' cargo test "),
        "{twice:?}"
    );
    let undo =
        report.findings.iter().find(|found| found.column == Some(Column::UndoTwice)).unwrap();
    assert_eq!(undo.says, "charged -1 times, not 0");
    // The other steps are not to blame.
    assert!(
        report
            .findings
            .iter()
            .all(|finding| { finding.step.as_deref().is_none_or(|step| step == "charge#1") })
    );
    // All worlds of a cell are told, and those that fail are counted.
    assert_eq!(report.steps[1].1[&Column::RunTwice], "**charged 2 times, not 1** and 1 more");
    let page = report.to_markdown();
    assert!(page.contains("\n   and when lands-late:charge#1\n"), "{page}");
    assert!(page.contains("| **not ok: 1** "), "{page}");
    assert!(page.contains("\n1. charged 2 times, not 1\n   when twice:charge#1\n"), "{page}");
    assert!(page.contains("attempted") || report.unexplored.is_empty());
    let data = serde_json::to_value(&report).unwrap();
    assert_eq!(data["findings"][0]["column"], "run_twice");
}

#[test]
fn an_exploration_goes_the_same_way_each_time() {
    let report = || {
        explore(order, 10)
            .world(Shop::default)
            .check(|shop, outcome| {
                let standing = shop.standing("charge");
                if standing == i64::from(outcome.succeeded()) { Ok(()) } else { Err("no") }
            })
            .run()
            .unwrap()
    };
    assert_eq!(report(), report());
}

/// Charges a second card when the first one is refused.
#[workflow]
async fn forgiving(ctx: Ctx, _: ()) -> Result<()> {
    if keyed(&ctx, "first card").await.is_err_and(|failure| failure.class() == Class::Permanent) {
        keyed(&ctx, "second card").await?;
    }
    Ok(())
}

#[test]
fn what_is_only_tried_after_a_failure_is_said_to_be_unexplored() {
    let report = explore(forgiving, ()).world(Keyed::default).check(|_, _| ()).run().unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.unexplored, ["second card#1"]);
    assert_eq!(report.steps[0].1[&Column::FailsForGood], "goes on");
}

#[test]
fn a_check_that_does_not_hold_when_all_is_well_is_the_only_finding() {
    let report = explore(careful, ())
        .world(Keyed::default)
        .event("approved", &true)
        .check(|_, outcome| assert!(!outcome.succeeded(), "too good to be true"))
        .run()
        .unwrap();
    assert_eq!((report.findings.len(), report.worlds), (1, 1));
    assert_eq!(report.findings[0].fault, "nothing goes wrong");
    let says = &report.findings[0].says;
    assert!(says.starts_with("too good to be true\n(it says the same when nothing"), "{says}");
}

#[test]
fn an_execution_that_nobody_answers_is_checked_and_not_clean() {
    let report = explore(careful, ()).world(Keyed::default).check(all_or_nothing).run().unwrap();
    assert!(report.findings.iter().all(|found| found.kind == FindingKind::PlainCase), "{report}");
    assert_eq!((report.findings.len(), report.worlds), (1, 1));
}

#[workflow]
async fn endless(ctx: Ctx, _: ()) -> Result<()> {
    loop {
        ctx.sleep(std::time::Duration::from_secs(60)).await?;
    }
}

#[test]
fn a_workflow_without_an_end_is_the_only_finding() {
    let report = explore(endless, ()).world(|| ()).check(|(), _| ()).run().unwrap();
    assert_eq!((report.findings.len(), report.worlds), (1, 1));
    assert!(report.findings[0].says.contains("does not reach its end"), "{report}");
}

#[test]
fn an_exploration_without_a_check_is_an_error() {
    let error = explore(careful, ()).world(Keyed::default).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Testing);
    assert!(error.to_string().contains("has no check"), "{error}");
}

/// Goes another way each time.
#[workflow]
async fn moody(ctx: Ctx, _: ()) -> Result<()> {
    static TIMES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let n = TIMES.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    keyed(&ctx, "first").await?;
    keyed(&ctx, &format!("then-{n}")).await
}

#[test]
fn code_that_goes_another_way_each_time_is_the_only_finding() {
    let report = explore(moody, ()).world(Keyed::default).check(|_, _| ()).run().unwrap();
    assert_eq!((report.findings.len(), report.worlds), (1, 1), "{report}");
    assert_eq!(report.findings[0].kind, FindingKind::NotDeterministic);
    let says = &report.findings[0].says;
    assert!(says.contains("the second time it asks for step \"then-1#1\", where"), "{says}");
}

#[workflow]
async fn refused(ctx: Ctx, _: ()) -> Result<()> {
    keyed(&ctx, "first").await?;
    Err(backstitch::msg("closed on Sundays").permanent())
}

#[test]
fn a_plain_case_that_does_not_succeed_is_said_in_the_report() {
    let report = explore(refused, ()).world(Keyed::default).check(all_or_nothing).run().unwrap();
    assert!(report.is_clean(), "{report}");
    let (what, how) = &report.execution[0];
    assert_eq!(what, "when nothing goes wrong");
    assert!(how.contains("failed") && how.contains("closed on Sundays"), "{how}");
}
