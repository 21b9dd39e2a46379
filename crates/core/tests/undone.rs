//! A run that succeeded is rolled back because somebody asks for it (R8, B70).

mod owner;
mod story;

use backstitch_core::event::{CancelVerb, CauseKind, EndKind, Event, RollbackOutcome};
use backstitch_core::inbox::InboxKind;
use backstitch_core::row::RowKind;
use backstitch_core::run::{IllegalEvent, Run};
use backstitch_core::session::{Report, Verdict, judge};
use backstitch_core::status::Status;
use owner::{Owner, asks, drops, ends, fails, one, step};
use story::{
    asked, ended_cancelled, ended_failed, ended_well, finished, rollback, rollback_into,
    rollback_on_request, run, scheduled, started, succeeded, then, undo_started, undo_succeeded,
};

/// A run that succeeded after two steps with an undo.
fn succeeded_run() -> Owner {
    let mut owner = Owner::begin();
    owner.row(owner::script(vec![asks(vec![step("s1"), step("s2")])])).expect("the first turn");
    owner.returned(1);
    owner.returned(2);
    let nothing = Report::default;
    owner.row(owner::script(vec![nothing(), nothing(), ends(&[])])).expect("it ends");
    assert_eq!(owner.status(), Status::Succeeded);
    owner
}

fn verdict(owner: &Owner, kind: InboxKind) -> Verdict {
    judge(owner.session.run(), kind, 1)
}

#[test]
fn b70_it_is_undone_newest_first_and_ends_as_cancelled_with_its_output_kept() {
    let mut owner = succeeded_run();
    owner.crash_without_code();
    assert_eq!(verdict(&owner, InboxKind::Rollback), Verdict::Changes);
    owner.ask(InboxKind::Rollback);
    let out = owner.idle().expect("it is decided");
    assert_eq!(owner.last(), ["CancelRequested", "RollbackStarted"]);
    assert_eq!(owner.last_kind(), RowKind::Engine);
    assert!(out.after_close && out.decides);
    assert_eq!(out.update, Some((Status::RollingBack, None)));
    let rollback = owner.session.run().rollback.clone().expect("it is under way");
    assert_eq!((rollback.no, rollback.plan), (1, vec![2, 1]));
    let cause = &rollback.causes[0];
    assert_eq!(
        (cause.kind(), cause.by.as_str(), cause.reason.as_str()),
        (CauseKind::Requested, "ada", "because")
    );
    assert_eq!(rollback.ends_in.kind(), EndKind::Cancelled);
    assert!(owner.idle().is_none(), "its handlers are not at hand");
    owner.attach().expect("the code fits");
    for ord in [2, 1] {
        let out = owner.idle().expect("one undo");
        assert!(!out.after_close, "it is open again");
        assert_eq!(out.commands.len(), 1);
        owner.crash();
        owner.idle().expect("the attempt is lost");
        assert_eq!(owner.last(), ["UndoAttemptFailed", "UndoStarted"], "and repeated at once");
        owner.undone(ord);
    }
    owner.idle().expect("it is over");
    assert_eq!(owner.last(), ["UndoSucceeded", "RollbackFinished", "ExecutionCancelled"]);
    let run = owner.session.run();
    assert_eq!((owner.status(), run.output.as_ref()), (Status::Cancelled, Some(&one())));
    assert_eq!(run.rollback_outcome(), RollbackOutcome::Complete);
}

#[test]
fn b70_a_second_request_changes_nothing_whenever_it_comes() {
    let mut owner = succeeded_run();
    owner.ask(InboxKind::Rollback);
    owner.idle().expect("it is decided");
    assert!(matches!(verdict(&owner, InboxKind::Rollback), Verdict::NoChange(_)));
    owner.ask(InboxKind::Rollback);
    owner.idle().expect("it is noted");
    assert_eq!(owner.last(), ["CancelRequested"]);
    let rollback = owner.session.run().rollback.clone().expect("it is under way");
    assert_eq!((rollback.no, rollback.causes.len(), rollback.plan.len()), (1, 2, 2));
    owner.undone(2);
    owner.idle().expect("one undo");
    owner.undone(1);
    owner.idle().expect("it is over");
    assert!(matches!(verdict(&owner, InboxKind::Rollback), Verdict::NoChange(_)));
    owner.ask(InboxKind::Rollback);
    owner.idle().expect("it is noted");
    assert_eq!((owner.last(), owner.status()), (vec!["VerbRefused"], Status::Cancelled));
    assert!(owner.idle().is_none());
}

