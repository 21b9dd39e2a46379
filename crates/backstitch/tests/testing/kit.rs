//! Mocks, time and faults.

use backstitch::testing::{Mock, Reached, TestKit};
use backstitch::{Class, Ctx, ErrorKind, Result, Status, workflow};

use crate::shop::{Shop, order};

fn kit(shop: &Shop) -> TestKit {
    TestKit::new().register(order).state(shop.clone())
}

#[test]
fn a_month_of_sleep_takes_no_time_and_passes_only_when_it_is_asked_to() {
    let shop = Shop::default();
    let mut kit = kit(&shop);
    let began = kit.now();
    let run = kit.start(order, "o-1", 10).unwrap();
    assert_eq!(kit.status(&run).unwrap().status, Status::Suspended);
    kit.advance("29 days").unwrap();
    assert_eq!(shop.count("ship"), 0);
    kit.advance("1 day").unwrap();
    assert_eq!(shop.count("ship"), 1);
    assert_eq!(kit.result(&run).unwrap(), "parcel");
    assert_eq!(kit.now().duration_since(began).as_hours(), 30 * 24);
}

#[test]
fn time_that_is_skipped_stops_at_what_is_waited_for() {
    let shop = Shop::default();
    let mut kit = kit(&shop).skip_time();
    let began = kit.now();
    let run = kit.start(order, "o-1", 10).unwrap();
    kit.wait_until(&run, "charge", Reached::Succeeded).unwrap();
    assert_eq!(kit.now(), began);
    assert_eq!(kit.result(&run).unwrap(), "parcel");
    assert_eq!(kit.now().duration_since(began).as_hours(), 30 * 24);
}

#[test]
fn a_mock_takes_the_place_of_the_body() {
    let shop = Shop::default();
    let mut kit = kit(&shop).skip_time();
    kit.mock("ship", Mock::output("by hand"));
    let run = kit.start(order, "o-1", 10).unwrap();
    assert_eq!(kit.result(&run).unwrap(), "by hand");
    assert_eq!(shop.notes(), ["reserve", "charge"]);
}

#[test]
fn a_mock_that_fails_a_few_times_is_retried_like_any_failure() {
    let shop = Shop::default();
    let mut kit = kit(&shop).skip_time();
    kit.mock("charge", Mock::fails(Class::Transient).times(2));
    let run = kit.start(order, "o-1", 10).unwrap();
    kit.result(&run).unwrap();
    assert_eq!(kit.status(&run).unwrap().run.step(2).unwrap().attempts, 3);
    assert_eq!(shop.standing("charge"), 1);
}

#[test]
fn a_permanent_failure_rolls_back_and_attention_blocks() {
    let shop = Shop::default();
    let mut kit = kit(&shop).skip_time();
    kit.mock("ship", Mock::fails(Class::Attention).times(1));
    let run = kit.start(order, "o-1", 10).unwrap();
    kit.wait_until(&run, "ship", Reached::Blocked).unwrap();
    kit.mock("ship", Mock::fails(Class::Permanent));
    kit.ask(&run, |run| run.retry_step("ship").by("Ada")).unwrap();
    assert_eq!(kit.result(&run).unwrap_err().kind(), ErrorKind::Failed);
    assert_eq!(kit.undone(&run).unwrap(), ["charge#1", "reserve#1"]);
    assert_eq!((shop.standing("charge"), shop.standing("reserve")), (0, 0));
}

#[test]
fn a_mock_that_hangs_runs_into_its_timeout_and_one_that_panics_is_retried() {
    let shop = Shop::default();
    let mut kit = kit(&shop).skip_time();
    kit.mock("reserve", Mock::hangs().times(1));
    kit.mock("charge", Mock::panics("by order").times(1));
    let began = kit.now();
    let run = kit.start(order, "o-1", 10).unwrap();
    kit.wait_until(&run, "charge", Reached::Succeeded).unwrap();
    assert!(kit.now().duration_since(began).as_secs() >= 600, "the timeout of an attempt");
    let status = kit.status(&run).unwrap();
    assert_eq!(status.run.step(1).unwrap().attempts, 2);
    assert_eq!(status.run.step(2).unwrap().attempts, 2);
    assert_eq!(status.run.step(2).unwrap().failure.as_ref().unwrap().type_name, "Panic");
    kit.result(&run).unwrap();
}

#[test]
fn a_mock_that_loses_the_answer_has_had_its_effect() {
    let shop = Shop::default();
    let mut kit = kit(&shop).skip_time();
    kit.mock("charge", Mock::loses_answer().times(1));
    let run = kit.start(order, "o-1", 10).unwrap();
    kit.result(&run).unwrap();
    assert_eq!(shop.count("charge"), 2);
}

#[test]
fn mocks_of_undos_fail_and_are_settled_by_a_person() {
    let shop = Shop::default();
    let mut kit = kit(&shop).skip_time();
    kit.mock("ship", Mock::fails(Class::Permanent));
    kit.mock_undo("charge", Mock::fails(Class::Permanent).times(1));
    let run = kit.start(order, "o-1", 10).unwrap();
    assert_eq!(kit.result(&run).unwrap_err().kind(), ErrorKind::Stuck);
    kit.wait_until(&run, "charge", Reached::UndoFailed).unwrap();
    assert_eq!(kit.attention().unwrap()[0].kind, "undo_failed");
    kit.ask(&run, |run| run.retry_undo("charge").by("Ada")).unwrap();
    assert_eq!(kit.result(&run).unwrap_err().kind(), ErrorKind::Failed);
    assert_eq!(shop.standing("charge"), 0);
}

