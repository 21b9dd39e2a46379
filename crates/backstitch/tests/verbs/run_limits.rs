//! The bounds of one run: who exceeds one fails by name, and is rolled back all the same (P12).

use std::time::Duration;

use backstitch::{
    Class, Ctx, ErrorKind, NoTimeout, Result, RollbackOutcome, RunLimits, Status, select, workflow,
};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use crate::scene::Levers;
use crate::stage::checked;
use crate::world::{Effects, World, until};

/// What the workflow does too much of.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum TooMuch {
    Steps(u32),
    Waits(u32),
    Journal(u32),
    Keys(u32),
    Attributes(u32),
    Patches(u32),
}

#[workflow]
async fn greedy(ctx: Ctx, what: TooMuch) -> Result<u32> {
    ctx.step("book", async move |s| {
        s.state::<Effects>().add("book");
        Ok("a ticket, and a receipt".repeat(10))
    })
    .rollback(async move |u| {
        u.state::<Effects>().add("undoing book");
        u.state::<Levers>().pass("book").await;
        let ticket = u.output().map_or(0, String::len);
        u.state::<Effects>().add(format!("undo book, {ticket} bytes"));
        Ok(())
    })
    .await?;
    match what {
        TooMuch::Steps(count) => {
            for _ in 1..count {
                ctx.step("one", async move |_s| Ok(())).await?;
            }
        }
        TooMuch::Waits(count) => {
            let wait = |_| ctx.wait_event::<()>("w", "a", "1h").optional();
            join_all((0..count).map(wait)).await;
        }
        TooMuch::Journal(count) => {
            for _ in 0..count {
                ctx.step("kilobyte", async move |_s| Ok("x".repeat(1024))).await?;
            }
        }
        TooMuch::Keys(count) => {
            for key in 0..count {
                ctx.publish(&format!("key {key}"), &key)?;
            }
        }
        TooMuch::Attributes(count) => {
            for name in 0..count {
                ctx.set_attribute(&format!("Name{name}"), name)?;
            }
        }
        TooMuch::Patches(count) => {
            for name in 0..count {
                ctx.patched(&format!("patch {name}"));
            }
        }
    }
    ctx.sleep("1s").await?;
    Ok(7)
}

fn limits() -> RunLimits {
    RunLimits { asks_max: 20, waits_open_max: 5, journal_bytes_max: 20_000 }
}

/// Each bound, with what just fits and what is too much.
const BOUNDS: [(&str, TooMuch, TooMuch); 6] = [
    ("AsksPerRun", TooMuch::Steps(19), TooMuch::Steps(21)),
    ("WaitsOpen", TooMuch::Waits(5), TooMuch::Waits(6)),
    ("JournalBytes", TooMuch::Journal(15), TooMuch::Journal(18)),
    ("PublishedKeys", TooMuch::Keys(64), TooMuch::Keys(65)),
    ("Attributes", TooMuch::Attributes(64), TooMuch::Attributes(65)),
    ("Patches", TooMuch::Patches(1_000), TooMuch::Patches(1_001)),
];

#[tokio::test]
async fn p12_who_exceeds_a_bound_of_the_run_fails_by_name_and_is_rolled_back() {
    for (type_name, fits, too_much) in BOUNDS {
        let world = World::new();
        let setup =
            |b: backstitch::Builder| b.register(greedy).state(Levers::default()).limits(limits());
        let app = world.open(setup).await;
        let handle = app.start(greedy, "fits", fits).await.unwrap();
        world.advance_until(&handle, Status::Suspended).await;
        world.advance(Duration::from_secs(3_600));
        world.advance_until(&handle, Status::Succeeded).await;
        assert!(world.effects.count("undoing book") == 0, "{type_name}: it fits");
        checked(&handle).await;

        let handle = app.start(greedy, "t", too_much).await.unwrap();
        let error = handle.result().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed);
        let failure = error.failure().unwrap();
        assert_eq!((failure.type_name.as_str(), failure.class()), (type_name, Class::Permanent));
        assert!(failure.message.contains("are allowed: "), "it names the way out: {failure}");
        assert_eq!(error.rollback().unwrap().outcome, RollbackOutcome::Complete);
        assert_eq!(world.effects.count("undo book, 230 bytes"), 1, "{type_name}");
        checked(&handle).await;
    }
}

