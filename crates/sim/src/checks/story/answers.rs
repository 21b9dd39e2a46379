//! Histories of single attempts: what was answered, and what became of it.

use backstitch::Jitter;
use backstitch::core::event::{
    AbandonWhy, BlockKind, Blocked, CauseKind, ExecutionFailed, PauseRequested, RollbackCause,
    StepAbandoned, StepAttemptFailed, StepRetryRequested, Unblocked, UndoFailed,
};

use super::*;
use crate::checks::{answers, given_up};
use crate::history::How;

fn ends(token: u64, how: How) -> Moment {
    at(Entry::Ended { token, how })
}

fn later(moment: Moment, by_us: i64) -> Moment {
    Moment { at_us: moment.at_us + by_us, ..moment }
}

fn failed(retry_at_us: Option<i64>) -> Event {
    let failure = failure("no");
    StepAttemptFailed { ord: 1, attempt: 1, failure, retry_at_us, finished_us: 0 }.into()
}

fn again() -> Event {
    StepStarted { ord: 1, attempt: 2, policy: None }.into()
}

#[test]
fn a_body_that_refused_for_good_is_called_again_only_on_request() {
    for how in [How::Refused, How::CalledForHelp] {
        let refused = |between: Option<Event>| {
            let mut story = with([begins(Kind::Body, 1, 1), ends(1, how.clone())]);
            story.push(row(vec![failed(None)]));
            story.extend(between.map(|event| row(vec![event])));
            story.extend([row(vec![again()]), begins(Kind::Body, 2, 2)]);
            answers::check(&story)
        };
        let asked = StepRetryRequested { ord: 1, ..StepRetryRequested::default() };
        assert!(breaks(&refused(None), "class"));
        assert_eq!(refused(Some(asked.into())), [] as [&str; 0]);
    }
    let to_be_retried =
        with([begins(Kind::Body, 1, 1), ends(1, How::Refused), row(vec![failed(Some(1_000_000))])]);
    assert!(breaks(&answers::check(&to_be_retried), "class"));
}

#[test]
fn p3_a_success_that_is_recorded_as_a_failure_is_found() {
    let well = ends(1, How::Well(String::new()));
    let story = with([begins(Kind::Body, 1, 1), well, row(vec![failed(None)])]);
    assert!(breaks(&answers::check(&story), "P3"));
}

#[test]
fn p4_a_lost_attempt_that_passes_for_an_interrupted_one_is_found() {
    let mut interrupted = failure("stopped");
    interrupted.origin = backstitch::Origin::Interrupted as i32;
    let recorded = |fence| {
        let failed = StepAttemptFailed {
            ord: 1,
            attempt: 1,
            failure: interrupted.clone(),
            retry_at_us: Some(0),
            finished_us: 0,
        };
        let mut row = row(vec![failed.into()]);
        if let Entry::Durable { row, .. } = &mut row.entry {
            row.header.fence = fence;
        }
        answers::check(&with([begins(Kind::Body, 1, 1), row]))
    };
    assert_eq!(recorded(1), [] as [&str; 0]);
    assert!(breaks(&recorded(2), "P4"));
}

#[test]
fn p9_another_delay_than_was_asked_for_is_found() {
    let tried_again = |after_us| {
        let how = How::Failed { later_ms: Some(500) };
        let story =
            with([begins(Kind::Body, 1, 1), ends(1, how), row(vec![failed(Some(after_us))])]);
        answers::check(&story)
    };
    assert_eq!(tried_again(500_000), [] as [&str; 0]);
    assert!(breaks(&tried_again(0), "P9"));
}

#[test]
fn p9_another_delay_than_that_of_the_policy_is_found() {
    let tried_again = |after_us| {
        let mut policy = StepPolicy::step_default();
        policy.retry.jitter = Jitter::None as i32;
        let first = StepStarted { ord: 1, attempt: 1, policy: Some(policy) };
        let how = How::Failed { later_ms: None };
        let story = with([
            row(vec![first.into()]),
            begins(Kind::Body, 1, 1),
            ends(1, how),
            row(vec![failed(Some(after_us))]),
        ]);
        answers::check(&story)
    };
    assert_eq!(tried_again(1_000_000), [] as [&str; 0]);
    assert!(breaks(&tried_again(0), "P9"));
}

#[test]
fn p9_a_body_that_outlives_its_timeout_is_found() {
    let lasts = |us| {
        let end = later(ends(1, How::Well(String::new())), us);
        given_up::check(&with([begins(Kind::Body, 1, 1), end]))
    };
    let timeout_us = StepPolicy::step_default().timeout_us as i64;
    assert_eq!(lasts(timeout_us), [] as [&str; 0]);
    assert!(breaks(&lasts(2 * timeout_us), "P9"));
}

