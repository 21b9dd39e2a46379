//! Executions that have never run: nobody has their code, or an earlier run of their id is open.

use std::sync::Arc;

use backstitch::{Backstitch, Conflict, Ctx, ErrorKind, Handle, Status, WaitsFor, workflow_fn};

use crate::scene::{On, Plan, Scene, job, with_job};
use crate::stage::checked;
use crate::world::{World, events, eventually, until};

/// Why it is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Because {
    NobodyHasTheCode,
    AnEarlierRunIsOpen,
}

const BOTH: [Because; 2] = [Because::NobodyHasTheCode, Because::AnEarlierRunIsOpen];

/// An execution that has never run.
async fn never_run(because: Because) -> Scene {
    match because {
        Because::NobodyHasTheCode => {
            let (world, levers) = (World::new(), crate::scene::Levers::default());
            let clock = Arc::new(world.clock.clone());
            let guest = Backstitch::connect_on(Arc::new(world.reopen()), clock);
            guest.start(job, "t", Plan::Waits).await.unwrap();
            let disk = world.reopen();
            let app = world.open_on(Arc::new(disk.clone()), |b| b).await;
            let handle: Handle<u32> = app.handle("t").await.unwrap();
            let run = app.engine().newest("default", "t").await.unwrap().run;
            let status = until(&handle, Status::Pending).await;
            assert!(matches!(status.waits_for[0], WaitsFor::Worker { .. }));
            Scene { world, levers, app, handle, run, disk }
        }
        Because::AnEarlierRunIsOpen => {
            let mut scene = Scene::new(On::RollingBack).await;
            let start = scene.app.start(job, "t", Plan::Waits).conflict(Conflict::Terminate);
            scene.handle = start.await.unwrap();
            scene.run = scene.app.engine().newest("default", "t").await.unwrap().run;
            let status = until(&scene.handle, Status::Pending).await;
            assert!(matches!(status.waits_for[0], WaitsFor::EarlierRun { .. }));
            scene
        }
    }
}

/// What it waited for is there.
async fn let_it_begin(scene: &mut Scene, because: Because) {
    match because {
        Because::NobodyHasTheCode => {
            let setup = with_job(&scene.levers);
            scene.next_process(setup).await;
        }
        Because::AnEarlierRunIsOpen => {
            scene.levers.release("hold hotel");
            scene.levers.release("break car");
            let newest = scene.run;
            for info in scene.app.engine().runs(newest, 10).await.unwrap() {
                eventually("the earlier run is stuck or closed", async || {
                    let info = scene.app.engine().info(info.run).await.unwrap();
                    info.closed_at_us.is_some() || info.update.status == Status::Stuck
                })
                .await;
                let retry = backstitch::core::inbox::Verb { ord: 3, ..Default::default() };
                let kind = backstitch::core::inbox::InboxKind::RetryUndo;
                scene.app.engine().send(info.run, kind, retry, "mended").await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn b38_what_has_never_run_and_is_not_wanted_is_closed_at_once() {
    for because in BOTH {
        for (verb, status, kind) in [
            ("cancel", Status::Cancelled, ErrorKind::Cancelled),
            ("terminate", Status::Terminated, ErrorKind::Terminated),
            ("rollback", Status::Cancelled, ErrorKind::RolledBack),
            ("kill", Status::Terminated, ErrorKind::Terminated),
        ] {
            let scene = never_run(because).await;
            let request = match verb {
                "cancel" => scene.handle.cancel(),
                "terminate" => scene.handle.terminate(),
                "rollback" => scene.handle.rollback(),
                _ => scene.handle.kill(),
            };
            assert!(request.by("Ada").await.unwrap().changed);
            assert_eq!(scene.handle.closed().await.unwrap(), status, "{verb}, {because:?}");
            assert_eq!(scene.handle.result().await.unwrap_err().kind(), kind);
            assert!(!events(&scene.handle).await.contains(&"RollbackStarted"));
            let run = checked(&scene.handle).await;
            assert!(run.attention.is_empty() && run.asks.is_empty());
        }
    }
}

#[tokio::test]
async fn b38_what_has_never_run_is_held_by_a_pause_and_goes_on_with_what_it_was_sent() {
    for because in BOTH {
        let mut scene = never_run(because).await;
        let handle = &scene.handle;
        assert!(!handle.resume().await.unwrap().changed);
        assert!(handle.pause().by("Ada").await.unwrap().changed);
        until(handle, Status::Paused).await;
        handle.send_event("go", &()).await.unwrap();
        handle.set_attributes([("Mood", "calm")]).await.unwrap();
        eventually("it is found", async || {
            scene.app.find("Mood", "calm", 10).await.unwrap().len() == 1
        })
        .await;
        let booked = scene.world.effects.count("book flight");
        let_it_begin(&mut scene, because).await;
        until(&scene.handle, Status::Paused).await;
        crate::stage::a_while().await;
        assert_eq!(scene.world.effects.count("book flight"), booked, "{because:?}");
        scene.handle.resume().await.unwrap();
        assert_eq!(scene.handle.result().await.unwrap(), 7);
        checked(&scene.handle).await;
    }
}

#[tokio::test]
async fn b38_what_has_never_run_has_no_steps_to_speak_of() {
    for because in BOTH {
        let scene = never_run(because).await;
        let handle = &scene.handle;
        let requests =
            [handle.retry_step("car"), handle.retry_undo("car"), handle.waive_undo("car")];
        for request in requests {
            let error = request.await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(error.to_string().contains("none yet"), "{error}");
        }
        assert_eq!(handle.delete().await.unwrap_err().kind(), ErrorKind::Refused);
        assert_eq!(handle.restart().await.err().unwrap().kind(), ErrorKind::Refused);
        assert_eq!(scene.rows().await.1, 0, "nothing of it was accepted");
    }
}

#[tokio::test]
async fn p10_a_sleep_that_is_over_and_that_nobody_can_end_is_pending() {
    let world = World::new();
    let naps = workflow_fn("naps", async |ctx: Ctx, (): ()| {
        ctx.sleep("1h").await?;
        Ok(1_u32)
    });
    let app = world.open(|b| b.register(naps.clone())).await;
    let handle: Handle<u32> = app.start(naps.clone(), "n", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    let app = world.open_on(Arc::new(world.reopen()), |b| b).await;
    let handle: Handle<u32> = app.handle("n").await.unwrap();
    assert_eq!(
        handle.status().await.unwrap().status,
        Status::Suspended,
        "nobody has to do anything"
    );
    world.clock.advance(std::time::Duration::from_secs(3_600));
    let status = handle.status().await.unwrap();
    assert_eq!(status.status, Status::Pending);
    assert!(matches!(status.waits_for[0], WaitsFor::Worker { .. }));
    let app = world.open_on(Arc::new(world.reopen()), |b| b.register(naps.clone())).await;
    let handle: Handle<u32> = app.handle("n").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 1);
}
