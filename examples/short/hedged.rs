//! Two taxi companies are asked, the second one only if the first has not answered after 50 ms.
//! The slower one is dropped; if it books all the same, that is undone before success is recorded.

use std::time::Duration;

use backstitch::timeline::{self, Style};
use backstitch::{Backstitch, Ctx, Error, Result, Reuse, Step, StepCtx, select, workflow};

/// Asks one company, which takes its time.
fn ride(ctx: &Ctx, company: &str, takes: Duration) -> Step<String> {
    ctx.step(company, async move |s: StepCtx| {
        tokio::time::sleep(takes).await;
        println!("{} has booked", s.name());
        Ok(format!("a ride with {}", s.name()))
    })
    .rollback(async |u| {
        println!("{} has cancelled", u.step().name);
        Ok(())
    })
}

#[workflow]
async fn book_ride(ctx: Ctx, _: ()) -> Result<String> {
    let second = async {
        ctx.sleep("50ms").await?;
        ride(&ctx, "blue-taxi", Duration::ZERO).await
    };
    select! {
        ride = ride(&ctx, "red-taxi", Duration::from_secs(1)) => ride,
        ride = second => ride,
    }
}

#[tokio::main]
async fn main() -> std::result::Result<(), Error> {
    let app = Backstitch::open(examples::store().url()).register(book_ride).run().await?;
    let handle = app.start(book_ride, "ride-1", ()).reuse(Reuse::Allow).await?;
    println!("booked: {}\n", handle.result().await?);
    print!("{}", timeline::draw(&handle.journal().await?, Style::Plain));
    app.shutdown().await
}
