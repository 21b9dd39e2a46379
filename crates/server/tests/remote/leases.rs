//! What a worker does with the runs that it has.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch::core::inbox::{InboxKind, Verb};
use backstitch::store::AfterSync;
use backstitch::{Ctx, Row, Status, StepCtx, Workflow, workflow_fn};

use crate::house::{House, moment};
use crate::world::{Effects, Gate};

/// Counts how often its code is begun; its second step waits.
pub fn ship(effects: &Effects) -> impl Workflow<Input = (), Output = u32> + use<> {
    let effects = effects.clone();
    workflow_fn("ship", move |ctx: Ctx, (): ()| {
        effects.add("code");
        async move {
            ctx.step("reserve", async |s: StepCtx| {
                s.state::<Effects>().add("reserve");
                Ok(())
            })
            .rollback(async |u: backstitch::Undo<()>| {
                u.state::<Effects>().add("unreserve");
                Ok(())
            })
            .await?;
            ctx.step("pack", async |s: StepCtx| {
                let effects = s.state::<Effects>();
                let _dropped = Dropped(effects.clone());
                effects.add("pack");
                s.state::<Gate>().pass().await;
                Ok(())
            })
            .await?;
            ctx.step("send", async |s: StepCtx| {
                s.state::<Effects>().add("send");
                Ok(7)
            })
            .await
        }
    })
}

/// Tells when a body ends, in whatever way.
struct Dropped(Effects);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.add("pack dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn p2_the_rows_of_a_worker_are_told_when_they_are_durable_and_before_bodies_begin() {
    let house = House::new().await;
    let run = house.start("ship", "a").await;
    let gate = Gate::closed();
    gate.open();
    let (told, effects) = (Arc::new(Mutex::new(Vec::new())), house.effects.clone());
    let tell: AfterSync = {
        let told = told.clone();
        Arc::new(move |rows| {
            for committed in rows {
                let row = Row::decode(committed.row.clone()).unwrap();
                told.lock().unwrap().push((row.header.at_us, row.events, effects.count("reserve")));
            }
        })
    };
    let _app =
        house.worker(|b| b.register(ship(&house.effects)).state(gate).after_sync(tell)).await;
    assert_eq!(house.settled(run).await.status(true), Status::Succeeded);
    let written = house.rows(run).await.into_iter().skip(1);
    let reserved = [0, 1, 1, 1];
    let wanted: Vec<_> =
        written.zip(reserved).map(|(row, count)| (row.header.at_us, row.events, count)).collect();
    // The server has said that the last row is durable; it is on its way here.
    moment().await;
    assert_eq!(*told.lock().unwrap(), wanted);
}

#[tokio::test(start_paused = true)]
async fn a_leased_run_is_driven_to_its_end_and_its_journal_is_as_if_the_server_had_driven_it() {
    let house = House::new().await;
    let run = house.start("ship", "a").await;
    let gate = Gate::closed();
    gate.open();
    let app = house.worker(|b| b.register(ship(&house.effects)).state(gate)).await;
    assert_eq!(house.settled(run).await.status(true), Status::Succeeded);
    assert_eq!(house.effects.count("code"), 1);
    assert_eq!(
        house.events(run).await,
        [
            "ExecutionStarted",
            "StepScheduled",
            "StepStarted",
            "StepSucceeded",
            "StepScheduled",
            "StepStarted",
            "StepSucceeded",
            "StepScheduled",
            "StepStarted",
            "StepSucceeded",
            "ExecutionSucceeded",
        ]
    );
    house.until_leased(0).await;
    app.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_worker_has_no_more_runs_than_slots() {
    let house = House::new().await;
    let first = house.start("ship", "a").await;
    let second = house.start("ship", "b").await;
    let gate = Gate::closed();
    let own = gate.clone();
    let _app = house.worker(|b| b.register(ship(&house.effects)).state(own).slots(1)).await;
    house.effects.wait_for("pack", 1).await;
    moment().await;
    assert_eq!(house.effects.count("code"), 1);
    gate.open();
    for run in [first, second] {
        assert_eq!(house.settled(run).await.status(true), Status::Succeeded);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_sleeps_long_is_given_back_and_comes_again_when_it_is_due() {
    let house = House::new().await;
    let run = house.start("nap", "a").await;
    let effects = house.effects.clone();
    let nap = workflow_fn("nap", move |ctx: Ctx, (): ()| {
        effects.add("code");
        async move {
            ctx.sleep(Duration::from_secs(8 * 3_600)).await?;
            Ok(())
        }
    });
    let _app = house.worker(|b| b.register(nap)).await;
    house.until_event(run, "TimerStarted").await;
    house.until_leased(0).await;
    assert_eq!(house.settled(run).await.status(true), Status::Succeeded);
    assert_eq!(house.effects.count("code"), 2, "it was built anew once");
}

#[tokio::test(start_paused = true)]
async fn a_verb_reaches_the_worker_and_the_way_back_is_driven_there() {
    let house = House::new().await;
    let run = house.start("ship", "a").await;
    let app = house.worker(|b| b.register(ship(&house.effects)).state(Gate::closed())).await;
    house.effects.wait_for("pack", 1).await;
    let cancel = Verb { by: "ada".into(), ..Verb::default() };
    house.engine().send(run, InboxKind::Cancel, cancel, "r").await.unwrap();
    assert_eq!(house.settled(run).await.status(true), Status::Cancelled);
    assert_eq!(house.effects.count("unreserve"), 1);
    app.shutdown().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_row_that_overtakes_a_verb_is_refused_and_the_code_is_built_anew() {
    let house = House::new().await;
    let run = house.start("last", "a").await;
    let gate = Gate::closed();
    let own = gate.clone();
    let _app = house.worker(|b| b.register(last_step(&house.effects)).state(own)).await;
    house.effects.wait_for("last", 1).await;
    // The worker does not hear of it before it has written how the run ends.
    house.net.hold_to_worker();
    let cancel = Verb { by: "ada".into(), ..Verb::default() };
    house.engine().send(run, InboxKind::Cancel, cancel, "r").await.unwrap();
    gate.open();
    moment().await;
    house.net.release();
    assert_eq!(house.settled(run).await.status(true), Status::Cancelled);
    assert_eq!(house.effects.count("last"), 1, "what was done is not done again");
    assert!(house.effects.count("code") >= 2);
}

fn last_step(effects: &Effects) -> impl Workflow<Input = (), Output = ()> + use<> {
    let effects = effects.clone();
    workflow_fn("last", move |ctx: Ctx, (): ()| {
        effects.add("code");
        async move {
            ctx.step("last", async |s: StepCtx| {
                s.state::<Effects>().add("last");
                s.state::<Gate>().pass().await;
                Ok(())
            })
            .await
        }
    })
}
