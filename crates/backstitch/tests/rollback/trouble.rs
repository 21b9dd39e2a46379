//! A store in trouble: nothing is told that is not durable, nothing is done twice, others go on.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch::store::fault::{FaultPlan, FaultStore};
use backstitch::store::{Change, ErrorKind as StoreErrorKind, RunNo, Store, StoreError};
use backstitch::{App, Ctx, ErrorKind, FailureExt, Result, Status, msg, workflow};

use crate::stage::{
    Gates, Stage, a_while, assert_refused, booking, checked, gated, refusal, undos,
};
use crate::world::{Effects, events, eventually};
use crate::wrapped::{Wrapped, has_event};

#[workflow]
async fn succeeds(ctx: Ctx, (): ()) -> Result<String> {
    booking(&ctx, "a").await
}

#[workflow]
async fn fails(ctx: Ctx, (): ()) -> Result<()> {
    booking(&ctx, "a").await?;
    booking(&ctx, "b").await?;
    refusal(&ctx).await
}

#[workflow]
async fn waits(ctx: Ctx, (): ()) -> Result<String> {
    gated(&ctx, "a").await
}

#[workflow]
async fn waits_then_no(ctx: Ctx, (): ()) -> Result<String> {
    gated(&ctx, "a").await?;
    refusal(&ctx).await?;
    Ok(String::new())
}

#[tokio::test]
async fn p1_w42_b97_a_row_that_cannot_be_stored_is_told_to_nobody_as_done_and_hurts_no_other_run() {
    for (poisoned, ends_in) in
        [("ExecutionSucceeded", Status::Succeeded), ("RollbackFinished", Status::Failed)]
    {
        let stage = Stage::new();
        let store = Wrapped::new(stage.world.reopen()).on_commit(move |inner, change| {
            let first_run = matches!(&change, Change::Append(a) if a.run == RunNo(1));
            if first_run && has_event(&change, poisoned) {
                let error = StoreError::new(StoreErrorKind::Rejected, "poison");
                return Box::pin(std::future::ready(Err(error)));
            }
            inner.commit(change)
        });
        let setup = |b: backstitch::Builder| {
            b.state(stage.gates.clone()).register(waits).register(waits_then_no).register(succeeds)
        };
        let app = stage.world.open_on(store.shared(), setup).await;
        let handle = match ends_in {
            Status::Succeeded => app.start(waits, "poisoned", ()).await.unwrap(),
            _ => app.start(waits_then_no, "poisoned", ()).await.unwrap(),
        };
        stage.sees("begin a").await;
        // Somebody waits for it while it comes to its end.
        let (result, closed, ()) =
            tokio::join!(handle.result(), handle.closed(), async { stage.gates.open("a") });
        for error in [result.unwrap_err(), closed.unwrap_err()] {
            assert!(error.to_string().contains("poison"), "{error}");
            assert!(!matches!(error.kind(), ErrorKind::Failed | ErrorKind::Stopped), "{error}");
        }
        assert_eq!(app.attention(10).await.unwrap().len(), 1, "it is listed");
        let good = app.start(succeeds, "other", ()).await.unwrap();
        assert_eq!(good.result().await.unwrap(), "ticket a");
        // With a store that takes the row, everything goes on.
        let app = stage.open(setup).await;
        let handle = app.handle::<String>("poisoned").await.unwrap();
        assert_eq!(handle.closed().await.unwrap(), ends_in);
        checked(&handle).await;
    }
}

async fn on_faults(stage: &Stage, plan: &FaultPlan) -> App {
    let store = Arc::new(FaultStore::new(Arc::new(stage.world.reopen()), plan.clone()));
    stage.world.open_on(store, |b| b.register(succeeds).register(fails)).await
}

#[tokio::test]
async fn b96_a_start_whose_answer_was_lost_runs_all_the_same() {
    let (stage, plan) = (Stage::new(), FaultPlan::new());
    plan.lose_answer(1);
    let app = on_faults(&stage, &plan).await;
    let handle = app.start(succeeds, "t", ()).await.unwrap();
    assert!(handle.created());
    assert_eq!(handle.result().await.unwrap(), "ticket a");
    assert_eq!(stage.effects(), ["do a"]);
    checked(&handle).await;
}

