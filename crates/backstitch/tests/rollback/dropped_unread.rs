//! Steps whose outcome the code had not taken when it let go of them (R13).

use backstitch::core::event::Event;
use backstitch::{Ctx, Result, Status, race, select, workflow};

use crate::stage::{Stage, booking, checked, gated, undos};
use crate::world::{events, until};

/// The second step ends while the code holds its future and awaits something else; then the code
/// lets go of it.
#[workflow]
async fn holds_the_loser(ctx: Ctx, (): ()) -> Result<String> {
    let (mut first, mut second) = (booking(&ctx, "first"), gated(&ctx, "second"));
    let winner = select! {
        first = &mut first => first?,
        second = &mut second => second?,
    };
    gated(&ctx, "then").await?;
    drop(second);
    Ok(winner)
}

#[tokio::test]
async fn r13_a_step_that_ended_unread_before_the_code_let_go_of_it_is_undone() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(holds_the_loser)).await;
    let handle = app.start(holds_the_loser, "t", ()).await.unwrap();
    stage.sees("begin then").await;
    stage.gates.open("second");
    stage.sees("do second").await;
    until_recorded(&handle, 2).await;
    stage.gates.open("then");
    assert_eq!(handle.result().await.unwrap(), "ticket first");
    assert_eq!(undos(&stage.effects()), ["undo second: succeeded"]);
    checked(&handle).await;
}

async fn until_recorded<T>(handle: &backstitch::Handle<T>, ord: u32) {
    crate::world::eventually("its outcome is recorded", async || {
        handle.status().await.unwrap().run.step(ord).unwrap().is_recorded()
    })
    .await;
}

#[tokio::test]
async fn r13_the_drop_of_an_unread_outcome_is_the_same_after_a_crash() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(holds_the_loser)).await;
    let handle = app.start(holds_the_loser, "t", ()).await.unwrap();
    stage.sees("begin then").await;
    stage.gates.open("second");
    until_recorded(&handle, 2).await;
    let app = stage.open(|b| b.register(holds_the_loser)).await;
    stage.gates.open("then");
    let handle = app.handle::<String>("t").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "ticket first");
    assert_eq!(undos(&stage.effects()), ["undo second: succeeded"]);
    assert!(!events(&handle).await.contains(&"Blocked"));
    checked(&handle).await;
}

/// Both outcomes become known while the run is paused; the first one shown drops the other step.
#[workflow]
async fn paused_race(ctx: Ctx, (): ()) -> Result<String> {
    let (_, winner) = race([gated(&ctx, "first"), gated(&ctx, "second")]).await;
    let winner = winner?;
    ctx.sleep("1m").await?;
    Ok(winner)
}

#[tokio::test]
async fn r13_the_recorded_outcome_of_a_dropped_step_is_never_shown() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(paused_race)).await;
    let handle = app.start(paused_race, "t", ()).await.unwrap();
    stage.sees("begin second").await;
    handle.pause().await.unwrap();
    stage.gates.open("first");
    stage.gates.open("second");
    until(&handle, Status::Paused).await;
    handle.resume().await.unwrap();
    stage.world.advance_until(&handle, Status::Succeeded).await;
    let rows = handle.journal().await.unwrap();
    let shown = rows.iter().flat_map(|row| &row.events).filter_map(|event| match event {
        Event::Shown(e) => Some(e.ord),
        _ => None,
    });
    assert_eq!(shown.collect::<Vec<_>>(), [1]);
    assert_eq!(undos(&stage.effects()), ["undo second: succeeded"]);
    checked(&handle).await;
}
