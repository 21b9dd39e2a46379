//! Undos that fail for good: attention, stuck, retry, waive, hold.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use backstitch::core::event::Event;
use backstitch::{
    App, Ctx, ErrorKind, FailureExt, Handle, OnUndoFailure, Result, Retry, RollbackOutcome, Status,
    Step, msg, workflow,
};

use crate::stage::{Stage, assert_refused, checked, refusal, trace, undos};
use crate::world::{Effects, events, until};

/// The undos that fail at the moment, and which attempts were made.
#[derive(Clone, Default)]
struct Broken(Arc<Mutex<HashSet<String>>>);

impl Broken {
    fn of(names: &[&str]) -> Broken {
        let broken = Broken::default();
        broken.0.lock().unwrap().extend(names.iter().map(|name| (*name).to_owned()));
        broken
    }

    fn mend(&self, name: &str) {
        self.0.lock().unwrap().remove(name);
    }

    fn has(&self, name: &str) -> bool {
        self.0.lock().unwrap().contains(name)
    }
}

fn breakable(ctx: &Ctx, name: &str) -> Step<String> {
    ctx.step(name, async move |s| Ok(format!("ticket {}", s.name()))).rollback(async |u| {
        let name = u.step().name;
        if u.state::<Broken>().has(&name) {
            u.state::<Effects>().add(format!("undo {name}: broken"));
            return Err(msg(format!("{name} is broken")).permanent());
        }
        u.state::<Effects>().add(trace(&u));
        Ok(())
    })
}

#[workflow]
async fn four(ctx: Ctx, halts_at: String) -> Result<()> {
    for name in ["a", "b", "c", "d"] {
        let on_failure =
            if halts_at == name { OnUndoFailure::Halt } else { OnUndoFailure::Continue };
        breakable(&ctx, name).rollback_on_failure(on_failure).await?;
    }
    refusal(&ctx).await
}

async fn stuck(stage: &Stage, broken: &Broken, halts_at: &str) -> (App, Handle<()>) {
    let app = stage.open(|b| b.state(broken.clone()).register(four)).await;
    let handle = app.start(four, "t", halts_at.to_owned()).await.unwrap();
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stuck, "whoever waits is told at once");
    assert_refused(&error);
    (app, handle)
}

#[tokio::test]
async fn b57_w10_w20_w41_the_others_run_the_waiter_is_told_and_a_retry_settles_it() {
    let (stage, broken) = (Stage::new(), Broken::of(&["c"]));
    let (app, handle) = stuck(&stage, &broken, "").await;
    let wanted = ["undo d: succeeded", "undo c: broken", "undo b: succeeded", "undo a: succeeded"];
    assert_eq!(undos(&stage.effects()), wanted);
    let status = handle.status().await.unwrap();
    assert_eq!(status.status, Status::Stuck);
    assert_eq!((status.rollback.done, status.rollback.of, status.rollback.failed), (3, 4, 1));
    let attention = app.attention(10).await.unwrap();
    assert_eq!((attention.len(), attention[0].ord), (1, 3));
    assert_eq!(attention[0].kind, "undo_failed");
    assert!(attention[0].message.contains("c is broken"), "{}", attention[0].message);
    assert!(!events(&handle).await.contains(&"RollbackFinished"));

    // Somebody may go on waiting for the end while it is stuck.
    let waiting = async { handle.closed().await.unwrap() };
    let repair = async {
        assert_eq!(
            handle.result().await.unwrap_err().kind(),
            ErrorKind::Stuck,
            "and be told again"
        );
        broken.mend("c");
        handle.retry_undo("c").by("ops").await.unwrap();
    };
    let (ended, ()) = tokio::join!(waiting, repair);
    assert_eq!(ended, Status::Failed);
    assert_eq!(stage.effects().last().unwrap(), "undo c: succeeded");
    assert!(app.attention(10).await.unwrap().is_empty());
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.rollback().unwrap().outcome, RollbackOutcome::Complete);
    checked(&handle).await;
}

