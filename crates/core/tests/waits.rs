//! Events and waits in the fold: what it accepts of them, and what it refuses (P8, P9).

mod story;

use backstitch_core::event::{Event, PauseRequested};
use backstitch_core::row::RowKind;
use backstitch_core::run::{IllegalEvent, Run, WaitsFor};
use backstitch_core::status::Status;
use backstitch_core::wait::WaitPhase;
use story::*;

/// Folds one more turn that saw this time.
fn turn_of(run: &mut Run, now_us: i64, events: Vec<Event>) -> Result<(), IllegalEvent> {
    run.apply_row(&turn_at(run.seq + 1, now_us, events))
}

/// A run after one turn of these events.
fn after(events: Vec<Event>) -> Run {
    let mut run = run();
    then(&mut run, RowKind::Turn, events).expect("what comes before is legal");
    run
}

/// Checks that each `event` is refused in a turn after its events, with a reason that says `why`.
fn refused(cases: Vec<(Vec<Event>, Event, &str)>) {
    for (events, event, why) in cases {
        let names: Vec<&str> = events.iter().map(Event::name).collect();
        let mut run = after(events.clone());
        let Err(illegal) = then(&mut run, RowKind::Turn, vec![event.clone()]) else {
            panic!("{} was accepted after {names:?}", event.name());
        };
        assert_eq!(illegal.event, event.name());
        assert!(illegal.why.contains(why), "{} after {names:?}: {illegal}", event.name());
    }
}

fn kept(run: &Run) -> Vec<u64> {
    run.kept.iter().map(|event| event.inbox).collect()
}

#[test]
fn p8_an_event_is_taken_once() {
    let taken =
        || vec![wait(1, "a", None), wait(2, "a", None), received(1, "a", 5), satisfied(1, 1)];
    refused(vec![
        (taken(), satisfied(2, 1), "was taken"),
        (taken(), satisfied(1, 1), "was taken"),
        ([taken(), vec![received(2, "a", 6)]].concat(), satisfied(1, 2), "Satisfied, not open"),
        (vec![wait(1, "a", None)], satisfied(1, 1), "is not there"),
        (vec![received(1, "a", 5)], received(1, "a", 5), "copied before"),
        (vec![received(2, "a", 5)], received(1, "a", 5), "copied before"),
        (vec![received(2, "a", 5)], cancel(2), "copied before"),
    ]);
    let run = after(taken());
    assert_eq!((kept(&run), run.waits.len()), (vec![], 1));
    let event = run.wait(1).and_then(|wait| wait.event.as_deref()).expect("replay shows it again");
    assert_eq!((event.inbox, event.payload.data.as_ref()), (1, b"1".as_slice()));
}

#[test]
fn p8_b24_a_wait_takes_the_oldest_event_of_its_type() {
    let two = |types| {
        vec![wait(1, types, None), received(3, "a", 5), received(4, "b", 5), received(7, "a", 9)]
    };
    refused(vec![
        (two("a"), satisfied(1, 7), "event 3 satisfies it, and was accepted before"),
        (two("a b"), satisfied(1, 4), "event 3 satisfies it"),
        (two("b a"), satisfied(1, 7), "event 3 satisfies it"),
        (two("a"), satisfied(1, 4), "does not wait for \"b\""),
        (two("c"), satisfied(1, 3), "does not wait for \"a\""),
    ]);
    for (types, first) in [("a", 3), ("b", 4), ("a b", 3), ("b a", 3), ("c b", 4)] {
        let mut run = after(two(types));
        let deliverable = run.deliverable().map(|(ord, event)| (ord, event.inbox));
        assert_eq!(deliverable, Some((1, first)), "{types}");
        then(&mut run, RowKind::Turn, vec![satisfied(1, first)]).expect("it is the oldest");
        assert_eq!(run.wait(1).map(|wait| wait.phase), Some(WaitPhase::Satisfied));
    }
}

#[test]
fn p8_of_several_waits_the_one_that_was_asked_for_first_gets_the_event() {
    let waits = vec![wait(1, "b", None), wait(2, "a", None), wait(3, "a b", None)];
    let run = after([waits.clone(), vec![received(1, "a", 5)]].concat());
    assert_eq!(run.deliverable().map(|(ord, event)| (ord, event.inbox)), Some((2, 1)));
    let run = after([waits, vec![received(1, "c", 4), received(2, "b", 5)]].concat());
    assert_eq!(run.deliverable().map(|(ord, event)| (ord, event.inbox)), Some((1, 2)));
}

