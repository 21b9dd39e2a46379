//! Verbs at the same moment as something else, in both orders (T4).

use std::sync::Arc;
use std::time::Duration;

use backstitch::core::event::Event;
use backstitch::store::memory::MemoryStore;
use backstitch::store::{Change, Store};
use backstitch::{
    Backstitch, Builder, CauseKind, Ctx, ErrorKind, Handle, NoTimeout, Result, Status, workflow,
};

use crate::scene::{Levers, On, Plan, Scene, with_job};
use crate::stage::checked;
use crate::world::{EPOCH_US, Effects, Gate, World, events, eventually, until};
use crate::wrapped::{Wrapped, has_event};

/// A change that is held on its way to the disk.
struct Held {
    arrived: Gate,
    goes_on: Gate,
}

/// A disk that holds the first change for which `holds` says so.
fn holding(
    disk: &MemoryStore,
    holds: impl Fn(&Change) -> bool + Send + Sync + 'static,
) -> (Arc<dyn Store>, Held) {
    let (arrived, goes_on) = (Gate::closed(), Gate::closed());
    let held = Held { arrived: arrived.clone(), goes_on: goes_on.clone() };
    let first = std::sync::atomic::AtomicBool::new(true);
    let store = Wrapped::new(disk.clone()).on_commit(move |inner, change| {
        if !holds(&change) || !first.swap(false, std::sync::atomic::Ordering::SeqCst) {
            return inner.commit(change);
        }
        let (inner, arrived, goes_on) = (inner.clone(), arrived.clone(), goes_on.clone());
        Box::pin(async move {
            arrived.open();
            goes_on.pass().await;
            inner.commit(change).await
        })
    });
    (store.shared(), held)
}

/// A job whose first row with an event of that name is held.
async fn held_at(event: &'static str, plan: Plan, levers: &[&str]) -> (Scene, Held) {
    let mut scene = Scene::start(plan, levers).await;
    if plan != Plan::Returns {
        return (scene, Held { arrived: Gate::closed(), goes_on: Gate::closed() });
    }
    // Once more, on a disk that holds.
    scene.world = World::new();
    scene.disk = scene.world.reopen();
    let (store, held) = holding(&scene.disk, move |change| has_event(change, event));
    scene.app = scene.world.open_on(store, with_job(&scene.levers)).await;
    scene.handle = scene.app.start(crate::scene::job, "t", plan).await.unwrap();
    scene.run = scene.app.engine().newest("default", "t").await.unwrap().run;
    held.arrived.pass().await;
    (scene, held)
}

async fn at_its_success() -> (Scene, Held) {
    held_at("ExecutionSucceeded", Plan::Returns, &[]).await
}

#[tokio::test]
async fn t4_a_decision_accepted_before_the_row_of_the_success_wins() {
    for (verb, kind) in [
        ("cancel", ErrorKind::Cancelled),
        ("terminate", ErrorKind::Terminated),
        ("rollback", ErrorKind::RolledBack),
        ("kill", ErrorKind::Terminated),
    ] {
        let (scene, held) = at_its_success().await;
        let request = match verb {
            "cancel" => scene.handle.cancel(),
            "terminate" => scene.handle.terminate(),
            "rollback" => scene.handle.rollback(),
            _ => scene.handle.kill(),
        };
        let answer = request.by("Ada").request_id("r").await.unwrap();
        assert!(answer.changed);
        held.goes_on.open();
        scene.handle.closed().await.unwrap();
        assert_eq!(scene.handle.result().await.unwrap_err().kind(), kind, "{verb}");
        assert!(!events(&scene.handle).await.contains(&"ExecutionSucceeded"));
        assert_eq!(scene.undone().len(), if verb == "kill" { 0 } else { 3 });
        checked(&scene.handle).await;
    }
}

