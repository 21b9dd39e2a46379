//! What may still be said to a run that is closed: waivers of what a kill left, attributes, and
//! refusals (P6, P10, B94).

mod owner;
mod story;

use backstitch_core::attention::{AttentionEdit, AttentionKind};
use backstitch_core::event::{AbandonWhy, Event, RollbackOutcome};
use backstitch_core::id::Ordinal;
use backstitch_core::inbox::{InboxKind, Verb};
use backstitch_core::row::RowKind;
use backstitch_core::run::Run;
use backstitch_core::session::{AttemptEnd, Report, Verdict, judge};
use backstitch_core::status::Status;
use owner::{Owner, asks, ends, step};
use story::*;

/// A run that was killed with two steps done, and one whose body did not yield after its cancel.
fn killed_run() -> Owner {
    let mut owner = Owner::begin();
    let steps = asks(vec![step("s1"), step("s2"), step("s3")]);
    owner.row(owner::script(vec![steps])).expect("the first turn");
    owner.returned(1);
    owner.returned(2);
    let dropped = owner::drops(&[3]);
    owner.row(owner::script(vec![Report::default(), Report::default(), dropped])).expect("a turn");
    owner.session.overdue(3);
    owner.idle().expect("it is left behind");
    owner.ask(InboxKind::Kill);
    let out = owner.idle().expect("it is killed");
    assert!(!out.after_close && !out.decides, "a person decides, not the engine");
    assert_eq!(owner.session.run().debts_of_kill(), [3, 2, 1]);
    owner
}

/// The attempts that were given up: step, attempt, and when the body ended.
fn given_up(owner: &Owner) -> Vec<(Ordinal, u32, Option<i64>)> {
    let events = owner.rows.iter().flat_map(|row| &row.events);
    let abandoned = events.filter_map(|event| match event {
        Event::StepAbandoned(e) => Some((e.ord, e.attempt, e.finished_us)),
        _ => None,
    });
    abandoned.collect()
}

#[test]
fn r5_the_journal_says_which_attempt_was_given_up_and_when_its_body_ended() {
    let mut owner = Owner::begin();
    let steps = asks(vec![step("s1"), step("s2")]);
    owner.row(owner::script(vec![steps])).expect("the first turn");
    owner.returned(1);
    let dropped = owner::drops(&[2]);
    owner.row(owner::script(vec![Report::default(), dropped])).expect("a turn");
    let ended_us = owner.now_us + 7;
    owner.session.step_ended(2, 1, AttemptEnd::Dropped, ended_us);
    owner.idle().expect("it is written down");
    assert_eq!(given_up(&owner), [(2, 1, Some(ended_us))]);
    assert_eq!(given_up(&killed_run()), [(3, 1, None)], "nobody saw this one end");
}

fn open_matters(run: &Run) -> Vec<(AttentionKind, Ordinal)> {
    run.attention.iter().map(|item| (item.kind, item.ord)).collect()
}

#[test]
fn b94_waivers_take_off_what_a_kill_left_one_by_one() {
    let mut owner = killed_run();
    let all = [(AttentionKind::DidNotYield, 3), (AttentionKind::Killed, 0)];
    assert_eq!(open_matters(owner.session.run()), all);
    let mut closed = Vec::new();
    for (ord, left, open) in [(2, vec![3, 1], 2), (3, vec![1], 1), (1, vec![], 0)] {
        // Whoever waives needs neither the code nor the process that killed.
        owner.crash_without_code();
        assert_eq!(judge(owner.session.run(), InboxKind::WaiveUndo, ord), Verdict::Changes);
        owner.ask_about(InboxKind::WaiveUndo, ord);
        let out = owner.idle().expect("it is waived");
        assert_eq!((owner.last(), out.after_close, out.decides), (vec!["UndoWaived"], true, false));
        assert_eq!(out.update, None, "the status stays");
        closed.push(out.attention.len());
        let run = owner.session.run();
        assert_eq!((run.debts_of_kill(), run.attention.len()), (left, open), "after {ord}");
        assert_eq!(run.rollback_outcome(), RollbackOutcome::Incomplete);
        let again = judge(run, InboxKind::WaiveUndo, ord);
        assert!(matches!(again, Verdict::Refused(_)), "{again:?}");
    }
    assert_eq!(closed, [0, 1, 1], "the kill's item closes with the last debt");
    owner.crash_without_code();
    assert_eq!(owner.status(), Status::Terminated);
    assert!(owner.idle().is_none());
}

#[test]
fn b94_the_edit_that_closes_the_item_names_the_row_that_opened_it() {
    let mut owner = Owner::begin();
    owner.row(|_| asks(vec![step("s")])).expect("the first turn");
    owner.ask(InboxKind::Kill);
    let out = owner.idle().expect("it is killed");
    let [AttentionEdit::Opened(item)] = &out.attention[..] else { panic!("{:?}", out.attention) };
    let (seq, ord) = (item.seq, item.ord);
    owner.crash_without_code();
    owner.ask_about(InboxKind::WaiveUndo, 1);
    let out = owner.idle().expect("it is waived");
    assert_eq!(out.attention, [AttentionEdit::Closed { seq, ord }]);
}

