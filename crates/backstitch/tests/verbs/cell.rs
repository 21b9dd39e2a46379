//! One cell of the table: the answer, its repetition, and what is left behind.

use backstitch::core::id::RunId;
use backstitch::{Error, ErrorKind, Status, VerbAnswer};

use crate::follow::follow;
use crate::scene::{On, Scene};
use crate::stage::checked;
use crate::table::{Ask, Cell, expected};
use crate::world::until;

/// The answer to whatever was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Verb(VerbAnswer),
    /// The number of the event, and when it was accepted.
    Event(u64, i64),
    Run(RunId),
    Deleted,
}

/// Asks, in the name of Ada. `step` is for those that are about one.
pub async fn ask(scene: &Scene, ask: Ask, step: &str) -> Result<Said, Error> {
    let handle = &scene.handle;
    let request_id = format!("request about {step}");
    let verb = match ask {
        Ask::Event => {
            let event = handle.send_event("news", &1).id(request_id).by("Ada").await?;
            return Ok(Said::Event(event.number, event.accepted_at_us));
        }
        Ask::Delete => {
            handle.delete().by("Ada").await?;
            return Ok(Said::Deleted);
        }
        Ask::Restart => {
            let again = handle.restart().by("Ada").request_id(request_id).await?;
            return Ok(Said::Run(again.run_id()));
        }
        Ask::Cancel => handle.cancel(),
        Ask::Terminate => handle.terminate(),
        Ask::Rollback => handle.rollback(),
        Ask::Kill => handle.kill(),
        Ask::Pause => handle.pause(),
        Ask::Resume => handle.resume(),
        Ask::RetryStep => handle.retry_step(step),
        Ask::RetryUndo => handle.retry_undo(step),
        Ask::WaiveUndo => handle.waive_undo(step),
        Ask::SetAttributes => handle.set_attributes([("Mood", "calm")]),
    };
    Ok(Said::Verb(verb.by("Ada").reason("because").request_id(request_id).await?))
}

/// The steps about which a verb is accepted, and those about which it is refused. A verb that is
/// about the execution has one without a name.
struct Cases {
    accepted: &'static [&'static str],
    refused: &'static [&'static str],
}

fn cases(cell: Cell, on: On) -> Cases {
    let (accepted, refused): (&[&str], &[&str]) = match cell {
        Cell::Yes | Cell::NoChange => (&["car"], &[]),
        Cell::Refused => (&[], &["car"]),
        Cell::BlockedSteps => (&["call"], &["car"]),
        Cell::FailedUndos => (&["car"], &["hotel", "flight"]),
        Cell::FailedOrNotStarted => match on {
            On::Stuck => (&["car"], &["hotel", "flight"]),
            _ => (&["car", "flight"], &["hotel"]),
        },
        Cell::AfterSuccess => match on {
            On::Succeeded => (&["car"], &[]),
            _ => (&[], &["car"]),
        },
        Cell::OpenMatters => match on {
            On::Killed => (&["car", "hotel", "flight"], &[]),
            _ => (&[], &["car"]),
        },
        Cell::NothingOpen => match on {
            On::Killed => (&[], &["car"]),
            _ => (&["car"], &[]),
        },
    };
    Cases { accepted, refused }
}

/// Whether the sender is told that it changes something.
fn changes(cell: Cell) -> Option<VerbChange> {
    match cell {
        Cell::NoChange => Some(VerbChange::No),
        Cell::Yes
        | Cell::BlockedSteps
        | Cell::FailedUndos
        | Cell::FailedOrNotStarted
        | Cell::AfterSuccess
        | Cell::OpenMatters
        | Cell::NothingOpen => Some(VerbChange::Yes),
        Cell::Refused => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VerbChange {
    Yes,
    No,
}

/// Words of the message of a refusal that say where to go on.
fn way_out(asked: Ask, on: On, step: &str) -> &'static str {
    let closed = match on {
        On::Succeeded => "roll it back",
        _ => "restart it to do it over",
    };
    match (asked, on) {
        (Ask::Delete, On::Killed) => "waive them",
        (Ask::Delete | Ask::Restart, On::Stuck) => "retry or waive its failed undos, or kill it",
        (Ask::Delete | Ask::Restart, _) => "wait for its end",
        (Ask::Rollback, On::Killed) => "waived",
        (Ask::WaiveUndo, _) if on.status().is_closed() => "nothing is left to waive",
        (_, _) if on.status().is_closed() => closed,
        (Ask::Event | Ask::RetryStep, On::RollingBack | On::PausedRollingBack | On::Stuck) => {
            "restart it when it is closed"
        }
        (Ask::Pause, On::Stuck) => "retry or waive",
        (Ask::RetryStep, On::Blocked | On::Paused) => "these are: 4 (call#1)",
        (Ask::RetryStep, _) => "these are: none",
        (Ask::RetryUndo | Ask::WaiveUndo, _) if on.is_forward() => "cancel it",
        (Ask::RetryUndo, _) => "these steps have: 3 (car#1)",
        (Ask::WaiveUndo, On::Stuck) => "these steps do: 3 (car#1)",
        (Ask::WaiveUndo, _) => "these steps do: 1 (flight#1), 3 (car#1)",
        (other, _) => panic!("no refusal of {other:?} about {step:?} is expected on {on:?}"),
    }
}

/// A refused verb leaves nothing behind.
async fn assert_refused(scene: &Scene, asked: Ask, on: On, step: &str) {
    let before = scene.rows().await;
    for _ in 0..2 {
        let error = ask(scene, asked, step).await.expect_err("it is refused");
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        let way_out = way_out(asked, on, step);
        assert!(error.to_string().contains(way_out), "{way_out:?} is missing in: {error}");
    }
    assert_eq!(scene.rows().await, before, "{asked:?} was refused and has left a row");
    assert_eq!(scene.handle.status().await.unwrap().status, on.status());
}

/// Tests one cell.
pub async fn cell(asked: Ask, on: On) {
    let mut scene = match (asked, on) {
        (Ask::RetryStep, On::Paused) => Scene::paused_while_blocked().await,
        _ => Scene::new(on).await,
    };
    let wanted = expected(asked, on);
    let Cases { accepted, refused } = cases(wanted, on);
    for step in refused {
        assert_refused(&scene, asked, on, step).await;
    }
    if asked == Ask::RetryStep || asked == Ask::RetryUndo {
        ["break call", "break car"].iter().for_each(|lever| scene.levers.release(lever));
    }
    let mut said = Vec::new();
    for step in accepted {
        let answer = ask(&scene, asked, step).await.unwrap();
        if let Said::Verb(answer) = answer {
            let changed = if answer.changed { VerbChange::Yes } else { VerbChange::No };
            assert_eq!(Some(changed), changes(wanted));
        }
        if answer != Said::Deleted {
            assert_eq!(ask(&scene, asked, step).await.unwrap(), answer, "repeated at once");
        }
        said.push(answer);
    }
    if !said.is_empty() {
        follow(&mut scene, asked, on).await;
    }
    if said.contains(&Said::Deleted) {
        return;
    }
    close(&scene).await;
    for (step, answer) in accepted.iter().zip(said) {
        assert_eq!(ask(&scene, asked, step).await.unwrap(), answer, "repeated after the end");
    }
    checked(&scene.handle).await;
}

async fn close(scene: &Scene) {
    if !scene.handle.status().await.unwrap().status.is_closed() {
        scene.handle.kill().by("Bob").await.unwrap();
        until(&scene.handle, Status::Terminated).await;
    }
}
