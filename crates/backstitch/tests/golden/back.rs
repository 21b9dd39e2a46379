//! Scenes of the way back.

use backstitch::{Ctx, FailureExt, Jitter, Result, Retry, Status, Step, UndoOn, msg, workflow};

use crate::scene::{Act, Gates, Move, Scene};
use crate::steps::{booking, did, gated, undone};

pub fn scenes() -> Vec<Scene> {
    vec![
        rolled_back(),
        cancelled(),
        undo_mended(),
        undo_waived(),
        undone_after_success(),
        killed(),
        terminated(),
        late(),
    ]
}

/// A step to which the business says no.
fn refusal(ctx: &Ctx) -> Step<()> {
    ctx.step("refusal", async move |s| {
        did(&s);
        Err(msg("the card was declined").permanent().with_code("declined").with_details(&"limit"))
    })
}

#[workflow]
async fn is_refused(ctx: Ctx, _: ()) -> Result<()> {
    booking(&ctx, "flight").await?;
    let hotel = ctx.step("hotel", async move |s| {
        did(&s);
        Ok("hotel".to_owned())
    });
    let hotel = hotel.rollback(async move |u| match u.attempt() {
        1 => Err(msg("the hotel does not answer")),
        _ => undone(u).await,
    });
    hotel.rollback_retry(Retry::constant("5s").jitter(Jitter::None)).await?;
    booking(&ctx, "car").await?;
    refusal(&ctx).await
}

fn rolled_back() -> Scene {
    Scene {
        name: "rolled_back",
        about: "A permanent failure after three steps; all are undone, one at the second attempt.",
        register: |b| b.register(is_refused),
        start: |app, id| {
            Box::pin(async move { drop(app.start(is_refused, id, ()).await.unwrap()) })
        },
        acts: vec![],
    }
}

#[workflow]
async fn works_at_once(ctx: Ctx, _: ()) -> Result<()> {
    booking(&ctx, "before").await?;
    let idle = ctx.step("idle", async move |s| {
        did(&s);
        s.state::<Gates>().pass("never").await;
        Ok(())
    });
    // One ends after the other, so that they stand in the journal in this order.
    let settles = ctx.step("settles", async move |s| {
        did(&s);
        s.state::<Gates>().pass("settles").await;
        s.state::<Gates>().open("fruitless");
        Ok("settles".to_owned())
    });
    let settles = settles.rollback(undone);
    let fruitless = ctx.step("fruitless", async move |s| {
        did(&s);
        s.state::<Gates>().pass("fruitless").await;
        Err::<String, _>(msg("nothing was left").permanent())
    });
    let fruitless = fruitless.rollback(undone).undo_on(UndoOn::Succeeded);
    let (settles, idle, fruitless, slept) =
        backstitch::join!(settles, idle, fruitless, ctx.sleep("1h"));
    settles.and(fruitless).and(Ok(()).and(idle)).and(slept)
}

fn cancelled() -> Scene {
    Scene {
        name: "cancelled",
        about: "Cancelled under three bodies: one is dropped, two settle and are undone if need be.",
        register: |b| b.register(works_at_once),
        start: |app, id| {
            Box::pin(async move { drop(app.start(works_at_once, id, ()).await.unwrap()) })
        },
        acts: vec![
            Act {
                leaves: ("RollbackStarted", 1),
                when: |status| [2, 3, 4].iter().all(|ord| status.run.in_flight.contains(ord)),
                opens: &[],
                what: Move::Ask(|handle| handle.cancel()),
            },
            Act {
                leaves: ("UndoSucceeded", 1),
                when: |status| status.status == Status::RollingBack,
                opens: &["settles"],
                what: Move::OpenGates,
            },
        ],
    }
}

#[workflow]
async fn undo_breaks(ctx: Ctx, _: ()) -> Result<()> {
    booking(&ctx, "flight").await?;
    let hotel = ctx.step("hotel", async move |s| {
        did(&s);
        Ok("hotel".to_owned())
    });
    let hotel = hotel.rollback(async move |u| match u.state::<Gates>().is_open("mended") {
        true => undone(u).await,
        false => Err(msg("the hotel is closed").permanent()),
    });
    hotel.await?;
    booking(&ctx, "car").await?;
    refusal(&ctx).await
}