#[tokio::test]
async fn t4_a_pause_accepted_before_the_row_of_the_success_holds_it() {
    let (scene, held) = at_its_success().await;
    assert!(scene.handle.pause().await.unwrap().changed);
    held.goes_on.open();
    until(&scene.handle, Status::Paused).await;
    scene.handle.resume().await.unwrap();
    assert_eq!(scene.handle.result().await.unwrap(), 7);
    checked(&scene.handle).await;
}

#[tokio::test]
async fn t4_attributes_and_events_accepted_before_the_row_of_the_success_do_not_stop_it() {
    let (scene, held) = at_its_success().await;
    assert!(scene.handle.set_attributes([("Mood", "calm")]).await.unwrap().changed);
    let first = scene.handle.send_event("late", &1).id("e").await.unwrap();
    held.goes_on.open();
    assert_eq!(scene.handle.result().await.unwrap(), 7);
    eventually("the attribute is set, although the run is over", async || {
        scene.app.find("Mood", "calm", 10).await.unwrap().len() == 1
    })
    .await;
    let again = scene.handle.send_event("late", &1).id("e").await.unwrap();
    assert_eq!((again.number, again.first), (first.number, false));
    checked(&scene.handle).await;
}

/// The verb is judged while the run goes forward, and gets to the disk when it is over.
async fn judged_before_the_success(
    ask: impl AsyncFnOnce(&Handle<u32>) -> Result<bool, backstitch::Error>,
) -> (Scene, Result<bool, backstitch::Error>) {
    let (world, levers) = (World::new(), Levers::default());
    levers.pull("hold work");
    let disk = world.reopen();
    let (store, held) = holding(&disk, |change| matches!(change, Change::Inbox(_)));
    let app = world.open_on(store, with_job(&levers)).await;
    let handle = app.start(crate::scene::job, "t", Plan::Works).await.unwrap();
    world.effects.wait_for("begin work", 1).await;
    let run = app.engine().newest("default", "t").await.unwrap().run;
    let overtaken = async {
        held.arrived.pass().await;
        levers.release("hold work");
        assert_eq!(handle.result().await.unwrap(), 7);
        held.goes_on.open();
    };
    let (answer, ()) = tokio::join!(ask(&handle), overtaken);
    (Scene { world, levers, app, handle, run, disk }, answer)
}

#[tokio::test]
async fn t4_a_verb_that_comes_just_after_the_success_is_refused_and_changes_nothing() {
    for verb in ["cancel", "terminate", "kill", "pause", "event"] {
        let (scene, answer) = judged_before_the_success(async |handle| {
            let request = match verb {
                "cancel" => handle.cancel(),
                "terminate" => handle.terminate(),
                "kill" => handle.kill(),
                "pause" => handle.pause(),
                _ => return handle.send_event("late", &1).await.map(|_| true),
            };
            request.await.map(|answer| answer.changed)
        })
        .await;
        let error = answer.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        let says = if verb == "event" { "just closed" } else { "the execution is closed" };
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(scene.rows().await.1, 0);
        assert_eq!(scene.handle.result().await.unwrap(), 7);
        checked(&scene.handle).await;
    }
}

#[tokio::test]
async fn t4_a_rollback_that_comes_just_after_the_success_undoes_it() {
    let rollback =
        async |handle: &Handle<u32>| handle.rollback().await.map(|answer| answer.changed);
    let (scene, answer) = judged_before_the_success(rollback).await;
    assert!(answer.unwrap());
    until(&scene.handle, Status::Cancelled).await;
    assert_eq!(scene.undone().len(), 3);
    assert_eq!(scene.handle.output().await.unwrap(), Some(7));
    checked(&scene.handle).await;
}

#[tokio::test]
async fn t4_attributes_that_come_just_after_the_success_are_set() {
    let set = async |handle: &Handle<u32>| {
        handle.set_attributes([("Mood", "calm")]).await.map(|answer| answer.changed)
    };
    let (scene, answer) = judged_before_the_success(set).await;
    assert!(answer.unwrap());
    eventually("it is set", async || scene.app.find("Mood", "calm", 10).await.unwrap().len() == 1)
        .await;
    checked(&scene.handle).await;
}

