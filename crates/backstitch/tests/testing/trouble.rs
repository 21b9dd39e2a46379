//! What cannot be done is said, with the names that there are.

use std::panic::{AssertUnwindSafe, catch_unwind};

use backstitch::testing::{Mock, Reached, TestKit};
use backstitch::{Class, Ctx, ErrorKind, Result, Status, workflow};

use crate::shop::{Shop, order};

fn kit() -> TestKit {
    TestKit::new().register(order).state(Shop::default())
}

/// What the test would say if it were dropped now.
fn complaint(mut kit: TestKit) -> String {
    let error = kit.verify().expect_err("something never took effect");
    assert_eq!(error.kind(), ErrorKind::Testing);
    let panic = catch_unwind(AssertUnwindSafe(|| drop(kit))).expect_err("the drop complains");
    assert_eq!(panic.downcast_ref::<String>(), Some(&error.to_string()));
    error.to_string()
}

#[test]
fn a_mock_of_a_step_that_does_not_exist_names_those_that_do() {
    let mut kit = kit().skip_time();
    kit.mock("chrage", Mock::fails(Class::Permanent));
    let run = kit.start(order, "o-1", 10).unwrap();
    kit.result(&run).unwrap();
    let complaint = complaint(kit);
    assert!(complaint.contains("\"chrage\" never took effect"), "{complaint}");
    assert!(complaint.contains("reserve#1, charge#1, ship#1"), "{complaint}");
}

#[test]
fn a_fault_that_never_fires_is_an_error() {
    let mut kit = kit().skip_time();
    kit.crash_after(99);
    kit.repeat_undo("charge", 2);
    let run = kit.start(order, "o-1", 10).unwrap();
    kit.result(&run).unwrap();
    let complaint = complaint(kit);
    assert!(complaint.contains("crash_after(99) never took effect; there were "), "{complaint}");
    assert!(complaint.contains("repeat for the undo of step \"charge\""), "{complaint}");
}

#[test]
fn what_is_never_reached_is_said_at_once() {
    let mut kit = kit();
    let run = kit.start(order, "o-1", 10).unwrap();
    let error = kit.result(&run).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Testing);
    let says = error.to_string();
    assert!(says.contains("nothing happens before 2026-01-31T00:00:00Z"), "{says}");
    assert!(says.contains("call advance(), or make the kit with skip_time()"), "{says}");

    let error = kit.wait_until(&run, "chrage", Reached::Started).unwrap_err().to_string();
    assert!(error.contains("steps that were attempted: reserve#1, charge#1"), "{error}");

    kit.ask(&run, |run| run.cancel().by("Ada")).unwrap();
    let error = kit.wait_for(&run, Status::Succeeded).unwrap_err().to_string();
    assert!(error.contains("it is cancelled"), "{error}");
}

#[test]
fn a_step_that_is_blocked_is_named_with_its_failure() {
    let mut kit = kit().skip_time();
    kit.mock("charge", Mock::fails(Class::Attention));
    let run = kit.start(order, "o-1", 10).unwrap();
    let error = kit.result(&run).unwrap_err().to_string();
    assert!(error.contains("blocked by step \"charge#1\""), "{error}");
    assert!(error.contains("the test has it fail"), "{error}");
}

#[test]
fn a_second_execution_under_a_bad_id_is_refused() {
    let mut kit = kit();
    let error = kit.start(order, "", 10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = kit.advance("soon").unwrap_err();
    assert!(error.to_string().contains("is not a duration"), "{error}");
}

#[tokio::test]
async fn inside_of_a_runtime_it_says_what_to_write_instead() {
    let error = kit().start(order, "o-1", 10).unwrap_err();
    assert!(error.to_string().contains("write #[test] fn"), "{error}");
}

#[workflow]
async fn spinning(ctx: Ctx, ever: bool) -> Result<()> {
    ctx.step("spin", async move |_s| {
        loop {
            tokio::task::yield_now().await;
            if !ever {
                return Ok(());
            }
        }
    })
    .await
}

#[test]
fn a_body_that_waits_for_nothing_real_is_an_error_and_no_hang() {
    let mut kit = TestKit::new().register(spinning).skip_time();
    let error = kit.start(spinning, "s-1", true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Testing);
    let says = error.to_string();
    assert!(says.contains("the code of step \"spin#1\" was polled"), "{says}");
    assert!(says.contains("it spins"), "{says}");
}

#[test]
fn a_mock_that_returns_another_type_is_named_and_not_the_code() {
    let mut kit = kit().skip_time();
    kit.mock("ship", Mock::output(&7));
    let run = kit.start(order, "o-1", 10).unwrap();
    let says = kit.result(&run).unwrap_err().to_string();
    assert!(says.contains("the mock of step \"ship\" returns what the step does not"), "{says}");
    assert!(says.contains("invalid type: integer `7`, expected a string"), "{says}");
    assert!(!says.contains("does not fit the journal"), "{says}");
}

#[test]
#[should_panic(expected = "an undo returns nothing: give it Mock::output(&())")]
fn a_mock_of_an_undo_has_no_output() {
    kit().mock_undo("charge", Mock::output("paid back"));
}

#[test]
fn an_undo_is_mocked_with_nothing() {
    let mut kit = kit().skip_time();
    kit.mock("ship", Mock::fails(Class::Permanent));
    kit.mock_undo("charge", Mock::output(&()));
    let run = kit.start(order, "o-1", 10).unwrap();
    kit.result(&run).unwrap_err();
    assert_eq!(kit.undone(&run).unwrap(), ["charge#1", "reserve#1"]);
}
