//! What does not come to its end is told soon, by its name.

use std::future::pending;
use std::time::{Duration, Instant};

use backstitch::testing::{FindingKind, TestKit, explore};
use backstitch::{Ctx, ErrorKind, Result, Retry, workflow};

/// Its body waits for an answer that nobody sends, and has a timeout.
#[workflow]
async fn hanging(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("ask", async move |_s| pending::<Result<()>>().await)
        .timeout("5 minutes")
        .retry(Retry::none())
        .await
}

#[test]
fn a_body_that_waits_for_ever_comes_to_its_timeout() {
    let began = Instant::now();
    let mut kit = TestKit::new().register(hanging).skip_time();
    let run = kit.start(hanging, "h-1", ()).unwrap();
    let error = kit.result(&run).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(error.to_string().contains("took longer than its timeout of 300s"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[test]
fn a_body_that_waits_for_ever_is_a_finding_of_the_plain_case() {
    let began = Instant::now();
    let report = explore(hanging, ()).world(|| ()).check(|(), _| ()).run().unwrap();
    assert_eq!(report.findings[0].kind, FindingKind::PlainCase, "{report}");
    assert!(report.findings[0].says.contains("timeout of 300s"), "{report}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

/// Waits for something real, which comes.
#[workflow]
async fn real(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("ask", async move |_s| {
        tokio::time::sleep(Duration::from_millis(300)).await; // tidy: allow-sleep a real timer is what is tested
        Ok(())
    })
    .timeout("5 minutes")
    .await
}

#[test]
fn a_body_that_waits_for_something_real_is_waited_for() {
    let mut kit = TestKit::new().register(real).skip_time();
    let began = kit.now();
    let run = kit.start(real, "r-1", ()).unwrap();
    kit.result(&run).unwrap();
    assert_eq!(kit.now(), began);
}

#[test]
fn where_time_stands_the_step_that_waits_is_named_with_its_place() {
    let mut kit = TestKit::new().register(hanging);
    let run = kit.start(hanging, "h-1", ()).unwrap();
    let error = kit.result(&run).unwrap_err().to_string();
    assert!(error.contains("the code of step \"ask#1\" at "), "{error}");
    assert!(error.contains("endless.rs:"), "{error}");
    kit.advance("5 minutes").unwrap();
    assert_eq!(kit.result(&run).unwrap_err().kind(), ErrorKind::Failed);
}

#[workflow]
async fn renewing(ctx: Ctx, times: u32) -> Result<()> {
    for _ in 0..times {
        ctx.sleep(Duration::from_secs(86_400)).await?;
    }
    Ok(())
}

#[test]
fn a_workflow_that_sleeps_for_ever_is_an_error_and_a_year_is_none() {
    let mut kit = TestKit::new().register(renewing).skip_time();
    let run = kit.start(renewing, "a-year", 365).unwrap();
    kit.result(&run).unwrap();
    let run = kit.start(renewing, "for-ever", u32::MAX).unwrap();
    let error = kit.result(&run).unwrap_err().to_string();
    assert!(error.contains("\"for-ever\" does not reach the end"), "{error}");
    assert!(error.contains("it goes on and on: after 500 moves of the clock"), "{error}");
}

#[workflow]
async fn restless(ctx: Ctx, _: ()) -> Result<()> {
    loop {
        ctx.step("poll", async move |_s| Ok(())).await?;
    }
}

#[test]
fn steps_without_end_at_one_instant_are_told_with_the_workflow_and_the_step() {
    let began = Instant::now();
    let mut kit = TestKit::new().register(restless).skip_time();
    let error = kit.start(restless, "r-1", ()).unwrap_err().to_string();
    assert!(error.contains("workflow \"restless\" goes on and on"), "{error}");
    assert!(error.contains("step \"poll#3001\""), "{error}");
    let report = explore(restless, ()).world(|| ()).check(|(), _| ()).run().unwrap();
    assert!(report.findings[0].says.contains("workflow \"restless\" goes on"), "{report}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