/// Two verbs are accepted before anybody looks at the first.
async fn both_unread(
    on: On,
    first: impl AsyncFnOnce(&Handle<u32>),
    second: impl AsyncFnOnce(&Handle<u32>),
) -> Scene {
    let mut scene = Scene::new(on).await;
    let clock = Arc::new(scene.world.clock.clone());
    let guest = Backstitch::connect_on(Arc::new(scene.world.reopen()), clock);
    let outside = guest.handle("t").await.unwrap();
    first(&outside).await;
    second(&outside).await;
    scene.next_process_with_code().await;
    scene
}

async fn sends(handle: &Handle<u32>) {
    assert!(handle.send_event("go", &()).by("Ada").await.unwrap().first);
}

async fn cancels(handle: &Handle<u32>) {
    assert!(handle.cancel().by("Bob").await.unwrap().changed);
}

#[tokio::test]
async fn t4_an_event_and_a_cancel_at_the_same_moment() {
    let sends_in_vain = async |handle: &Handle<u32>| {
        let refused = handle.send_event("go", &()).by("Ada").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused, "what is acknowledged is kept: {refused}");
    };
    for event_first in [true, false] {
        let scene = match event_first {
            true => both_unread(On::Suspended, sends, cancels).await,
            false => both_unread(On::Suspended, cancels, sends_in_vain).await,
        };
        assert_eq!(scene.handle.closed().await.unwrap(), Status::Cancelled);
        assert_eq!(scene.undone().len(), 3);
        let names = events(&scene.handle).await;
        assert_eq!(names.contains(&"EventReceived"), event_first, "{names:?}");
        assert!(!names.contains(&"VerbRefused"), "{names:?}");
        checked(&scene.handle).await;
    }
}

#[tokio::test]
async fn p10_of_many_who_send_the_same_verb_at_once_one_is_told_that_it_changes_something() {
    let mut scene = Scene::new(On::Suspended).await;
    let clock = Arc::new(scene.world.clock.clone());
    let guest = Backstitch::connect_on(Arc::new(scene.world.reopen()), clock);
    let outside: Handle<u32> = guest.handle("t").await.unwrap();
    let pauses =
        futures_util::future::join_all((0..8).map(|_| async { outside.pause().await.unwrap() }));
    assert_eq!(pauses.await.iter().filter(|sent| sent.changed).count(), 1);
    let kills =
        futures_util::future::join_all((0..8).map(|_| async { outside.kill().await.unwrap() }));
    assert_eq!(kills.await.iter().filter(|sent| sent.changed).count(), 1);
    scene.next_process_with_code().await;
    assert_eq!(scene.handle.closed().await.unwrap(), Status::Terminated);
    let rows = scene.handle.journal().await.unwrap();
    let refused = rows.iter().flat_map(|row| &row.events).filter(|e| e.name() == "VerbRefused");
    assert_eq!(refused.count(), 14, "those who changed nothing leave a note");
    checked(&scene.handle).await;
}