fn undo_mended() -> Scene {
    Scene {
        name: "undo_mended",
        about: "An undo that failed for good, and that an operator has tried again.",
        register: |b| b.register(undo_breaks),
        start: |app, id| {
            Box::pin(async move { drop(app.start(undo_breaks, id, ()).await.unwrap()) })
        },
        acts: vec![Act {
            leaves: ("UndoRetryRequested", 1),
            when: |status| status.status == Status::Stuck,
            opens: &["mended"],
            what: Move::Ask(|handle| handle.retry_undo("hotel")),
        }],
    }
}

fn undo_waived() -> Scene {
    Scene {
        name: "undo_waived",
        about: "An undo that failed for good, and that an operator takes off the debts.",
        register: |b| b.register(undo_breaks),
        start: |app, id| {
            Box::pin(async move { drop(app.start(undo_breaks, id, ()).await.unwrap()) })
        },
        acts: vec![Act {
            leaves: ("UndoWaived", 1),
            when: |status| status.status == Status::Stuck,
            opens: &[],
            what: Move::Ask(|handle| handle.waive_undo("hotel")),
        }],
    }
}

#[workflow]
async fn succeeds(ctx: Ctx, _: ()) -> Result<String> {
    let flight = booking(&ctx, "flight").await?;
    Ok(format!("{flight}, {}", booking(&ctx, "hotel").await?))
}

fn undone_after_success() -> Scene {
    Scene {
        name: "undone_after_success",
        about: "Rolled back on request after it had succeeded.",
        register: |b| b.register(succeeds),
        start: |app, id| Box::pin(async move { drop(app.start(succeeds, id, ()).await.unwrap()) }),
        acts: vec![Act {
            leaves: ("RollbackStarted", 1),
            when: |status| status.status == Status::Succeeded,
            opens: &[],
            what: Move::Ask(|handle| handle.rollback()),
        }],
    }
}

#[workflow]
async fn gets_stuck(ctx: Ctx, _: ()) -> Result<String> {
    booking(&ctx, "flight").await?;
    booking(&ctx, "hotel").await?;
    gated(&ctx, "car").await
}

fn killed() -> Scene {
    Scene {
        name: "killed",
        about: "Killed under a body, with three debts left.",
        register: |b| b.register(gets_stuck),
        start: |app, id| {
            Box::pin(async move { drop(app.start(gets_stuck, id, ()).await.unwrap()) })
        },
        acts: vec![Act {
            leaves: ("ExecutionKilled", 1),
            when: |status| status.run.in_flight.contains(&3),
            opens: &[],
            what: Move::Ask(|handle| handle.kill()),
        }],
    }
}

fn terminated() -> Scene {
    Scene {
        name: "terminated",
        about: "The process dies under a body; its second attempt is stopped by a terminate.",
        register: |b| b.register(gets_stuck),
        start: |app, id| {
            Box::pin(async move { drop(app.start(gets_stuck, id, ()).await.unwrap()) })
        },
        acts: vec![
            Act {
                leaves: ("StepAttemptFailed", 1),
                when: |status| status.run.in_flight.contains(&3),
                opens: &[],
                what: Move::TakeOver(|b| b.register(gets_stuck)),
            },
            Act {
                leaves: ("RollbackStarted", 1),
                when: |status| status.run.in_flight.contains(&3),
                opens: &[],
                what: Move::Ask(|handle| handle.terminate()),
            },
        ],
    }
}

#[workflow]
async fn sleeps_long(ctx: Ctx, _: ()) -> Result<()> {
    booking(&ctx, "flight").await?;
    ctx.sleep("10h").await
}

fn late() -> Scene {
    Scene {
        name: "late",
        about: "Its deadline passes while it sleeps.",
        register: |b| b.register(sleeps_long),
        start: |app, id| {
            Box::pin(async move {
                app.start(sleeps_long, id, ()).deadline("1h").await.unwrap();
            })
        },
        acts: vec![],
    }
}
