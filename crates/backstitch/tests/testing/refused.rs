//! What a kit or an exploration is told and cannot mean, and what its errors say.

use std::panic::{AssertUnwindSafe, catch_unwind};

use backstitch::testing::{Mock, Reached, TestKit, explore};
use backstitch::{Class, Ctx, ErrorKind, NoTimeout, Result, workflow};

use crate::shop::{Shop, order};

fn kit() -> TestKit {
    TestKit::new().register(order).register(approved).register(stores).state(Shop::default())
}

fn panics(what: impl FnOnce(&mut TestKit)) -> String {
    let mut kit = kit();
    let panic = catch_unwind(AssertUnwindSafe(|| what(&mut kit))).expect_err("it is refused");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .expect("a text")
}

#[test]
fn what_would_never_take_effect_is_refused_at_the_call() {
    for times in [0, 1] {
        let said = panics(|kit| kit.repeat("charge", times));
        assert!(said.contains(&format!("repeat(\"charge\", {times}) repeats nothing")), "{said}");
        let said = panics(|kit| kit.repeat_undo("charge", times));
        assert!(said.contains("repeats nothing"), "{said}");
    }
    assert!(
        panics(|kit| kit.crash_before(0)).contains("crash_before(0): writes are counted from 1")
    );
    assert!(panics(|kit| kit.crash_after(0)).contains("crash_after(0)"));
    let said = panics(|kit| kit.mock("charge", Mock::fails(Class::Permanent).times(0)));
    assert!(said.contains("times(0) never takes effect"), "{said}");
}

#[test]
fn a_name_of_an_exploration_stands_on_one_line() {
    let named = explore(order, 10).named("a poor\ncustomer").world(Shop::default);
    let error = named.check(|_, _| ()).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Testing);
    assert!(error.to_string().contains("control character U+000A"), "{error}");
}

/// Waits for a word without an end.
#[workflow]
async fn approved(ctx: Ctx, _: ()) -> Result<String> {
    ctx.wait_event("approval", "order-approved", NoTimeout).await
}

#[test]
fn an_event_may_be_a_text_of_any_size() {
    let report = explore(approved, ()).world(|| ()).event("order-approved", "yes");
    let report = report.check(|(), _| ()).run().unwrap();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn who_waits_for_an_event_is_advised_to_send_it() {
    let mut kit = kit();
    let run = kit.start(approved, "a-1", ()).unwrap();
    let said = kit.result(&run).unwrap_err().to_string();
    assert!(said.contains("send_event(&run, \"order-approved\", …)"), "{said}");
    assert!(
        said.contains("it waits for an event of type \"order-approved\" (wait \"approval#1\")")
    );
    assert!(!said.contains("nothing happens before"), "{said}");
    assert!(!said.contains("WaitsFor") && !said.contains("until_us"), "{said}");

    let said = kit.wait_until(&run, "approval", Reached::Succeeded).unwrap_err().to_string();
    assert!(said.contains("\"approval\" is a wait for an event, and no step"), "{said}");
}

/// The error of a method is not hidden by the complaint at the end.
#[test]
fn the_complaint_at_the_end_repeats_the_first_error() {
    let mut kit = kit();
    kit.mock("chrage", Mock::fails(Class::Permanent));
    let run = kit.start(order, "o-1", 10).unwrap();
    let error = kit.result(&run).unwrap_err().to_string();
    let panic = catch_unwind(AssertUnwindSafe(|| drop(kit))).expect_err("the drop complains");
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(said.starts_with(&error), "{said}");
    assert!(said.contains("\"chrage\" never took effect"), "{said}");
}

/// Reserves in two places.
#[workflow]
async fn stores(ctx: Ctx, _: ()) -> Result<()> {
    for name in ["east", "west"] {
        let branch = ctx.branch(name);
        branch.step("reserve", async move |_s| Ok(())).rollback(async move |_u| Ok(())).await?;
    }
    Ok(())
}

#[test]
fn a_step_of_a_branch_is_named_as_the_report_prints_it() {
    let mut kit = kit().skip_time();
    kit.mock("west/reserve", Mock::fails(Class::Permanent));
    let run = kit.start(stores, "s-1", ()).unwrap();
    kit.result(&run).unwrap_err();
    kit.wait_until(&run, "west/reserve", Reached::Failed).unwrap();
    assert_eq!(kit.status(&run).unwrap().run.step(1).unwrap().attempts, 1);

    let report = explore(stores, ()).check(|(), outcome| {
        let undone = outcome.is_undone("east/reserve") == outcome.is_undone("east/reserve#1");
        if undone { Ok(()) } else { Err("one of the names is unknown") }
    });
    let report = report.run().unwrap();
    assert!(report.is_clean(), "{report}");
    assert!(report.to_markdown().contains("| west/reserve "), "{report}");
}
