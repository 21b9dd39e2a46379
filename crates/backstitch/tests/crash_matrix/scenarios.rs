//! The workflows of the matrix, and what people do to them.

use backstitch::{
    Ctx, Failure, FailureExt, FnWorkflow, NoTimeout, OnAbandon, Result, Status, UndoOn, join, msg,
    race, select, workflow_fn,
};

use crate::outside::Outside;
use crate::steps::{apply, bare, effect, patient, refusal, reversed, undone_when, when};
use crate::world::{Deed, Scenario, Seen};

fn nobody(_: &Seen<'_>) -> Vec<Deed> {
    Vec::new()
}

/// A scenario whose code is always the same.
macro_rules! code {
    (|$ctx:ident| $body:expr) => {
        |_| -> FnWorkflow<(), String> {
            workflow_fn("scenario", |$ctx: Ctx, (): ()| async move { $body })
        }
    };
}

fn done() -> Result<String> {
    Ok("done".into())
}

pub fn all() -> Vec<Scenario> {
    let mut all = forward();
    all.extend(dropped());
    all.extend(back());
    all.extend(asked_for());
    all.extend(mended());
    all.extend(from_outside());
    all
}

/// Events and waits, deadlines, and a rollback after success.
fn from_outside() -> Vec<Scenario> {
    let in_order = code!(|ctx| {
        let mut taken = Vec::new();
        for name in ["a", "b", "c"] {
            taken.push(ctx.wait_event::<u64>("next", "a", NoTimeout).await?.to_string());
            effect(&ctx, name, 0).await?;
        }
        Ok(taken.join(" "))
    });
    let timed_out = code!(|ctx| {
        let first = ctx.wait_event::<u64>("first", "a", "1m").optional().await?;
        effect(&ctx, "a", 0).await?;
        let second = ctx.wait_event::<u64>("second", "a", "1h").optional().await?;
        Ok(format!("{first:?} {second:?}"))
    });
    let loser = code!(|ctx| {
        let first = select! {
            a = ctx.wait_event::<u64>("a", "a", NoTimeout) => a?,
            b = ctx.wait_event::<u64>("b", "b", NoTimeout) => b?,
        };
        effect(&ctx, "a", 0).await?;
        let rest = ctx.wait_any_event("rest", ["a", "b"], NoTimeout).await?;
        Ok(format!("{} then {}", if first == 1 { "a" } else { "b" }, rest.event_type()))
    });
    let asleep = code!(|ctx| {
        effect(&ctx, "a", 0).await?;
        ctx.sleep("10h").await?;
        effect(&ctx, "b", 0).await
    });
    let published = code!(|ctx| {
        for name in ["a", "b", "c"] {
            ctx.publish("part", name)?;
            ctx.set_attribute("Part", name)?;
            if ctx.patched("better") {
                effect(&ctx, name, 0).await?;
            }
        }
        done()
    });
    let two = code!(|ctx| {
        effect(&ctx, "a", 0).await?;
        effect(&ctx, "b", 0).await
    });
    let send_three = |seen: &Seen<'_>| match seen.run.inbox_read + 1 {
        next @ 1..=3 => vec![Deed::Send("a", next)],
        _ => vec![],
    };
    vec![
        Scenario::new("events in order", in_order, send_three),
        Scenario::new("a wait that times out", timed_out, |seen: &Seen<'_>| {
            match seen.run.waits.contains(&3) {
                true => vec![Deed::Send("a", 7)],
                false => vec![],
            }
        }),
        Scenario::new("the wait that lost", loser, |seen: &Seen<'_>| match seen.run.inbox_read {
            0 => vec![Deed::Send("b", 2)],
            _ => vec![Deed::Send("a", 1)],
        }),
        Scenario::new("deadline", asleep, nobody).deadline("1h"),
        Scenario::new("published and patched", published, nobody),
        Scenario::new("rolled back after success", two, |seen: &Seen<'_>| match seen.status {
            Status::Succeeded => vec![Deed::Rollback],
            _ => vec![],
        }),
    ]
}

