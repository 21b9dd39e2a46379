//! A verb that is accepted behind the back of the row that decides.

use backstitch::core::inbox::InboxKind;
use backstitch::core::run::Run;
use backstitch::{CauseKind, Ctx, Handle, Result, Status, workflow};

use crate::stage::{Stage, assert_refused, booking, checked, refusal, undos};
use crate::world::{events, until};
use crate::wrapped::Wrapped;

fn causes(run: &Run) -> Vec<CauseKind> {
    run.rollback.iter().flat_map(|r| r.causes.iter().map(|cause| cause.kind())).collect()
}

#[workflow]
async fn two_good(ctx: Ctx, (): ()) -> Result<String> {
    booking(&ctx, "a").await?;
    booking(&ctx, "b").await
}

#[workflow]
async fn good_then_no(ctx: Ctx, (): ()) -> Result<()> {
    booking(&ctx, "a").await?;
    refusal(&ctx).await
}

/// The run is decided by `event`; a verb is accepted just before that row.
async fn decided_before(event: &'static str, kind: InboxKind) -> (Stage, Run, Vec<&'static str>) {
    let stage = Stage::new();
    let store = Wrapped::new(stage.world.reopen()).verb_before(event, kind).shared();
    let app = stage.world.open_on(store, |b| b.register(two_good).register(good_then_no)).await;
    let handle: Handle<()> = match event {
        "ExecutionSucceeded" => {
            app.start(two_good, "t", ()).await.unwrap();
            app.handle("t").await.unwrap()
        }
        _ => app.start(good_then_no, "t", ()).await.unwrap(),
    };
    handle.closed().await.unwrap();
    let run = checked(&handle).await;
    (stage, run, events(&handle).await)
}

#[tokio::test]
async fn b90_b33_w48_a_cancel_that_was_accepted_before_the_last_outcome_wins_over_the_success() {
    let (stage, run, names) = decided_before("ExecutionSucceeded", InboxKind::Cancel).await;
    assert_eq!(run.status(true), Status::Cancelled);
    assert_eq!(causes(&run), [CauseKind::Cancelled]);
    assert_eq!(run.rollback.as_ref().unwrap().causes[0].by, "somebody");
    // Each body ran once, and the real output of the last one reached its undo.
    let wanted = ["do a", "do b", "undo b: succeeded", "undo a: succeeded"];
    assert_eq!(stage.effects(), wanted);
    assert_eq!(names.iter().filter(|n| **n == "RollbackStarted").count(), 1);
    assert!(!names.contains(&"ExecutionSucceeded"));
}

#[tokio::test]
async fn b90_terminate_wins_over_the_success_as_well() {
    let (stage, run, _) = decided_before("ExecutionSucceeded", InboxKind::Terminate).await;
    assert_eq!(run.status(true), Status::Terminated);
    assert_eq!(undos(&stage.effects()).len(), 2);
}

#[tokio::test]
async fn b90_a_cancel_is_the_cause_and_the_error_of_the_same_moment_comes_second() {
    let (stage, run, names) = decided_before("RollbackStarted", InboxKind::Cancel).await;
    assert_eq!(run.status(true), Status::Cancelled);
    assert_eq!(causes(&run)[0], CauseKind::Cancelled);
    assert!(names.contains(&"StepFailed"), "the error is in the journal");
    let failed = names.iter().position(|n| *n == "StepFailed").unwrap();
    let cancelled = names.iter().position(|n| *n == "CancelRequested").unwrap();
    assert!(cancelled < failed);
    assert_eq!(stage.effects(), ["do a", "undo a: succeeded"]);
}

#[tokio::test]
async fn r10_a_pause_that_was_accepted_before_the_decision_holds_it() {
    let stage = Stage::new();
    let store = Wrapped::new(stage.world.reopen());
    let store = store.verb_before("RollbackStarted", InboxKind::Pause).shared();
    let app = stage.world.open_on(store, |b| b.register(good_then_no)).await;
    let handle = app.start(good_then_no, "t", ()).await.unwrap();
    until(&handle, Status::Paused).await;
    assert_eq!(stage.effects(), ["do a"]);
    handle.resume().await.unwrap();
    assert_refused(&handle.result().await.unwrap_err());
    assert_eq!(stage.effects(), ["do a", "undo a: succeeded"]);
    checked(&handle).await;
}

#[tokio::test]
async fn b68_w22_a_cancel_accepted_before_the_end_of_the_rollback_runs_no_undo_twice() {
    for kind in [InboxKind::Cancel, InboxKind::Terminate] {
        let (stage, run, _) = decided_before("RollbackFinished", kind).await;
        assert_eq!(run.status(true), Status::Failed, "the first decision stands");
        assert_eq!(causes(&run).len(), 2, "added to the causes");
        assert_eq!(stage.effects(), ["do a", "undo a: succeeded"]);
    }
}
