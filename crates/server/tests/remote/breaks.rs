//! Connections that break, and servers that die: within the lease nobody notices.

use std::time::Duration;

use backstitch::core::inbox::{InboxKind, Verb};
use backstitch::{Ctx, Status, StepCtx, Undo, workflow_fn};

use crate::house::{House, LEASE, moment};
use crate::leases::ship;
use crate::world::{Effects, Gate};

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_over_a_connection_that_breaks_without_being_built_anew() {
    let house = House::new().await;
    let run = house.start("ship", "a").await;
    let gate = Gate::closed();
    let own = gate.clone();
    let _app = house.worker(|b| b.register(ship(&house.effects)).state(own)).await;
    house.effects.wait_for("pack", 1).await;
    house.net.cut();
    gate.open();
    assert_eq!(house.settled(run).await.status(true), Status::Succeeded);
    assert_eq!(house.effects.all(), ["code", "reserve", "pack", "pack dropped", "send"]);
}

#[tokio::test(start_paused = true)]
async fn p1_a_row_whose_answer_is_lost_is_offered_again_and_written_once() {
    let house = House::new().await;
    let run = house.start("ship", "a").await;
    let gate = Gate::closed();
    let own = gate.clone();
    let _app = house.worker(|b| b.register(ship(&house.effects)).state(own)).await;
    house.effects.wait_for("pack", 1).await;
    let before = house.rows(run).await.len();
    house.net.hold_to_worker();
    gate.open();
    moment().await;
    assert_eq!(house.rows(run).await.len(), before + 1, "the row is written");
    assert_eq!(house.effects.count("send"), 0, "and the worker does not know it");
    house.net.cut();
    house.net.release();
    assert_eq!(house.settled(run).await.status(true), Status::Succeeded);
    assert_eq!(house.effects.all(), ["code", "reserve", "pack", "pack dropped", "send"]);
    assert_eq!(house.rows(run).await.len(), before + 2);
}

#[tokio::test(start_paused = true)]
async fn what_comes_while_the_worker_is_away_reaches_it_when_it_is_back() {
    let house = House::new().await;
    let run = house.start("ship", "a").await;
    let _app = house.worker(|b| b.register(ship(&house.effects)).state(Gate::closed())).await;
    house.effects.wait_for("pack", 1).await;
    house.net.cut();
    let cancel = Verb { by: "ada".into(), ..Verb::default() };
    house.engine().send(run, InboxKind::Cancel, cancel, "r").await.unwrap();
    assert_eq!(house.settled(run).await.status(true), Status::Cancelled);
    assert_eq!(house.effects.count("code"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_comes_back_within_the_lease_finds_its_worker_at_work() {
    let house = House::new().await;
    let run = house.start("ship", "a").await;
    let gate = Gate::closed();
    let own = gate.clone();
    let _app = house.worker(|b| b.register(ship(&house.effects)).state(own)).await;
    house.effects.wait_for("pack", 1).await;
    house.restart().await;
    house.until_leased(1).await;
    gate.open();
    assert_eq!(house.settled(run).await.status(true), Status::Succeeded);
    assert_eq!(house.effects.all(), ["code", "reserve", "pack", "pack dropped", "send"]);
}

#[tokio::test(start_paused = true)]
async fn p8_what_comes_to_a_new_server_before_its_worker_is_back_is_left_to_the_worker() {
    let house = House::new().await;
    let run = house.start("ship", "a").await;
    let gate = Gate::closed();
    let own = gate.clone();
    let _app = house.worker(|b| b.register(ship(&house.effects)).state(own)).await;
    house.effects.wait_for("pack", 1).await;
    house.restart().await;
    let verb = Verb { by: "ada".into(), ..Verb::default() };
    let set = house.engine().send(run, InboxKind::SetAttributes, verb, "r").await;
    assert!(set.unwrap().changed);
    house.until_leased(1).await;
    gate.open();
    assert_eq!(house.settled(run).await.status(true), Status::Succeeded);
    assert!(house.events(run).await.contains(&"AttributesSet"));
    assert_eq!(house.effects.all(), ["code", "reserve", "pack", "pack dropped", "send"]);
}

#[tokio::test(start_paused = true)]
async fn p4_bodies_are_dropped_before_the_lease_ends_and_the_run_is_leased_anew() {
    let house = House::new().await;
    let run = house.start("ship", "a").await;
    let gate = Gate::closed();
    let own = gate.clone();
    let _app = house.worker(|b| b.register(ship(&house.effects)).state(own)).await;
    house.effects.wait_for("pack", 1).await;
    let held_up = tokio::time::Instant::now();
    house.net.hold();
    while house.effects.count("pack dropped") == 0 {
        moment().await;
    }
    assert!(held_up.elapsed() <= LEASE / 5 * 4 + Duration::from_millis(5), "{held_up:?}");
    let leased: usize = house.engine().workers().iter().map(|worker| worker.leased).sum();
    assert_eq!(leased, 1, "the server still takes it for leased");
    house.until_leased(0).await;
    house.net.cut();
    house.net.release();
    gate.open();
    assert_eq!(house.settled(run).await.status(true), Status::Succeeded);
    assert_eq!(house.effects.count("code"), 2, "it was built anew");
    assert_eq!(house.effects.count("pack"), 2, "the attempt was lost, and another one made");
    assert_eq!(house.effects.count("reserve"), 1);
}

#[tokio::test(start_paused = true)]
async fn p4_an_answer_that_comes_after_the_lease_starts_nothing() {
    let house = House::new().await;
    let run = house.start("ship", "a").await;
    let gate = Gate::closed();
    let own = gate.clone();
    let _app = house.worker(|b| b.register(ship(&house.effects)).state(own)).await;
    house.effects.wait_for("pack", 1).await;
    house.net.hold_to_worker();
    gate.open();
    // It is durable that the last step is started, and the worker does not hear of it in time.
    tokio::time::sleep(LEASE).await; // tidy: allow-sleep the clock stands still otherwise
    assert_eq!(house.effects.count("send"), 0);
    house.net.release();
    assert_eq!(house.settled(run).await.status(true), Status::Succeeded);
    assert_eq!(house.effects.count("send"), 1);
    let attempts = house.settled(run).await.step(3).map(|step| step.attempts);
    assert_eq!(attempts, Some(2), "the first one never began, and counts as lost");
}

#[tokio::test(start_paused = true)]
async fn t11_undos_that_were_lost_once_are_tried_again_side_by_side() {
    let house = House::new().await;
    let gate = Gate::closed();
    let own = gate.clone();
    let undone = workflow_fn("undone", |ctx: Ctx, (): ()| async move {
        ctx.step("hold", async |_: StepCtx| Ok(()))
            .rollback(async |u: Undo<()>| {
                u.state::<Effects>().add("undo");
                u.state::<Gate>().pass().await;
                Ok(())
            })
            .await?;
        Err::<(), _>(backstitch::FailureExt::permanent(backstitch::msg("no")))
    });
    let _app = house.worker(|b| b.register(undone).state(own)).await;
    let mut runs = Vec::new();
    for id in ["a", "b", "c"] {
        runs.push(house.start("undone", id).await);
    }
    house.effects.wait_for("undo", 3).await;
    house.net.hold();
    house.until_leased(0).await;
    house.net.cut();
    house.net.release();
    let lost = tokio::time::Instant::now();
    house.effects.wait_for("undo", 6).await;
    assert!(lost.elapsed() < Duration::from_secs(10), "{:?}", lost.elapsed());
    gate.open();
    for run in runs {
        assert_eq!(house.settled(run).await.status(true), Status::Failed);
    }
}