#[tokio::test]
async fn t4_two_pauses_two_resumes_and_two_retries_at_the_same_moment_are_one() {
    let pause = async |h: &Handle<u32>| assert!(h.pause().await.unwrap().changed);
    let pause_again = async |h: &Handle<u32>| assert!(!h.pause().await.unwrap().changed);
    let scene = both_unread(On::Suspended, pause, pause_again).await;
    until(&scene.handle, Status::Paused).await;
    assert!(events(&scene.handle).await.contains(&"VerbRefused"), "the second is noted");

    let resume = async |h: &Handle<u32>| assert!(h.resume().await.unwrap().changed);
    let resume_again = async |h: &Handle<u32>| assert!(!h.resume().await.unwrap().changed);
    let scene = both_unread(On::Paused, resume, resume_again).await;
    until(&scene.handle, Status::Suspended).await;
    assert!(events(&scene.handle).await.contains(&"VerbRefused"));

    let retry = async |h: &Handle<u32>| assert!(h.retry_step("call").await.unwrap().changed);
    let retry_again = async |h: &Handle<u32>| {
        assert_eq!(h.retry_step("call").await.unwrap_err().kind(), ErrorKind::Refused);
    };
    let scene = both_unread(On::Blocked, retry, retry_again).await;
    scene.world.effects.wait_for("call", 2).await;
    until(&scene.handle, Status::Blocked).await;
    assert_eq!(scene.world.effects.count("call"), 2, "one attempt more, not two");
    checked(&scene.handle).await;
}

#[tokio::test]
async fn t4_an_undo_is_waived_although_somebody_wanted_it_tried_again() {
    let retry = async |h: &Handle<u32>| assert!(h.retry_undo("car").await.unwrap().changed);
    let waive = async |h: &Handle<u32>| assert!(h.waive_undo("car").await.unwrap().changed);
    let scene = both_unread(On::Stuck, retry, waive).await;
    assert_eq!(scene.handle.closed().await.unwrap(), Status::Failed);
    assert_eq!(scene.world.effects.count("undoing car"), 1, "waived before it was tried");
    checked(&scene.handle).await;

    let too_late = async |h: &Handle<u32>| {
        assert_eq!(h.retry_undo("car").await.unwrap_err().kind(), ErrorKind::Refused);
    };
    let scene = both_unread(On::Stuck, waive, too_late).await;
    assert_eq!(scene.handle.closed().await.unwrap(), Status::Failed);
    assert_eq!(scene.world.effects.count("undoing car"), 1);
    checked(&scene.handle).await;
}

#[tokio::test]
async fn t4_the_last_of_a_pause_and_a_resume_at_the_same_moment_stands() {
    let pause = async |h: &Handle<u32>| assert!(h.pause().await.unwrap().changed);
    let resume = async |h: &Handle<u32>| assert!(h.resume().await.unwrap().changed);
    let scene = both_unread(On::Suspended, pause, resume).await;
    eventually("both are copied", async || {
        scene.handle.status().await.unwrap().run.inbox_read == 2
    })
    .await;
    until(&scene.handle, Status::Suspended).await;
    checked(&scene.handle).await;
    let scene = both_unread(On::Paused, resume, pause).await;
    eventually("both are copied", async || {
        scene.handle.status().await.unwrap().run.inbox_read == 3
    })
    .await;
    until(&scene.handle, Status::Paused).await;
    checked(&scene.handle).await;
    // What changes nothing says so.
    let idle = async |h: &Handle<u32>| assert!(!h.resume().await.unwrap().changed);
    let scene = both_unread(On::Suspended, idle, pause).await;
    until(&scene.handle, Status::Paused).await;
    checked(&scene.handle).await;
}

#[workflow]
async fn waits(ctx: Ctx, _: ()) -> Result<Option<u32>> {
    ctx.step("book", async move |_s| Ok(()))
        .rollback(async move |u| {
            u.state::<Effects>().add("undo book");
            Ok(())
        })
        .await?;
    let first = ctx.wait_event("first", "a", "1h").optional().await?;
    ctx.wait_event::<()>("end", "end", NoTimeout).await?;
    Ok(first)
}

/// An hour has passed; the first row with an event of that name is held.
async fn late(event: &'static str, deadline: &str) -> (World, Handle<Option<u32>>, Held) {
    let world = World::new();
    let disk = world.reopen();
    let (store, held) = holding(&disk, move |change| has_event(change, event));
    let app = world.open_on(store, |b: Builder| b.register(waits)).await;
    let handle = app.start(waits, "t", ()).deadline(deadline).await.unwrap();
    until(&handle, Status::Suspended).await;
    world.clock.set(EPOCH_US + 3_600_000_000);
    held.arrived.pass().await;
    (world, handle, held)
}

