//! Events and waits in the session: what the code is shown of them, and when (P8).

mod owner;

use backstitch_core::event::Event;
use backstitch_core::inbox::{EventMessage, InboxKind, Verb};
use backstitch_core::payload::Payload;
use backstitch_core::row::RowKind;
use backstitch_core::session::{Asked, Report};
use backstitch_core::status::Status;
use owner::*;

/// A run whose code has asked for these in its first group.
fn asked(waits: Vec<Asked>) -> Owner {
    let mut owner = Owner::begin();
    owner.row(script(vec![asks(waits)])).expect("the first turn");
    owner
}

#[test]
fn p8_b24_events_of_one_type_come_in_order_of_acceptance_one_per_group() {
    let mut owner = asked(vec![wait("w1", "a", None)]);
    for event_type in ["a", "b", "a", "a"] {
        owner.send(event_type);
    }
    owner.rows(script(vec![
        Report::default(),
        asks(vec![wait("w2", "a", None), wait("w3", "b", None)]),
        Report::default(),
        asks(vec![wait("w4", "a", None)]),
    ]));
    assert_eq!(owner.shown(), [(1, 1), (3, 2), (2, 3), (4, 4)]);
    let [_, _, row] = &owner.rows[..] else { panic!("one row has them all: {:?}", owner.rows) };
    assert_eq!(row.header.kind(), RowKind::Turn);
    owner.crash();
    assert_eq!((owner.shown().len(), owner.session.run().kept.len()), (4, 0));
    assert_eq!(owner.idle().map(|out| out.draft), None, "nothing is left to do");
}

#[test]
fn p8_b22_an_event_is_kept_until_a_wait_wants_it() {
    let mut owner = asked(vec![sleep("s", T0 + 10)]);
    owner.send("a");
    assert!(owner.idle().is_some());
    assert_eq!((owner.last(), owner.last_kind()), (vec!["EventReceived"], RowKind::Engine));
    owner.crash();
    owner.now_us = T0 + 10;
    owner.row(script(vec![Report::default(), asks(vec![wait("w", "a", None)])]));
    assert_eq!(owner.last(), ["TimerFired", "WaitStarted", "WaitSatisfied"]);
    assert_eq!(owner.shown(), [(1, -2), (2, 1)]);
}

#[test]
fn p8_a_wait_for_several_types_takes_the_earliest() {
    let mut owner = asked(vec![wait("w1", "b a", None), wait("w2", "c", None)]);
    for event_type in ["c", "a", "b"] {
        owner.send(event_type);
    }
    owner.rows(script(vec![Report::default(), asks(vec![wait("w3", "a b", None)])]));
    assert_eq!(owner.shown(), [(2, 1), (1, 2), (3, 3)]);
}

#[test]
fn p8_of_two_waits_for_one_type_the_first_is_served_first() {
    let mut owner = asked(vec![wait("w1", "a", None), wait("w2", "a", None)]);
    owner.send("a");
    owner.rows(script(vec![]));
    assert_eq!(owner.shown(), [(1, 1)]);
    owner.send("a");
    owner.rows(script(vec![]));
    assert_eq!(owner.shown(), [(1, 1), (2, 2)]);
}

#[test]
fn p8_b25_what_was_accepted_in_time_satisfies_however_late_the_run_gets_to_it() {
    let mut owner = asked(vec![wait("w", "a", Some(T0 + 10))]);
    owner.now_us = T0 + 10;
    let on_time = owner.send("a");
    owner.now_us = T0 + 1_000;
    owner.crash();
    let out = owner.idle().expect("it is shown the event");
    assert_eq!((owner.shown(), out.topics), (vec![(1, on_time as i64)], vec![]));
}

#[test]
fn p8_b23_b25_what_was_accepted_after_the_deadline_is_left_for_another_wait() {
    let mut owner = asked(vec![wait("w1", "a", Some(T0 + 10))]);
    owner.now_us = T0 + 11;
    let late = owner.send("a");
    let out = owner.row(script(vec![Report::default(), asks(vec![wait("w2", "a", None)])]));
    assert_eq!(owner.shown(), [(1, -1), (2, late as i64)]);
    assert_eq!(out.expect("a row").inbox_read, late);
}