#[test]
fn b70_two_requests_of_the_same_moment_are_one_rollback() {
    let mut owner = succeeded_run();
    owner.ask(InboxKind::Rollback);
    owner.ask(InboxKind::Rollback);
    owner.idle().expect("it is decided");
    assert_eq!(
        owner.last(),
        ["CancelRequested", "RollbackStarted", "CancelRequested", "UndoStarted"]
    );
}

#[test]
fn b70_a_run_that_owes_nothing_ends_in_the_row_of_the_request() {
    let mut owner = Owner::begin();
    owner.row(|_| ends(&[])).expect("it ends");
    owner.ask(InboxKind::Rollback);
    let out = owner.idle().expect("it is over");
    let last = ["CancelRequested", "RollbackStarted", "RollbackFinished", "ExecutionCancelled"];
    assert_eq!((owner.last(), out.decides, out.after_close), (last.to_vec(), true, true));
    assert_eq!(owner.session.run().rollback_outcome(), RollbackOutcome::None);
    assert!(matches!(verdict(&owner, InboxKind::Rollback), Verdict::NoChange(_)));
}

/// A run that dropped step 1, undid it, and succeeded with step 2.
fn succeeded_after_a_drop(in_between: Option<InboxKind>) -> Owner {
    let mut owner = Owner::begin();
    owner.row(owner::script(vec![asks(vec![step("s1"), step("s2")])])).expect("the first turn");
    owner.returned(1);
    owner.returned(2);
    let end = ends(&[1]);
    owner.row(owner::script(vec![Report::default(), Report::default(), end])).expect("it ends");
    assert_eq!(owner.status(), Status::RollingBack, "R13");
    if let Some(verb) = in_between {
        owner.ask(verb);
    }
    owner.undone(1);
    owner.idle().expect("it is over");
    assert_eq!(owner.status(), Status::Succeeded);
    owner
}

#[test]
fn b70_what_was_undone_before_is_not_undone_again() {
    let mut owner = succeeded_after_a_drop(None);
    owner.ask(InboxKind::Rollback);
    owner.idle().expect("it is decided");
    let rollback = owner.session.run().rollback.clone().expect("it is under way");
    assert_eq!((rollback.no, rollback.plan), (2, vec![2]));
    owner.undone(2);
    owner.idle().expect("it is over");
    assert_eq!(owner.status(), Status::Cancelled);
    let run = owner.session.run();
    assert_eq!((run.output.as_ref(), run.rollback_progress().done), (Some(&one()), 1));
}

#[test]
fn b70_a_second_request_changes_nothing_also_where_a_cancel_came_too_late_before() {
    let mut owner = succeeded_after_a_drop(Some(InboxKind::Cancel));
    assert_eq!(verdict(&owner, InboxKind::Rollback), Verdict::Changes);
    owner.ask(InboxKind::Rollback);
    owner.idle().expect("it is decided");
    owner.undone(2);
    owner.idle().expect("it is over");
    let second = verdict(&owner, InboxKind::Rollback);
    assert!(matches!(second, Verdict::NoChange(_)), "{second:?}");
}

/// Rolls a run back to its end.
fn undo_all(owner: &mut Owner, ords: &[u32]) {
    for ord in ords {
        owner.idle();
        owner.undone(*ord);
    }
    owner.idle();
    assert!(owner.status().is_closed(), "{}", owner.status());
}