#[test]
fn b94_also_what_had_failed_before_the_kill_is_waived() {
    let mut run = run();
    let two = vec![scheduled(1), started(1, 1), scheduled(2), started(2, 1)];
    then(&mut run, RowKind::Turn, two).unwrap();
    let decided = vec![succeeded(1, 1), succeeded(2, 1), rollback(&[2, 1])];
    then(&mut run, RowKind::Turn, decided).unwrap();
    let failed = vec![undo_started(2, 1), undo_attempt_failed(2, 1, None), undo_failed(2)];
    then(&mut run, RowKind::Engine, failed).unwrap();
    then(&mut run, RowKind::Engine, vec![undo_started(1, 1), killed(&[2, 1], 1)]).unwrap();
    assert_eq!(open_matters(&run), [(AttentionKind::UndoFailed, 2), (AttentionKind::Killed, 0)]);
    then(&mut run, RowKind::Engine, vec![waived(2, 2)]).unwrap();
    assert_eq!(open_matters(&run), [(AttentionKind::Killed, 0)]);
    then(&mut run.clone(), RowKind::Engine, vec![waived(2, 3)]).expect_err("once");
    then(&mut run, RowKind::Engine, vec![waived(1, 3)]).unwrap();
    assert_eq!((open_matters(&run), run.debts_of_kill()), (vec![], vec![]));
}

#[test]
fn b94_a_kill_that_leaves_nothing_opens_no_matter_and_nothing_is_to_be_waived() {
    let mut run = run();
    then(&mut run, RowKind::Turn, vec![scheduled_plain(1), started(1, 1)]).unwrap();
    then(&mut run, RowKind::Engine, vec![killed(&[], 1)]).unwrap();
    assert!(run.attention.is_empty());
    assert_eq!(run.rollback_outcome(), RollbackOutcome::None);
    then(&mut run, RowKind::Engine, vec![waived(1, 2)]).expect_err("it is not owed");
}

#[test]
fn b55_a_body_that_was_left_behind_is_waived_also_after_the_end() {
    let mut run = run();
    then(&mut run, RowKind::Turn, vec![scheduled_plain(1), started(1, 1), dropped(1)]).unwrap();
    let left = vec![abandoned(1, AbandonWhy::DidNotYield), ended_well()];
    then(&mut run, RowKind::Turn, left).unwrap();
    assert_eq!(judge(&run, InboxKind::WaiveUndo, 1), Verdict::Changes);
    then(&mut run, RowKind::Engine, vec![waived(1, 1)]).unwrap();
    assert!(run.attention.is_empty());
    assert!(matches!(judge(&run, InboxKind::WaiveUndo, 1), Verdict::Refused(_)));
}

/// Runs that ended in every way.
fn closed_runs() -> Vec<Owner> {
    let mut succeeded = Owner::begin();
    succeeded.row(|_| ends(&[])).expect("it ends");
    let mut failed = Owner::begin();
    failed.row(|_| owner::fails()).expect("it fails");
    let by_verb = [InboxKind::Cancel, InboxKind::Terminate, InboxKind::Kill].map(|verb| {
        let mut owner = Owner::begin();
        owner.ask(verb);
        owner.idle().expect("it ends");
        owner
    });
    [succeeded, failed].into_iter().chain(by_verb).chain([killed_run()]).collect()
}

#[test]
fn p10_what_comes_too_late_is_noted_and_changes_nothing() {
    for mut owner in closed_runs() {
        let status = owner.status();
        assert!(status.is_closed());
        for kind in [
            InboxKind::Cancel,
            InboxKind::Terminate,
            InboxKind::Kill,
            InboxKind::Pause,
            InboxKind::Resume,
            InboxKind::RetryStep,
            InboxKind::RetryUndo,
            InboxKind::WaiveUndo,
            InboxKind::Event,
        ] {
            let verdict = judge(owner.session.run(), kind, 99);
            assert!(matches!(verdict, Verdict::Refused(_)), "{status} {kind:?}: {verdict:?}");
            let number = match kind {
                InboxKind::Event => owner.send("a"),
                kind => owner.ask_about(kind, 99),
            };
            let out = owner.idle().expect("it is noted");
            let row = owner.rows.last().expect("the last row");
            let [Event::VerbRefused(refused)] = &row.events[..] else { panic!("{row:?}") };
            assert_eq!((refused.inbox, refused.verb.as_str()), (number, kind.name()));
            assert_eq!(refused.ord, kind.is_about_step().then_some(99), "{kind:?}");
            let said = if kind == InboxKind::Event { "" } else { "because" };
            assert_eq!(refused.reason, said, "{kind:?}");
            assert!(out.after_close && !out.decides && out.update.is_none());
            assert_eq!((owner.status(), out.commands.len()), (status, 0));
        }
        assert!(owner.idle().is_none() && owner.session.wake_at_us().is_none());
    }
}

#[test]
fn p8_a_refused_verb_is_copied_once_also_after_the_end() {
    let mut owner = Owner::begin();
    owner.row(|_| ends(&[])).expect("it ends");
    owner.ask(InboxKind::Pause);
    let out = owner.compose(&mut |_| Report::default()).expect("it is noted");
    assert_eq!(out.inbox_read, 1);
    owner.crash_without_code();
    assert_eq!(owner.session.run().inbox_read, 0, "the row was lost");
    owner.idle().expect("it is noted");
    owner.crash_without_code();
    assert!(owner.idle().is_none());
}

#[test]
fn attributes_are_set_after_the_end() {
    for mut owner in closed_runs() {
        let status = owner.status();
        let attributes = vec![attribute("Settled", Some(1)), attribute("Gone", None)];
        owner.verb(InboxKind::SetAttributes, Verb { attributes, ..Verb::default() });
        let out = owner.idle().expect("it is written down");
        assert_eq!((owner.last(), out.after_close), (vec!["AttributesSet"], true));
        assert_eq!(out.attributes.len(), 2, "the store's index is told of both");
        owner.crash_without_code();
        assert_eq!((owner.status(), owner.session.run().attributes.len()), (status, 1));
        assert!(owner.idle().is_none());
    }
}