#[tokio::test]
async fn b57_w40_a_waiver_settles_it_with_name_and_reason_and_the_outcome_is_incomplete() {
    let (stage, broken) = (Stage::new(), Broken::of(&["c"]));
    let (app, handle) = stuck(&stage, &broken, "").await;
    handle.waive_undo("c").by("ops").reason("refunded by hand").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    let error = handle.result().await.unwrap_err();
    assert_refused(&error);
    assert_eq!(error.rollback().unwrap().outcome, RollbackOutcome::Incomplete);
    assert!(app.attention(10).await.unwrap().is_empty());
    let rows = handle.journal().await.unwrap();
    let waived = rows.iter().flat_map(|row| &row.events).find_map(|event| match event {
        Event::UndoWaived(e) => Some((e.ord, e.by.as_str(), e.reason.as_str())),
        _ => None,
    });
    assert_eq!(waived, Some((3, "ops", "refunded by hand")));
    assert_eq!(events(&handle).await.iter().filter(|e| **e == "RollbackFinished").count(), 1);
    checked(&handle).await;
}

#[tokio::test]
async fn b57_with_halt_the_rest_waits_for_the_operator_then_goes_on() {
    let (stage, broken) = (Stage::new(), Broken::of(&["c"]));
    let (_app, handle) = stuck(&stage, &broken, "c").await;
    assert_eq!(undos(&stage.effects()), ["undo d: succeeded", "undo c: broken"]);
    // A failed retry halts again.
    handle.retry_undo("c").await.unwrap();
    stage.world.effects.wait_for("undo c: broken", 2).await;
    until(&handle, Status::Stuck).await;
    assert_eq!(undos(&stage.effects()).len(), 3, "older undos do not overtake");
    broken.mend("c");
    handle.retry_undo("c").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    let wanted = ["undo c: succeeded", "undo b: succeeded", "undo a: succeeded"];
    assert_eq!(undos(&stage.effects())[3..], wanted);
    checked(&handle).await;
}

#[tokio::test]
async fn b57_with_halt_a_waiver_lets_the_rest_go_on() {
    let (stage, broken) = (Stage::new(), Broken::of(&["c"]));
    let (_app, handle) = stuck(&stage, &broken, "c").await;
    handle.waive_undo("c").by("ops").reason("gone").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    assert_eq!(undos(&stage.effects())[2..], ["undo b: succeeded", "undo a: succeeded"]);
    checked(&handle).await;
}

#[tokio::test]
async fn r7_undos_that_are_put_back_run_newest_start_first() {
    let (stage, broken) = (Stage::new(), Broken::of(&["a", "b", "d"]));
    let (app, _) = stuck(&stage, &broken, "").await;
    app.shutdown().await.unwrap();
    let outside: Handle<()> = stage.guest().handle("t").await.unwrap();
    for name in ["a", "d", "b"] {
        broken.mend(name);
        outside.retry_undo(name).await.unwrap();
    }
    let app = stage.open(|b| b.state(broken.clone()).register(four)).await;
    let handle: Handle<()> = app.handle("t").await.unwrap();
    handle.closed().await.unwrap();
    let wanted = ["undo d: succeeded", "undo b: succeeded", "undo a: succeeded"];
    assert_eq!(undos(&stage.effects())[4..], wanted);
    checked(&handle).await;
}

#[tokio::test]
async fn r7_an_undo_that_has_not_started_can_be_waived() {
    let (stage, broken) = (Stage::new(), Broken::of(&["c"]));
    let (_app, handle) = stuck(&stage, &broken, "c").await;
    handle.waive_undo("a").by("ops").reason("kept on purpose").await.unwrap();
    broken.mend("c");
    handle.retry_undo("c").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    assert_eq!(undos(&stage.effects())[2..], ["undo c: succeeded", "undo b: succeeded"]);
    let rollback = handle.status().await.unwrap().rollback;
    assert_eq!((rollback.outcome, rollback.done), (RollbackOutcome::Incomplete, 3));
    checked(&handle).await;
}

#[tokio::test]
async fn b57_refused_are_retries_of_what_has_not_failed_and_waivers_of_what_is_settled() {
    let (stage, broken) = (Stage::new(), Broken::of(&["c"]));
    let (_app, handle) = stuck(&stage, &broken, "").await;
    let refused = |error: backstitch::Error| assert_eq!(error.kind(), ErrorKind::Refused);
    refused(handle.retry_undo("d").await.unwrap_err());
    refused(handle.waive_undo("d").await.unwrap_err());
    refused(handle.retry_step("d").await.unwrap_err());
    refused(handle.pause().await.unwrap_err());
    assert_eq!(handle.retry_undo("x").await.unwrap_err().kind(), ErrorKind::NotFound);
    let rows = handle.journal().await.unwrap().len();
    handle.waive_undo("c").await.unwrap();
    handle.closed().await.unwrap();
    assert_eq!(
        handle.journal().await.unwrap().len(),
        rows + 1,
        "refusals at the door leave no row"
    );
}