#[tokio::test]
async fn p12_the_rollback_after_a_limit_survives_a_crash_and_other_limits() {
    for (type_name, _, too_much) in BOUNDS {
        let (world, levers) = (World::new(), Levers::default());
        levers.pull("hold book");
        let setup =
            |b: backstitch::Builder| b.register(greedy).state(levers.clone()).limits(limits());
        let app = world.open(setup).await;
        let handle = app.start(greedy, "t", too_much).await.unwrap();
        world.effects.wait_for("undoing book", 1).await;
        until(&handle, Status::RollingBack).await;
        // A process with hardly any room finishes it.
        let none = RunLimits { asks_max: 0, waits_open_max: 0, journal_bytes_max: 0 };
        let setup =
            |b: backstitch::Builder| b.register(greedy).state(Levers::default()).limits(none);
        let app = world.open(setup).await;
        let handle = app.handle::<u32>("t").await.unwrap();
        let error = handle.result().await.unwrap_err();
        assert_eq!(error.failure().unwrap().type_name, type_name);
        assert_eq!(world.effects.count("undo book, 230 bytes"), 1, "{type_name}");
        checked(&handle).await;
    }
}

#[tokio::test]
async fn p12_a_run_that_has_only_to_return_is_not_failed_by_a_bound_that_was_lowered() {
    let world = World::new();
    let setup = |b: backstitch::Builder| b.register(greedy).state(Levers::default());
    let app = world.open(setup).await;
    let handle = app.start(greedy, "t", TooMuch::Steps(19)).await.unwrap();
    until(&handle, Status::Suspended).await;
    let lower = RunLimits { journal_bytes_max: 100, ..RunLimits::default() };
    let app = world.open(|b| setup(b).limits(lower)).await;
    let handle = app.handle::<u32>("t").await.unwrap();
    until(&handle, Status::Suspended).await;
    world.advance(Duration::from_secs(1));
    assert_eq!(handle.result().await.unwrap(), 7);
    checked(&handle).await;
}

/// Waits again and again for one of five, and drops the four others in the same moment.
#[workflow]
async fn rounds(ctx: Ctx, count: u32) -> Result<u32> {
    let mut sum = 0;
    for _ in 0..count {
        sum += select! {
            a = ctx.wait_event::<u32>("w", "a", NoTimeout) => a?,
            b = ctx.wait_event::<u32>("w", "b", NoTimeout) => b?,
            c = ctx.wait_event::<u32>("w", "c", NoTimeout) => c?,
            d = ctx.wait_event::<u32>("w", "d", NoTimeout) => d?,
            e = ctx.wait_event::<u32>("w", "e", NoTimeout) => e?,
        };
    }
    Ok(sum)
}

#[tokio::test]
async fn p12_waits_that_are_dropped_in_the_same_turn_are_not_counted() {
    let world = World::new();
    let app = world.open(|b| b.register(rounds).limits(limits())).await;
    let handle = app.start(rounds, "t", 3).await.unwrap();
    for value in [1, 10, 100] {
        handle.send_event("c", &value).await.unwrap();
    }
    assert_eq!(handle.result().await.unwrap(), 111);
    checked(&handle).await;
}

#[tokio::test]
async fn p12_attributes_that_are_taken_away_in_the_same_turn_are_not_counted() {
    #[workflow]
    async fn swaps(ctx: Ctx, _: ()) -> Result<()> {
        (0..64).try_for_each(|name| ctx.set_attribute(&format!("Name{name}"), name))?;
        ctx.sleep("0s").await?;
        ctx.remove_attribute("Name0")?;
        ctx.remove_attribute("Nobody")?;
        ctx.set_attribute("Name64", 64)
    }
    let world = World::new();
    let app = world.open(|b| b.register(swaps)).await;
    let handle = app.start(swaps, "t", ()).await.unwrap();
    handle.result().await.unwrap();
    assert_eq!(checked(&handle).await.attributes.len(), 64);
}