#[tokio::test]
async fn t4_a_verb_and_a_timeout_at_the_same_moment() {
    // An event that is accepted before the row of the timeout satisfies the wait.
    let (_world, handle, held) = late("WaitTimedOut", "2h").await;
    handle.send_event("a", &5).await.unwrap();
    held.goes_on.open();
    handle.send_event("end", &()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), Some(5));
    checked(&handle).await;
    // One that comes after it is kept.
    let (_world, handle, held) = late("WaitTimedOut", "2h").await;
    held.goes_on.open();
    eventually("it timed out", async || events(&handle).await.contains(&"WaitTimedOut")).await;
    handle.send_event("a", &5).await.unwrap();
    eventually("it is kept", async || handle.status().await.unwrap().run.kept.len() == 1).await;
    handle.send_event("end", &()).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), None);
    checked(&handle).await;
    // A cancel does not mind: the timeout decides nothing.
    let (world, handle, held) = late("WaitTimedOut", "2h").await;
    handle.cancel().await.unwrap();
    held.goes_on.open();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(world.effects.all(), ["undo book"]);
    checked(&handle).await;
}

fn causes(run: &backstitch::core::run::Run) -> Vec<CauseKind> {
    run.rollback.iter().flat_map(|r| r.causes.iter().map(|cause| cause.kind())).collect()
}

#[tokio::test]
async fn t4_a_verb_and_a_deadline_at_the_same_moment() {
    // A cancel that is accepted before the row of the decision is the decision.
    let (world, handle, held) = late("RollbackStarted", "1h").await;
    handle.cancel().await.unwrap();
    held.goes_on.open();
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    assert_eq!(causes(&checked(&handle).await), [CauseKind::Cancelled]);
    assert_eq!(world.effects.all(), ["undo book"]);
    // A pause stops the clock of the deadline, until somebody resumes.
    let (world, handle, held) = late("RollbackStarted", "1h").await;
    handle.pause().await.unwrap();
    held.goes_on.open();
    until(&handle, Status::Paused).await;
    world.advance(Duration::from_secs(60));
    handle.resume().shift_timers().await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed, "it was late before the pause");
    checked(&handle).await;
    // An event changes nothing.
    let (_world, handle, held) = late("RollbackStarted", "1h").await;
    handle.send_event("a", &5).await.unwrap();
    held.goes_on.open();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    let refused = |event: &Event| matches!(event, Event::VerbRefused(e) if e.verb == "event");
    let rows = handle.journal().await.unwrap();
    assert!(rows.iter().flat_map(|row| &row.events).any(refused), "it leaves a trace");
    checked(&handle).await;
}

#[tokio::test]
async fn t4_a_waiver_of_an_undo_that_begins_at_the_same_moment_is_only_noted() {
    let (world, levers) = (World::new(), Levers::default());
    levers.pull("hold car");
    let disk = world.reopen();
    let begins_the_flight = |change: &Change| match change {
        Change::Append(append) => crate::wrapped::appended(append)
            .iter()
            .any(|event| matches!(event, Event::UndoStarted(e) if e.ord == 1)),
        _ => false,
    };
    let (store, held) = holding(&disk, begins_the_flight);
    let app = world.open_on(store, with_job(&levers)).await;
    let handle = app.start(crate::scene::job, "t", Plan::Fails).await.unwrap();
    levers.release("hold car");
    held.arrived.pass().await;
    assert!(handle.waive_undo("flight").by("Ada").await.unwrap().changed);
    held.goes_on.open();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    assert_eq!(world.effects.count("undo flight"), 1);
    let run = checked(&handle).await;
    assert_eq!(run.rollback.unwrap().waived, 0);
    assert!(events(&handle).await.contains(&"VerbRefused"));
}