fn forward() -> Vec<Scenario> {
    let sequence = code!(|ctx| {
        for name in ["a", "b", "c"] {
            effect(&ctx, name, 0).await?;
        }
        done()
    });
    let parallel_join = code!(|ctx| {
        let (a, b, c) = join!(effect(&ctx, "a", 9), effect(&ctx, "b", 3), effect(&ctx, "c", 6));
        Ok(format!("{} {} {} {}", a?, b?, c?, effect(&ctx, "d", 0).await?))
    });
    let sleep = code!(|ctx| {
        effect(&ctx, "a", 0).await?;
        ctx.sleep("1h").await?;
        effect(&ctx, "b", 0).await
    });
    let retry_with_delay = code!(|ctx| {
        let flaky = ctx.step("flaky", async |s| {
            let _at_work = s.state::<Outside>().body(&s);
            if s.attempt() < 3 { Err(msg("once more")) } else { apply(&s) }
        });
        flaky.rollback(reversed).retry(patient()).await?;
        effect(&ctx, "a", 0).await
    });
    let caught_error = code!(|ctx| {
        effect(&ctx, "a", 0).await?;
        if let Err(caught) = refusal(&ctx).await {
            effect(&ctx, "b", 0).await?;
            return Ok(caught.to_string());
        }
        done()
    });
    vec![
        Scenario::new("sequence", sequence, nobody),
        Scenario::new("parallel join", parallel_join, nobody),
        Scenario::new("sleep", sleep, nobody),
        Scenario::new("retry with a delay", retry_with_delay, nobody),
        Scenario::new("caught error", caught_error, nobody),
    ]
}

fn dropped() -> Vec<Scenario> {
    let race_with_a_loser = code!(|ctx| {
        let (_, winner) = race([effect(&ctx, "quick", 0), when(&ctx, "slow", "go on")]).await;
        effect(&ctx, "then", 0).await?;
        winner
    });
    let timeout_around_a_step = code!(|ctx| {
        effect(&ctx, "a", 0).await?;
        select! {
            slow = when(&ctx, "slow", "never").on_abandon(OnAbandon::Cancel) => slow,
            over = ctx.sleep("1m") => { over?; effect(&ctx, "b", 0).await }
        }
    });
    vec![
        Scenario::new("race with a loser", race_with_a_loser, |seen: &Seen<'_>| {
            match seen.status {
                Status::RollingBack => vec![Deed::Raise("go on")],
                _ => vec![],
            }
        }),
        Scenario::new("timeout around a step", timeout_around_a_step, nobody),
    ]
}

/// The first failure drops the other, as with `try_join`.
async fn both(
    a: impl Future<Output = Result<String>>,
    b: impl Future<Output = Result<String>>,
) -> Result<String> {
    let (mut a, mut b) = (std::pin::pin!(a), std::pin::pin!(b));
    select! {
        a = &mut a => { a?; b.await }
        b = &mut b => { b?; a.await }
    }
}

fn back() -> Vec<Scenario> {
    let refused = code!(|ctx| {
        effect(&ctx, "a", 0).await?;
        effect(&ctx, "b", 0).await?;
        refusal(&ctx).await
    });
    let failing_sibling = code!(|ctx| {
        effect(&ctx, "a", 0).await?;
        both(effect(&ctx, "slow", 40), refusal(&ctx)).await
    });
    let two_ends_at_once = code!(|ctx| {
        let chain = async {
            effect(&ctx, "a", 0).await?;
            effect(&ctx, "b", 0).await
        };
        both(chain, refusal(&ctx)).await
    });
    let two_failures_at_once = code!(|ctx| {
        effect(&ctx, "a", 0).await?;
        let no = effect(&ctx, "b", 0);
        both(async { both(no, refusal(&ctx)).await }, refusal(&ctx.branch("other"))).await
    });
    let undo_on_success = code!(|ctx| {
        effect(&ctx, "a", 0).await?;
        let passed_over = ctx.step("no", async |s| {
            let _at_work = s.state::<Outside>().body(&s);
            Err::<String, Failure>(msg("no").permanent())
        });
        passed_over.rollback(reversed).undo_on(UndoOn::Succeeded).retry(patient()).await
    });
    let undo_panics_once = code!(|ctx| {
        effect(&ctx, "a", 0).await?;
        let shaky = bare(&ctx, "b", 0).rollback(async |u| {
            u.state::<Outside>().undo(&u);
            if !u.state::<Outside>().is_up("panicked") {
                u.state::<Outside>().raise("panicked");
                panic!("not the first time");
            }
            reversed(u).await
        });
        shaky.await?;
        refusal(&ctx).await
    });
    vec![
        Scenario::new("refused", refused, nobody),
        Scenario::new("failing sibling", failing_sibling, nobody),
        Scenario::new("two ends at once", two_ends_at_once, nobody),
        Scenario::new("two failures at once", two_failures_at_once, nobody),
        Scenario::new("undo on success", undo_on_success, nobody),
        Scenario::new("undo panics once", undo_panics_once, nobody),
    ]
}

