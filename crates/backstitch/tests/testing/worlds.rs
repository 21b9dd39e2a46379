//! What single worlds of an exploration find.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch::testing::{Column, Outcome, Report, explore};
use backstitch::{Class, Ctx, ErrorKind, Failure, Origin, Result, UndoOutcome, workflow};

use crate::shop::{Shop, order};

type Checked = std::result::Result<(), String>;

fn faults(report: &Report) -> Vec<&str> {
    report.findings.iter().map(|finding| finding.fault.as_str()).collect()
}

fn failure(type_name: &str) -> Failure {
    Failure::new(Class::Permanent, Origin::Body, type_name, "it says no")
}

/// Waits for somebody else to pay when the card is refused, and never gives up.
#[workflow]
async fn patient(ctx: Ctx, _: ()) -> Result<()> {
    let paid = ctx
        .step("charge", async move |s| {
            s.state::<Shop>().note("charge");
            Ok(())
        })
        .await;
    while paid.as_ref().is_err_and(|failure| failure.class() == Class::Permanent) {
        ctx.sleep(Duration::from_secs(86_400)).await?;
    }
    ctx.step("ship", async move |s| {
        s.state::<Shop>().note("ship");
        Ok(())
    })
    .await
}

#[test]
fn a_world_without_an_end_is_a_finding_and_the_others_are_run() {
    let report = explore(patient, ()).world(Shop::default).check(|_, _| ()).run().unwrap();
    let found = report.findings.iter().find(|found| found.fault == "fails-permanent:charge#1");
    let found = found.unwrap_or_else(|| panic!("{report}"));
    assert!(found.says.contains("does not reach its end"), "{found:?}");
    assert_eq!(
        (found.step.as_deref(), found.column),
        (Some("charge#1"), Some(Column::FailsForGood))
    );
    assert!(found.again.contains("'patient: fails-permanent:charge#1'"), "{found:?}");
    assert!(found.again.ends_with(" -- --exact --nocapture"), "{found:?}");
    assert!(faults(&report).iter().all(|fault| fault.ends_with(":charge#1")), "{report}");
    assert_eq!(report.steps[1].1[&Column::RunTwice], "ok");
}

/// Spins when it is tried again.
#[workflow]
async fn restless(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("charge", async move |s| {
        let shop = s.state::<Shop>();
        while shop.count("charge") > 0 {
            tokio::task::yield_now().await;
        }
        shop.note("charge");
        Ok(())
    })
    .await
}

#[test]
fn a_world_in_which_a_body_spins_is_a_finding() {
    let report =
        explore(restless, ()).named("again").world(Shop::default).check(|_, _| ()).run().unwrap();
    let found = report.findings.iter().find(|found| found.fault == "dies-unrecorded:charge#1");
    let found = found.unwrap_or_else(|| panic!("{report}"));
    assert!(found.says.contains("\"charge#1\" was polled"), "{found:?}");
    // Told apart from another one of the same workflow.
    assert!(found.again.contains("'again: dies-unrecorded:charge#1'"), "{found:?}");
}

/// Two effects in one body with an await between them: whoever runs it again asks only for the
/// second one.
#[workflow]
async fn twofold(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("pay", async move |s| {
        let shop = s.state::<Shop>();
        if shop.count("mail") == 0 {
            shop.note("charge");
            tokio::task::yield_now().await;
            shop.note("mail");
        }
        Ok(())
    })
    .await
}

#[test]
fn the_process_dies_at_each_await_of_a_body() {
    let report = explore(twofold, ())
        .world(Shop::default)
        .check(|shop, _| match shop.count("charge") {
            0 | 1 => Ok(()),
            times => Err(format!("charged {times} times")),
        })
        .run()
        .unwrap();
    assert_eq!(faults(&report), ["dies-at-await-1:pay#1"], "{report}");
    assert_eq!(report.findings[0].column, Some(Column::DiesUnrecorded));
}

/// Its undo does not know where it left off.
#[workflow]
async fn forgetful(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("pay", async move |s| {
        s.state::<Shop>().note("charge");
        Ok(())
    })
    .rollback(async move |u| {
        let shop = u.state::<Shop>();
        if shop.count("begun") > 0 && shop.count("uncharge") == 0 {
            return Ok(());
        }
        shop.note("begun");
        tokio::task::yield_now().await;
        shop.note("uncharge");
        Ok(())
    })
    .await
}

