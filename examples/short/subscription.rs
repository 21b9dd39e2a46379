//! A subscription is renewed every month until an event ends it. It sleeps from month to month,
//! through restarts; here the clock is moved by hand, so that a year passes at once.

use std::sync::Arc;

use backstitch::engine::ManualClock;
use backstitch::jiff::tz::TimeZone;
use backstitch::jiff::{Timestamp, ToSpan};
use backstitch::{Backstitch, Ctx, Error, NoTimeout, Result, Reuse, StepCtx, select, workflow};
use examples::Store;

#[workflow(events("cancelled"))]
async fn subscription(ctx: Ctx, plan: String) -> Result<String> {
    let began = ctx.now().to_zoned_datetime(TimeZone::UTC);
    let mut cancelled = ctx.wait_event::<String>("end", "cancelled", NoTimeout);
    for month in 1.. {
        let due = began.checked_add((month - 1).months())?.date();
        ctx.step("renew", async move |s: StepCtx| {
            println!("{due}  {} {}", s.name(), s.count());
            Ok(())
        })
        .await?;
        ctx.publish("renewals", &month)?;
        let next = began.checked_add(month.months())?.timestamp();
        select! {
            slept = ctx.sleep_until(next) => slept?,
            why = &mut cancelled => return Ok(format!("{plan}: {month} renewals, then {}", why?)),
        }
    }
    unreachable!("it ends with an event")
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let store = examples::store();
    let began: Timestamp = "2026-01-31T12:00:00Z".parse()?;
    let clock = ManualClock::new(began.as_microsecond());
    let open = Backstitch::open(store.url()).clock(Arc::new(clock.clone()));
    let app = open.register(subscription).run().await?;
    let start = app.start(subscription, "reader-7", "newspaper".to_owned());
    let handle = start.reuse(Reuse::Allow).await?;
    renewed(&handle, 1).await?;

    // Nobody moves the clock of a server: there it ends in its first month.
    if store == Store::Memory {
        let year: Timestamp = "2027-01-31T12:00:00Z".parse()?;
        clock.set(year.as_microsecond());
        renewed(&handle, 13).await?;
    }

    handle.send_event("cancelled", "moved away").by("reader-7").await?;
    println!("{}", handle.result().await?);
    Ok(app.shutdown().await?)
}

/// Waits until it was renewed so often.
async fn renewed(handle: &backstitch::Handle<String>, times: i32) -> Result<(), Error> {
    let mut renewals = handle.follow::<i32>("renewals");
    while renewals.next().await?.is_some_and(|renewals| renewals < times) {}
    Ok(())
}
