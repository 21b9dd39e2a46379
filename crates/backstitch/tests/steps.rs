//! Steps and their undos, from end to end.

mod world;

use backstitch::{Ctx, ErrorKind, FailureExt, Result, Status, clone, msg, workflow};
use world::{Effects, World, events};

#[workflow]
async fn add_up(ctx: Ctx, last: String) -> Result<u32> {
    let mut sum = 0;
    for i in 1..=2_u32 {
        sum += ctx
            .step("add", async move |s| {
                s.state::<Effects>().add(format!("add {i}"));
                Ok(i)
            })
            .rollback(async move |u| {
                u.state::<Effects>().add(format!("undo {:?}", u.output()));
                Ok(())
            })
            .await?;
    }
    let refuse = clone!(last => async move |_s| match last.as_str() {
        "refuse" => Err(msg("the bank said no").permanent().with_code("declined")),
        _ => Ok(()),
    });
    ctx.step("last", refuse).await?;
    Ok(sum)
}

#[tokio::test]
async fn b50_undos_run_newest_first_and_the_error_is_kept() {
    let world = World::new();
    let app = world.open(|b| b.register(add_up)).await;
    let good = app.start(add_up, "good", "accept".into()).await.unwrap();
    assert_eq!(good.result().await.unwrap(), 3);

    let bad = app.start(add_up, "bad", "refuse".into()).await.unwrap();
    let error = bad.result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert_eq!(error.failure().unwrap().code, "declined");
    assert_eq!(bad.status().await.unwrap().status, Status::Failed);
    let wanted = ["add 1", "add 2", "add 1", "add 2", "undo Some(2)", "undo Some(1)"];
    assert_eq!(world.effects.all(), wanted);
    let journal = events(&bad).await;
    assert_eq!(journal.last(), Some(&"ExecutionFailed"));
}