#[tokio::test]
async fn b96_a_start_that_lands_after_its_caller_gave_up_is_driven_when_it_is_sent_again() {
    let stage = Stage::new();
    let late = Mutex::new(None);
    let starts = AtomicUsize::new(0);
    let store = Wrapped::new(stage.world.reopen()).on_commit(move |inner, change| {
        if matches!(change, Change::Start(_)) && starts.fetch_add(1, Ordering::SeqCst) == 0 {
            *late.lock().unwrap() = Some(change);
            let error = StoreError::new(StoreErrorKind::Unavailable, "on its way");
            return Box::pin(std::future::ready(Err(error)));
        }
        if let Some(change) = late.lock().unwrap().take() {
            drop(inner.commit(change));
        }
        inner.commit(change)
    });
    let app = stage.world.open_on(store.shared(), |b| b.register(succeeds)).await;
    let error = app.start(succeeds, "t", ()).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let handle = app.start(succeeds, "t", ()).await.unwrap();
    assert!(!handle.created());
    assert_eq!(handle.result().await.unwrap(), "ticket a");
    checked(&handle).await;
}

#[tokio::test]
async fn b96_a_cancel_whose_answer_was_lost_is_carried_out_once() {
    let (stage, plan) = (Stage::new(), FaultPlan::new());
    let store = Arc::new(FaultStore::new(Arc::new(stage.world.reopen()), plan.clone()));
    let setup = |b: backstitch::Builder| b.state(stage.gates.clone()).register(waits);
    let app = stage.world.open_on(store, setup).await;
    let handle = app.start(waits, "t", ()).await.unwrap();
    stage.sees("begin a").await;
    plan.lose_answer(plan.count() + 1);
    let cancel = || handle.cancel().request_id("r-1");
    assert_eq!(cancel().await.unwrap_err().kind(), ErrorKind::Unavailable);
    cancel().await.unwrap();
    stage.gates.open("a");
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    let names = events(&handle).await;
    assert_eq!(names.iter().filter(|n| **n == "CancelRequested").count(), 1);
    checked(&handle).await;
}

#[tokio::test]
async fn b66_t3_a_full_store_ends_nothing_and_the_work_goes_on_when_it_is_writable_again() {
    let (stage, plan) = (Stage::new(), FaultPlan::new());
    let app = on_faults(&stage, &plan).await;
    // The start takes the first change; everything after it is refused for a while.
    plan.unavailable(2, 3);
    let handle = app.start(fails, "t", ()).await.unwrap();
    for refused in 2..=4 {
        eventually("it was offered", async || plan.count() == refused).await;
        eventually("the trouble is seen", async || app.trouble().is_some()).await;
        assert!(stage.effects().is_empty(), "nothing starts before it is durable (P2)");
        stage.world.advance(Duration::from_millis(250));
    }
    assert_refused(&handle.result().await.unwrap_err());
    assert!(app.trouble().is_none());
    assert_eq!(undos(&stage.effects()).len(), 2);
    checked(&handle).await;
}

#[tokio::test]
async fn b66_t3_a_store_that_fills_up_under_the_rollback_loses_no_undo() {
    let stage = Stage::new();
    let commits = {
        let plan = FaultPlan::new();
        let app = on_faults(&Stage::new(), &plan).await;
        app.start(fails, "t", ()).await.unwrap().result().await.unwrap_err();
        plan.count()
    };
    let plan = FaultPlan::new();
    let app = on_faults(&stage, &plan).await;
    plan.unavailable(commits - 1, 2);
    let handle = app.start(fails, "t", ()).await.unwrap();
    for refused in [commits - 1, commits] {
        eventually("it was offered", async || plan.count() == refused).await;
        eventually("the trouble is seen", async || app.trouble().is_some()).await;
        stage.world.advance(Duration::from_millis(250));
    }
    assert_refused(&handle.result().await.unwrap_err());
    assert_eq!(undos(&stage.effects()), ["undo b: succeeded", "undo a: succeeded"]);
    checked(&handle).await;
}

