//! Time, random numbers and ids from the context are the same after replay (B83).

use std::collections::HashSet;
use std::time::Duration;

use backstitch::{Ctx, FnWorkflow, Status, workflow_fn};

use crate::gates::{Gates, Seen, gated, with};
use crate::journal::{Soon, seen_by};
use crate::world::World;

/// Notes the time, random numbers and ids, before and between steps.
fn draws(seen: &Seen) -> FnWorkflow<(), Vec<String>> {
    let seen = seen.clone();
    workflow_fn("draws", move |ctx: Ctx, (): ()| {
        let seen = seen.clone();
        async move {
            for i in 0..5 {
                let (now, number, part) = (ctx.now(), ctx.random_u64(), ctx.random_f64());
                assert!((0.0..1.0).contains(&part));
                seen.add(format!("{now} {number} {part} {}", ctx.uuid()));
                seen.add(format!("{} {}", ctx.run_id(), ctx.random_u64()));
                if i % 2 == 0 {
                    ctx.sleep("1s").await?;
                } else {
                    ctx.step("one", async |_s| Ok(())).await?;
                }
            }
            gated(&ctx, "end").await?;
            Ok(seen.all())
        }
    })
}

#[tokio::test]
async fn b83_time_random_numbers_and_ids_are_the_same_after_replay() {
    let (world, first) = (World::new(), Seen::default());
    let app = world.open(with(&draws(&first), &Gates::default())).await;
    let handle = app.start(draws(&first), "t", ()).await.unwrap();
    while world.effects.count("begin end") < 1 {
        world.advance_until(&handle, Status::Running).await;
        tokio::task::yield_now().await;
    }
    world.advance(Duration::from_secs(1_000_000));

    let again = Seen::default();
    let app = world.open(with(&draws(&again), &Gates::all_open())).await;
    let handle = seen_by(&app, &handle).await;
    handle.result().soon().await.unwrap();
    assert_eq!(again.all(), first.all());
    let distinct: HashSet<String> = first.all().into_iter().collect();
    assert_eq!(distinct.len(), 10, "no draw is like another");
    let times: Vec<String> =
        first.all().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert!(times[0] < times[4] && times[4] < times[8], "{times:?}");
}

#[tokio::test]
async fn b83_another_run_draws_other_numbers() {
    let seen = Seen::default();
    let world = World::new();
    let app = world.open(with(&draws(&seen), &Gates::all_open())).await;
    for id in ["t", "u"] {
        let handle = app.start(draws(&seen), id, ()).await.unwrap();
        world.advance_until(&handle, Status::Succeeded).await;
    }
    let distinct: HashSet<String> = seen.all().into_iter().collect();
    assert_eq!(distinct.len(), 20);
}
