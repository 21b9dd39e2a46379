//! Deadlines of executions.

use std::time::Duration;

use backstitch::{CauseKind, Ctx, ErrorKind, Result, Status, msg, workflow};

use crate::checked;
use crate::world::{Effects, World, until};

#[workflow]
async fn sleeps(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("book", async move |s| {
        s.state::<Effects>().add("booked");
        Ok(())
    })
    .rollback(async move |u| {
        u.state::<Effects>().add("taken back");
        Ok(())
    })
    .await?;
    ctx.sleep("10h").await
}

#[workflow]
async fn blocks(ctx: Ctx, _: ()) -> Result<()> {
    ctx.step("call", async move |_s| Err::<(), _>(msg("no such key").attention())).await
}

use backstitch::FailureExt;

#[tokio::test]
async fn b72_w17_a_deadline_that_passes_while_it_sleeps_rolls_it_back_as_failed() {
    let world = World::new();
    let app = world.open(|b| b.register(sleeps)).await;
    let handle = app.start(sleeps, "t", ()).deadline("1h").await.unwrap();
    until(&handle, Status::Suspended).await;
    world.advance(Duration::from_secs(3_599));
    until(&handle, Status::Suspended).await;
    world.advance(Duration::from_secs(1));
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert_eq!(error.failure().unwrap().type_name, "DeadlinePassed");
    assert_eq!(world.effects.all(), ["booked", "taken back"]);
    let run = checked(&handle).await;
    assert_eq!(run.rollback.unwrap().causes[0].kind(), CauseKind::Deadline);
}

#[tokio::test]
async fn b72_a_deadline_passes_while_it_is_blocked_and_while_nobody_runs_it() {
    let world = World::new();
    let app = world.open(|b| b.register(blocks).register(sleeps)).await;
    let blocked = app.start(blocks, "b", ()).deadline("1h").await.unwrap();
    until(&blocked, Status::Blocked).await;
    let left = app.start(sleeps, "s", ()).deadline("1h").await.unwrap();
    until(&left, Status::Suspended).await;
    world.advance(Duration::from_secs(3_600));
    assert_eq!(blocked.closed().await.unwrap(), Status::Failed);
    assert_eq!(left.closed().await.unwrap(), Status::Failed);

    let orphan = app.start(sleeps, "o", ()).deadline("1h").await.unwrap();
    until(&orphan, Status::Suspended).await;
    // A process that does not know the workflow decides, and waits for one that does.
    let app = world.open(|b| b).await;
    world.advance(Duration::from_secs(3_600));
    let orphan = app.handle::<()>("o").await.unwrap();
    let status = until(&orphan, Status::RollingBack).await;
    assert_eq!(status.run.rollback.as_ref().unwrap().causes[0].kind(), CauseKind::Deadline);
    let app = world.open(|b| b.register(sleeps)).await;
    let orphan = app.handle::<()>("o").await.unwrap();
    assert_eq!(orphan.closed().await.unwrap(), Status::Failed);
    checked(&orphan).await;
}

#[tokio::test]
async fn b72_while_it_is_paused_the_deadline_is_judged_at_resume() {
    for (shift, wanted) in [(false, Status::Failed), (true, Status::Suspended)] {
        let world = World::new();
        let app = world.open(|b| b.register(sleeps)).await;
        let handle = app.start(sleeps, "t", ()).deadline("1h").await.unwrap();
        until(&handle, Status::Suspended).await;
        handle.pause().await.unwrap();
        until(&handle, Status::Paused).await;
        world.advance(Duration::from_secs(7_200));
        // Somebody looks, and nothing happens.
        handle.set_attributes([("Looked", true)]).await.unwrap();
        until(&handle, Status::Paused).await;
        let resume = handle.resume();
        if shift { resume.shift_timers().await } else { resume.await }.unwrap();
        let status = until(&handle, wanted).await;
        if shift {
            let due = status.run.due.first().unwrap().0;
            assert_eq!(due, crate::world::EPOCH_US + 12 * 3_600_000_000, "b21");
        }
        checked(&handle).await;
    }
}