#[tokio::test]
async fn w35_t3_a_journal_that_cannot_be_read_stops_no_other_run() {
    let stage = Stage::new();
    let setup = |b: backstitch::Builder| b.state(stage.gates.clone()).register(waits);
    let app = stage.open(setup).await;
    app.start(waits, "damaged", ()).await.unwrap();
    app.start(waits, "whole", ()).await.unwrap();
    stage.world.effects.wait_for("begin a", 2).await;
    stage.gates.open("a");

    let damage = |run: RunNo, mut rows: Vec<bytes::Bytes>| {
        if run == RunNo(1)
            && let Some(row) = rows.last_mut()
        {
            let mut bytes = row.to_vec();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            *row = bytes.into();
        }
        rows
    };
    let store = Wrapped::new(stage.world.reopen()).on_rows(damage);
    let app = stage.world.open_on(store.shared(), setup).await;
    let whole = app.handle::<String>("whole").await.unwrap();
    assert_eq!(whole.result().await.unwrap(), "ticket a");
    let attention = app.attention(10).await.unwrap();
    assert_eq!((attention.len(), attention[0].id.as_str()), (1, "damaged"));
    assert_eq!(attention[0].kind, "unreadable");
    assert!(attention[0].message.contains("\"damaged\""), "{}", attention[0].message);
    let damaged = app.handle::<String>("damaged").await.unwrap();
    assert_eq!(damaged.result().await.unwrap_err().kind(), ErrorKind::Unreadable);
    assert_eq!(damaged.cancel().await.unwrap_err().kind(), ErrorKind::Unreadable);

    // From a good copy it goes on.
    let app = stage.open(setup).await;
    let handle = app.handle::<String>("damaged").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "ticket a");
    checked(&handle).await;
}

#[workflow]
async fn refused_at_a_gate(ctx: Ctx, (): ()) -> Result<()> {
    gated(&ctx, "a").await?;
    ctx.step("no", async |s| {
        s.state::<Effects>().add("begin no");
        s.state::<Gates>().pass("no").await;
        Err(msg("no").permanent().with_code("refused"))
    })
    .await
}

#[tokio::test]
async fn p4_no_body_and_no_undo_begins_once_its_run_is_not_held_any_more() {
    // What is in flight when the run is lost, and what would begin next.
    for (in_flight, next) in [("begin a", "begin no"), ("begin no", "undo a: succeeded")] {
        let stage = Stage::new();
        let (held, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let (holds, in_vain) = (held.clone(), asked.clone());
        let store = Wrapped::new(stage.world.reopen()).on_holds(move |_| {
            let holds = holds.load(Ordering::SeqCst);
            in_vain.fetch_add(usize::from(!holds), Ordering::SeqCst);
            holds
        });
        let setup =
            |b: backstitch::Builder| b.state(stage.gates.clone()).register(refused_at_a_gate);
        let app = stage.world.open_on(store.shared(), setup).await;
        app.start(refused_at_a_gate, "a", ()).await.unwrap();
        if in_flight == "begin no" {
            stage.gates.open("a");
        }
        stage.sees(in_flight).await;
        held.store(false, Ordering::SeqCst);
        stage.gates.open("a");
        stage.gates.open("no");
        eventually("it is asked", async || asked.load(Ordering::SeqCst) > 0).await;
        app.engine().give_up(RunNo(1));
        a_while().await;
        assert_eq!(stage.world.effects.count(next), 0, "{:?}", stage.effects());
        // Whoever has it next goes on where it stands.
        let app = stage.open(|b| b.register(refused_at_a_gate)).await;
        let handle = app.handle::<()>("a").await.unwrap();
        assert_refused(&handle.result().await.unwrap_err());
        assert_eq!(undos(&stage.effects()), ["undo a: succeeded"]);
        checked(&handle).await;
    }
}
