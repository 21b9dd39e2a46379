//! Changes of the code that fit the journal (B82), and code that fits again.

use backstitch::{Ctx, Status, StepCtx, join, select, workflow_fn};

use crate::changed_code::{Code, book, code, crashed};
use crate::gates::Gates;
use crate::journal::{Soon, journal, seen_by};
use crate::world::{Effects, World, until};

/// Checks that `new` fits the journal of the old code.
async fn fits(new: Code) {
    let (world, handle) = crashed().await;
    let app = world.open(|b| b.register(new).state(Gates::all_open())).await;
    let seen = seen_by(&app, &handle).await;
    seen.result().soon().await.unwrap();
    assert_eq!(journal(&seen).await.count("Blocked"), 0);
}

#[tokio::test]
async fn b82_what_comes_after_the_recorded_part_may_change() {
    fits(code(async |ctx: Ctx| {
        let flight = book(&ctx, "flight").await?;
        let mut hotel = book(&ctx, "hotel");
        let first = select! {
            hotel = &mut hotel => hotel?,
            car = book(&ctx, "car") => car?,
        };
        ctx.sleep("9s").await?;
        // Without an undo, with another policy, and followed by something new.
        let dinner = ctx.step("dinner", async |_s| Ok("dinner".to_owned())).timeout("7s").await?;
        let (opera, taxi) = join!(book(&ctx, "opera"), book(&ctx, "taxi"));
        Ok(format!("{flight} {first} {dinner} {} {}", opera?, taxi?))
    }))
    .await;
}

#[tokio::test]
async fn b82_the_order_in_which_things_are_asked_for_at_once_may_change() {
    fits(code(async |ctx: Ctx| {
        let flight = book(&ctx, "flight").await?;
        let (mut hotel, mut car) = (Some(book(&ctx, "hotel")), Some(book(&ctx, "car")));
        let first = select! {
            car = car.as_mut().expect("it is there") => car?,
            hotel = hotel.as_mut().expect("it is there") => hotel?,
        };
        (hotel, car) = (None, None);
        ctx.sleep("1s").await?;
        let dinner = book(&ctx, "dinner").await?;
        drop((hotel, car));
        Ok(format!("{flight} {first} {dinner}"))
    }))
    .await;
}

#[tokio::test]
async fn b82_an_input_that_no_longer_decodes_blocks_until_code_that_reads_it_is_back() {
    let reads = workflow_fn("reads", |ctx: Ctx, text: String| async move {
        ctx.step("held", async |s: StepCtx| {
            s.state::<Effects>().add("held");
            s.state::<Gates>().pass("held").await;
            Ok(())
        })
        .await?;
        Ok(text)
    });
    let other = workflow_fn("reads", |_ctx: Ctx, number: u32| async move { Ok(number) });
    let world = World::new();
    let app = world.open(|b| b.register(reads.clone()).state(Gates::default())).await;
    let handle = app.start(reads.clone(), "t", "seven".into()).await.unwrap();
    world.effects.wait_for("held", 1).await;

    let app = world.open(|b| b.register(other).state(Gates::all_open())).await;
    let seen = seen_by(&app, &handle).await;
    let status = until(&seen, Status::Blocked).await;
    let failure = &status.blocks[0].2;
    assert!(failure.message.contains("the input of workflow \"reads\" \"1\""), "{failure}");
    assert!(failure.message.contains("does not decode as u32"), "{failure}");
    assert_eq!(app.attention(10).await.unwrap()[0].kind, "mismatch");

    let app = world.open(|b| b.register(reads).state(Gates::all_open())).await;
    assert_eq!(seen_by(&app, &handle).await.result().soon().await.unwrap(), "seven");
    assert!(app.attention(10).await.unwrap().is_empty());
}
