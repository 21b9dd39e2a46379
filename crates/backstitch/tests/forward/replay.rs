//! What the code saw once it sees again, in the same order (P13).

use backstitch::{Ctx, Failure, FnWorkflow, Result, race, select, workflow_fn};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::gates::{Gates, Seen, gated, shuffled, with};
use crate::journal::{Soon, journal, seen_by, until_recorded};
use crate::world::World;

const CROWD: usize = 20;

/// Twenty steps at once; says in which order it hears of them. Then one that waits.
fn crowd(seen: &Seen) -> FnWorkflow<(), Vec<String>> {
    let seen = seen.clone();
    workflow_fn("crowd", move |ctx: Ctx, (): ()| {
        let seen = seen.clone();
        async move {
            let steps = (0..CROWD).map(|i| gated(&ctx, &format!("s{i}")));
            let mut steps: FuturesUnordered<_> = steps.collect();
            let mut order = Vec::new();
            while let Some(name) = steps.next().await {
                let name = name?;
                seen.add(&name);
                order.push(name);
            }
            gated(&ctx, "end").await?;
            Ok(order)
        }
    })
}

#[tokio::test]
async fn p13_b80_twenty_outcomes_are_seen_in_the_order_that_was_recorded() {
    for seed in 0..10 {
        let (world, seen, gates) = (World::new(), Seen::default(), Gates::default());
        let app = world.open(with(&crowd(&seen), &gates)).await;
        let handle = app.start(crowd(&seen), "t", ()).await.unwrap();
        world.effects.wait_for("begin s19", 1).await;
        let order = shuffled(CROWD, seed);
        for (n, i) in order.iter().enumerate() {
            gates.open(&format!("s{i}"));
            // Half of them one by one, the others as they come.
            if n < CROWD / 2 {
                until_recorded(&handle, "StepSucceeded", n + 1).await;
            }
        }
        world.effects.wait_for("begin end", 1).await;

        let (again, gates) = (Seen::default(), Gates::all_open());
        let app = world.open(with(&crowd(&again), &gates)).await;
        let result = seen_by(&app, &handle).await.result().soon().await.unwrap();
        assert_eq!(again.all(), seen.all(), "seed {seed}");
        assert_eq!(result, seen.all());
        let wanted: Vec<String> = order[..CROWD / 2].iter().map(|i| format!("s{i}")).collect();
        assert_eq!(again.all()[..CROWD / 2], wanted);
    }
}

