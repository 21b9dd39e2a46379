//! Who has the answer to a verb and then waits is told of what came of it, not of what was before.

use std::sync::Arc;

use backstitch::{Backstitch, ErrorKind, RollbackOutcome, Status};

use crate::scene::{On, Scene};
use crate::stage::checked;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p1_who_waits_after_the_rollback_of_a_success_is_not_told_of_the_success() {
    for _ in 0..100 {
        let scene = Scene::new(On::Succeeded).await;
        scene.handle.rollback().by("Ada").await.unwrap();
        assert_eq!(scene.handle.result().await.unwrap_err().kind(), ErrorKind::RolledBack);
        let scene = Scene::new(On::Succeeded).await;
        scene.handle.rollback().by("Ada").await.unwrap();
        assert_eq!(scene.handle.closed().await.unwrap(), Status::Cancelled);
        checked(&scene.handle).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p1_who_waits_after_a_stuck_undo_was_settled_is_not_told_that_it_is_stuck() {
    for _ in 0..100 {
        for (verb, kind, outcome) in [
            ("retry", ErrorKind::Failed, RollbackOutcome::Complete),
            ("waive", ErrorKind::Failed, RollbackOutcome::Incomplete),
            ("kill", ErrorKind::Terminated, RollbackOutcome::Incomplete),
        ] {
            let scene = Scene::new(On::Stuck).await;
            assert_eq!(scene.handle.result().await.unwrap_err().kind(), ErrorKind::Stuck);
            scene.levers.release("break car");
            let request = match verb {
                "retry" => scene.handle.retry_undo("car"),
                "waive" => scene.handle.waive_undo("car"),
                _ => scene.handle.kill(),
            };
            request.by("Ada").await.unwrap();
            let error = scene.handle.result().await.unwrap_err();
            assert_eq!(
                (error.kind(), error.rollback().unwrap().outcome),
                (kind, outcome),
                "{verb}"
            );
            checked(&scene.handle).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p1_a_retry_that_is_in_vain_is_told_as_stuck_again() {
    for _ in 0..100 {
        let scene = Scene::new(On::Stuck).await;
        for attempts in 2..4 {
            scene.handle.retry_undo("car").await.unwrap();
            assert_eq!(scene.handle.result().await.unwrap_err().kind(), ErrorKind::Stuck);
            assert_eq!(scene.world.effects.count("undoing car"), attempts);
        }
        checked(&scene.handle).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p1_who_waits_through_a_change_of_processes_is_told_of_what_came_of_it() {
    let mut scene = Scene::new(On::Succeeded).await;
    let clock = Arc::new(scene.world.clock.clone());
    let guest = Backstitch::connect_on(Arc::new(scene.world.reopen()), clock);
    let outside = guest.handle::<u32>("t").await.unwrap();
    outside.rollback().by("Ada").await.unwrap();
    // A process without the code takes over, and then one with it.
    scene.next_process(|b| b).await;
    let waiter = {
        let handle = scene.app.handle::<u32>("t").await.unwrap();
        tokio::spawn(async move { handle.result().await })
    };
    crate::world::until(&scene.handle, Status::RollingBack).await;
    scene.app.clone().shutdown().await.unwrap();
    assert_eq!(waiter.await.unwrap().unwrap_err().kind(), ErrorKind::Stopped);
    scene.next_process_with_code().await;
    assert_eq!(scene.handle.result().await.unwrap_err().kind(), ErrorKind::RolledBack);
    checked(&scene.handle).await;
}
