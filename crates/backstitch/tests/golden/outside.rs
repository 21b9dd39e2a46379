//! Scenes of what comes from outside, and of what is seen there.

use std::time::Duration;

use backstitch::{Ctx, NoTimeout, Result, Status, select, workflow};

use crate::scene::{Act, Move, Scene};
use crate::steps::{booking, gated};

pub fn scenes() -> Vec<Scene> {
    vec![told(), paused(), noted()]
}

#[workflow]
async fn listens(ctx: Ctx, _: ()) -> Result<Vec<String>> {
    let mut heard = Vec::new();
    heard.push(ctx.wait_event("first", "word", NoTimeout).await?);
    let second: Option<String> = ctx.wait_event("second", "word", "1m").optional().await?;
    heard.push(second.unwrap_or_else(|| "nothing".into()));
    heard.push(ctx.wait_event("third", "word", "1h").await?);
    heard.push(select! {
        verdict = ctx.wait_any_event("verdict", ["yes", "no"], NoTimeout) => verdict?.decode()?,
        _ = ctx.sleep("1h") => "too late".to_owned(),
    });
    heard.push(select! {
        word = ctx.wait_event("never", "word", NoTimeout) => word?,
        _ = ctx.sleep("10s") => "silence".to_owned(),
    });
    Ok(heard)
}

fn told() -> Scene {
    Scene {
        name: "told",
        about: "Waits: one gets an event, one times out, one gets the next, one beats a sleep, one \
                is beaten by one.",
        register: |b| b.register(listens),
        start: |app, id| Box::pin(async move { drop(app.start(listens, id, ()).await.unwrap()) }),
        acts: vec![
            Act {
                leaves: ("WaitSatisfied", 1),
                when: |status| status.run.waits.contains(&1),
                opens: &[],
                what: Move::Tell("word", "hello"),
            },
            Act {
                leaves: ("WaitTimedOut", 1),
                when: |status| status.run.waits.contains(&2),
                opens: &[],
                what: Move::LetItTimeOut,
            },
            Act {
                leaves: ("WaitSatisfied", 2),
                when: |status| status.run.waits.contains(&3),
                opens: &[],
                what: Move::Tell("word", "there"),
            },
            Act {
                leaves: ("WaitSatisfied", 3),
                when: |status| status.run.waits.contains(&4),
                opens: &[],
                what: Move::Tell("no", "refused"),
            },
        ],
    }
}

#[workflow]
async fn is_paused(ctx: Ctx, _: ()) -> Result<String> {
    let held = gated(&ctx, "held").await?;
    ctx.sleep(Duration::from_secs(3_600)).await?;
    Ok(format!("{held}, {}", booking(&ctx, "last").await?))
}

fn paused() -> Scene {
    Scene {
        name: "paused",
        about: "Paused under a body, whose outcome is shown after the resume; then paused in a \
                sleep, which is as much longer.",
        register: |b| b.register(is_paused),
        start: |app, id| Box::pin(async move { drop(app.start(is_paused, id, ()).await.unwrap()) }),
        acts: vec![
            Act {
                leaves: ("PauseRequested", 1),
                when: |status| status.run.in_flight.contains(&1),
                opens: &[],
                what: Move::Ask(|handle| handle.pause()),
            },
            Act {
                leaves: ("StepSucceeded", 1),
                when: |status| status.run.pause.is_some(),
                opens: &["held"],
                what: Move::OpenGates,
            },
            Act {
                leaves: ("Resumed", 1),
                when: |status| status.status == Status::Paused,
                opens: &[],
                what: Move::Ask(|handle| handle.resume()),
            },
            Act {
                leaves: ("PauseRequested", 2),
                when: |status| status.run.asks.len() == 2,
                opens: &[],
                what: Move::Ask(|handle| handle.pause()),
            },
            Act {
                leaves: ("Resumed", 2),
                when: |status| status.status == Status::Paused,
                opens: &[],
                what: Move::AskLater(|handle| handle.resume().shift_timers()),
            },
        ],
    }
}

#[workflow]
async fn notes(ctx: Ctx, _: ()) -> Result<String> {
    ctx.publish("progress", &0.5)?;
    ctx.set_attribute("Stage", "begun")?;
    let way = if ctx.patched("better") { "new" } else { "old" };
    let id = ctx.uuid();
    let word: String = ctx.wait_event("word", "word", NoTimeout).await?;
    ctx.publish("progress", &1)?;
    ctx.remove_attribute("Stage")?;
    Ok(format!("the {way} way, {id}, {word}"))
}

fn noted() -> Scene {
    Scene {
        name: "noted",
        about: "What the code says without waiting: published values, attributes, a patch. A resume \
                of what is not paused is refused.",
        register: |b| b.register(notes),
        start: |app, id| {
            Box::pin(async move {
                let start = app.start(notes, id, ()).attribute("Customer", "c-7");
                start.deadline("1 day").retention("1h").await.unwrap();
            })
        },
        acts: vec![
            Act {
                leaves: ("VerbRefused", 1),
                when: |status| status.status == Status::Suspended,
                opens: &[],
                what: Move::Ask(|handle| handle.resume()),
            },
            Act {
                leaves: ("AttributesSet", 3),
                when: |status| status.status == Status::Suspended,
                opens: &[],
                what: Move::Ask(|handle| handle.set_attributes([("Weight", 1.5)])),
            },
            Act {
                leaves: ("WaitSatisfied", 1),
                when: |status| status.status == Status::Suspended,
                opens: &[],
                what: Move::Tell("word", "go"),
            },
        ],
    }
}