#[test]
fn p8_b25_what_was_accepted_after_the_deadline_does_not_satisfy() {
    let came = |at_us| vec![wait(1, "a", Some(10)), received(1, "a", at_us)];
    refused(vec![
        (came(11), satisfied(1, 1), "after its deadline"),
        (came(10), timed_out(1), "event 1 satisfies it"),
        (came(9), timed_out(1), "event 1 satisfies it"),
    ]);
    for (at_us, legal) in [(9, satisfied(1, 1)), (10, satisfied(1, 1)), (11, timed_out(1))] {
        let mut run = after(came(at_us));
        assert_eq!(run.deliverable().is_some(), at_us <= 10);
        then(&mut run, RowKind::Turn, vec![legal]).expect("it is what happened");
        assert_eq!(kept(&run).len(), usize::from(at_us > 10), "b23: a time-out eats nothing");
        assert!(run.due.is_empty() && run.waits.is_empty());
    }
}

#[test]
fn p9_a_wait_never_times_out_early_nor_outside_of_a_turn() {
    let until = |until_us| after(vec![wait(1, "a", until_us)]);
    let why = |mut run: Run, now_us| {
        let refused = turn_of(&mut run, now_us, vec![timed_out(1)]);
        refused.expect_err("it is refused").why
    };
    assert!(why(until(Some(NOW_US + 5)), NOW_US + 4).contains("deadline has not come"));
    assert!(why(until(None), i64::MAX).contains("deadline has not come"));
    turn_of(&mut until(Some(NOW_US + 5)), NOW_US + 5, vec![timed_out(1)]).expect("it has come");
    for (accepted_at_us, end) in [(6, timed_out(1)), (4, satisfied(1, 1))] {
        let mut run = after(vec![wait(1, "a", Some(5)), received(1, "a", accepted_at_us)]);
        let refused = then(&mut run, RowKind::Engine, vec![end]).expect_err("nobody is shown it");
        assert!(refused.why.contains("only a turn shows"), "{refused}");
    }
}

#[test]
fn p8_a_wait_ends_once() {
    let ended = |end: Event| vec![wait(1, "a", Some(5)), received(1, "a", 4), end];
    let late = |end: Event| vec![wait(1, "a", Some(5)), received(1, "a", 6), end];
    refused(vec![
        (ended(satisfied(1, 1)), timed_out(1), "Satisfied, not open"),
        (ended(wait_dropped(1)), satisfied(1, 1), "Cancelled, not open"),
        (ended(wait_dropped(1)), wait_dropped(1), "the wait is Cancelled"),
        (late(wait_dropped(1)), timed_out(1), "Cancelled, not open"),
        (late(timed_out(1)), timed_out(1), "TimedOut, not open"),
        (late(timed_out(1)), wait_dropped(1), "the wait is TimedOut"),
        (late(timed_out(1)), satisfied(1, 1), "TimedOut, not open"),
    ]);
}

#[test]
fn p8_b89_a_wait_that_never_took_what_it_was_shown_gives_it_back_in_its_old_place() {
    let shown = vec![wait(1, "a", None), received(2, "a", 5), received(4, "a", 7), satisfied(1, 2)];
    let mut run = after(shown);
    assert_eq!(kept(&run), [4]);
    then(&mut run, RowKind::Turn, vec![wait_dropped(1), wait(2, "a", None)]).unwrap();
    assert_eq!(kept(&run), [2, 4]);
    assert_eq!(run.deliverable().map(|(ord, event)| (ord, event.inbox)), Some((2, 2)));
    let returned = run.wait(1).expect("it is there");
    assert_eq!(returned.phase, WaitPhase::Returned);
    assert!(returned.event.is_some(), "replay shows it before the code drops it");
    for again in [wait_dropped(1), timed_out(1), satisfied(1, 2)] {
        then(&mut run.clone(), RowKind::Turn, vec![again]).expect_err("it has ended");
    }
    then(&mut run.clone(), RowKind::Turn, vec![satisfied(2, 4)]).expect_err("2 goes first");
    then(&mut run, RowKind::Turn, vec![satisfied(2, 2)]).unwrap();
    assert_eq!(kept(&run), [4]);
}

#[test]
fn p8_a_wait_that_was_dropped_open_takes_nothing() {
    let mut run = after(vec![wait(1, "a", Some(NOW_US + 1)), received(1, "a", 5)]);
    then(&mut run, RowKind::Turn, vec![wait_dropped(1)]).unwrap();
    assert_eq!((kept(&run), run.due.len(), run.waits.len()), (vec![1], 0, 0));
    assert_eq!(run.deliverable(), None);
}

