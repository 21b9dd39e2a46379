//! Histories that end: what an execution is found as.

use backstitch::core::event::{
    CauseKind, EndKind, EndsIn, ExecutionCancelled, ExecutionFailed, ExecutionKilled,
    ExecutionSucceeded, RollbackCause, RollbackFinished, StepCancelRequested, UndoFailed,
    UndoSucceeded, UndoWaived,
};
use backstitch::{ErrorKind, RollbackOutcome, Status};

use super::*;
use crate::checks::ending;
use crate::history::{Found, How};
use crate::plan::{Deed, Plan, What};

/// A plan in which `e0` is started, and nothing else happens.
fn plan() -> Plan {
    let mut plan = crate::grow::plan(0);
    plan.executions.truncate(1);
    plan.deeds = vec![Deed { tick: 0, execution: 0, what: What::Start, twice: false }];
    plan
}

fn found(status: Status, rollback: RollbackOutcome) -> Found {
    let result = match status {
        Status::Succeeded => Ok("done".to_owned()),
        _ => Err((ErrorKind::Cancelled, String::new())),
    };
    let (run_id, waits_for) = (run_id().to_string(), String::new());
    Found { status, run_id, rollback, result, attention: Vec::new(), waits_for }
}

fn is_found(found: Found) -> Moment {
    at(Entry::Found { execution: 0, run: RUN, found: Box::new(found) })
}

fn decided(kind: CauseKind, plan: Vec<u32>, no: u32) -> Event {
    let end = match kind {
        CauseKind::Failed | CauseKind::Deadline => EndKind::Failed,
        CauseKind::Cancelled | CauseKind::Requested => EndKind::Cancelled,
        CauseKind::Terminated => EndKind::Terminated,
        CauseKind::Dropped => EndKind::Succeeded,
    };
    let causes = vec![RollbackCause { kind: kind as i32, ..RollbackCause::default() }];
    let ends_in = EndsIn { kind: end as i32, failure: None, output: None };
    RollbackStarted { no, causes, plan, ends_in, ..RollbackStarted::default() }.into()
}

fn undone() -> Vec<Moment> {
    let start = UndoStarted { ord: 1, attempt: 1, policy: None };
    let done = UndoSucceeded { ord: 1, attempt: 1, ..UndoSucceeded::default() };
    let ended = at(Entry::Ended { token: 2, how: How::Well(String::new()) });
    vec![row(vec![start.into()]), begins(Kind::Undo, 1, 2), ended, row(vec![done.into()])]
}

/// A run that is cancelled, with or without its undo.
fn cancelled(way_back: Vec<Moment>, found_as: RollbackOutcome) -> Vec<Moment> {
    let mut story = with([begins(Kind::Body, 1, 1)]);
    story.push(row(vec![decided(CauseKind::Cancelled, vec![1], 1)]));
    story.extend(way_back);
    story.push(row(vec![RollbackFinished::default().into(), ExecutionCancelled {}.into()]));
    story.push(is_found(found(Status::Cancelled, found_as)));
    story
}

#[test]
fn p6_a_debt_that_nobody_pays_is_found_and_one_that_was_paid_is_not() {
    let hidden = cancelled(Vec::new(), RollbackOutcome::None);
    assert!(breaks(&debts::check(&hidden), "P6"));
    let paid = cancelled(undone(), RollbackOutcome::Complete);
    assert_eq!(debts::check(&paid), [] as [&str; 0]);
}

#[test]
fn p6_a_kill_that_lists_what_it_leaves_hides_nothing() {
    let killed = |left: Vec<u32>, outcome| {
        let kill = ExecutionKilled { left, ..ExecutionKilled::default() };
        let mut story = with([begins(Kind::Body, 1, 1), row(vec![kill.into()])]);
        story.push(is_found(found(Status::Terminated, outcome)));
        debts::check(&story)
    };
    assert_eq!(killed(vec![1], RollbackOutcome::Incomplete), [] as [&str; 0]);
    assert!(breaks(&killed(Vec::new(), RollbackOutcome::None), "P6"));
}

#[test]
fn r1_an_undo_of_a_run_that_succeeds_is_found_unless_its_step_was_dropped() {
    let succeeds = |before: Option<Event>| {
        let mut story = with([begins(Kind::Body, 1, 1)]);
        story.extend(before.map(|event| row(vec![event])));
        story.push(row(vec![decided(CauseKind::Dropped, vec![1], 1)]));
        story.extend(undone());
        story.push(row(vec![ExecutionSucceeded::default().into()]));
        story.push(is_found(found(Status::Succeeded, RollbackOutcome::Complete)));
        debts::check(&story)
    };
    assert!(breaks(&succeeds(None), "R1"));
    assert_eq!(succeeds(Some(StepCancelRequested { ord: 1 }.into())), [] as [&str; 0]);
}