#[test]
fn a_body_runs_again_when_the_process_dies_before_its_effect_is_recorded() {
    let shop = Shop::default();
    let mut kit = kit(&shop).skip_time();
    kit.crash_during("charge");
    let run = kit.start(order, "o-1", 10).unwrap();
    assert_eq!(kit.result(&run).unwrap(), "parcel");
    assert_eq!((shop.count("charge"), kit.processes()), (2, 2));
}

#[test]
fn the_process_dies_at_each_write_and_another_one_goes_on() {
    let mut writes = 0;
    for n in 0.. {
        for crash in [TestKit::crash_before, TestKit::crash_after] {
            let shop = Shop::default();
            let mut kit = kit(&shop).skip_time();
            if n > 0 {
                crash(&mut kit, n);
            }
            let run = kit.start(order, "o-1", 10).unwrap();
            assert_eq!(kit.result(&run).unwrap(), "parcel", "at {n}");
            assert_eq!(kit.processes(), if n > 0 { 2 } else { 1 }, "at {n}");
            if n == 0 {
                writes = kit.writes();
            }
        }
        if n == writes {
            break;
        }
    }
    assert!(writes >= 6, "{writes}");
}

#[test]
fn a_body_or_an_undo_is_repeated_under_the_same_key() {
    let shop = Shop::default();
    let mut kit = kit(&shop).skip_time();
    kit.repeat("charge", 3);
    kit.repeat_undo("charge", 2);
    kit.mock("ship", Mock::fails(Class::Permanent));
    let run = kit.start(order, "o-1", 10).unwrap();
    kit.result(&run).unwrap_err();
    assert_eq!((shop.count("charge"), shop.count("uncharge")), (3, 2));
    assert_eq!(kit.status(&run).unwrap().run.step(2).unwrap().attempts, 1);
}

#[test]
fn what_a_stale_worker_sent_off_lands_when_all_is_over() {
    let shop = Shop::default();
    let mut kit = kit(&shop).skip_time();
    kit.stale_worker("charge");
    kit.mock("ship", Mock::fails(Class::Permanent));
    let run = kit.start(order, "o-1", 10).unwrap();
    kit.result(&run).unwrap_err();
    assert_eq!(shop.notes(), ["reserve", "charge", "uncharge", "unreserve", "charge"]);
}

/// Panics when it is run for the second time.
#[workflow]
async fn brittle(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("charge", async move |s| {
        let shop = s.state::<Shop>();
        assert!(shop.count("charge") == 0, "charged twice");
        shop.note("charge");
        Ok(())
    })
    .await
}

#[test]
fn what_lands_late_and_panics_is_said_below_the_timeline() {
    let mut kit = TestKit::new().register(brittle).state(Shop::default()).skip_time();
    kit.stale_worker("charge");
    let run = kit.start(brittle, "b-1", ()).unwrap();
    kit.result(&run).unwrap();
    let drawn = kit.timeline(&run).unwrap();
    assert!(drawn.ends_with("what charge#1 sent off landed late: charged twice"), "{drawn}");
}

#[test]
fn closed_executions_are_kept_unless_the_test_says_otherwise() {
    let mut kept = kit(&Shop::default()).skip_time();
    let run = kept.start(order, "o-1", 10).unwrap();
    kept.result(&run).unwrap();
    kept.advance("3650 days").unwrap();
    assert_eq!(kept.result(&run).unwrap(), "parcel");

    let day = std::time::Duration::from_secs(86_400);
    let mut kit = kit(&Shop::default()).setup(move |builder| builder.retention(day)).skip_time();
    let run = kit.start(order, "o-1", 10).unwrap();
    kit.result(&run).unwrap();
    kit.advance("3 days").unwrap();
    assert_eq!(kit.result(&run).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_kill_between_calls_loses_nothing() {
    let shop = Shop::default();
    let mut kit = kit(&shop);
    let run = kit.start(order, "o-1", 10).unwrap();
    kit.kill().unwrap();
    kit.ask(&run, |run| run.cancel().by("Ada")).unwrap();
    assert_eq!(kit.result(&run).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(shop.notes(), ["reserve", "charge", "uncharge", "unreserve"]);
    assert!(kit.timeline(&run).unwrap().contains("undo charge"));
}

#[workflow]
async fn approval(ctx: Ctx, _: ()) -> Result<bool> {
    let said = ctx.wait_event::<bool>("approval", "approved", "7 days").optional().await?;
    Ok(said.unwrap_or(false))
}

#[test]
fn events_arrive_and_waits_time_out() {
    let mut kit = TestKit::new().register(approval).skip_time();
    let run = kit.start(approval, "a-1", ()).unwrap();
    kit.send_event(&run, "approved", &true).unwrap();
    assert!(kit.result(&run).unwrap());
    let run = kit.start(approval, "a-2", ()).unwrap();
    assert!(!kit.result(&run).unwrap(), "nobody said anything for a week");
}

#[test]
fn a_kit_goes_the_same_way_each_time() {
    let journal = || {
        let mut kit = kit(&Shop::default()).skip_time();
        kit.mock("ship", Mock::fails(Class::Transient).times(3));
        kit.crash_after(4);
        let run = kit.start(order, "o-1", 10).unwrap();
        kit.result(&run).unwrap();
        kit.journal(&run).unwrap()
    };
    assert_eq!(journal(), journal());
}