#[tokio::test]
async fn p13_b80_t5_what_finishes_after_a_crash_comes_after_what_was_recorded_before() {
    for seed in 0..10 {
        let (world, first, gates) = (World::new(), Seen::default(), Gates::default());
        let app = world.open(with(&crowd(&first), &gates)).await;
        let handle = app.start(crowd(&first), "t", ()).await.unwrap();
        world.effects.wait_for("begin s19", 1).await;
        let order = shuffled(CROWD, 100 + seed);
        for (n, i) in order[..CROWD / 2].iter().enumerate() {
            gates.open(&format!("s{i}"));
            until_recorded(&handle, "StepSucceeded", n + 1).await;
        }

        // The other half runs again, and finishes in another order.
        let (second, gates) = (Seen::default(), Gates::default());
        let app = world.open(with(&crowd(&second), &gates)).await;
        let handle = seen_by(&app, &handle).await;
        world.effects.wait_for(&format!("begin s{}", order[CROWD - 1]), 2).await;
        for i in order[CROWD / 2..].iter().rev() {
            gates.open(&format!("s{i}"));
        }
        world.effects.wait_for("begin end", 1).await;
        assert_eq!(second.all()[..CROWD / 2], first.all());

        let (third, gates) = (Seen::default(), Gates::all_open());
        let app = world.open(with(&crowd(&third), &gates)).await;
        let result = seen_by(&app, &handle).await.result().soon().await.unwrap();
        assert_eq!((third.all(), result), (second.all(), second.all()), "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p13_bodies_that_race_on_threads_are_seen_in_the_order_that_was_recorded() {
    let (world, seen) = (World::new(), Seen::default());
    let app = world.open(with(&crowd(&seen), &Gates::all_open_but("end"))).await;
    let handle = app.start(crowd(&seen), "t", ()).await.unwrap();
    world.effects.wait_for("begin end", 1).await;
    let again = Seen::default();
    let app = world.open(with(&crowd(&again), &Gates::all_open())).await;
    let result = seen_by(&app, &handle).await.result().soon().await.unwrap();
    assert_eq!((again.all(), result), (seen.all(), seen.all()));
}

#[tokio::test]
async fn b80_a_join_hands_each_future_its_own_outcome() {
    let joins = workflow_fn("joins", |ctx: Ctx, (): ()| async move {
        let steps = (0..CROWD).map(|i| gated(&ctx, &format!("s{i}")));
        let outcomes = futures_util::future::join_all(steps).await;
        gated(&ctx, "end").await?;
        outcomes.into_iter().collect::<Result<Vec<String>>>()
    });
    let (world, gates) = (World::new(), Gates::default());
    let app = world.open(with(&joins, &gates)).await;
    let handle = app.start(joins.clone(), "t", ()).await.unwrap();
    world.effects.wait_for("begin s19", 1).await;
    for i in shuffled(CROWD, 7) {
        gates.open(&format!("s{i}"));
    }
    world.effects.wait_for("begin end", 1).await;
    let app = world.open(with(&joins, &Gates::all_open())).await;
    let wanted: Vec<String> = (0..CROWD).map(|i| format!("s{i}")).collect();
    assert_eq!(seen_by(&app, &handle).await.result().soon().await.unwrap(), wanted);
}

/// Two steps race; the loser may settle. Then one step that is named after the winner.
fn two_race(seen: &Seen) -> FnWorkflow<(), Vec<String>> {
    let seen = seen.clone();
    workflow_fn("two-race", move |ctx: Ctx, (): ()| {
        let seen = seen.clone();
        async move {
            let settle = backstitch::OnAbandon::Settle;
            let winner = select! {
                a = gated(&ctx, "a").on_abandon(settle) => a?,
                b = gated(&ctx, "b").on_abandon(settle) => b?,
            };
            seen.add(format!("{winner} won"));
            gated(&ctx, &format!("after {winner}")).await?;
            Ok(vec![winner])
        }
    })
}

#[tokio::test]
async fn b81_w45_the_branch_that_won_wins_again_though_both_outcomes_are_known() {
    for winner in ["a", "b"] {
        let loser = if winner == "a" { "b" } else { "a" };
        let (world, seen, gates) = (World::new(), Seen::default(), Gates::default());
        let app = world.open(with(&two_race(&seen), &gates)).await;
        let handle = app.start(two_race(&seen), "t", ()).await.unwrap();
        world.effects.wait_for("begin b", 1).await;
        gates.open(winner);
        world.effects.wait_for(&format!("begin after {winner}"), 1).await;
        gates.open(loser);
        until_recorded(&handle, "StepSucceeded", 2).await;

        let app = world.open(with(&two_race(&seen), &Gates::all_open())).await;
        let handle = seen_by(&app, &handle).await;
        assert_eq!(handle.result().soon().await.unwrap(), [winner]);
        assert_eq!(seen.all(), [format!("{winner} won"), format!("{winner} won")]);
        let journal = journal(&handle).await;
        assert_eq!(journal.count("StepCancelRequested"), 1);
        assert_eq!(journal.run.steps().filter(|(_, step)| step.shown).count(), 2);
    }
}

#[tokio::test]
async fn b81_when_both_are_there_at_once_the_one_that_was_recorded_first_wins() {
    let races = workflow_fn("races", |ctx: Ctx, (): ()| async move {
        let (index, name) = race([gated(&ctx, "a"), gated(&ctx, "b"), gated(&ctx, "c")]).await;
        gated(&ctx, "end").await?;
        Ok(vec![index.to_string(), name?])
    });
    let (world, gates) = (World::new(), Gates::default());
    let app = world.open(with(&races, &gates)).await;
    let handle = app.start(races.clone(), "t", ()).await.unwrap();
    world.effects.wait_for("begin c", 1).await;
    for name in ["c", "a", "b"] {
        gates.open(name);
    }
    world.effects.wait_for("begin end", 1).await;
    let first = journal(&handle).await.run.steps().find(|(_, step)| step.shown).map(|(o, _)| o);
    let app = world.open(with(&races, &Gates::all_open())).await;
    let result = seen_by(&app, &handle).await.result().soon().await.unwrap();
    let index = first.expect("one has won") as usize - 1;
    assert_eq!(result, [index.to_string(), ["a", "b", "c"][index].to_owned()]);
}

#[tokio::test]
async fn p13_a_thousand_groups_are_replayed_in_order() {
    let seen = Seen::default();
    let long = |seen: &Seen| {
        let seen = seen.clone();
        workflow_fn("long", move |ctx: Ctx, (): ()| {
            let seen = seen.clone();
            async move {
                let mut last = 0_u32;
                for i in 0..1_000_u32 {
                    last = ctx.step("n", async move |_s| Ok(i)).await?;
                    seen.add(format!("{last} {}", ctx.random_u64()));
                }
                gated(&ctx, "end").await?;
                Ok::<_, Failure>(vec![last.to_string()])
            }
        })
    };
    let world = World::new();
    let app = world.open(with(&long(&seen), &Gates::default())).await;
    let handle = app.start(long(&seen), "t", ()).await.unwrap();
    world.effects.wait_for("begin end", 1).await;
    let again = Seen::default();
    let app = world.open(with(&long(&again), &Gates::all_open())).await;
    assert_eq!(seen_by(&app, &handle).await.result().soon().await.unwrap(), ["999"]);
    assert_eq!(again.all(), seen.all());
}
