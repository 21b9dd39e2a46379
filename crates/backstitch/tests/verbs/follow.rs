//! What follows on a verb that was accepted.

use backstitch::core::event::Event;
use backstitch::{CauseKind, ErrorKind, RollbackOutcome, Status};

use crate::scene::{On, Plan, Scene, job};
use crate::stage::a_while;
use crate::table::Ask;
use crate::world::{eventually, until};

/// Waits for what follows, and checks it.
pub async fn follow(scene: &mut Scene, asked: Ask, on: On) {
    match asked {
        Ask::Event => is_received(scene).await,
        Ask::Cancel | Ask::Terminate | Ask::Rollback if on.is_forward() => {
            decides(scene, asked, on).await;
        }
        Ask::Rollback if on == On::Succeeded => undoes_success(scene).await,
        Ask::Cancel | Ask::Terminate | Ask::Rollback => is_one_cause_more(scene, asked, on).await,
        Ask::Kill => kills(scene, on).await,
        Ask::Pause if on == On::Paused || on == On::PausedRollingBack => is_noted(scene, on).await,
        Ask::Pause => holds(scene, on).await,
        Ask::Resume if on == On::Paused => drop(until(&scene.handle, Status::Suspended).await),
        Ask::Resume if on == On::PausedRollingBack => {
            until(&scene.handle, Status::Stuck).await;
            assert_eq!(scene.undone(), ["undo hotel", "undo flight"]);
        }
        Ask::Resume => is_noted(scene, on).await,
        Ask::RetryStep => tries_the_step_again(scene, on).await,
        Ask::RetryUndo => tries_the_undo_again(scene, on).await,
        Ask::WaiveUndo if on == On::Killed => settles_what_was_killed(scene).await,
        Ask::WaiveUndo => waives(scene, on).await,
        Ask::SetAttributes => is_found(scene, on).await,
        Ask::Delete => is_gone(scene).await,
        Ask::Restart => is_done_over(scene).await,
    }
}

/// Waits until the journal has an event.
async fn until_written(scene: &Scene, what: &str, is_it: impl Fn(&Event) -> bool) {
    eventually(what, async || {
        let rows = scene.handle.journal().await.unwrap();
        rows.iter().flat_map(|row| &row.events).any(&is_it)
    })
    .await;
}

async fn assert_status(scene: &Scene, wanted: Status) {
    assert_eq!(scene.handle.status().await.unwrap().status, wanted);
}

async fn is_received(scene: &Scene) {
    let from_ada = |event: &Event| matches!(event, Event::EventReceived(e) if e.by == "Ada");
    until_written(scene, "the event is received", from_ada).await;
    let run = scene.handle.status().await.unwrap().run;
    assert!(!run.kept.is_empty(), "it is kept until a wait takes it");
}

async fn is_noted(scene: &Scene, on: On) {
    let noted = |event: &Event| matches!(event, Event::VerbRefused(e) if e.by == "Ada");
    until_written(scene, "it is noted", noted).await;
    assert_status(scene, on.status()).await;
}

async fn decides(scene: &mut Scene, asked: Ask, on: On) {
    if on == On::Pending {
        // The undos need the code.
        until(&scene.handle, Status::RollingBack).await;
        assert!(scene.undone().is_empty());
        scene.next_process_with_code().await;
    }
    let (status, kind) = match asked {
        Ask::Terminate => (Status::Terminated, ErrorKind::Terminated),
        Ask::Rollback => (Status::Cancelled, ErrorKind::RolledBack),
        _ => (Status::Cancelled, ErrorKind::Cancelled),
    };
    assert_eq!(scene.handle.closed().await.unwrap(), status);
    let error = scene.handle.result().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.rollback().unwrap().outcome),
        (kind, RollbackOutcome::Complete)
    );
    assert_eq!(scene.undone(), ["undo car", "undo hotel", "undo flight"]);
    assert!(scene.app.attention(10).await.unwrap().is_empty(), "blocks are over");
}

async fn undoes_success(scene: &Scene) {
    until(&scene.handle, Status::Cancelled).await;
    assert_eq!(scene.undone(), ["undo car", "undo hotel", "undo flight"]);
    let error = scene.handle.result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RolledBack);
    assert_eq!(scene.handle.output().await.unwrap(), Some(7));
}

async fn is_one_cause_more(scene: &Scene, asked: Ask, on: On) {
    let kind = match asked {
        Ask::Terminate => CauseKind::Terminated,
        Ask::Rollback => CauseKind::Requested,
        _ => CauseKind::Cancelled,
    };
    eventually("it is added to the causes", async || {
        let run = scene.handle.status().await.unwrap().run;
        let causes = run.rollback.as_ref().unwrap().causes.iter();
        causes.map(|cause| cause.kind()).collect::<Vec<_>>() == [CauseKind::Failed, kind]
    })
    .await;
    assert_status(scene, on.status()).await;
    ["break car", "hold hotel"].iter().for_each(|lever| scene.levers.release(lever));
    if on == On::PausedRollingBack {
        scene.handle.resume().await.unwrap();
    }
    scene.handle.retry_undo("car").await.unwrap();
    assert_eq!(scene.handle.closed().await.unwrap(), Status::Failed, "the first decision stands");
    assert_eq!(scene.undone().len(), 3);
}

