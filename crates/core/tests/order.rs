//! What the fold refuses: rows out of order, what a turn shows, and anything after the end.

mod examples;
mod story;

use backstitch_core::event::{
    AttributeOrigin, BlockKind, CancelVerb, Event, ExecutionStarted, UndoWaived,
};
use backstitch_core::id::Ordinal;
use backstitch_core::row::RowKind;
use backstitch_core::run::{IllegalEvent, Run};
use story::*;

fn engine(run: &mut Run, events: Vec<Event>) -> Result<(), IllegalEvent> {
    then(run, RowKind::Engine, events)
}

fn turn(run: &mut Run, events: Vec<Event>) -> Result<(), IllegalEvent> {
    then(run, RowKind::Turn, events)
}

#[test]
fn p13_rows_have_no_gaps_and_no_repetitions() {
    for seq in [0, 1, 3, u64::MAX] {
        let mut run = run();
        let illegal = run.apply_row(&row(seq, RowKind::Turn, vec![])).expect_err("row 2 is next");
        assert_eq!(
            illegal.to_string(),
            format!("row {seq}: the row is not legal here: row {seq} follows row 1")
        );
    }
    let rows = [row(1, RowKind::Engine, vec![begun()]), row(3, RowKind::Engine, vec![])];
    assert!(Run::fold(&rows).is_err());
}

#[test]
fn p11_a_journal_begins_with_its_start_and_only_there() {
    let why = |rows: &[_]| Run::fold(rows).expect_err("it is refused").why;
    assert!(why(&[]).contains("empty"));
    assert!(why(&[row(1, RowKind::Engine, vec![])]).contains("begins with ExecutionStarted"));
    assert!(why(&[row(1, RowKind::Engine, vec![scheduled(1)])]).contains("begins with"));
    assert!(why(&[row(1, RowKind::Engine, vec![begun(), begun()])]).contains("begun already"));
    assert!(why(&[row(2, RowKind::Engine, vec![begun()])]).contains("row 2 follows row 0"));
    let nameless = ExecutionStarted { run_id: vec![7; 15], ..ExecutionStarted::default() };
    assert!(why(&[row(1, RowKind::Engine, vec![nameless.into()])]).contains("16 bytes"));
}

#[test]
fn p13_only_a_turn_shows_and_each_outcome_once() {
    let mut run = run();
    turn(&mut run, vec![scheduled(1), started(1, 1), scheduled(2), started(2, 1)]).unwrap();
    engine(&mut run, vec![succeeded(1, 1)]).unwrap();
    assert_eq!(run.unshown, [1], "what stands in a row of the engine is not shown there");
    let in_an_engine_row = engine(&mut run.clone(), vec![shown(1)]).expect_err("it is refused");
    assert!(in_an_engine_row.why.contains("only a turn shows"));
    assert!(turn(&mut run.clone(), vec![shown(2)]).is_err(), "it has no outcome");
    turn(&mut run, vec![shown(1)]).unwrap();
    assert!(turn(&mut run.clone(), vec![shown(1)]).is_err(), "it was shown");
    turn(&mut run, vec![succeeded(2, 1)]).unwrap();
    assert!(turn(&mut run, vec![shown(2)]).is_err(), "it was shown where it stands");
}

#[test]
fn r13_a_dropped_outcome_is_never_shown() {
    let mut run = run();
    turn(&mut run, vec![scheduled(1), started(1, 1), scheduled(2), started(2, 1)]).unwrap();
    engine(&mut run, vec![succeeded(1, 1), succeeded(2, 1)]).unwrap();
    turn(&mut run, vec![shown(2), dropped(1)]).unwrap();
    assert!(run.unshown.is_empty());
    assert!(turn(&mut run, vec![shown(1)]).is_err());
}

#[test]
fn r13_a_step_is_dropped_once() {
    let mut run = run();
    turn(&mut run, vec![scheduled(1), started(1, 1), scheduled(2), started(2, 1)]).unwrap();
    turn(&mut run, vec![succeeded(1, 1), dropped(1), dropped(2)]).unwrap();
    assert!(turn(&mut run.clone(), vec![dropped(1)]).is_err(), "nobody took its outcome");
    assert!(turn(&mut run, vec![dropped(2)]).is_err(), "nobody waited for it");
}

#[test]
fn r13_a_dropped_step_is_not_tried_again() {
    let mut run = run();
    turn(&mut run, vec![scheduled(1), started(1, 1)]).unwrap();
    engine(&mut run, vec![attempt_failed(1, 1, Some(NOW_US))]).unwrap();
    turn(&mut run, vec![dropped(1)]).unwrap();
    assert!(run.due.is_empty());
    assert!(turn(&mut run, vec![started(1, 2)]).is_err());
}