#[test]
fn an_undo_that_is_interrupted_by_a_death_is_found() {
    let report = explore(forgetful, ())
        .world(Shop::default)
        .check(|shop, outcome| match outcome.succeeded() || shop.count("uncharge") > 0 {
            _ if shop.count("charge") == 0 => Ok(()),
            true => Ok(()),
            false => Err("nothing was paid back"),
        })
        .run()
        .unwrap();
    assert!(faults(&report).contains(&"undo-dies-at-await-1:pay#1"), "{report}");
}

/// Waits more often than an exploration tries.
#[workflow]
async fn streaming(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("stream", async move |_s| {
        for _ in 0..30 {
            tokio::task::yield_now().await;
        }
        Ok(())
    })
    .await
}

#[test]
fn awaits_that_are_not_tried_are_said() {
    let report = explore(streaming, ()).world(|| ()).check(|(), _| ()).run().unwrap();
    let said = report.to_markdown();
    assert!(
        said.contains("step stream#1 waits 30 times; the process dies at the first 20"),
        "{said}"
    );
}

/// The first attempt always fails.
#[workflow]
async fn flaky(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("charge", async move |s| {
        if s.attempt() == 1 {
            return Err(Failure::new(Class::Transient, Origin::Body, "Busy", "busy"));
        }
        s.state::<Shop>().note("charge");
        Ok(())
    })
    .rollback(async move |u| {
        u.state::<Shop>().note("uncharge");
        Ok(())
    })
    .await
}

#[test]
fn what_happens_once_happens_to_the_attempt_that_ends_well() {
    let report = explore(flaky, ())
        .world(Shop::default)
        .check(|shop, outcome| match (outcome.succeeded(), shop.standing("charge")) {
            (true, 1) | (false, _) => Ok(()),
            (true, n) => Err(format!("charged {n} times")),
        })
        .run()
        .unwrap();
    let found = faults(&report);
    for fault in ["twice:charge#1", "dies-unrecorded:charge#1", "lands-late:charge#1"] {
        assert!(found.contains(&fault), "{fault}: {report}");
    }
}

/// Pays back only what is known to have been charged, or to have failed.
#[workflow]
async fn trusting(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("charge", async move |s| {
        s.state::<Keyed>().put(s.idempotency_key());
        Ok(())
    })
    .rollback(async move |u| {
        if !matches!(u.outcome(), UndoOutcome::Unknown) {
            u.state::<Keyed>().take(&u.step().idempotency_key);
        }
        Ok(())
    })
    .await
}

/// What stands, by key; what was taken back once is not put again.
#[derive(Clone, Default)]
struct Keyed(Arc<Mutex<BTreeMap<String, bool>>>);

impl Keyed {
    fn put(&self, key: String) {
        self.0.lock().unwrap().entry(key).or_insert(true);
    }

    fn take(&self, key: &str) {
        self.0.lock().unwrap().insert(key.to_owned(), false);
    }

    fn stands(&self) -> bool {
        self.0.lock().unwrap().values().any(|stands| *stands)
    }
}

fn only_if_it_succeeded(keyed: &Keyed, outcome: &Outcome) -> Checked {
    match keyed.stands() == outcome.succeeded() {
        true => Ok(()),
        false => Err("charged, and rolled back".to_owned()),
    }
}

#[test]
fn an_undo_that_ignores_what_nobody_knows_is_found_without_pairs() {
    let report = explore(trusting, ()).world(Keyed::default);
    let report = report.check(only_if_it_succeeded).run().unwrap();
    assert_eq!(faults(&report), ["dies-unrecorded-cancelled:charge#1"], "{report}");
}

/// Ships although the bank may have charged, when it took too long; and offers a gift card instead
/// when the card was declined.
#[workflow]
async fn branching(ctx: Ctx, _: ()) -> Result<()> {
    let charged = ctx
        .step("charge", async move |s| {
            s.state::<Shop>().note("charge");
            Ok(())
        })
        .retry(backstitch::Retry::none())
        .await;
    match charged {
        Ok(()) => Ok(()),
        Err(failure) if failure.type_name == "Timeout" => {
            ctx.step("timed out", async move |_s| Ok(())).await
        }
        Err(failure) if failure.type_name == "CardDeclined" => {
            ctx.step("gift card", async move |_s| Ok(())).await
        }
        Err(failure) => Err(failure),
    }
}