async fn kills(scene: &Scene, on: On) {
    let left: &[u32] = match on {
        On::Stuck => &[3],
        On::PausedRollingBack => &[3, 1],
        _ => &[3, 2, 1],
    };
    let undone = scene.undone();
    assert_eq!(scene.handle.closed().await.unwrap(), Status::Terminated);
    assert_eq!(scene.handle.result().await.unwrap_err().kind(), ErrorKind::Terminated);
    let open = scene.app.attention(10).await.unwrap();
    let kinds: Vec<&str> = open.iter().map(|item| item.kind.as_str()).collect();
    match on {
        On::RollingBack | On::PausedRollingBack | On::Stuck => {
            assert_eq!(kinds, ["undo_failed", "killed"]);
        }
        _ => assert_eq!(kinds, ["killed"]),
    }
    assert_eq!(scene.handle.status().await.unwrap().run.debts_of_kill(), left);
    ["hold work", "hold hotel"].iter().for_each(|lever| scene.levers.release(lever));
    a_while().await;
    assert_eq!(scene.undone(), undone, "nothing is undone any more");
}

async fn holds(scene: &Scene, on: On) {
    if on == On::Running || on == On::RollingBack {
        eventually("it is pausing", async || scene.handle.status().await.unwrap().pausing).await;
        assert_status(scene, on.status()).await;
        ["hold work", "hold hotel"].iter().for_each(|lever| scene.levers.release(lever));
    }
    let status = until(&scene.handle, Status::Paused).await;
    a_while().await;
    match on {
        On::Running => assert!(status.run.step(4).unwrap().is_recorded(), "bodies come to an end"),
        On::RollingBack => assert_eq!(scene.undone(), ["undo hotel"], "held between undos"),
        _ => assert!(scene.undone().is_empty()),
    }
    scene.handle.resume().await.unwrap();
    match on {
        On::Running => assert_eq!(scene.handle.result().await.unwrap(), 7),
        On::RollingBack => drop(until(&scene.handle, Status::Stuck).await),
        _ => drop(until(&scene.handle, on.status()).await),
    }
}

async fn tries_the_step_again(scene: &Scene, on: On) {
    if on == On::Paused {
        let requested =
            |event: &Event| matches!(event, Event::StepRetryRequested(e) if e.by == "Ada");
        until_written(scene, "it is noted", requested).await;
        assert_status(scene, Status::Paused).await;
        assert_eq!(scene.world.effects.count("call"), 1, "nothing runs before the resume");
        scene.handle.resume().await.unwrap();
    }
    assert_eq!(scene.handle.result().await.unwrap(), 7);
    assert_eq!(scene.world.effects.count("call"), 2);
    assert!(scene.app.attention(10).await.unwrap().is_empty());
}

async fn tries_the_undo_again(scene: &Scene, on: On) {
    let requested = |event: &Event| matches!(event, Event::UndoRetryRequested(e) if e.by == "Ada");
    until_written(scene, "it is noted", requested).await;
    if on == On::PausedRollingBack {
        assert_status(scene, Status::Paused).await;
        assert_eq!(scene.world.effects.count("undoing car"), 1, "nothing runs before the resume");
        scene.handle.resume().await.unwrap();
    }
    scene.levers.release("hold hotel");
    assert_eq!(scene.handle.closed().await.unwrap(), Status::Failed);
    assert_eq!(scene.world.effects.count("undo car"), 1);
    let rollback = scene.handle.status().await.unwrap().rollback;
    assert_eq!((rollback.outcome, rollback.done), (RollbackOutcome::Complete, 3));
}

async fn waives(scene: &Scene, on: On) {
    let waived = |event: &Event| matches!(event, Event::UndoWaived(e) if (e.by.as_str(), e.reason.as_str()) == ("Ada", "because"));
    until_written(scene, "it is waived", waived).await;
    if on == On::PausedRollingBack {
        assert_status(scene, Status::Paused).await;
        scene.handle.resume().await.unwrap();
    }
    scene.levers.release("hold hotel");
    assert_eq!(scene.handle.closed().await.unwrap(), Status::Failed);
    match on {
        On::Stuck => assert_eq!(scene.undone(), ["undo hotel", "undo flight"]),
        _ => assert_eq!(scene.undone(), ["undo hotel"]),
    }
    let rollback = scene.handle.status().await.unwrap().rollback;
    assert_eq!(rollback.outcome, RollbackOutcome::Incomplete);
    assert!(scene.app.attention(10).await.unwrap().is_empty());
}

async fn settles_what_was_killed(scene: &Scene) {
    eventually("the matter is settled", async || scene.app.attention(10).await.unwrap().is_empty())
        .await;
    assert_status(scene, Status::Terminated).await;
    let rollback = scene.handle.status().await.unwrap().rollback;
    assert_eq!(rollback.outcome, RollbackOutcome::Incomplete);
}

async fn is_found(scene: &Scene, on: On) {
    eventually("it is found", async || {
        scene.app.find("Mood", "calm", 10).await.unwrap().len() == 1
    })
    .await;
    assert_status(scene, on.status()).await;
}

async fn is_gone(scene: &Scene) {
    let error = scene.handle.status().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let again = scene.app.start(job, "t", Plan::Returns).await.unwrap();
    assert!(again.created(), "the id is free");
    assert_eq!(again.result().await.unwrap(), 7);
}

async fn is_done_over(scene: &Scene) {
    let again = scene.app.handle::<u32>("t").await.unwrap();
    assert_ne!(again.run_id(), scene.handle.run_id());
    let started = again.status().await.unwrap().run.started.clone();
    assert_eq!(started.restarted_from, Some(scene.handle.run_id().to_vec()));
    assert_eq!(started.started_by, "Ada");
    let other = scene.handle.restart().request_id("another").await;
    let error = other.err().expect("only the newest run is done over");
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("look at that one"), "{error}");
}
