//! Code that does not fit the journal blocks its run and nothing else (B82): nothing is rolled
//! back, and with the old code back it goes on.

use backstitch::{
    Class, Ctx, ErrorKind, FailureExt, FnWorkflow, Handle, Result, Status, StepCtx, join, msg,
    select, workflow_fn,
};

use crate::gates::Gates;
use crate::journal::{Soon, journal, seen_by};
use crate::world::{Effects, World, eventually, until};

/// A step with an undo, held at the gate of its name.
pub fn book(ctx: &Ctx, name: &str) -> backstitch::Step<String> {
    ctx.step(name, async |s: StepCtx| {
        s.state::<Effects>().add(format!("begin {}", s.name()));
        s.state::<Gates>().pass(s.name()).await;
        Ok(s.name().to_owned())
    })
    .rollback(async |u| {
        u.state::<Effects>().add(format!("undo {}", u.step().name));
        Ok(())
    })
}

pub type Code = FnWorkflow<(), String>;

pub fn code<F, Fut>(function: F) -> Code
where
    F: Fn(Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String>> + Send + 'static,
{
    workflow_fn("trip", move |ctx: Ctx, (): ()| function(ctx))
}

/// A flight, then a hotel beside a car of which the first counts, then a sleep, then a dinner.
fn old_code() -> Code {
    code(async |ctx: Ctx| {
        let flight = book(&ctx, "flight").await?;
        let mut hotel = book(&ctx, "hotel");
        let first = select! {
            hotel = &mut hotel => hotel?,
            car = book(&ctx, "car") => car?,
        };
        ctx.sleep("1s").await?;
        let dinner = book(&ctx, "dinner").await?;
        Ok(format!("{flight} {first} {dinner}"))
    })
}

/// Runs the old code until the dinner is being booked, and crashes.
pub async fn crashed() -> (World, Handle<String>) {
    let (world, gates) = (World::new(), Gates::all_open_but("dinner"));
    let app = world.open(|b| b.register(old_code()).state(gates)).await;
    let handle = app.start(old_code(), "t", ()).await.unwrap();
    while world.effects.count("begin dinner") == 0 {
        world.advance_until(&handle, Status::Running).await;
        tokio::task::yield_now().await;
    }
    (world, handle)
}

/// Checks that `new` blocks the run with a mismatch that says all of `wanted`, and that it goes on
/// with the old code.
async fn blocks(new: Code, wanted: &[&str]) {
    let (world, handle) = crashed().await;
    let before = world.effects.all();
    let app = world.open(|b| b.register(new.clone()).state(Gates::all_open())).await;
    let seen = seen_by(&app, &handle).await;
    let status = until(&seen, Status::Blocked).await;
    let (_, _, failure) = &status.blocks[0];
    assert_eq!((failure.type_name.as_str(), failure.class()), ("Mismatch", Class::Attention));
    for part in wanted.iter().chain(&["at row ", "recorded by version \"1\"", "asked by version"]) {
        assert!(failure.message.contains(part), "{part:?} is missing: {failure}");
    }
    let items = app.attention(10).await.unwrap();
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!((items[0].kind.as_str(), items[0].ord), ("mismatch", 0));
    let blocked = journal(&seen).await;
    assert_eq!((blocked.count("Blocked"), blocked.count("RollbackStarted")), (1, 0));

    // Looking again changes nothing.
    let app = world.open(|b| b.register(new).state(Gates::all_open())).await;
    let seen = seen_by(&app, &handle).await;
    until(&seen, Status::Blocked).await;
    world.advance(std::time::Duration::from_secs(1_000_000));
    until(&seen, Status::Blocked).await;
    assert_eq!(journal(&seen).await.count("Blocked"), 1);
    assert_eq!(world.effects.all(), before, "nothing ran, and nothing was undone");

    let app = world.open(|b| b.register(old_code()).state(Gates::all_open())).await;
    let seen = seen_by(&app, &handle).await;
    let result = seen.result().soon().await.unwrap();
    assert!(result == "flight hotel dinner" || result == "flight car dinner", "{result}");
    assert!(app.attention(10).await.unwrap().is_empty(), "the matter is settled");
    assert_eq!(journal(&seen).await.count("Unblocked"), 1);
}

#[tokio::test]
async fn b82_w26_another_name_blocks() {
    let new = code(async |ctx: Ctx| book(&ctx, "train").await);
    blocks(new, &["step flight#1 at ", "changed_code.rs:", "step train#1 at "]).await;
}

#[tokio::test]
async fn b82_w46_an_end_that_comes_too_early_blocks() {
    let returns = code(async |ctx: Ctx| book(&ctx, "flight").await);
    blocks(returns, &["step hotel#1", "car#1", "the end of the workflow"]).await;
}

#[tokio::test]
async fn b82_w46_an_error_or_a_panic_that_comes_too_early_blocks() {
    let fails = code(async |ctx: Ctx| {
        book(&ctx, "flight").await?;
        Err(msg("a bad deploy"))
    });
    blocks(fails, &["the end of the workflow", "a bad deploy"]).await;
    let panics = code(async |ctx: Ctx| {
        book(&ctx, "flight").await?;
        panic!("a bad deploy")
    });
    blocks(panics, &["the end of the workflow", "a bad deploy"]).await;
    let at_once = code(async |_ctx: Ctx| Err(msg("a bad deploy").permanent()));
    blocks(at_once, &["step flight#1", "the end of the workflow"]).await;
}

#[tokio::test]
async fn b82_w46_an_end_in_the_last_recorded_group_blocks_as_well() {
    let new = code(async |ctx: Ctx| {
        book(&ctx, "flight").await?;
        let mut hotel = book(&ctx, "hotel");
        select! {
            _hotel = &mut hotel => {},
            _car = book(&ctx, "car") => {},
        };
        ctx.sleep("1s").await?;
        Ok("without dinner".into())
    });
    blocks(new, &["step dinner#1", "the end of the workflow"]).await;
}

#[tokio::test]
async fn b82_something_more_or_less_blocks() {
    let more = code(async |ctx: Ctx| {
        let (flight, _) = join!(book(&ctx, "flight"), book(&ctx, "taxi"));
        flight
    });
    blocks(more, &["step flight#1", "step taxi#1"]).await;
    let less = code(async |ctx: Ctx| {
        book(&ctx, "flight").await?;
        book(&ctx, "hotel").await
    });
    blocks(less, &["step car#1 at "]).await;
    let nothing = code(async |ctx: Ctx| {
        book(&ctx, "flight").await?;
        std::future::pending().await
    });
    blocks(nothing, &["step hotel#1", "nothing"]).await;
}

#[tokio::test]
async fn b82_a_sleep_in_the_place_of_a_step_blocks() {
    let new = code(async |ctx: Ctx| {
        ctx.sleep("1s").await?;
        Ok(String::new())
    });
    blocks(new, &["step flight#1", "sleep sleep#1"]).await;
}

#[tokio::test]
async fn b82_another_branch_blocks() {
    let new = code(async |ctx: Ctx| book(&ctx.branch("eu"), "flight").await);
    blocks(new, &["step flight#1", "step eu/flight#1"]).await;
}

#[tokio::test]
async fn b82_a_drop_that_is_recorded_and_does_not_happen_blocks() {
    let new = code(async |ctx: Ctx| {
        book(&ctx, "flight").await?;
        let (mut hotel, mut car) = (book(&ctx, "hotel"), book(&ctx, "car"));
        select! {
            _hotel = &mut hotel => {},
            _car = &mut car => {},
        };
        ctx.sleep("1s").await?;
        let dinner = book(&ctx, "dinner").await;
        drop((hotel, car));
        dinner
    });
    blocks(new, &["the drop of step ", "that nothing is dropped"]).await;
}

/// Holds the hotel while it books a car and a dinner; the new code lets go of it before.
fn holds_the_hotel(until_the_end: bool) -> Code {
    code(move |ctx: Ctx| async move {
        let mut hotel = book(&ctx, "hotel");
        select! {
            _hotel = &mut hotel => {},
            _car = book(&ctx, "car") => {},
        };
        let mut hotel = Some(hotel);
        if !until_the_end {
            hotel = None;
        }
        let dinner = book(&ctx, "dinner").await?;
        drop(hotel);
        Ok(dinner)
    })
}

#[tokio::test]
async fn b82_a_drop_that_is_not_recorded_blocks() {
    let (world, gates) = (World::new(), Gates::default());
    let app = world.open(|b| b.register(holds_the_hotel(true)).state(gates.clone())).await;
    let handle = app.start(holds_the_hotel(true), "t", ()).await.unwrap();
    gates.open("car");
    world.effects.wait_for("begin dinner", 1).await;
    let app = world.open(|b| b.register(holds_the_hotel(false)).state(Gates::all_open())).await;
    let seen = seen_by(&app, &handle).await;
    let status = until(&seen, Status::Blocked).await;
    let failure = &status.blocks[0].2;
    assert!(failure.message.contains("that nothing is dropped"), "{failure}");
    assert!(failure.message.contains("the drop of step hotel#1"), "{failure}");

    let app = world.open(|b| b.register(holds_the_hotel(true)).state(Gates::all_open())).await;
    assert_eq!(seen_by(&app, &handle).await.result().soon().await.unwrap(), "dinner");
}

#[tokio::test]
async fn b82_an_outcome_that_does_not_decode_as_the_type_now_asked_for_blocks() {
    let new = code(async |ctx: Ctx| {
        let flight: u64 = ctx
            .step("flight", async |s: StepCtx| {
                s.state::<Effects>().add("never");
                Ok(7_u64)
            })
            .await?;
        Ok(flight.to_string())
    });
    blocks(new, &["step \"flight\" at ", "does not decode as u64"]).await;
}

#[tokio::test]
async fn b82_a_cancel_of_a_blocked_run_undoes_what_the_new_code_still_reaches() {
    let (world, handle) = crashed().await;
    let new = code(async |ctx: Ctx| {
        book(&ctx, "flight").await?;
        Err(msg("a bad deploy"))
    });
    let app = world.open(|b| b.register(new).state(Gates::all_open())).await;
    let seen = seen_by(&app, &handle).await;
    until(&seen, Status::Blocked).await;
    seen.cancel().await.unwrap();
    let status = until(&seen, Status::Stuck).await;
    assert_eq!(status.rollback.done, 0, "older undos do not overtake newer ones");
    let app = world.open(|b| b.register(old_code()).state(Gates::all_open())).await;
    let seen = seen_by(&app, &handle).await;
    until(&seen, Status::Stuck).await;
    seen.retry_undo("dinner").await.unwrap();
    assert_eq!(seen.closed().soon().await.unwrap(), Status::Cancelled);
    let undone: Vec<String> =
        world.effects.all().into_iter().filter(|effect| effect.starts_with("undo")).collect();
    assert_eq!(undone, ["undo dinner", "undo car", "undo hotel", "undo flight"]);
}

#[tokio::test]
async fn b82_one_run_that_does_not_fit_holds_up_no_other() {
    let (world, handle) = crashed().await;
    let new = code(async |ctx: Ctx| match ctx.id() {
        "t" => book(&ctx, "train").await,
        _ => book(&ctx, "flight").await,
    });
    let app = world.open(|b| b.register(new.clone()).state(Gates::all_open())).await;
    let other = app.start(new, "u", ()).await.unwrap();
    assert_eq!(other.result().soon().await.unwrap(), "flight");
    let seen = seen_by(&app, &handle).await;
    eventually("it is blocked", || async {
        seen.status().await.unwrap().status == Status::Blocked
    })
    .await;
    let refused = seen.retry_step("flight").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
}