#[test]
fn b70_nothing_else_that_is_closed_is_rolled_back() {
    let begin = || {
        let mut owner = Owner::begin();
        let asked = asks(vec![step("s1"), step("s2")]);
        owner.row(owner::script(vec![asked])).expect("the first turn");
        owner.returned(1);
        owner.returned(2);
        owner.row(owner::script(vec![])).expect("they are shown");
        owner
    };
    let mut failed = Owner::begin();
    failed.row(|_| fails()).expect("it fails");
    let mut owners = vec![(failed, Status::Failed, "nothing is left to undo")];
    for (verb, status, why) in [
        (InboxKind::Cancel, Status::Cancelled, "nothing is left to undo"),
        (InboxKind::Terminate, Status::Terminated, "nothing is left to undo"),
        (InboxKind::Kill, Status::Terminated, "was killed"),
    ] {
        let mut owner = begin();
        owner.ask(verb);
        match verb {
            InboxKind::Kill => drop(owner.idle()),
            _ => undo_all(&mut owner, &[2, 1]),
        }
        owners.push((owner, status, why));
    }
    for (mut owner, status, why) in owners {
        assert_eq!(owner.status(), status);
        let refused = verdict(&owner, InboxKind::Rollback);
        assert!(matches!(&refused, Verdict::Refused(said) if said.contains(why)), "{refused:?}");
        owner.ask(InboxKind::Rollback);
        let out = owner.idle().expect("it is noted");
        assert_eq!(
            (owner.last(), out.decides, out.after_close),
            (vec!["VerbRefused"], false, true)
        );
        assert_eq!((owner.status(), out.update), (status, None));
    }
}

#[test]
fn b70_a_rollback_on_request_while_it_runs_ends_as_cancelled_and_once() {
    let mut owner = Owner::begin();
    owner.row(owner::script(vec![asks(vec![step("s1")])])).expect("the first turn");
    owner.returned(1);
    owner.row(owner::script(vec![Report::default(), drops(&[])])).expect("it is shown");
    owner.ask(InboxKind::Rollback);
    undo_all(&mut owner, &[1]);
    assert_eq!((owner.status(), owner.session.run().output.as_ref()), (Status::Cancelled, None));
    assert!(matches!(verdict(&owner, InboxKind::Rollback), Verdict::NoChange(_)));
}

#[test]
fn b94_a_kill_ends_it_and_lists_what_is_left() {
    let mut owner = succeeded_run();
    owner.ask(InboxKind::Rollback);
    owner.idle().expect("it is decided");
    owner.undone(2);
    owner.idle().expect("one is undone, the next one runs");
    owner.ask(InboxKind::Kill);
    let out = owner.idle().expect("it is killed");
    assert_eq!((owner.status(), out.after_close), (Status::Terminated, false));
    let run = owner.session.run();
    assert_eq!(
        (run.debts_of_kill(), run.rollback_outcome()),
        (vec![1], RollbackOutcome::Incomplete)
    );
    assert_eq!(run.output, Some(one()));
}

fn engine(run: &mut Run, events: Vec<Event>) -> Result<(), IllegalEvent> {
    then(run, RowKind::Engine, events)
}

#[test]
fn r8_only_a_request_opens_a_run_that_succeeded() {
    let mut good = run();
    let done = vec![scheduled(1), started(1, 1), succeeded(1, 1), ended_well()];
    then(&mut good, RowKind::Turn, done).unwrap();
    for event in [
        rollback(&[1]),
        rollback_into(EndKind::Cancelled, &[1]),
        rollback_into(EndKind::Succeeded, &[1]),
        asked(CancelVerb::Cancel, 1),
        asked(CancelVerb::Terminate, 1),
        undo_started(1, 1),
        ended_cancelled(),
    ] {
        let refused = engine(&mut good.clone(), vec![event.clone()]).expect_err(event.name());
        assert!(refused.why.contains("closed") || refused.why.contains("Idle"), "{refused}");
    }
    let request = || vec![asked(CancelVerb::Rollback, 1), rollback_on_request(1, &[1])];
    engine(&mut good, request()).unwrap();
    assert_eq!(good.status(true), Status::RollingBack);
    for event in [scheduled(2), rollback_on_request(2, &[]), ended_well(), ended_failed()] {
        engine(&mut good.clone(), vec![event]).expect_err("it goes back, and only back");
    }
    let paid = vec![undo_started(1, 1), undo_succeeded(1, 1), finished()];
    engine(&mut good, paid).unwrap();
    engine(&mut good.clone(), vec![ended_well()]).expect_err("it was decided to end as cancelled");
    engine(&mut good, vec![ended_cancelled()]).unwrap();
    assert_eq!(good.status(true), Status::Cancelled);
    let again = vec![asked(CancelVerb::Rollback, 2)];
    engine(&mut good.clone(), again).expect_err("it did not succeed in the end");
    engine(&mut good, vec![rollback_on_request(2, &[])]).expect_err("nor is it rolled back again");
}