#[test]
fn p8_the_row_of_a_time_out_names_the_types_that_must_not_stand_unread() {
    let mut owner = asked(vec![
        wait("w1", "a b", Some(T0 + 10)),
        wait("w2", "c", Some(T0 + 11)),
        wait("w3", "d", Some(T0 + 20)),
    ]);
    owner.now_us = T0 + 15;
    let out = owner.compose(&mut |_| Report::default()).expect("two waits time out");
    assert_eq!((out.topics.join(" "), out.decides), ("a b c".into(), false));
    // An event comes while the row is on its way. It is too late, but only its acceptance says so.
    owner.send("d");
    assert!(!owner.is_refused(&out));
    let came = owner.send("c");
    assert!(owner.is_refused(&out));
    owner.crash();
    let out = owner.compose(&mut |_| Report::default()).expect("a row");
    assert!(!owner.is_refused(&out));
    owner.commit(&out);
    assert_eq!(owner.shown(), [(1, -1), (2, -1), (3, 1)]);
    assert_eq!(owner.session.run().kept.iter().map(|e| e.inbox).collect::<Vec<_>>(), [came]);
}

#[test]
fn p8_a_row_that_satisfies_a_wait_asks_nothing_of_the_inbox_and_one_that_ends_the_run_decides() {
    let until = || asked(vec![wait("w", "a", Some(T0 + 10))]);
    let mut owner = until();
    owner.send("a");
    let out = owner.row(script(vec![])).expect("it is shown the event");
    assert_eq!((out.topics.len(), out.decides), (0, false));
    let mut owner = until();
    owner.now_us = T0 + 10;
    let out = owner.row(script(vec![Report::default(), ends(&[])])).expect("it ends late");
    assert_eq!((out.topics, out.decides), (vec!["a".to_owned()], true));
    assert_eq!(owner.status(), Status::Succeeded);
}

#[test]
fn p8_a_sleep_and_an_event_are_shown_in_the_order_of_their_instants() {
    for (accepted_after_us, first) in [(9, 1), (10, 1), (11, -2)] {
        let mut owner = asked(vec![sleep("s", T0 + 10), wait("w", "a", None)]);
        owner.now_us = T0 + accepted_after_us;
        owner.send("a");
        owner.now_us = T0 + 20;
        owner.rows(script(vec![]));
        assert_eq!(owner.shown()[0].1, first, "accepted {accepted_after_us} µs after");
        assert_eq!(owner.shown().len(), 2);
        owner.crash();
    }
}

#[test]
fn p8_a_wait_that_times_out_before_the_event_of_another_goes_first() {
    let mut owner = asked(vec![wait("w1", "a", Some(T0 + 10)), wait("w2", "a", Some(T0 + 30))]);
    owner.now_us = T0 + 11;
    owner.send("a");
    owner.now_us = T0 + 40;
    owner.rows(script(vec![]));
    assert_eq!(owner.shown(), [(1, -1), (2, 1)]);
}

#[test]
fn p8_b27_b89_the_event_of_a_wait_that_lost_stays_for_a_later_one() {
    let mut owner = asked(vec![sleep("s", T0 + 10), wait("w1", "a", None)]);
    owner.now_us = T0 + 10;
    owner.row(script(vec![Report::default(), drops(&[2])]));
    assert_eq!(owner.last(), ["TimerFired", "WaitCancelled"]);
    owner.send("a");
    owner.idle().expect("it is copied");
    assert_eq!((owner.last(), owner.last_kind()), (vec!["EventReceived"], RowKind::Engine));
    assert_eq!((owner.shown().len(), owner.session.run().kept.len()), (1, 1));
}

#[test]
fn p8_b89_a_wait_that_was_shown_an_event_and_dropped_gives_it_back() {
    let mut owner = asked(vec![wait("w1", "a", None)]);
    owner.send("a");
    owner.send("a");
    // The code is shown the first event, never looks at it, and asks again.
    let again = Report { drops: vec![1], ..asks(vec![wait("w2", "a", None)]) };
    owner.row(script(vec![Report::default(), again]));
    assert_eq!(owner.shown(), [(1, 1), (2, 1)]);
    owner.crash();
    assert_eq!(owner.shown(), [(1, 1), (2, 1)], "and so does replay");
    assert_eq!(owner.session.run().kept.iter().map(|e| e.inbox).collect::<Vec<_>>(), [2]);
}