/// Every kind of event, about things that are there.
fn anything(seq: u64) -> Vec<Event> {
    let mut events = examples::events();
    events.extend([
        scheduled(3),
        started(1, 2),
        started(2, 2),
        succeeded(2, 1),
        attempt_failed(2, 1, Some(NOW_US)),
        failed(2),
        dropped(2),
        abandoned(2, backstitch_core::event::AbandonWhy::Lost),
        retry_step(2, seq),
        timer(3),
        wait(3, "a", None),
        received(seq, "a", NOW_US),
        satisfied(3, seq),
        timed_out(3),
        wait_dropped(3),
        marker("p"),
        published("k", "1"),
        attributes_set(AttributeOrigin::Start, attribute("A", Some(1)), 0),
        attributes_set(AttributeOrigin::Code, attribute("A", Some(1)), 0),
        attributes_set(AttributeOrigin::Verb, attribute("A", None), seq),
        shown(1),
        cancel(seq),
        asked(CancelVerb::Terminate, seq),
        asked(CancelVerb::Rollback, seq),
        pause(seq),
        resume(seq),
        verb_refused(seq),
        blocked(BlockKind::Mismatch, None),
        rollback(&[1]),
        rollback(&[]),
        rollback_on_request(1, &[1]),
        rollback_on_request(1, &[]),
        undo_started(1, 1),
        undo_succeeded(1, 1),
        undo_attempt_failed(1, 1, None),
        undo_failed(1),
        not_needed(1),
        retry_undo(1, seq),
        waived(1, seq),
        finished(),
        ended_well(),
        ended_failed(),
        ended_cancelled(),
        ended_terminated(),
        killed(&[], seq),
    ]);
    events
}

/// What a person may still do about a closed run: settle what a kill left (P6), say something about
/// it, be refused.
fn settles(event: &Event, left: &[Ordinal]) -> bool {
    match event {
        Event::UndoWaived(UndoWaived { ord, .. }) => left.contains(ord),
        Event::AttributesSet(e) => e.origin() != AttributeOrigin::Code,
        event => event.name() == "VerbRefused",
    }
}

/// A run that succeeded may be rolled back when somebody asks for it.
fn undoes(event: &Event) -> bool {
    match event {
        Event::CancelRequested(e) => e.verb() == CancelVerb::Rollback,
        event => *event == rollback_on_request(1, &[1]),
    }
}

fn nothing_follows(run: &Run, but: impl Fn(&Event) -> bool) {
    for kind in [RowKind::Turn, RowKind::Engine] {
        for event in anything(100) {
            let accepted = then(&mut run.clone(), kind, vec![event.clone()]).is_ok();
            assert_eq!(accepted, but(&event), "after the end: {event:?}");
        }
    }
}

#[test]
fn p3_nothing_follows_the_end() {
    let mut good = run();
    turn(&mut good, vec![scheduled(1), started(1, 1)]).unwrap();
    turn(&mut good, vec![succeeded(1, 1), ended_well()]).unwrap();
    nothing_follows(&good, |event| settles(event, &[]) || undoes(event));

    let mut undone = run();
    turn(&mut undone, vec![scheduled(1), started(1, 1)]).unwrap();
    turn(&mut undone, vec![succeeded(1, 1), rollback(&[1]), undo_started(1, 1)]).unwrap();
    engine(&mut undone, vec![undo_succeeded(1, 1), finished(), ended_failed()]).unwrap();
    nothing_follows(&undone, |event| settles(event, &[]));
}

#[test]
fn p6_nothing_follows_a_kill_although_bodies_and_undos_were_running() {
    let mut forward = run();
    let begun = vec![scheduled(1), started(1, 1), scheduled(2), started(2, 1)];
    turn(&mut forward, begun.clone()).unwrap();
    engine(&mut forward, vec![killed(&[2, 1], 1)]).unwrap();
    nothing_follows(&forward, |event| settles(event, &[2, 1]));

    let mut back = run();
    turn(&mut back, begun).unwrap();
    let decided = vec![succeeded(1, 1), succeeded(2, 1), rollback(&[2, 1]), undo_started(2, 1)];
    turn(&mut back, decided).unwrap();
    engine(&mut back, vec![killed(&[2, 1], 1)]).unwrap();
    for event in [undo_succeeded(2, 1), undo_attempt_failed(2, 1, None)] {
        assert!(engine(&mut back.clone(), vec![event]).is_err());
    }
    nothing_follows(&back, |event| settles(event, &[2, 1]));
}