#[test]
fn r3_undos_begin_newest_first() {
    let second = StepScheduled {
        ord: 2,
        key: Key { scope: Vec::new(), kind: KeyKind::Step as i32, name: "s2".into(), count: 1 },
        policy: StepPolicy::step_default(),
        undo: Some(UndoSpec { policy: UndoPolicy::undo_default(), named: None }),
        ..StepScheduled::default()
    };
    let in_order = |ords: [u32; 2]| {
        let mut story = with([row(vec![second.clone().into()])]);
        story.push(row(vec![decided(CauseKind::Cancelled, vec![2, 1], 1)]));
        for ord in ords {
            let start = UndoStarted { ord, attempt: 1, policy: None };
            let mut began = begins(Kind::Undo, 1, u64::from(ord));
            if let Entry::Began(attempt) = &mut began.entry {
                attempt.step_key = run_id().step_key(ord);
                attempt.key = run_id().undo_key(ord);
            }
            let ended = Entry::Ended { token: u64::from(ord), how: How::Well(String::new()) };
            story.extend([row(vec![start.into()]), began, at(ended)]);
        }
        barrier::check(&story)
    };
    assert!(breaks(&in_order([1, 2]), "R3"));
    assert_eq!(in_order([2, 1]), [] as [&str; 0]);
}

#[test]
fn r8_a_waived_undo_makes_a_rollback_incomplete() {
    let waived = |outcome| {
        let (by, reason) = ("ann".to_owned(), "by hand".to_owned());
        let waived = UndoWaived { ord: 1, by, reason, inbox: 1 };
        debts::check(&cancelled(vec![row(vec![waived.into()])], outcome))
    };
    assert!(breaks(&waived(RollbackOutcome::Complete), "R8"));
    assert_eq!(waived(RollbackOutcome::Incomplete), [] as [&str; 0]);
}

/// Each rollback has an outcome of its own, and the run's is that of the last one: the first one
/// undid a dropped step, and the one on request found nothing owed any more. `none` says just that
/// (seeds 6787 and 34167).
#[test]
fn r8_a_rollback_on_request_that_finds_nothing_owed_is_none_whatever_an_earlier_one_undid() {
    let on_request = |outcome| {
        let dropped = StepCancelRequested { ord: 1 };
        let mut story = with([begins(Kind::Body, 1, 1), row(vec![dropped.into()])]);
        story.push(row(vec![decided(CauseKind::Dropped, vec![1], 1)]));
        story.extend(undone());
        story.push(row(vec![
            RollbackFinished::default().into(),
            ExecutionSucceeded::default().into(),
        ]));
        story.push(row(vec![
            decided(CauseKind::Requested, Vec::new(), 2),
            RollbackFinished::default().into(),
            ExecutionCancelled {}.into(),
        ]));
        story.push(is_found(found(Status::Cancelled, outcome)));
        debts::check(&story)
    };
    assert_eq!(on_request(RollbackOutcome::None), [] as [&str; 0]);
    assert!(breaks(&on_request(RollbackOutcome::Complete), "R8"));
}

#[test]
fn r8_another_error_than_that_of_the_decision_is_found() {
    let told = |error: &str| {
        let failure = failure("the card was declined");
        let ends_in =
            EndsIn { kind: EndKind::Failed as i32, failure: Some(failure.clone()), output: None };
        let cause = RollbackCause::failed(failure.clone());
        let decided =
            RollbackStarted { causes: vec![cause], ends_in, ..RollbackStarted::default() };
        let result = Err((ErrorKind::Failed, error.to_owned()));
        let found = Found { result, ..found(Status::Failed, RollbackOutcome::None) };
        let rows = [row(vec![decided.into(), ExecutionFailed { failure }.into()]), is_found(found)];
        acknowledged::check(&plan(), &with(rows))
    };
    assert_eq!(told("the card was declined"), [] as [&str; 0]);
    assert!(breaks(&told("the refund failed"), "R8"));
}

#[test]
fn r10_an_end_that_was_not_decided_is_found() {
    let ends = |status| {
        let decided = decided(CauseKind::Cancelled, vec![1], 1);
        let story = with([row(vec![decided]), is_found(found(status, RollbackOutcome::None))]);
        acknowledged::check(&plan(), &story)
    };
    assert!(breaks(&ends(Status::Failed), "R10"));
    assert_eq!(ends(Status::Cancelled), [] as [&str; 0]);
}

#[test]
fn t7_what_waits_for_ever_and_a_matter_that_stays_open_are_found() {
    let check = |found| ending::check(&plan(), &[is_found(found)]);
    assert!(breaks(&check(found(Status::Suspended, RollbackOutcome::None)), "liveness"));
    let attention = vec![(1, "undo_failed".to_owned())];
    let open = Found { attention, ..found(Status::Terminated, RollbackOutcome::None) };
    assert!(breaks(&check(open), "liveness"));
    assert_eq!(check(found(Status::Succeeded, RollbackOutcome::None)), [] as [&str; 0]);
    assert!(breaks(&ending::check(&plan(), &[]), "P1"));
}

#[test]
fn p6_a_failed_undo_that_is_on_no_list_is_found() {
    let failed = UndoFailed { ord: 1, failure: failure("no"), holds: false };
    let listed =
        |listed| held::check(&with([row(vec![failed.clone().into()]), at(Entry::Listed(listed))]));
    let (run_id, kind) = (run_id().to_string(), "undo_failed".to_owned());
    assert_eq!(listed(vec![Listed { run_id, ord: 1, kind }]), [] as [&str; 0]);
    assert!(breaks(&listed(Vec::new()), "P6"));
}