#[test]
fn p8_nothing_is_shown_while_paused_and_everything_afterwards() {
    let mut owner = asked(vec![wait("w", "a b", Some(T0 + 10))]);
    owner.ask(InboxKind::Pause);
    owner.idle().expect("it is paused");
    owner.send("a");
    owner.idle().expect("it is copied");
    assert_eq!((owner.status(), owner.shown()), (Status::Paused, vec![]));
    owner.now_us = T0 + 50;
    assert!(owner.idle().is_none() && owner.session.wake_at_us().is_none());
    owner.ask(InboxKind::Resume);
    owner.rows(script(vec![]));
    assert_eq!(owner.shown(), [(1, 2)]);
}

#[test]
fn p9_a_resume_with_shift_moves_waits_and_sleeps_by_the_time_that_it_was_paused() {
    for shift_timers in [false, true] {
        let mut owner = asked(vec![wait("w", "a", Some(T0 + 10)), sleep("s", T0 + 20)]);
        owner.now_us = T0 + 5;
        owner.ask(InboxKind::Pause);
        owner.idle().expect("it is paused");
        owner.now_us = T0 + 105;
        owner.verb(InboxKind::Resume, Verb { shift_timers, ..Verb::default() });
        owner.idle().expect("it is resumed");
        let by_us = if shift_timers { 100 } else { 0 };
        assert_eq!(owner.session.wake_at_us(), Some(T0 + 10 + by_us));
        owner.now_us = T0 + 110;
        owner.send("a");
        owner.now_us = T0 + 120;
        owner.rows(script(vec![]));
        let shown = if shift_timers { [(1, 3), (2, -2)] } else { [(1, -1), (2, -2)] };
        assert_eq!(owner.shown(), shown, "with shift: {shift_timers}");
        owner.crash();
    }
}

#[test]
fn p5_an_event_that_comes_on_the_way_back_is_refused_by_name() {
    let mut owner = asked(vec![step("s"), wait("w", "a", None)]);
    owner.returned(1);
    let failed = Report { drops: vec![2], ..fails() };
    owner.row(script(vec![Report::default(), failed]));
    assert_eq!(owner.status(), Status::RollingBack);
    owner.send("a");
    owner.idle().expect("it is written down");
    let row = owner.rows.last().expect("the last row");
    let [Event::VerbRefused(refused)] = &row.events[..] else { panic!("{row:?}") };
    let said = (refused.inbox, refused.verb.as_str(), refused.by.as_str());
    assert_eq!(said, (1, "event", "ada"));
    assert_eq!((refused.event_type.as_str(), refused.ord), ("a", None));
    assert!(refused.why.contains("\"a\"") && refused.why.contains("rolling back"), "{refused:?}");
}

#[test]
fn p8_what_cannot_be_read_as_an_event_is_refused_and_stops_nothing() {
    let mut owner = asked(vec![wait("w", "a", None)]);
    owner.send("a");
    let mut damaged = owner.inbox[0].clone();
    (damaged.number, damaged.payload) = (2, vec![0xff; 9].into());
    owner.session.inbox(damaged);
    owner.rows(script(vec![]));
    assert_eq!(owner.shown(), [(1, 1)]);
    assert_eq!(owner.last(), ["EventReceived", "VerbRefused", "WaitSatisfied"]);
}

#[test]
fn b26_events_are_the_same_when_type_and_payload_are() {
    let message = |by: &str, text: &str| EventMessage {
        by: by.to_owned(),
        event_id: "e".into(),
        payload: Payload::json(text.to_owned()),
    };
    let digest = message("ada", "1").digest("a");
    assert_eq!(message("bob", "1").digest("a"), digest, "whoever sends it");
    assert_ne!(message("ada", "2").digest("a"), digest);
    assert_ne!(message("ada", "1").digest("b"), digest);
    assert_ne!(message("ada", "bc").digest("a"), message("ada", "c").digest("ab"));
    let there_and_back = EventMessage::from_bytes(message("ada", "1").to_bytes());
    assert_eq!(there_and_back, Some(message("ada", "1")));
}