#[test]
fn p5_no_event_is_taken_in_on_the_way_back() {
    let decided = || vec![wait(1, "a", Some(5)), received(1, "a", 4), rollback(&[])];
    refused(vec![
        (decided(), received(2, "a", 5), "rolling back"),
        (decided(), satisfied(1, 1), "rolling back"),
        (decided(), timed_out(1), "rolling back"),
        (decided(), wait_dropped(1), "rolling back"),
        (decided(), wait(2, "a", None), "rolling back"),
        (decided(), marker("p"), "rolling back"),
        (decided(), published("k", "1"), "rolling back"),
    ]);
    let run = after(decided());
    assert_eq!((run.deliverable(), run.due.len(), run.waits.len()), (None, 0, 0));
}

#[test]
fn p13_waits_are_numbered_with_steps_and_sleeps_and_are_neither() {
    let asked = || vec![wait(1, "a", None), scheduled(2), timer(3)];
    refused(vec![
        (asked(), wait(1, "a", None), "ordinal 1 where 4 is next"),
        (asked(), started(1, 1), "1 is a wait, not a step"),
        (asked(), fired(1), "1 is a wait, not a timer"),
        (asked(), wait_dropped(2), "2 is a step, not a wait"),
        (asked(), wait_dropped(3), "3 is a timer, not a wait"),
        (asked(), wait_dropped(4), "there is no wait 4"),
        (asked(), wait_dropped(0), "there is no wait 0"),
        (asked(), shown(1), "no outcome"),
        ([asked(), vec![received(1, "a", 4), satisfied(1, 1)]].concat(), shown(1), "no outcome"),
    ]);
}

#[test]
fn p9_a_resume_with_shift_moves_open_waits_and_sleeps_and_nothing_else() {
    let mut run = after(vec![
        wait(1, "a", Some(NOW_US + 5)),
        wait(2, "a", None),
        wait(3, "b", Some(NOW_US)),
        timer(4),
        timer(5),
        fired(5),
        scheduled(6),
        started(6, 1),
    ]);
    turn_of(&mut run, NOW_US, vec![timed_out(3)]).unwrap();
    let retry = attempt_failed(6, 1, Some(NOW_US + 2));
    then(&mut run, RowKind::Engine, vec![retry, pause(1), resume_later(100, 2)]).unwrap();
    let due: Vec<_> = run.due.iter().copied().collect();
    assert_eq!(due, [(NOW_US + 2, 6), (NOW_US + 100, 4), (NOW_US + 105, 1)]);
    assert_eq!(run.wait(3).and_then(|wait| wait.until_us), Some(NOW_US), "it has ended");
    let came_while_paused = received(3, "a", NOW_US + 105);
    turn_of(&mut run, NOW_US + 200, vec![came_while_paused, satisfied(1, 3), fired(4)]).unwrap();
}

#[test]
fn p9_a_pause_counts_from_its_acceptance_or_else_from_its_row() {
    let since = |at_us| {
        let (by, reason) = ("ada".to_owned(), String::new());
        let mut run = after(Vec::new());
        let pause = PauseRequested { at_us, by, reason, inbox: 1 };
        then(&mut run, RowKind::Engine, vec![pause.into()]).unwrap();
        run.pause.map(|pause| pause.since_us)
    };
    assert_eq!((since(Some(NOW_US - 7)), since(None)), (Some(NOW_US - 7), Some(NOW_US)));
}

#[test]
fn p9_no_shift_runs_beyond_the_end_of_time() {
    let mut run = after(vec![wait(1, "a", Some(i64::MAX - 1)), pause(1)]);
    then(&mut run, RowKind::Engine, vec![resume_later(i64::MAX, 2)]).unwrap();
    assert_eq!(run.wait(1).and_then(|wait| wait.until_us), Some(i64::MAX));
    assert_eq!(run.next_due_us(), Some(i64::MAX));
}

#[test]
fn p10_a_run_says_which_events_it_waits_for() {
    let mut run = after(vec![wait(1, "a b", Some(NOW_US + 5)), timer(2), wait(3, "c", None)]);
    let types = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let until_us = Some(NOW_US + 5);
    assert_eq!(
        run.waits_for(true),
        [
            WaitsFor::Instant { ord: 2, at_us: NOW_US },
            WaitsFor::Event { ord: 1, types: types("a b"), until_us },
            WaitsFor::Event { ord: 3, types: types("c"), until_us: None },
        ]
    );
    assert_eq!(run.status(true), Status::Suspended);
    then(&mut run, RowKind::Engine, vec![received(1, "d", 5)]).unwrap();
    assert_eq!(run.status(true), Status::Suspended, "nobody waits for it");
    then(&mut run, RowKind::Engine, vec![received(2, "c", 5)]).unwrap();
    assert_eq!((run.status(true), run.status(false)), (Status::Running, Status::Pending));
}
