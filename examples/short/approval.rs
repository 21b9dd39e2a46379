//! A purchase waits a day for a person. Somebody approves the first one by sending an event; nobody
//! answers the second one, so its wait times out, and what it had done is undone.

use std::sync::Arc;
use std::time::Duration;

use backstitch::engine::ManualClock;
use backstitch::timeline::{self, Style};
use backstitch::{Backstitch, Ctx, Error, FailureExt, Result, Reuse, StepCtx, Undo, msg, workflow};
use examples::Store;

#[workflow(events("approved"))]
async fn purchase(ctx: Ctx, (item, patience): (String, Duration)) -> Result<String> {
    ctx.step("reserve-budget", async |_: StepCtx| Ok(()))
        .rollback(async |_: Undo<()>| Ok(())) // here the budget is released
        .await?;
    ctx.publish("stage", "waits for approval")?;
    let by: Option<String> = ctx.wait_event("approval", "approved", patience).optional().await?;
    let by = by.ok_or_else(|| msg(format!("nobody approved {item} in time")).permanent())?;
    ctx.step("buy", async move |_: StepCtx| Ok(format!("bought {item}, approved by {by}"))).await
}

#[tokio::main]
async fn main() -> std::result::Result<(), Error> {
    let store = examples::store();
    // A clock that is moved by hand: the day passes at once. Nobody moves that of a server.
    let clock = ManualClock::new(0);
    let day = match store {
        Store::Memory => Duration::from_secs(24 * 60 * 60),
        Store::Server(_) => Duration::from_secs(2),
    };
    let open = Backstitch::open(store.url()).clock(Arc::new(clock.clone()));
    let app = open.register(purchase).run().await?;

    let chair = app.start(purchase, "chair", ("a chair".into(), day)).reuse(Reuse::Allow).await?;
    // It is kept if it comes before the wait.
    chair.send_event("approved", "Ada").by("Ada").await?;
    println!("{}\n", chair.result().await?);

    let yacht = app.start(purchase, "yacht", ("a yacht".into(), day)).reuse(Reuse::Allow).await?;
    // What is published with the wait says that it has begun.
    yacht.follow::<String>("stage").next().await?;
    clock.advance(day);
    match yacht.result().await {
        Ok(said) => println!("{said}"),
        Err(error) => println!("{error}"),
    }
    print!("\n{}", timeline::draw(&yacht.journal().await?, Style::Plain));
    app.shutdown().await
}
