//! Three steps in a row: each way to end at each of them, times each way that an undo can go.

use backstitch::{Ctx, FailureExt, FnWorkflow, Status, Step, msg, workflow_fn};

use crate::outside::Outside;
use crate::steps::{bare, bare_when, patient, reversed};
use crate::world::{Deed, PAYLOAD_BYTES_MAX, Scenario, Seen};

const STEPS: [&str; 3] = ["s0", "s1", "s2"];

/// What happens at one of the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// Its body says no.
    Refused,
    /// The workflow panics behind it.
    Panics,
    /// Its output cannot be stored.
    Poison,
    Cancelled,
    Terminated,
}

/// What the undo of the first step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Undo {
    Works,
    /// Once, for good; then an operator has it tried again.
    Fails,
    /// Once.
    Panics,
    /// Once, and is dropped by its timeout.
    Hangs,
}

/// All of them.
pub fn all() -> Vec<Scenario> {
    let mut all = Vec::new();
    for at in 0..STEPS.len() {
        for ends in [Ends::Refused, Ends::Panics, Ends::Poison, Ends::Cancelled, Ends::Terminated] {
            for undo in [Undo::Works, Undo::Fails, Undo::Panics, Undo::Hangs] {
                let name = format!("{ends:?} at step {at}, the undo {undo:?}");
                let deeds = move |seen: &Seen<'_>| deeds(seen, at, ends);
                all.push(Scenario::new(name, move |_| saga(at, ends, undo), deeds));
            }
        }
    }
    all
}

fn saga(at: usize, ends: Ends, undo: Undo) -> FnWorkflow<(), String> {
    workflow_fn("saga", move |ctx: Ctx, (): ()| async move {
        for (i, name) in STEPS.into_iter().enumerate() {
            let step = if i == at { last(&ctx, name, ends) } else { bare(&ctx, name, 0) };
            let step = if i == 0 { undone(step, undo) } else { step.rollback(reversed) };
            step.await?;
            assert!(i != at || ends != Ends::Panics, "by order");
        }
        Ok("done".to_owned())
    })
}

/// The step at which it ends.
fn last(ctx: &Ctx, name: &str, ends: Ends) -> Step<String> {
    match ends {
        Ends::Panics => bare(ctx, name, 0),
        Ends::Cancelled | Ends::Terminated => bare_when(ctx, name, "go on"),
        Ends::Refused | Ends::Poison => ctx
            .step(name, async move |s| {
                let _at_work = s.state::<Outside>().body(&s);
                if ends == Ends::Refused {
                    return Err(msg("no").permanent());
                }
                // It has its effect, and then an output that is too large.
                s.state::<Outside>().apply(&s.idempotency_key(), s.name())?;
                Ok("x".repeat(PAYLOAD_BYTES_MAX + 1))
            })
            .retry(patient())
            .rollback_retry(patient()),
    }
}

fn undone(step: Step<String>, undo: Undo) -> Step<String> {
    let step = step.rollback_timeout("1m");
    step.rollback(async move |u| {
        let outside = u.state::<Outside>().clone();
        let first = !outside.is_up("once");
        outside.undo(&u);
        match undo {
            Undo::Fails if first => return Err(msg("broken").permanent()),
            Undo::Panics | Undo::Hangs if first => outside.raise("once"),
            Undo::Works | Undo::Fails | Undo::Panics | Undo::Hangs => {}
        }
        assert!(!(first && undo == Undo::Panics), "not the first time");
        if first && undo == Undo::Hangs {
            std::future::pending::<()>().await;
        }
        reversed(u).await
    })
}

fn deeds(seen: &Seen<'_>, at: usize, ends: Ends) -> Vec<Deed> {
    match (seen.status, ends) {
        (Status::Stuck, _) => vec![Deed::Raise("once"), Deed::RetryUndo("s0".into())],
        (Status::RollingBack, Ends::Cancelled) => vec![Deed::Raise("go on")],
        (_, Ends::Cancelled) if seen.outside.has_begun(STEPS[at]) => vec![Deed::Cancel],
        (_, Ends::Terminated) if seen.outside.has_begun(STEPS[at]) => vec![Deed::Terminate],
        _ => vec![],
    }
}
