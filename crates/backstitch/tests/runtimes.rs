//! Backstitch lives on the runtime that it was started on, whoever calls it.

mod world;

use std::sync::Arc;
use std::time::Duration;

use backstitch::engine::ManualClock;
use backstitch::{App, Backstitch, Ctx, ErrorKind, Result, Status, workflow};
use tokio::runtime::{Builder, Runtime};
use world::{EPOCH_US, until};

#[workflow]
async fn nap(ctx: Ctx, name: String) -> Result<String> {
    ctx.sleep("1h").await?;
    ctx.step("greet", async move |_s| Ok(format!("Hello, {name}"))).await
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn open_on(home: &Runtime, clock: &ManualClock) -> App {
    let builder = Backstitch::open("memory:").clock(Arc::new(clock.clone())).register(nap);
    home.block_on(builder.run()).unwrap()
}

#[test]
fn t7_a_run_that_was_started_on_a_passing_runtime_goes_on_when_that_is_gone() {
    let (home, clock) = (runtime(), ManualClock::new(EPOCH_US));
    let app = open_on(&home, &clock);
    let passing = runtime();
    let handle = passing.block_on(app.start(nap, "a", "Ada".into()).into_future()).unwrap();
    drop(passing);
    home.block_on(until(&handle, Status::Suspended));
    clock.advance(Duration::from_secs(3600));
    assert_eq!(home.block_on(handle.result()).unwrap(), "Hello, Ada");

    let passing = runtime();
    let handle = passing.block_on(app.start(nap, "b", "Bob".into()).into_future()).unwrap();
    passing.block_on(handle.cancel().into_future()).unwrap();
    drop(passing);
    assert_eq!(home.block_on(handle.closed()).unwrap(), Status::Cancelled);
    home.block_on(app.shutdown()).unwrap();
}

#[test]
fn an_execution_can_be_started_outside_of_any_runtime() {
    let (home, clock) = (runtime(), ManualClock::new(EPOCH_US));
    let app = open_on(&home, &clock);
    let start = app.start(nap, "a", "Ada".into()).into_future();
    let handle = futures_util::FutureExt::now_or_never(start);
    let handle = match handle {
        Some(handle) => handle.unwrap(),
        None => home.block_on(app.start(nap, "a", "Ada".into()).into_future()).unwrap(),
    };
    assert_eq!(handle.id(), "a");
    home.block_on(app.shutdown()).unwrap();
}

#[test]
fn whoever_outlives_the_runtime_of_backstitch_is_told_so() {
    let (home, clock) = (runtime(), ManualClock::new(EPOCH_US));
    let app = open_on(&home, &clock);
    let handle = home.block_on(app.start(nap, "a", "Ada".into()).into_future()).unwrap();
    drop(home);
    let other = runtime();
    let error = other.block_on(handle.result()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stopped, "{error}");
    let started = other.block_on(app.start(nap, "b", "Bob".into()).into_future());
    assert_eq!(started.err().expect("nobody would run it").kind(), ErrorKind::Stopped);
}
