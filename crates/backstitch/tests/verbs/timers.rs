//! What becomes of instants while an execution is paused.

use std::sync::Arc;
use std::time::Duration;

use backstitch::{
    Backstitch, Ctx, ErrorKind, ExecutionStatus, FailureExt, Handle, Result, Retry, Status, msg,
    workflow,
};

use crate::stage::checked;
use crate::world::{EPOCH_US, World, eventually, until};

const MINUTE: Duration = Duration::from_secs(60);
const MINUTE_US: i64 = 60_000_000;

#[workflow]
async fn sleeps(ctx: Ctx, _: ()) -> Result<()> {
    ctx.sleep("60m").await
}

#[workflow]
async fn waits(ctx: Ctx, _: ()) -> Result<Option<u32>> {
    ctx.wait_event("approval", "approved", "60m").optional().await
}

/// Pauses after 10 minutes, and resumes after so many more.
async fn pause_for<T>(world: &World, handle: &Handle<T>, minutes: u32, shift: Shift) {
    until(handle, Status::Suspended).await;
    world.advance(10 * MINUTE);
    handle.pause().await.unwrap();
    until(handle, Status::Paused).await;
    world.advance(minutes * MINUTE);
    let resume = handle.resume();
    match shift {
        Shift::No => resume.await,
        Shift::Yes => resume.shift_timers().await,
    }
    .unwrap();
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shift {
    No,
    Yes,
}

/// The first instant that it waits for, in minutes since its start.
fn due_minutes(status: &ExecutionStatus) -> i64 {
    (status.run.due.first().unwrap().0 - EPOCH_US) / MINUTE_US
}

#[tokio::test]
async fn b21_after_a_pause_a_sleep_ends_when_it_would_have_ended() {
    let world = World::new();
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = app.start(sleeps, "t", ()).await.unwrap();
    pause_for(&world, &handle, 30, Shift::No).await;
    let status = until(&handle, Status::Suspended).await;
    assert_eq!(due_minutes(&status), 60);
    world.advance(20 * MINUTE);
    handle.result().await.unwrap();
    checked(&handle).await;
}

#[tokio::test]
async fn b21_a_sleep_that_ends_during_a_pause_is_over_at_resume_and_not_before() {
    let world = World::new();
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = app.start(sleeps, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    handle.pause().await.unwrap();
    until(&handle, Status::Paused).await;
    world.advance(90 * MINUTE);
    // Somebody looks, and another process takes over: nothing happens.
    handle.set_attributes([("Looked", true)]).await.unwrap();
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = app.handle::<()>("t").await.unwrap();
    assert_eq!(until(&handle, Status::Paused).await.run.due.len(), 1);
    handle.resume().await.unwrap();
    handle.result().await.unwrap();
    checked(&handle).await;
}

#[tokio::test]
async fn b21_with_shift_timers_a_sleep_moves_by_each_pause_also_after_a_crash() {
    let world = World::new();
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = app.start(sleeps, "t", ()).deadline("70m").await.unwrap();
    pause_for(&world, &handle, 30, Shift::Yes).await;
    let status = until(&handle, Status::Suspended).await;
    assert_eq!(due_minutes(&status), 90);
    pause_for(&world, &handle, 100, Shift::Yes).await;
    let status = until(&handle, Status::Suspended).await;
    assert_eq!(due_minutes(&status), 190);
    assert_eq!(status.run.deadline_at_us(), Some(EPOCH_US + 200 * MINUTE_US));
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = app.handle::<()>("t").await.unwrap();
    assert_eq!(due_minutes(&until(&handle, Status::Suspended).await), 190);
    world.clock.set(EPOCH_US + 190 * MINUTE_US - 1);
    crate::stage::a_while().await;
    assert_eq!(handle.status().await.unwrap().status, Status::Suspended, "never early (P9)");
    world.clock.set(EPOCH_US + 190 * MINUTE_US);
    handle.result().await.unwrap();
    checked(&handle).await;
}

#[tokio::test]
async fn b21_a_pause_lasts_from_its_acceptance_to_that_of_its_resume_though_nobody_read_them() {
    let world = World::new();
    let app = world.open(|b| b.register(sleeps)).await;
    until(&app.start(sleeps, "t", ()).await.unwrap(), Status::Suspended).await;
    app.shutdown().await.unwrap();
    let clock = Arc::new(world.clock.clone());
    let guest = Backstitch::connect_on(Arc::new(world.reopen()), clock);
    let handle = guest.handle::<()>("t").await.unwrap();
    handle.pause().await.unwrap();
    world.advance(30 * MINUTE);
    assert!(handle.resume().shift_timers().await.unwrap().changed);
    world.advance(45 * MINUTE);
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = app.handle::<()>("t").await.unwrap();
    eventually("the sleep has moved", async || due_minutes(&handle.status().await.unwrap()) == 90)
        .await;
    world.advance(15 * MINUTE);
    handle.result().await.unwrap();
    checked(&handle).await;
}

#[tokio::test]
async fn b38_what_is_ending_by_an_unread_kill_is_no_more_to_be_cancelled_paused_or_restarted() {
    let world = World::new();
    let app = world.open(|b| b.register(sleeps)).await;
    until(&app.start(sleeps, "t", ()).await.unwrap(), Status::Suspended).await;
    app.shutdown().await.unwrap();
    let clock = Arc::new(world.clock.clone());
    let guest = Backstitch::connect_on(Arc::new(world.reopen()), clock);
    let handle = guest.handle::<()>("t").await.unwrap();
    assert!(handle.kill().await.unwrap().changed);
    assert!(!handle.cancel().await.unwrap().changed);
    assert!(!handle.terminate().await.unwrap().changed);
    assert!(!handle.kill().await.unwrap().changed);
    for refused in
        [handle.pause().await.err(), handle.restart().await.err(), handle.delete().await.err()]
    {
        let error = refused.expect("it is ending");
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("is ending"), "{error}");
    }
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = app.handle::<()>("t").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Terminated);
    checked(&handle).await;
}

