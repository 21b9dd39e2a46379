//! Verbs that are acknowledged while nobody works on the execution (P1).

use std::sync::Arc;

use backstitch::{Backstitch, Status};

use crate::cell::{Said, ask};
use crate::follow::follow;
use crate::scene::{On, Scene};
use crate::stage::checked;
use crate::table::Ask;
use crate::world::until;

/// The process dies; what is asked is acknowledged before the next one begins.
async fn asked_between(on: On, asked: Ask, step: &str) -> Scene {
    let mut scene = match (asked, on) {
        (Ask::RetryStep, On::Paused) => Scene::paused_while_blocked().await,
        _ => Scene::new(on).await,
    };
    scene.disk = scene.world.reopen();
    let clock = Arc::new(scene.world.clock.clone());
    let guest = Backstitch::connect_on(Arc::new(scene.disk.clone()), clock);
    scene.handle = guest.handle("t").await.unwrap();
    if asked == Ask::RetryStep || asked == Ask::RetryUndo {
        ["break call", "break car"].iter().for_each(|lever| scene.levers.release(lever));
    }
    let before = scene.rows().await.0;
    let said = ask(&scene, asked, step).await.unwrap();
    assert_eq!(ask(&scene, asked, step).await.unwrap(), said, "repeated at once");
    assert_eq!(scene.rows().await.0, before, "nobody has carried it out");
    scene.next_process_with_code().await;
    assert_eq!(ask(&scene, asked, step).await.unwrap(), said, "repeated to the next process");
    assert_ne!(said, Said::Deleted);
    scene
}

async fn is_carried_out(on: On, asked: Ask) {
    let step = if asked == Ask::RetryStep { "call" } else { "car" };
    let mut scene = asked_between(on, asked, step).await;
    if asked == Ask::WaiveUndo && on != On::Stuck {
        for step in ["hotel", "flight"] {
            if on == On::Killed || step == "flight" {
                scene.handle.waive_undo(step).by("Ada").await.unwrap();
            }
        }
    }
    follow(&mut scene, asked, on).await;
    checked(&scene.handle).await;
}

const OPEN: [On; 7] = [
    On::Running,
    On::Suspended,
    On::Paused,
    On::Blocked,
    On::RollingBack,
    On::PausedRollingBack,
    On::Stuck,
];

#[tokio::test]
async fn p1_decisions_that_are_acknowledged_between_two_processes_are_carried_out() {
    for asked in [Ask::Cancel, Ask::Terminate, Ask::Rollback] {
        for on in OPEN {
            is_carried_out(on, asked).await;
        }
    }
    is_carried_out(On::Succeeded, Ask::Rollback).await;
}

#[tokio::test]
async fn p1_a_kill_that_is_acknowledged_between_two_processes_is_carried_out() {
    for on in OPEN {
        is_carried_out(on, Ask::Kill).await;
    }
}

#[tokio::test]
async fn b32_a_pause_and_a_resume_that_are_acknowledged_between_two_processes_are_carried_out() {
    for on in [On::Suspended, On::Blocked] {
        is_carried_out(on, Ask::Pause).await;
    }
    for on in [On::Paused, On::PausedRollingBack] {
        is_carried_out(on, Ask::Resume).await;
    }
    // What ran when the process died is not begun again.
    for (on, effect) in [(On::Running, "begin work"), (On::RollingBack, "undoing hotel")] {
        let scene = asked_between(on, Ask::Pause, "").await;
        until(&scene.handle, Status::Paused).await;
        assert_eq!(scene.world.effects.count(effect), 1);
        ["hold work", "hold hotel"].iter().for_each(|lever| scene.levers.release(lever));
        scene.handle.resume().await.unwrap();
        match on {
            On::Running => assert_eq!(scene.handle.result().await.unwrap(), 7),
            _ => drop(until(&scene.handle, Status::Stuck).await),
        }
        assert_eq!(scene.world.effects.count(effect), 2);
        checked(&scene.handle).await;
    }
}

#[tokio::test]
async fn p1_retries_and_waivers_that_are_acknowledged_between_two_processes_are_carried_out() {
    for on in [On::Blocked, On::Paused] {
        is_carried_out(on, Ask::RetryStep).await;
    }
    for asked in [Ask::RetryUndo, Ask::WaiveUndo] {
        for on in [On::RollingBack, On::PausedRollingBack, On::Stuck] {
            is_carried_out(on, asked).await;
        }
    }
    is_carried_out(On::Killed, Ask::WaiveUndo).await;
}

#[tokio::test]
async fn p1_events_and_attributes_that_are_acknowledged_between_two_processes_are_not_lost() {
    for on in OPEN.into_iter().filter(|on| on.is_forward()) {
        is_carried_out(on, Ask::Event).await;
    }
    let closed = [On::Succeeded, On::Failed, On::Cancelled, On::Terminated, On::Killed];
    for on in OPEN.into_iter().chain(closed) {
        is_carried_out(on, Ask::SetAttributes).await;
    }
}