#[test]
fn r5_a_body_that_may_settle_is_not_dropped_and_one_that_is_to_stop_does() {
    let decision = || row(vec![RollbackStarted::default().into()]);
    let left = StepAbandoned { ord: 1, why: AbandonWhy::Cancelled as i32, ..Default::default() };
    let dropped =
        with([begins(Kind::Body, 1, 1), decision(), ends(1, How::Dropped), row(vec![left.into()])]);
    assert!(breaks(&given_up::check(&dropped), "R5"));

    let ends_as = |how, after_us| {
        let mut policy = StepPolicy::step_default();
        policy.on_abandon = backstitch::core::retry::OnAbandon::Cancel as i32;
        let first = StepStarted { ord: 1, attempt: 1, policy: Some(policy) };
        given_up::check(&with([
            row(vec![first.into()]),
            begins(Kind::Body, 1, 1),
            decision(),
            row(Vec::new()),
            later(ends(1, how), after_us),
        ]))
    };
    assert!(breaks(&ends_as(How::Well(String::new()), 1), "R5"));
    assert_eq!(ends_as(How::Dropped, 1), [] as [&str; 0]);
    assert_eq!(ends_as(How::Well(String::new()), 0), [] as [&str; 0], "at the same instant");
}

#[test]
fn r7_an_undo_that_goes_past_one_that_halts_is_found() {
    let past = |halts: bool| {
        let mut policy = UndoPolicy::undo_default();
        if halts {
            policy.on_failure = backstitch::core::retry::OnUndoFailure::Halt as i32;
        }
        let tried = UndoStarted { ord: 1, attempt: 1, policy: Some(policy) };
        let failed = UndoFailed { ord: 1, failure: failure("no"), holds: halts };
        let next = UndoStarted { ord: 2, attempt: 1, policy: None };
        held::check(&with([
            row(vec![tried.into()]),
            row(vec![failed.into()]),
            row(vec![next.into()]),
        ]))
    };
    assert!(breaks(&past(true), "R7"));
    assert_eq!(past(false), [] as [&str; 0]);
}

#[test]
fn r10_what_begins_while_the_run_is_paused_is_found() {
    let undo = || UndoStarted { ord: 1, attempt: 1, policy: None }.into();
    let decision: Event = RollbackStarted::default().into();
    let pause: Event = PauseRequested::default().into();
    let held = with([row(vec![decision.clone(), pause.clone(), undo()])]);
    assert!(breaks(&held::check(&held), "R10"));
    // The decision ends an earlier pause.
    let ended = with([row(vec![pause, decision, undo()])]);
    assert_eq!(held::check(&ended), [] as [&str; 0]);
}

#[test]
fn r1_p9_a_deadline_is_neither_early_nor_passed_over() {
    let started = ExecutionStarted { deadline_at_us: Some(2_000), ..ExecutionStarted::default() };
    let turn = |now_us| {
        let mut turn = row(vec![again()]);
        if let Entry::Durable { row, .. } = &mut turn.entry {
            row.header.now_us = Some(now_us);
        }
        held::check(&[row(vec![started.clone().into()]), turn])
    };
    assert_eq!(turn(1_999), [] as [&str; 0]);
    assert!(breaks(&turn(2_000), "R1"));

    let late = |by_us| {
        let kind = CauseKind::Deadline as i32;
        let cause = RollbackCause { kind, ..Default::default() };
        let decision = RollbackStarted { causes: vec![cause], ..RollbackStarted::default() };
        held::check(&[row(vec![started.clone().into()]), later(row(vec![decision.into()]), by_us)])
    };
    assert!(breaks(&late(0), "P9"));
    assert_eq!(late(1_000), [] as [&str; 0]);
}

#[test]
fn p1_an_inbox_row_that_is_passed_over_is_found() {
    let accepted = |number| {
        let (kind, topic) = (InboxKind::Pause, String::new());
        at(Entry::Accepted { run: RUN, number, kind, topic, at_us: 0 })
    };
    let copied = |inboxes: &[u64]| {
        let pause = |inbox: &u64| PauseRequested { inbox: *inbox, ..PauseRequested::default() };
        let rows = inboxes.iter().map(|inbox| row(vec![pause(inbox).into()]));
        let story: Vec<Moment> = [accepted(1), accepted(2)].into_iter().chain(rows).collect();
        acknowledged::check(&crate::grow::plan(0), &story)
    };
    assert_eq!(copied(&[1, 2]), [] as [&str; 0]);
    assert!(breaks(&copied(&[2]), "P1"));
}

#[test]
fn p13_nothing_but_a_block_follows_from_code_that_does_not_fit() {
    let what = BlockKind::Mismatch as i32;
    let blocked: Event = Blocked { what, ord: None, failure: failure("other code") }.into();
    let fits: Event = Unblocked { what, ord: None, by: "engine".into() }.into();
    let follows =
        |events: Vec<Event>| held::check(&with([row(vec![blocked.clone()]), row(events)]));
    let cancelled = |kind: CauseKind| {
        let cause = RollbackCause { kind: kind as i32, ..RollbackCause::default() };
        RollbackStarted { causes: vec![cause], ..RollbackStarted::default() }.into()
    };
    assert!(breaks(&follows(vec![again()]), "P13"));
    assert!(breaks(&follows(vec![cancelled(CauseKind::Failed)]), "P13"));
    assert_eq!(follows(vec![cancelled(CauseKind::Cancelled)]), [] as [&str; 0]);
    assert_eq!(follows(vec![fits, again()]), [] as [&str; 0]);
    let fails = |type_name: &str| {
        let mut failure = failure("over");
        failure.type_name = type_name.into();
        ExecutionFailed { failure }.into()
    };
    assert!(breaks(&follows(vec![fails("Failure")]), "P13"));
    assert!(!breaks(&follows(vec![fails("DeadlinePassed")]), "P13"));
}
