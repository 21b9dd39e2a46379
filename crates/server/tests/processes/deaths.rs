//! Who dies, and what comes of it.

use crate::scene::{LEASE, Scene, eventually};
use crate::worker::Worker;

/// All effects of an execution had the same key, and their fences have only grown.
fn is_in_order(scene: &Scene, what: &str, id: &str) -> usize {
    let seen = scene.effects.of(what, id);
    assert!(seen.windows(2).all(|two| two[0].key == two[1].key), "{seen:?}");
    assert!(seen.windows(2).all(|two| two[0].fence < two[1].fence), "{seen:?}");
    seen.len()
}

#[test]
fn p4_a_worker_is_killed_in_a_step_and_another_one_goes_on() {
    let scene = Scene::new("worker-killed");
    let mut first = Worker::begin(&scene);
    scene.start("good");
    scene.start("bad");
    scene.until_works("good", 1);
    scene.until_works("bad", 1);
    let _second = Worker::begin(&scene);
    first.kill();
    scene.until_works("good", 2);
    scene.until_works("bad", 2);
    for id in ["good", "bad"] {
        scene.effects.open_gate(id);
    }
    scene.until_status("good", "succeeded");
    scene.until_status("bad", "failed");
    for id in ["good", "bad"] {
        assert_eq!(is_in_order(&scene, "book", id), 1, "what is recorded is final (P3)");
        assert_eq!(is_in_order(&scene, "work", id), 2);
        assert_eq!(is_in_order(&scene, "worked", id), 1);
    }
    assert_eq!(
        (is_in_order(&scene, "unbook", "good"), is_in_order(&scene, "unbook", "bad")),
        (0, 1)
    );
}

#[test]
fn p1_the_server_is_killed_and_workers_keep_what_they_run() {
    let mut scene = Scene::new("server-killed");
    let _worker = Worker::begin(&scene);
    let ids: Vec<String> = (0..8).map(|n| format!("{}-{n}", ["good", "bad"][n % 2])).collect();
    for id in &ids {
        scene.start(id);
    }
    for (n, id) in ids.iter().enumerate() {
        scene.until_works(id, 1);
        // Some of them end while there is no server.
        if n < 4 {
            scene.effects.open_gate(id);
        }
        if n == 3 {
            scene.kill_server();
            eventually("they end", || scene.effects.of("worked", id).len() == 1);
            scene.next_server();
        }
    }
    for id in &ids {
        scene.effects.open_gate(id);
    }
    for id in &ids {
        scene.until_status(id, if id.starts_with("good") { "succeeded" } else { "failed" });
        assert_eq!(is_in_order(&scene, "work", id), 1, "{id}: nothing was lost");
        assert_eq!(is_in_order(&scene, "worked", id), 1);
        assert_eq!(is_in_order(&scene, "unbook", id), usize::from(id.starts_with("bad")));
    }
}

#[test]
fn p4_both_are_killed_and_others_go_on() {
    let mut scene = Scene::new("both-killed");
    let mut worker = Worker::begin(&scene);
    scene.start("bad");
    scene.until_works("bad", 1);
    worker.kill();
    scene.kill_server();
    scene.next_server();
    let _worker = Worker::begin(&scene);
    // The first attempt is lost when its lease has ended for sure.
    scene.until_works("bad", 2);
    scene.effects.open_gate("bad");
    scene.until_status("bad", "failed");
    assert_eq!(is_in_order(&scene, "work", "bad"), 2);
    assert_eq!(is_in_order(&scene, "unbook", "bad"), 1);
}

#[test]
fn p4_a_worker_that_stands_still_for_longer_than_its_lease_has_lost_its_runs() {
    let scene = Scene::new("worker-stopped");
    let stopped = Worker::begin(&scene);
    scene.start("good");
    scene.until_works("good", 1);
    let began = std::time::Instant::now();
    stopped.signal("-STOP");
    let _other = Worker::begin(&scene);
    scene.until_works("good", 2);
    assert!(began.elapsed() >= LEASE - LEASE / 3, "it was left alone for as long as its lease");
    stopped.signal("-CONT");
    scene.effects.open_gate("good");
    scene.until_status("good", "succeeded");
    let worked = scene.effects.of("worked", "good");
    let newest = scene.effects.of("work", "good")[1].fence;
    assert!(worked.iter().any(|effect| effect.fence == newest), "{worked:?}");
    // What the first one may have let go of late carries the old fence, and the same key.
    assert!(worked.iter().all(|effect| effect.key == worked[0].key && effect.fence <= newest));
    // It goes on as a worker.
    scene.start("good-2");
    scene.effects.open_gate("good-2");
    scene.until_status("good-2", "succeeded");
}

#[test]
fn a_server_that_is_stopped_in_good_order_counts_no_attempt() {
    let mut scene = Scene::new("server-stopped");
    let worker = Worker::begin(&scene);
    scene.start("good");
    scene.until_works("good", 1);
    let said = scene.stop_server();
    assert_eq!(said.exit, 0, "{said:?}");
    scene.next_server();
    scene.until_works("good", 2);
    scene.effects.open_gate("good");
    scene.until_status("good", "succeeded");
    let journal = scene.ask(&["--json", "journal", "good"]).out;
    assert!(journal.contains("nterrupted"), "{journal}");
    assert!(!journal.contains("\"Lost\""), "{journal}");
    worker.stop();
}

#[test]
fn a_worker_that_is_stopped_in_good_order_gives_its_runs_back() {
    let scene = Scene::new("worker-leaves");
    let first = Worker::begin(&scene);
    scene.start("good");
    scene.until_works("good", 1);
    first.stop();
    scene.until_status("good", "pending");
    let _second = Worker::begin(&scene);
    scene.until_works("good", 2);
    scene.effects.open_gate("good");
    scene.until_status("good", "succeeded");
}
