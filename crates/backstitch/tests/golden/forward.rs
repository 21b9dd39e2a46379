//! Scenes of the way forward.

use backstitch::{
    Ctx, Failure, FailureExt, Jitter, OnAbandon, Result, Retry, Status, Step, msg, select,
    workflow, workflow_fn,
};

use crate::scene::{Act, Gates, Move, Scene};
use crate::steps::{booking, did, gated};

pub fn scenes() -> Vec<Scene> {
    vec![three_steps(), retried(), raced(), blocked(), misfit()]
}

#[workflow]
async fn books_three(ctx: Ctx, name: String) -> Result<String> {
    let flight = booking(&ctx, "flight").await?;
    let hotel = booking(&ctx, "hotel").await?;
    let lot = ctx.random_u64() % 1_000;
    let car = booking(&ctx, &format!("car {lot}")).await?;
    Ok(format!("{name}: {flight}, {hotel}, {car} at {}", ctx.now()))
}

fn three_steps() -> Scene {
    Scene {
        name: "three_steps",
        about: "Three steps, one after the other, the last one named after a random number.",
        register: |b| b.register(books_three),
        start: |app, id| {
            Box::pin(async move {
                app.start(books_three, id, "Ada".to_owned()).by("the web page").await.unwrap();
            })
        },
        acts: vec![],
    }
}

#[workflow]
async fn retries(ctx: Ctx, _: ()) -> Result<String> {
    let retry = Retry::linear("1s").max_attempts(6).jitter(Jitter::None).permanent_on(["402"]);
    let flaky = ctx.step("flaky", async move |s| {
        did(&s);
        match s.attempt() {
            1 => Err(std::io::Error::other("connection reset").into()),
            2 => Err(msg("slow down").retry_after("30s")),
            _ => Ok("works at last".to_owned()),
        }
    });
    let flaky = flaky.retry(retry.clone()).await?;
    let hopeless: Step<()> = ctx.step("hopeless", async move |s| {
        did(&s);
        Err(msg("no money").with_code("402").with_details(&[1, 2]))
    });
    let failure: Failure = hopeless.retry(retry).await.expect_err("it has no hope");
    Ok(format!("{flaky}, and then {}", failure.code))
}

fn retried() -> Scene {
    Scene {
        name: "retried",
        about: "A step that succeeds at the third attempt, and one whose failure the code catches.",
        register: |b| b.register(retries),
        start: |app, id| Box::pin(async move { drop(app.start(retries, id, ()).await.unwrap()) }),
        acts: vec![],
    }
}

#[workflow]
async fn races(ctx: Ctx, _: ()) -> Result<String> {
    let (left, right) = backstitch::join!(
        booking(&ctx.branch("left"), "half"),
        booking(&ctx.branch("right"), "half")
    );
    let (both, settles) = ((left?, right?), OnAbandon::Settle);
    let winner = select! {
        fast = gated(&ctx, "fast") => fast?,
        slow = gated(&ctx, "slow").on_abandon(settles) => slow?,
    };
    booking(&ctx, &format!("after {winner}")).await?;
    Ok(format!("{both:?}, {winner}"))
}

fn raced() -> Scene {
    Scene {
        name: "raced",
        about: "Two steps at once, then two that race; the loser is undone before the success.",
        register: |b| b.register(races),
        start: |app, id| Box::pin(async move { drop(app.start(races, id, ()).await.unwrap()) }),
        acts: vec![
            Act {
                leaves: ("StepCancelRequested", 1),
                when: |status| [3, 4].iter().all(|ord| status.run.in_flight.contains(ord)),
                opens: &["fast"],
                what: Move::OpenGates,
            },
            Act {
                leaves: ("UndoStarted", 1),
                when: |status| status.run.asks.len() == 5,
                opens: &["slow"],
                what: Move::OpenGates,
            },
        ],
    }
}

#[workflow]
async fn calls(ctx: Ctx, _: ()) -> Result<String> {
    booking(&ctx, "before").await?;
    let call = ctx.step("call", async move |s| {
        did(&s);
        match s.state::<Gates>().is_open("repaired") {
            true => Ok("answered".to_owned()),
            false => Err(msg("no such key").attention()),
        }
    });
    call.await
}

fn blocked() -> Scene {
    Scene {
        name: "blocked",
        about: "A step that calls for a person, who repairs something and has it tried again.",
        register: |b| b.register(calls),
        start: |app, id| Box::pin(async move { drop(app.start(calls, id, ()).await.unwrap()) }),
        acts: vec![Act {
            leaves: ("StepRetryRequested", 1),
            when: |status| status.status == Status::Blocked,
            opens: &["repaired"],
            what: Move::Ask(|handle| handle.retry_step("call")),
        }],
    }
}

/// The workflow of `misfit`, with a first step of this name.
macro_rules! fits_only_as {
    ($first:literal) => {
        workflow_fn("misfit", |ctx: Ctx, (): ()| async move {
            let first = booking(&ctx, $first).await?;
            Ok(format!("{first}, {}", gated(&ctx, "second").await?))
        })
    };
}

fn misfit() -> Scene {
    Scene {
        name: "misfit",
        about: "Code that does not fit the journal takes over, and then the old code again.",
        register: |b| b.register(fits_only_as!("first")),
        start: |app, id| {
            Box::pin(async move { drop(app.start(fits_only_as!("first"), id, ()).await.unwrap()) })
        },
        acts: vec![
            Act {
                leaves: ("Blocked", 1),
                when: |status| status.run.in_flight.contains(&2),
                opens: &[],
                what: Move::TakeOver(|b| b.register(fits_only_as!("another"))),
            },
            Act {
                leaves: ("Unblocked", 1),
                when: |status| status.status == Status::Blocked,
                opens: &["second"],
                what: Move::TakeOver(|b| b.register(fits_only_as!("first"))),
            },
        ],
    }
}
