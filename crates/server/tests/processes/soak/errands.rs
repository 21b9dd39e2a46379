//! The workflow of the soak, and what each execution of it must have done outside.

use std::time::Duration;

use backstitch::{Ctx, FailureExt, NoTimeout, Result, Step, StepCtx, msg, workflow};

use crate::effects::{Effect, Effects};

/// How long slow bodies take: so long that whoever ends a worker hits some of them.
const WORK: Duration = Duration::from_millis(200);

/// What becomes of an execution: the first word of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Succeeds,
    /// Fails after two steps, which are undone; the second undo takes its time.
    Fails,
    Sleeps,
    /// Waits for an event.
    Waits,
    /// Is in the middle of a step for some time.
    Works,
}

impl Kind {
    pub const ALL: [Kind; 5] =
        [Kind::Succeeds, Kind::Fails, Kind::Sleeps, Kind::Waits, Kind::Works];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Succeeds => "succeeds",
            Kind::Fails => "fails",
            Kind::Sleeps => "sleeps",
            Kind::Waits => "waits",
            Kind::Works => "works",
        }
    }

    /// How an execution of this kind ends.
    pub fn status(self) -> &'static str {
        match self {
            Kind::Fails => "failed",
            Kind::Succeeds | Kind::Sleeps | Kind::Waits | Kind::Works => "succeeded",
        }
    }

    /// What is done outside, in the order in which it is done first.
    pub fn effects(self) -> &'static [&'static str] {
        match self {
            Kind::Fails => &["book", "pay", "unpay", "unbook"],
            Kind::Succeeds | Kind::Sleeps | Kind::Waits | Kind::Works => &["book", "pay"],
        }
    }

    fn of(id: &str) -> Kind {
        let is = |kind: &Kind| id.split('-').next() == Some(kind.name());
        Kind::ALL.into_iter().find(is).expect("the id begins with a kind")
    }
}

#[workflow(events("go"))]
pub async fn errand(ctx: Ctx, id: String) -> Result<String> {
    let kind = Kind::of(&id);
    step(&ctx, "book", "unbook", &id, Duration::ZERO).await?;
    match kind {
        Kind::Sleeps => ctx.sleep("200ms").await?,
        Kind::Waits => {
            ctx.publish("stage", &1)?;
            ctx.wait_event::<String>("go", "go", NoTimeout).await?;
        }
        Kind::Succeeds | Kind::Fails | Kind::Works => {}
    }
    let takes = if kind == Kind::Works { WORK } else { Duration::ZERO };
    step(&ctx, "pay", "unpay", &id, takes).await?;
    match kind {
        Kind::Fails => Err(msg("no").permanent()),
        Kind::Succeeds | Kind::Sleeps | Kind::Waits | Kind::Works => Ok(id),
    }
}

/// A step with its undo. Each has its effect first, and may die before that is recorded.
fn step(
    ctx: &Ctx,
    does: &'static str,
    undoes: &'static str,
    id: &str,
    takes: Duration,
) -> Step<()> {
    let (of, undo_of) = (id.to_owned(), id.to_owned());
    let step = ctx.step(does, async move |s: StepCtx| {
        s.state::<Effects>().add(does, &of, &s.idempotency_key().to_string(), s.fence());
        // tidy: allow-sleep a body that takes its time
        tokio::time::sleep(takes).await;
        Ok(())
    });
    step.rollback(async move |u| {
        let key = u.idempotency_key().to_string();
        u.state::<Effects>().add(undoes, &undo_of, &key, u.fence());
        // tidy: allow-sleep as above
        tokio::time::sleep(if undoes == "unpay" { WORK } else { Duration::ZERO }).await;
        Ok(())
    })
}

/// Checks what an execution has done, as it was seen outside. Says how often something was done again.
pub fn check(id: &str, kind: Kind, seen: &[Effect]) -> usize {
    let mut firsts: Vec<&Effect> = Vec::new();
    for effect in seen {
        if firsts.iter().all(|first| first.what != effect.what) {
            firsts.push(effect);
        }
    }
    let order: Vec<&str> = firsts.iter().map(|first| first.what.as_str()).collect();
    assert_eq!(order, kind.effects(), "{id}: {seen:?}");
    for first in &firsts {
        let same = seen.iter().filter(|effect| effect.what == first.what);
        assert!(same.clone().all(|effect| effect.key == first.key), "{id}, another key: {seen:?}");
        // What was begun again had been lost, with a worker.
        let mut fences: Vec<u64> = same.map(|effect| effect.fence).collect();
        let times = fences.len();
        fences.sort_unstable();
        fences.dedup();
        assert_eq!(fences.len(), times, "{id}, twice under one fence: {seen:?}");
    }
    seen.len() - firsts.len()
}
