//! Random programs, killed at random moments: each pass of the code sees what the passes before it
//! saw, in the same order, and then goes on (P13, B80, B81, B83).

use std::pin::Pin;
use std::time::Duration;

use backstitch::core::id::draw;
use backstitch::{
    Ctx, FailureExt, FnWorkflow, Result, Retry, StepCtx, msg, race, select, workflow_fn,
};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;

use crate::gates::Seen;
use crate::journal::{Soon, journal, seen_by};
use crate::world::World;

/// Random decisions of one program: the same in every pass.
#[derive(Clone, Copy)]
struct Dice {
    seed: u64,
    place: u64,
}

impl Dice {
    fn below(self, bound: u64, what: u64) -> u64 {
        draw(self.seed, self.place, what) % bound
    }

    /// The decisions at another place of the program.
    fn inner(self, i: u64) -> Dice {
        Dice { place: draw(self.seed, self.place, 1_000 + i), ..self }
    }
}

/// A part of a program; notes what it sees.
struct Part {
    ctx: Ctx,
    seen: Seen,
    dice: Dice,
    depth: u32,
}

type Played<'a> = Pin<Box<dyn Future<Output = Result<u64>> + Send + 'a>>;

impl Part {
    fn inner(&self, i: u64) -> Part {
        Part {
            ctx: self.ctx.branch(&i.to_string()),
            seen: self.seen.clone(),
            dice: self.dice.inner(i),
            depth: self.depth + 1,
        }
    }

    fn inners(&self) -> Vec<Part> {
        (0..2 + self.dice.below(3, 1)).map(|i| self.inner(i)).collect()
    }

    fn play(self) -> Played<'static> {
        Box::pin(async move {
            let kinds = if self.depth < 3 { 9 } else { 4 };
            let kind = self.dice.below(kinds, 0);
            let value = match kind {
                0 | 1 => self.step().await?,
                2 => self.sleep().await?,
                3 => self.caught().await,
                4 => self.look().await?,
                5 => {
                    let mut sum = 0;
                    for part in self.inners() {
                        sum += part.play().await?;
                    }
                    sum
                }
                6 => {
                    let all = join_all(self.inners().into_iter().map(Part::play)).await;
                    all.into_iter().sum::<Result<u64>>()?
                }
                7 => {
                    let (index, value) = race(self.inners().into_iter().map(Part::play)).await;
                    index as u64 * 1_000 + value?
                }
                _ => {
                    let parts = self.inners().into_iter().map(Part::play);
                    let mut parts: FuturesUnordered<_> = parts.collect();
                    let mut sum = 0;
                    while let Some(value) = parts.next().await {
                        sum = sum * 10 % 1_000_003 + value?;
                        self.note("one of many", sum);
                    }
                    sum
                }
            };
            self.note(&format!("kind {kind}"), value);
            Ok(value)
        })
    }

    fn note(&self, what: &str, value: u64) {
        let now_us = self.ctx.now().as_microsecond();
        self.seen.add(format!("{} {what}: {value} at {now_us}", self.dice.place));
    }

    /// A step that takes its time, sometimes fails, and sometimes times out.
    async fn step(&self) -> Result<u64> {
        let dice = self.dice;
        let name = ["a", "b", "c"][dice.below(3, 2) as usize];
        let body = async move |s: StepCtx| {
            let attempt = u64::from(s.attempt());
            for _ in 0..dice.below(40, 10 + attempt) {
                tokio::task::yield_now().await;
            }
            match dice.below(8, 100 + attempt) {
                0 if attempt < 3 => Err(msg("not yet")),
                1 if attempt < 3 => std::future::pending().await,
                _ => Ok(dice.below(100, 3)),
            }
        };
        let retry = Retry::exponential("1s").max_attempts(100);
        self.ctx.step(name, body).retry(retry).timeout("7s").await
    }

    async fn sleep(&self) -> Result<u64> {
        self.ctx.sleep(Duration::from_millis(self.dice.below(5_000, 4))).await?;
        Ok(1)
    }

    async fn caught(&self) -> u64 {
        let failed = self.ctx.step("fails", async |_s| Err::<u64, _>(msg("no").permanent())).await;
        failed.map_or(7, |value| value)
    }

    /// Draws numbers, and has a step race a sleep.
    async fn look(&self) -> Result<u64> {
        self.note("random", self.ctx.random_u64());
        let limit = Duration::from_millis(self.dice.below(3_000, 5));
        select! {
            slept = self.ctx.sleep(limit) => slept.map(|()| 0),
            value = self.step() => value,
        }
    }
}

fn program(seen: &Seen) -> FnWorkflow<u64, u64> {
    let seen = seen.clone();
    workflow_fn("program", move |ctx: Ctx, seed: u64| {
        let dice = Dice { seed, place: 0 };
        let part = Part { ctx, seen: seen.clone(), dice, depth: 0 };
        async move { part.inner(0).play().await.and(part.inner(1).play().await) }
    })
}

/// Runs a program with crashes at random moments.
async fn run(seed: u64) {
    let world = World::new();
    let dice = Dice { seed, place: u64::MAX };
    let mut seen = Seen::default();
    let mut app = world.open(|b| b.register(program(&seen))).await;
    let mut handle = app.start(program(&seen), "t", seed).await.unwrap();
    let mut crashes = 0;
    for turn in 0.. {
        assert!(turn < 20_000, "seed {seed} does not come to an end");
        for _ in 0..dice.below(20, 10 * turn) {
            tokio::task::yield_now().await;
        }
        world.advance(Duration::from_millis(dice.below(400, 10 * turn + 1)));
        // No task runs from here to the crash: what was seen until now is durable.
        if handle.status().await.unwrap().status.is_closed() {
            break;
        }
        if crashes < 8 && dice.below(6, 10 * turn + 2) == 0 {
            let before = seen.all();
            let again = Seen::default();
            app = world.open(|b| b.register(program(&again))).await;
            handle = seen_by(&app, &handle).await;
            let mut looks = 0;
            while again.all().len() < before.len() {
                looks += 1;
                let status = handle.status().await.unwrap();
                let stands = (status.status, &status.blocks, again.all().len(), before.len());
                assert!(looks < 10_000, "seed {seed} is not where it was: {stands:?}");
                tokio::task::yield_now().await;
            }
            assert_eq!(again.all()[..before.len()], before, "seed {seed}");
            seen = again;
            crashes += 1;
        }
    }
    handle.result().soon().await.unwrap();
    let journal = journal(&handle).await;
    assert_eq!(journal.count("Blocked"), 0, "seed {seed}");
}

#[tokio::test]
async fn p13_b80_b81_random_programs_see_the_same_after_every_crash() {
    for seed in 0..150 {
        run(seed).await;
    }
}
