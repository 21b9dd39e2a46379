//! Replay takes no rows: a journal that is finished is left alone, an open one gets only what is new.

use backstitch::{App, Ctx, Handle, Status, join, msg, workflow_fn};

use crate::gates::{Gates, Seen, gated, with};
use crate::journal::{Soon, seen_by, until_recorded};
use crate::world::{Effects, World, until};

async fn rows_of(app: &App, id: &str) -> Vec<backstitch::Row> {
    app.handle::<()>(id).await.unwrap().journal().await.unwrap()
}

#[tokio::test]
async fn b85_a_finished_journal_gives_the_same_result_again_and_takes_no_more_rows() {
    let seen = Seen::default();
    let ends = {
        let seen = seen.clone();
        workflow_fn("ends", move |ctx: Ctx, fail: bool| {
            let seen = seen.clone();
            async move {
                seen.add("runs");
                ctx.step("book", async |_s| Ok(()))
                    .rollback(async |u| {
                        u.state::<Effects>().add("undo");
                        Ok(())
                    })
                    .await?;
                if fail { Err(msg("no")) } else { Ok(7_u32) }
            }
        })
    };
    let world = World::new();
    let app = world.open(|b| b.register(ends.clone())).await;
    let good = app.start(ends.clone(), "good", false).await.unwrap();
    let bad = app.start(ends.clone(), "bad", true).await.unwrap();
    assert_eq!(good.result().soon().await.unwrap(), 7);
    bad.result().soon().await.unwrap_err();
    let before = (rows_of(&app, "good").await, rows_of(&app, "bad").await);
    let passes = seen.all().len();
    for _ in 0..3 {
        let app = world.open(|b| b.register(ends.clone())).await;
        assert_eq!(seen_by(&app, &good).await.result().soon().await.unwrap(), 7);
        let error = seen_by(&app, &bad).await.result().soon().await.unwrap_err();
        assert_eq!(error.failure().unwrap().message, "no");
        let again = app.start(ends.clone(), "good", false).await.unwrap();
        assert!(!again.created());
        tokio::task::yield_now().await;
        assert_eq!((rows_of(&app, "good").await, rows_of(&app, "bad").await), before);
    }
    assert_eq!(seen.all().len(), passes, "closed executions are not run at all");
    assert_eq!(world.effects.count("undo"), 1);
}

#[tokio::test]
async fn b85_replay_of_an_open_run_appends_only_what_is_new() {
    let world = World::new();
    let waits = workflow_fn("waits", |ctx: Ctx, (): ()| async move {
        let (a, b) = join!(gated(&ctx, "a"), gated(&ctx, "b"));
        ctx.sleep("1h").await?;
        Ok(vec![a?, b?])
    });
    let app = world.open(with(&waits, &Gates::all_open())).await;
    let handle: Handle<Vec<String>> = app.start(waits.clone(), "t", ()).await.unwrap();
    until_recorded(&handle, "TimerStarted", 1).await;
    let before = rows_of(&app, "t").await;
    for _ in 0..3 {
        let app = world.open(with(&waits, &Gates::all_open())).await;
        until(&seen_by(&app, &handle).await, Status::Suspended).await;
        assert_eq!(rows_of(&app, "t").await, before);
    }
}
