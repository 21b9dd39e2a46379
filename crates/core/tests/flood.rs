//! Many large events at once: no row grows beyond what a store can take (P12), and nothing is decided
//! or shown before its turn because of it (P5, P13).

mod owner;

use backstitch_core::event::{Event, ExecutionStarted};
use backstitch_core::inbox::InboxKind;
use backstitch_core::limits::ROW_PAYLOAD_BYTES_SOFT_MAX;
use backstitch_core::session::{GroupStart, Report, RowOut};
use backstitch_core::status::Status;
use owner::*;

const MIB: usize = 1024 * 1024;

/// `count` events of 1 MiB each are accepted.
fn flood(owner: &mut Owner, count: usize) {
    for _ in 0..count {
        owner.send_bytes("a", vec![b'1'; MIB]);
    }
}

/// Writes rows until nothing is left, none of them too large or to be refused. A process dies after
/// each.
fn write_all(owner: &mut Owner, mut code: impl FnMut(&GroupStart) -> Report) -> Vec<RowOut> {
    let mut outs = Vec::new();
    while let Some(out) = owner.compose(&mut code) {
        let bytes = out.draft.events.len();
        assert!(bytes < ROW_PAYLOAD_BYTES_SOFT_MAX + 2 * MIB, "a row of {bytes} bytes");
        assert!(!owner.is_refused(&out), "it decides over the head of an accepted verb");
        owner.commit(&out);
        owner.now_us += 1;
        owner.crash();
        outs.push(out);
    }
    outs
}

#[test]
fn p12_a_flood_of_large_events_is_copied_into_several_rows() {
    let mut owner = Owner::begin();
    owner.row(|_| asks(vec![wait("w1", "a", None)])).expect("the first turn");
    flood(&mut owner, 20);
    let outs = write_all(&mut owner, |group| match group.group {
        2 => asks(vec![wait("w2", "a", None)]),
        _ => Report::default(),
    });
    assert!((5..=8).contains(&outs.len()), "{} rows", outs.len());
    assert_eq!(owner.shown(), [(1, 1), (2, 2)]);
    assert_eq!((owner.session.run().inbox_read, owner.session.run().kept.len()), (20, 18));
}

#[test]
fn p13_the_first_turn_sees_the_same_time_in_replay_however_many_events_came_before_it() {
    for count in [1, 4, 5, 9] {
        let mut owner = Owner::begin();
        flood(&mut owner, count);
        let outs = write_all(&mut owner, |_| asks(vec![sleep("z", T0 + 1_000)]));
        assert_eq!(owner.played.len(), 1, "after {} rows", outs.len());
        let turn = owner.rows.iter().find(|row| row.header.now_us.is_some()).expect("a turn");
        assert_eq!(turn.header.now_us, Some(owner.played[0].0.now_us));
    }
}

#[test]
fn p5_a_cancel_or_a_pause_behind_a_flood_is_never_overtaken() {
    for (verb, status) in [
        (InboxKind::Cancel, Status::Cancelled),
        (InboxKind::Terminate, Status::Terminated),
        (InboxKind::Kill, Status::Terminated),
        (InboxKind::Pause, Status::Paused),
    ] {
        let deadline_at_us = Some(T0 + 1);
        let mut owner =
            Owner::begin_with(ExecutionStarted { deadline_at_us, ..Default::default() });
        owner.row(|_| asks(vec![wait("w", "b", None)])).expect("the first turn");
        flood(&mut owner, 9);
        owner.ask(verb);
        flood(&mut owner, 1);
        owner.now_us = T0 + 5;
        write_all(&mut owner, |_| Report::default());
        assert_eq!((owner.status(), owner.session.run().inbox_read), (status, 11), "{verb:?}");
    }
}

#[test]
fn p12_a_run_that_is_cancelled_in_front_of_a_flood_ends() {
    for undo in [false, true] {
        let mut owner = Owner::begin();
        let first = if undo { step("s") } else { sleep("z", T0 + 1_000) };
        owner.row(|_| asks(vec![first.clone()])).expect("the first turn");
        owner.ask(InboxKind::Cancel);
        flood(&mut owner, 9);
        write_all(&mut owner, |_| Report::default());
        assert_eq!(owner.session.run().inbox_read, 10);
        let first = owner.rows[2].events.iter().map(Event::name).take(2).collect::<Vec<_>>();
        let decision = if undo { "RollbackStarted" } else { "VerbRefused" };
        assert_eq!(first, ["CancelRequested", decision]);
        assert_eq!(owner.status().is_closed(), !undo, "{}", owner.status());
    }
}
