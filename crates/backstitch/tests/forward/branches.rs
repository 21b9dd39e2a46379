//! Concurrent branches of one workflow: names of their own, and what they tell each other.

use std::sync::Arc;

use backstitch::{
    Builder, Class, Ctx, Failure, FnWorkflow, Handle, Result, Status, StepCtx, join, workflow,
    workflow_fn,
};
use futures_util::future::join_all;
use tokio::sync::{Mutex, Notify, Semaphore, mpsc, oneshot};

use crate::gates::{Gates, shuffled};
use crate::journal::{Soon, journal, seen_by};
use crate::world::{Effects, World};

/// A step of the name `name` that gives `value`, held at the gate of the value.
fn ask(ctx: &Ctx, name: &str, value: &str) -> backstitch::Step<String> {
    let value = value.to_owned();
    ctx.step(name, async move |s: StepCtx| {
        s.state::<Effects>().add(format!("begin {value}"));
        s.state::<Gates>().pass(&value).await;
        Ok(value)
    })
}

/// Builds and starts `charge` in each of two branches, within one turn.
async fn charges(first: &Ctx, second: &Ctx) -> (Result<String>, Result<String>) {
    let charge = async |ctx: &Ctx, card: &str| ask(ctx, "charge", card).await;
    join!(charge(first, "visa"), charge(second, "giro"))
}

#[workflow]
async fn entangled(ctx: Ctx, (): ()) -> Result<(String, String)> {
    let (visa, giro) = charges(&ctx, &ctx).await;
    Ok((visa?, giro?))
}

#[workflow]
async fn apart(ctx: Ctx, (): ()) -> Result<(String, String)> {
    let (visa, giro) = charges(&ctx.branch("visa"), &ctx.branch("giro")).await;
    ask(&ctx, "end", "end").await?;
    Ok((visa?, giro?))
}

#[tokio::test]
async fn b86_two_branches_that_start_steps_of_one_name_are_refused_with_both_places() {
    let world = World::new();
    let app = world.open(|b| b.register(entangled).state(Gates::all_open())).await;
    let error = app
        .start(entangled, "t", ())
        .await
        .unwrap()
        .result()
        .soon()
        .await
        .expect_err("it is refused");
    let failure = error.failure().unwrap();
    assert_eq!((failure.type_name.as_str(), failure.class()), ("AmbiguousStep", Class::Permanent));
    assert_eq!(failure.message.matches("branches.rs:").count(), 2, "{failure}");
    assert!(failure.message.contains("\"charge\""), "{failure}");
    assert!(failure.message.contains("ctx.branch("), "{failure}");
}

#[tokio::test]
async fn b86_w45_branches_with_contexts_of_their_own_keep_their_outcomes_over_a_crash() {
    let (world, gates) = (World::new(), Gates::default());
    let app = world.open(|b| b.register(apart).state(gates.clone())).await;
    let mut handles = Vec::new();
    for i in 0..100 {
        handles.push(app.start(apart, i.to_string(), ()).await.unwrap());
    }
    world.effects.wait_for("begin giro", 100).await;
    // The second branch is first in all of them.
    gates.open("giro");
    gates.open("visa");
    world.effects.wait_for("begin end", 100).await;
    let app = world.open(|b| b.register(apart).state(Gates::all_open())).await;
    for handle in &handles {
        let outcomes = seen_by(&app, handle).await.result().soon().await.unwrap();
        assert_eq!(outcomes, ("visa".into(), "giro".into()));
        assert_eq!(journal(handle).await.starts(1).len(), 1);
    }
}

#[tokio::test]
async fn b86_steps_that_were_built_before_either_started_may_share_a_name() {
    let built = workflow_fn("built", |ctx: Ctx, (): ()| async move {
        let (first, second) = (ask(&ctx, "charge", "visa"), ask(&ctx, "charge", "giro"));
        let (first, second) = join!(first, second);
        Ok((first?, second?))
    });
    let world = World::new();
    let app = world.open(|b| b.register(built.clone()).state(Gates::all_open())).await;
    let outcomes = app.start(built, "t", ()).await.unwrap().result().soon().await.unwrap();
    assert_eq!(outcomes, ("visa".into(), "giro".into()));
}

