//! What people outside ask of a process, and what they are answered.

use std::future::IntoFuture;
use std::time::Duration;

use backstitch::core::event::BlockKind;
use backstitch::core::undo::UndoPhase;
use backstitch::{App, Error, ErrorKind, FnWorkflow, Handle, Status, StepRef};

use crate::history::Answer;
use crate::plan::{Deed, Execution, TOPICS, What};

/// Asks, and gives the answer; `None` if it is to be asked again.
pub(crate) async fn ask(
    app: App,
    workflow: FnWorkflow<(), String>,
    execution: Execution,
    number: usize,
    deed: Deed,
) -> Option<Answer> {
    let id = format!("e{}", deed.execution);
    if deed.what == What::Start {
        let start = app.start(workflow, &id, ());
        let start = match execution.deadline_ms {
            Some(ms) => start.deadline(Duration::from_millis(ms)),
            None => start,
        };
        let started = start.await.map(|handle| handle.run_id().to_string());
        return answered(started.map(|run_id| Answer::Started { run_id }));
    }
    let handle: Handle<String> = match app.handle(&id).await {
        Ok(handle) => handle,
        Err(error) => return answered(Err(error)),
    };
    let request = match deed.what {
        What::Start => unreachable!("started above"),
        What::Cancel => handle.cancel(),
        What::Terminate => handle.terminate(),
        What::Kill => handle.kill(),
        What::Pause => handle.pause(),
        What::Resume => handle.resume(),
        What::ResumeShifted => handle.resume().shift_timers(),
        What::Rollback => handle.rollback(),
        What::Event { topic, number: event } => {
            let event_id = format!("deed {number}");
            let sent = handle.send_event(TOPICS[topic], &event).id(event_id).by("sim").await;
            return answered(sent.map(|sent| Answer::Event { number: sent.number }));
        }
        What::Settle => {
            let settled = settle(&app, &handle, &format!("deed {number}"), Mood::Hopeful).await;
            return answered(settled.map(|_| Answer::Settled));
        }
        What::Result => return answered(told(&handle).await),
    };
    let sent = request.by("sim").request_id(format!("deed {number}")).await;
    answered(sent.map(|sent| Answer::Verb { number: sent.number, changed: sent.changed }))
}

fn answered(answer: Result<Answer, Error>) -> Option<Answer> {
    match answer {
        Ok(answer) => Some(answer),
        Err(error) => match error.kind() {
            ErrorKind::Unavailable | ErrorKind::Stopped | ErrorKind::NotFound => None,
            // The version that it wants is not there at the moment; or another process has taken over.
            ErrorKind::UnknownWorkflow | ErrorKind::StoreInUse => None,
            ErrorKind::Refused | ErrorKind::Full => Some(Answer::Refused),
            kind => panic!("nobody asked for anything that is answered by {kind:?}: {error}"),
        },
    }
}

async fn told(handle: &Handle<String>) -> Result<Answer, Error> {
    match handle.result().await {
        Ok(output) => Ok(Answer::Result(Ok(output))),
        Err(error) if error.kind().is_outcome() => Ok(Answer::Result(Err(error.kind()))),
        Err(error) => Err(error),
    }
}

/// What an operator believes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// What failed is tried again.
    Hopeful,
    /// It is waived or cancelled.
    Resigned,
}

/// What an operator found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Closed, and no matter is open.
    Over,
    /// Something was done about it.
    Acted,
    /// It goes on by itself.
    Nothing,
}

/// Does something about an execution that is held, blocked or stuck, or whose matters are open.
pub(crate) async fn settle(
    app: &App,
    handle: &Handle<String>,
    request: &str,
    mood: Mood,
) -> Result<Settled, Error> {
    let found = handle.status().await?;
    let mut acted = Settled::Nothing;
    let mut note = |done: Result<Settled, Error>| match done {
        Err(error) if error.kind() != ErrorKind::Refused => Err(error),
        Err(_) => Ok(()),
        Ok(done) => {
            acted = done;
            Ok(())
        }
    };
    match found.status {
        Status::Paused => note(act(handle.resume(), format!("{request} resume")).await)?,
        Status::Blocked => {
            for (what, step, _) in &found.blocks {
                let request = format!("{request} {step:?}");
                match (what, step, mood) {
                    (BlockKind::Step, Some(step), Mood::Hopeful) => {
                        note(act(handle.retry_step(step.clone()), request).await)?;
                    }
                    (BlockKind::Step, _, _)
                    | (BlockKind::Mismatch | BlockKind::ForeignWait, _, Mood::Resigned) => {
                        note(act(handle.cancel(), request).await)?;
                    }
                    // Perhaps the right code comes.
                    (BlockKind::Mismatch | BlockKind::ForeignWait, _, Mood::Hopeful)
                    | (BlockKind::Unreadable, _, _) => {}
                }
            }
        }
        Status::Stuck => {
            let failed = found.run.rollback.iter().flat_map(|rollback| &rollback.failed);
            for ord in failed {
                let (step, request) = (StepRef::Ordinal(*ord), format!("{request} {ord}"));
                match mood {
                    Mood::Hopeful => note(act(handle.retry_undo(step), request).await)?,
                    Mood::Resigned => note(act(handle.waive_undo(step), request).await)?,
                }
            }
        }
        Status::Succeeded | Status::Failed | Status::Cancelled | Status::Terminated => {
            let open = app.attention(1_000).await?;
            let mut open = open.into_iter().filter(|item| item.run_id == handle.run_id());
            let Some(item) = open.next() else { return Ok(Settled::Over) };
            let ords: Vec<u32> = match item.kind.as_str() {
                "killed" => {
                    let owed = |phase: &UndoPhase| {
                        !matches!(
                            phase,
                            UndoPhase::Succeeded | UndoPhase::NotNeeded | UndoPhase::Waived
                        )
                    };
                    let steps = found.run.steps();
                    steps.filter(|(_, s)| owed(&s.undo.phase)).map(|(ord, _)| ord).collect()
                }
                _ => vec![item.ord],
            };
            for ord in ords {
                let waived = handle.waive_undo(StepRef::Ordinal(ord));
                note(act(waived, format!("{request} {} {ord}", item.kind)).await)?;
            }
        }
        Status::Pending | Status::Running | Status::Suspended | Status::RollingBack => {}
    }
    Ok(acted)
}

async fn act(request: backstitch::VerbRequest, id: String) -> Result<Settled, Error> {
    let answer = request.by("operator").request_id(id).into_future().await?;
    // What was asked for before needs time, and no further asking.
    Ok(if answer.changed { Settled::Acted } else { Settled::Nothing })
}