#[tokio::test]
async fn b57_b71_w41_after_a_restart_whoever_waits_for_a_stuck_run_is_told_at_once() {
    let (stage, broken) = (Stage::new(), Broken::of(&["c"]));
    let (_app, handle) = stuck(&stage, &broken, "").await;
    let before = handle.journal().await.unwrap();
    let app = stage.open(|b| b.state(broken.clone()).register(four)).await;
    let handle = app.handle::<()>("t").await.unwrap();
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stuck);
    assert_eq!(error.rollback().unwrap().failed, 1);
    assert_eq!(handle.journal().await.unwrap(), before, "a look appends nothing (B85)");
    broken.mend("c");
    handle.retry_undo("c").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    checked(&handle).await;
}

#[tokio::test]
async fn b31_waiting_for_the_end_of_a_stuck_run_that_is_shut_down_is_no_end() {
    let (stage, broken) = (Stage::new(), Broken::of(&["c"]));
    let (app, handle) = stuck(&stage, &broken, "").await;
    let (ended, stopped) = tokio::join!(handle.closed(), app.shutdown());
    stopped.unwrap();
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Stopped);
}

#[workflow]
async fn attention_undo(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step("a", async |_s| Ok(()))
        .rollback(async |u| {
            u.state::<Effects>().add(format!("undo attempt {}", u.attempt()));
            if u.attempt() < 3 { Err(msg("mend me").attention()) } else { Ok(()) }
        })
        .await?;
    refusal(&ctx).await
}

#[tokio::test]
async fn b58_an_undo_that_fails_permanently_or_calls_for_a_person_is_tried_once() {
    let (stage, broken) = (Stage::new(), Broken::of(&["c"]));
    let (_app, handle) = stuck(&stage, &broken, "").await;
    assert_eq!(stage.world.effects.count("undo c: broken"), 1);
    assert_eq!(checked(&handle).await.step(3).unwrap().undo.attempts, 1);

    let stage = Stage::new();
    let app = stage.open(|b| b.register(attention_undo)).await;
    let handle = app.start(attention_undo, "t", ()).await.unwrap();
    assert_eq!(handle.result().await.unwrap_err().kind(), ErrorKind::Stuck);
    assert_eq!(undos(&stage.effects()), ["undo attempt 1"]);
    checked(&handle).await;
}

#[workflow]
async fn exhausts(ctx: Ctx, (): ()) -> Result<()> {
    ctx.step("a", async |_s| Ok(()))
        .rollback(async |u| {
            u.state::<Effects>().add(format!("undo attempt {}", u.attempt()));
            if u.attempt() < 6 { Err(msg("not yet")) } else { Ok(()) }
        })
        .rollback_retry(Retry::constant("1s").max_attempts(3))
        .await?;
    refusal(&ctx).await
}

#[tokio::test]
async fn r7_w21_an_exhausted_undo_is_a_debt_and_an_operators_retry_is_a_new_budget() {
    let stage = Stage::new();
    let app = stage.open(|b| b.register(exhausts)).await;
    let handle = app.start(exhausts, "t", ()).await.unwrap();
    stage.world.advance_until(&handle, Status::Stuck).await;
    assert_eq!(undos(&stage.effects()).len(), 3);
    handle.retry_undo("a").await.unwrap();
    stage.world.effects.wait_for("undo attempt 4", 1).await;
    stage.world.advance_until(&handle, Status::Failed).await;
    let wanted: Vec<_> = (1..=6).map(|n| format!("undo attempt {n}")).collect();
    assert_eq!(undos(&stage.effects()), wanted, "attempt numbers go on");
    checked(&handle).await;
}

#[tokio::test]
async fn r7_a_retry_and_a_waiver_in_one_moment_are_decided_by_their_order() {
    let (stage, broken) = (Stage::new(), Broken::of(&["c"]));
    let (_app, handle) = stuck(&stage, &broken, "").await;
    broken.mend("c");
    let (waive, retry) = tokio::join!(async { handle.waive_undo("c").await }, async {
        handle.retry_undo("c").await
    },);
    waive.unwrap();
    assert_eq!(retry.unwrap_err().kind(), ErrorKind::Refused, "it is judged with the first one");
    assert_eq!(handle.closed().await.unwrap(), Status::Failed);
    assert!(!stage.effects().contains(&"undo c: succeeded".to_owned()));
    checked(&handle).await;
}