fn asked_for() -> Vec<Scenario> {
    let held = code!(|ctx| {
        effect(&ctx, "a", 0).await?;
        when(&ctx, "b", "go on").await
    });
    let asleep = code!(|ctx| {
        effect(&ctx, "a", 0).await?;
        when(&ctx, "b", "go on").await?;
        ctx.sleep("1h").await?;
        effect(&ctx, "c", 0).await
    });
    let slow_undo = code!(|ctx| {
        effect(&ctx, "a", 0).await?;
        undone_when(&ctx, "b", "go on").await?;
        effect(&ctx, "c", 0).await?;
        refusal(&ctx).await
    });
    vec![
        Scenario::new("cancel", held, |seen: &Seen<'_>| match seen.status {
            Status::RollingBack => vec![Deed::Raise("go on")],
            _ if seen.outside.has_begun("b") => vec![Deed::Cancel],
            _ => vec![],
        }),
        Scenario::new("terminate", asleep, |seen: &Seen<'_>| match seen.status {
            _ if seen.outside.has_begun("b") => vec![Deed::Terminate],
            _ => vec![],
        }),
        Scenario::new("cancel during the rollback", slow_undo, |seen: &Seen<'_>| {
            match seen.outside.has_begun("undo b") {
                true => vec![Deed::Cancel, Deed::Terminate, Deed::Raise("go on")],
                false => vec![],
            }
        }),
        Scenario::new("pause during the rollback", slow_undo, |seen: &Seen<'_>| {
            match (seen.status, seen.outside.has_begun("undo b")) {
                (Status::Paused, _) => vec![Deed::Resume, Deed::Raise("go on")],
                (_, true) => vec![Deed::Pause, Deed::Raise("go on")],
                (_, false) => vec![],
            }
        }),
    ]
}

/// Three effects, the undo of the second one fails until the flag `mended` is up.
fn broken_undo() -> FnWorkflow<(), String> {
    workflow_fn("scenario", |ctx: Ctx, (): ()| async move {
        effect(&ctx, "a", 0).await?;
        let broken = bare(&ctx, "b", 0).rollback(async |u| {
            u.state::<Outside>().undo(&u);
            if !u.state::<Outside>().is_up("mended") {
                return Err(msg("broken").permanent());
            }
            reversed(u).await
        });
        broken.await?;
        effect(&ctx, "c", 0).await?;
        refusal(&ctx).await
    })
}

/// The second deployment has forgotten step c.
fn forgetful(process: u32) -> FnWorkflow<(), String> {
    workflow_fn("scenario", move |ctx: Ctx, (): ()| async move {
        effect(&ctx, "a", 0).await?;
        effect(&ctx, "b", 0).await?;
        if process != 2 {
            effect(&ctx, "c", 0).await?;
        }
        refusal(&ctx).await
    })
}

fn mended() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "undo retried",
            |_| broken_undo(),
            |seen: &Seen<'_>| match seen.status {
                Status::Stuck => vec![Deed::Raise("mended"), Deed::RetryUndo("b".into())],
                _ => vec![],
            },
        ),
        Scenario::new(
            "undo waived",
            |_| broken_undo(),
            |seen: &Seen<'_>| match seen.status {
                Status::Stuck => vec![Deed::WaiveUndo("b".into())],
                _ => vec![],
            },
        ),
        Scenario::new("changed code", forgetful, |seen: &Seen<'_>| {
            match (seen.process, seen.status) {
                (2, Status::Blocked | Status::Stuck) => vec![Deed::Redeploy],
                (3.., Status::Stuck) => vec![Deed::RetryUndo("c".into())],
                _ => vec![],
            }
        }),
    ]
}