#[tokio::test]
async fn b86_one_name_in_one_branch_after_another_is_fine() {
    let turns = workflow_fn("turns", |ctx: Ctx, (): ()| async move {
        let mut all = Vec::new();
        for value in ["a", "b", "c"] {
            all.push(ask(&ctx, "charge", value).await?);
        }
        Ok(all)
    });
    let world = World::new();
    let app = world.open(|b| b.register(turns.clone()).state(Gates::all_open())).await;
    assert_eq!(
        app.start(turns, "t", ()).await.unwrap().result().soon().await.unwrap(),
        ["a", "b", "c"]
    );
}

#[tokio::test]
async fn b86_a_branch_taken_twice_counts_on() {
    let twice = workflow_fn("twice", |ctx: Ctx, (): ()| async move {
        for _ in 0..2 {
            ask(&ctx.branch("eu"), "charge", "x").await?;
            ask(&ctx.branch("eu").branch("de"), "charge", "y").await?;
        }
        Ok(())
    });
    let world = World::new();
    let app = world.open(|b| b.register(twice.clone()).state(Gates::all_open())).await;
    let handle = app.start(twice, "t", ()).await.unwrap();
    handle.result().soon().await.unwrap();
    let run = journal(&handle).await.run;
    let keys: Vec<String> = run.steps().map(|(_, step)| step.key.to_string()).collect();
    assert_eq!(keys, ["eu/charge#1", "eu/de/charge#1", "eu/charge#2", "eu/de/charge#2"]);
}

const CARS: usize = 6;

/// Runs it until it comes to the step `end`, crashes, and says what each process made of it.
async fn twice(workflow: FnWorkflow<(), Vec<String>>, seed: u64) {
    let setup = |gates: &Gates| {
        let (workflow, gates) = (workflow.clone(), gates.clone());
        move |b: Builder| b.register(workflow).state(gates)
    };
    let (world, gates) = (World::new(), Gates::default());
    let app = world.open(setup(&gates)).await;
    let handle: Handle<Vec<String>> = app.start(workflow.clone(), "t", ()).await.unwrap();
    for i in shuffled(CARS, seed) {
        gates.open(&i.to_string());
    }
    world.effects.wait_for("begin end", 1).await;
    let before = world.effects.all();
    let told: Vec<&String> = before.iter().filter(|effect| effect.starts_with("told")).collect();

    let app = world.open(setup(&Gates::all_open())).await;
    let result = seen_by(&app, &handle).await.result().soon().await.unwrap();
    let after: Vec<String> = result.iter().map(|one| format!("told {one}")).collect();
    assert_eq!(after.iter().collect::<Vec<_>>(), told, "seed {seed}");
    assert_eq!(journal(&handle).await.count("Blocked"), 0);
}

/// Tells the world in which order the code saw things, then waits at the gate `end`.
async fn tell(ctx: &Ctx, order: Vec<String>) -> Result<Vec<String>> {
    let told = order.clone();
    ctx.step("tell", async move |s: StepCtx| {
        let effects = s.state::<Effects>();
        told.iter().for_each(|one| effects.add(format!("told {one}")));
        Ok(())
    })
    .await?;
    ask(ctx, "end", "end").await?;
    Ok(order)
}

fn car(ctx: &Ctx, i: usize) -> backstitch::Step<String> {
    ask(&ctx.branch(&format!("car-{i}")), "car", &i.to_string())
}

#[tokio::test]
async fn b99_channels_between_branches_replay_the_same() {
    for seed in 0..10 {
        let channels = workflow_fn("channels", |ctx: Ctx, (): ()| async move {
            let (send, mut receive) = mpsc::channel(2);
            let cars = (0..CARS).map(|i| {
                let (ctx, send) = (ctx.clone(), send.clone());
                async move {
                    let name = car(&ctx, i).await?;
                    for part in ["front", "middle", "back"] {
                        send.send(format!("{name} {part}")).await?;
                    }
                    Ok::<(), Failure>(())
                }
            });
            let cars = join_all(cars);
            drop(send);
            let listens = async {
                let mut order = Vec::new();
                while let Some(part) = receive.recv().await {
                    order.push(part);
                }
                order
            };
            let (_, order) = join!(cars, listens);
            tell(&ctx, order).await
        });
        twice(channels, seed).await;
    }
}

