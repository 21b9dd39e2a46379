//! Workers that are stopped, and servers that take runs away.

use backstitch::Status;
use backstitch::core::inbox::{InboxKind, Verb};

use crate::house::{House, moment};
use crate::leases::ship;
use crate::world::Gate;

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_shut_down_records_what_it_interrupts_and_another_one_goes_on() {
    let house = House::new().await;
    let run = house.start("ship", "a").await;
    let app = house.worker(|b| b.register(ship(&house.effects)).state(Gate::closed())).await;
    house.effects.wait_for("pack", 1).await;
    app.shutdown().await.unwrap();
    assert_eq!(house.effects.count("pack dropped"), 1);
    assert_eq!(house.events(run).await.last(), Some(&"StepAttemptFailed"));
    house.until_leased(0).await;
    let gate = Gate::closed();
    gate.open();
    let _app = house.worker(|b| b.register(ship(&house.effects)).state(gate)).await;
    assert_eq!(house.settled(run).await.status(true), Status::Succeeded);
    assert_eq!(house.effects.count("reserve"), 1);
    assert_eq!(house.effects.count("pack"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_stopped_has_its_runs_back_in_good_order() {
    let house = House::new().await;
    let run = house.start("ship", "a").await;
    let _app = house.worker(|b| b.register(ship(&house.effects)).state(Gate::closed())).await;
    house.effects.wait_for("pack", 1).await;
    house.engine().stop().await.unwrap();
    assert_eq!(house.effects.count("pack dropped"), 1);
    house.restart().await;
    assert_eq!(house.events(run).await.last(), Some(&"StepAttemptFailed"));
    house.effects.wait_for("pack", 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_killed_is_dropped_at_once_and_the_worker_writes_nothing_more_of_it() {
    let house = House::new().await;
    let run = house.start("ship", "a").await;
    let _app = house.worker(|b| b.register(ship(&house.effects)).state(Gate::closed())).await;
    house.effects.wait_for("pack", 1).await;
    let kill = Verb { by: "ada".into(), ..Verb::default() };
    house.engine().send(run, InboxKind::Kill, kill, "r").await.unwrap();
    assert_eq!(house.settled(run).await.status(true), Status::Terminated);
    moment().await;
    assert_eq!(house.effects.count("pack dropped"), 1);
    assert_eq!(house.effects.count("unreserve"), 0);
    // The worker is as good as before.
    house.start("ship", "b").await;
    house.effects.wait_for("pack", 2).await;
}