#[test]
fn a_step_hangs_and_fails_as_it_is_told_to() {
    let told = || explore(branching, ()).world(Shop::default).check(|_, _| ());
    assert_eq!(told().run().unwrap().unexplored, ["timed out#1"]);
    let report = told().failure("charge", failure("CardDeclined")).run().unwrap();
    assert_eq!(report.unexplored, ["timed out#1", "gift card#1"]);
    let error = told().failure("chrage", failure("CardDeclined")).run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Testing);
    assert!(error.to_string().contains("attempted are charge#1"), "{error}");
}

/// Ships what two people have agreed to, and says how it came out.
#[workflow]
async fn agreed(ctx: Ctx, _: ()) -> Result<String> {
    let mut said = String::new();
    for name in ["first", "second"] {
        let word = ctx.wait_event::<String>(name, "word", "7 days").optional().await?;
        said += &word.unwrap_or("-".to_owned());
    }
    Ok(said)
}

#[test]
fn each_event_of_a_type_is_sent_and_each_wait_is_left_unanswered() {
    let outputs = Arc::new(Mutex::new(Vec::new()));
    let seen = outputs.clone();
    let report = explore(agreed, ())
        .world(|| ())
        .event("word", &"a")
        .event("word", &"b")
        .check(move |(), outcome| seen.lock().unwrap().extend(outcome.output::<String>()))
        .run()
        .unwrap();
    let outputs = outputs.lock().unwrap();
    assert_eq!(outputs[0], "ab", "in their order");
    for said in ["bb", "aa", "-a", "a-"] {
        assert!(outputs.iter().any(|output| output == said), "{said}: {outputs:?}\n{report}");
    }
    let said = report.to_markdown();
    assert!(said.contains("a wait is answered with another event: ok (2 worlds)"), "{said}");
    assert!(said.contains("a wait is not answered in time: ok (2 worlds)"), "{said}");
}

/// Waits only in the first of all worlds.
#[workflow]
async fn hasty(ctx: Ctx, _: ()) -> Result<()> {
    static WORLDS: AtomicU32 = AtomicU32::new(0);
    ctx.step("charge", async move |_s| {
        if WORLDS.fetch_add(1, Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        Ok(())
    })
    .await
}

#[test]
fn worlds_in_which_nothing_came_to_pass_are_not_counted_among_those_that_hold() {
    let worlds = Arc::new(AtomicU32::new(0));
    let made = worlds.clone();
    let world = move || made.fetch_add(1, Ordering::SeqCst);
    let report = explore(hasty, ()).world(world).check(|_, _| ()).run().unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.unfired, ["dies-at-await-1:charge#1"]);
    // Besides there are looks at the plain case again and replayed, at the plain rollback, and at a
    // world without anything.
    assert_eq!(report.worlds + 5, u64::from(worlds.load(Ordering::SeqCst)));
    let said = report.to_markdown();
    assert!(said.contains("show nothing: 1 more (dies-at-await-1:charge#1)"), "{said}");
    assert!(said.contains(&format!("the check holds in all {} worlds", report.worlds)), "{said}");
}

#[test]
fn a_check_that_sees_nothing_is_said_and_so_is_a_state_that_is_copied() {
    let report = explore(order, 10).world(Shop::default).check(|_, _| ()).run().unwrap();
    assert!(report.to_markdown().contains("it does not see what the steps do"), "{report}");

    let report = explore(copied, ())
        .world(Copied::default)
        .check(|bank, outcome| {
            let charged = *bank.0.lock().unwrap();
            match charged == u32::from(outcome.succeeded()) {
                true => Ok(()),
                false => Err(format!("charged {charged} times")),
            }
        })
        .run()
        .unwrap();
    let says = &report.findings[0].says;
    assert!(says.starts_with("charged 0 times\n"), "{says}");
    assert!(says.contains("does Clone copy the state"), "{says}");
}

/// A system whose clone is another system.
#[derive(Default)]
struct Copied(Mutex<u32>);

impl Clone for Copied {
    fn clone(&self) -> Copied {
        Copied(Mutex::new(*self.0.lock().unwrap()))
    }
}

#[workflow]
async fn copied(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("charge", async move |s| {
        *s.state::<Copied>().0.lock().unwrap() += 1;
        Ok(())
    })
    .await
}