#[tokio::test]
async fn b99_mutexes_and_semaphores_between_branches_replay_the_same() {
    for seed in 0..10 {
        let locks = workflow_fn("locks", |ctx: Ctx, (): ()| async move {
            let (order, places) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(2)));
            let cars = (0..CARS).map(|i| {
                let (ctx, order, places) = (ctx.clone(), order.clone(), places.clone());
                async move {
                    let first = car(&ctx, i).await?;
                    let _place = places.acquire().await?;
                    let mut order = order.lock().await;
                    order.push(format!("{first} in"));
                    // Held over an await.
                    let second = car(&ctx, i).await?;
                    order.push(format!("{second} out"));
                    Ok::<(), Failure>(())
                }
            });
            for outcome in join_all(cars).await {
                outcome?;
            }
            let order = order.lock().await.clone();
            tell(&ctx, order).await
        });
        twice(locks, seed).await;
    }
}

#[tokio::test]
async fn b99_one_shots_and_notifications_between_branches_replay_the_same() {
    for seed in 0..10 {
        let chain = workflow_fn("chain", |ctx: Ctx, (): ()| async move {
            let (first, mut next) = oneshot::channel::<Vec<String>>();
            let all = Arc::new(Notify::new());
            let mut cars = Vec::new();
            for i in 0..CARS {
                let (send, receive) = oneshot::channel();
                let before = std::mem::replace(&mut next, receive);
                let (ctx, all) = (ctx.clone(), all.clone());
                cars.push(async move {
                    let name = car(&ctx, i).await?;
                    let mut order = before.await?;
                    order.push(name);
                    all.notify_one();
                    send.send(order).map_err(|_| backstitch::msg("nobody listens"))
                });
            }
            first.send(Vec::new()).map_err(|_| backstitch::msg("nobody listens"))?;
            let (cars, order, ()) = join!(join_all(cars), next, all.notified());
            cars.into_iter().collect::<Result<Vec<()>>>()?;
            tell(&ctx, order?).await
        });
        twice(chain, seed).await;
    }
}

#[tokio::test]
async fn b99_branches_may_exchange_thousands_of_messages_in_one_turn() {
    let busy = workflow_fn("busy", |ctx: Ctx, (): ()| async move {
        let (send, mut receive) = mpsc::channel(1);
        let sends = async {
            let first = car(&ctx, 0).await?;
            for i in 0..5_000 {
                send.send(i).await?;
            }
            drop(send);
            Ok::<_, Failure>(first)
        };
        let receives = async {
            let mut sum = 0_u64;
            while let Some(i) = receive.recv().await {
                sum += i;
            }
            sum
        };
        let (sent, sum) = join!(sends, receives);
        tell(&ctx, vec![sent?, sum.to_string()]).await
    });
    twice(busy, 0).await;
}

#[tokio::test]
async fn b99_a_branch_that_has_nothing_to_do_may_wait_for_another() {
    let waits = workflow_fn("waits", |ctx: Ctx, (): ()| async move {
        let ready = Arc::new(Notify::new());
        let waiting = async {
            ready.notified().await;
            car(&ctx, 1).await
        };
        let working = async {
            ctx.sleep("1h").await?;
            ready.notify_one();
            car(&ctx, 0).await
        };
        let (a, b) = join!(waiting, working);
        tell(&ctx, vec![a?, b?]).await
    });
    let world = World::new();
    let app = world.open(|b| b.register(waits.clone()).state(Gates::all_open())).await;
    let handle = app.start(waits, "t", ()).await.unwrap();
    world.advance_until(&handle, Status::Succeeded).await;
    assert_eq!(handle.result().soon().await.unwrap(), ["1", "0"]);
}