#[tokio::test]
async fn b21_a_wait_times_out_at_resume_or_later_by_the_pause() {
    for (shift, wanted) in [(Shift::No, None), (Shift::Yes, Some(5))] {
        let world = World::new();
        let app = world.open(|b| b.register(waits)).await;
        let handle = app.start(waits, "t", ()).await.unwrap();
        pause_for(&world, &handle, 90, shift).await;
        if shift == Shift::Yes {
            let status = until(&handle, Status::Suspended).await;
            assert_eq!(due_minutes(&status), 150);
            world.clock.set(EPOCH_US + 149 * MINUTE_US);
            handle.send_event("approved", &5).await.unwrap();
        }
        assert_eq!(handle.result().await.unwrap(), wanted);
        checked(&handle).await;
    }
}

#[tokio::test]
async fn b21_an_event_that_came_in_time_during_the_pause_satisfies_the_wait() {
    let world = World::new();
    let app = world.open(|b| b.register(waits)).await;
    let handle = app.start(waits, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    handle.pause().await.unwrap();
    until(&handle, Status::Paused).await;
    world.advance(59 * MINUTE);
    handle.send_event("approved", &5).await.unwrap();
    world.advance(60 * MINUTE);
    handle.resume().await.unwrap();
    assert_eq!(handle.result().await.unwrap(), Some(5), "P8");
    checked(&handle).await;
}

#[tokio::test]
async fn b21_the_delay_before_a_retry_runs_on_while_paused_whatever_is_shifted() {
    #[workflow]
    async fn retries(ctx: Ctx, _: ()) -> Result<u32> {
        let step = ctx.step("call", async move |s| match s.attempt() {
            1 => Err(msg("not now").retry_after("60m")),
            attempt => Ok(attempt),
        });
        step.retry(Retry::constant("1s")).await
    }
    for shift in [Shift::No, Shift::Yes] {
        let world = World::new();
        let app = world.open(|b| b.register(retries)).await;
        let handle = app.start(retries, "t", ()).await.unwrap();
        pause_for(&world, &handle, 30, shift).await;
        let status = until(&handle, Status::Suspended).await;
        assert_eq!(due_minutes(&status), 60);
        world.advance(20 * MINUTE);
        assert_eq!(handle.result().await.unwrap(), 2);
        checked(&handle).await;
    }
}

#[tokio::test]
async fn shift_timers_on_another_verb_is_an_error() {
    let world = World::new();
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = app.start(sleeps, "t", ()).await.unwrap();
    until(&handle, Status::Suspended).await;
    let requests =
        [handle.pause(), handle.cancel(), handle.kill(), handle.set_attributes([("A", 1)])];
    for request in requests {
        let error = request.shift_timers().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("only resume does"), "{error}");
    }
    assert_eq!(handle.status().await.unwrap().status, Status::Suspended);
    assert_eq!(handle.status().await.unwrap().run.inbox_read, 0);
}
