//! Leases: how a run comes to a worker, and goes from it.

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::event::BlockKind;
use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::inbox::{InboxKind, Verb};
use backstitch_core::payload::Payload;
use backstitch_core::row::Row;
use backstitch_core::session::AttemptEnd;
use backstitch_core::status::Status;
use backstitch_engine::events::EventPost;
use backstitch_engine::start::Conflict;
use backstitch_store::{Answer as StoreAnswer, Change, InboxPut, Store};

use backstitch_api::worker as wire;
use backstitch_api::worker::Workflow;
use backstitch_api::worker::from_server::Message;
use backstitch_api::worker::from_worker::Message as Said;
use backstitch_api::worker::refused::Why;

use crate::peer::{LEASE, Peer, T0, hello};

#[tokio::test]
async fn a_run_goes_to_a_worker_and_comes_to_its_end() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(10).await;
    let started = peer.begin("a").await;
    let mut run = worker.lease().await;
    assert_eq!((run.lease.run, run.lease.id.as_str()), (started.run.0, "a"));
    let first = run.row().expect("the code asks for a step");
    assert_eq!(worker.write(first).await, T0);
    assert_eq!(peer.status("a").await, Status::Running);
    run.paid(1);
    let last = run.row().expect("the code returns");
    worker.write(last).await;
    let view = peer.engine.closed(started.run).await.expect("it is over");
    assert_eq!(view.status(true), Status::Succeeded);
    assert!(peer.engine.workers()[0].leased == 0, "its slot is free");
}

#[tokio::test]
async fn a_run_waits_for_a_worker_that_knows_its_workflow() {
    let peer = Peer::start().await;
    peer.begin("a").await;
    assert_eq!(peer.status("a").await, Status::Pending);
    let other = Workflow { name: "transfer".into(), version: "2".into(), event_types: None };
    let mut stranger = hello(1);
    (stranger.session, stranger.workflows) = (vec![1; 16], vec![other]);
    let mut stranger = peer.talk(stranger).await.expect("it is taken on");
    stranger.ping().await;
    assert_eq!(peer.status("a").await, Status::Pending);
    let mut worker = peer.worker(1).await;
    assert_eq!(worker.lease().await.lease.id, "a");
    stranger.ping().await;
}

#[tokio::test]
async fn there_are_as_many_leases_as_slots_and_the_oldest_run_is_next() {
    let peer = Peer::start().await;
    for id in ["a", "b", "c"] {
        peer.begin(id).await;
    }
    let mut worker = peer.worker(1).await;
    for id in ["a", "b", "c"] {
        let mut run = worker.lease().await;
        assert_eq!(run.lease.id, id);
        worker.ping().await;
        let row = run.row().expect("the code asks for a step");
        worker.write(row).await;
        run.paid(1);
        let row = run.row().expect("the code returns");
        worker.write(row).await;
    }
}

#[tokio::test]
async fn b96_an_append_that_is_repeated_gets_the_same_answer() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(1).await;
    let started = peer.begin("a").await;
    let mut run = worker.lease().await;
    let row = run.row().expect("the code asks for a step");
    let at_us = worker.write(row.clone()).await;
    peer.clock.advance(Duration::from_secs(1));
    assert_eq!(worker.write(row).await, at_us);
    assert_eq!(peer.engine.journal(started.run).await.expect("it can be read").len(), 2);
}

#[tokio::test]
async fn what_comes_from_outside_is_handed_on() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(1).await;
    let started = peer.begin("a").await;
    let mut run = worker.lease().await;
    let row = run.row().expect("the code asks for a step");
    worker.write(row).await;
    let verb = Verb { by: "ada".into(), ..Verb::default() };
    let sent = peer.engine.send(started.run, InboxKind::Cancel, verb, "r1").await;
    sent.expect("it can be cancelled");
    let Ok(Message::Inbox(inbox)) = worker.next().await else { panic!("the cancel is pushed") };
    assert_eq!((inbox.rows.len(), inbox.rows[0].kind), (1, InboxKind::Cancel as u32));
    // Who has not read it decides nothing.
    run.paid(1);
    let row = run.row().expect("the code returns");
    assert_eq!(worker.write_in_vain(row).await.why(), Why::Unread);
}

#[tokio::test]
async fn p8_an_event_for_a_run_that_waits_for_an_earlier_one_is_there_with_its_lease() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(1).await;
    let first = peer.begin("a").await;
    let row = worker.lease().await.row().expect("the code asks for a step");
    worker.write(row).await;
    let second = peer.begin_with("a", Conflict::Terminate).await;
    let Ok(Message::Inbox(_)) = worker.next().await else { panic!("the first one is terminated") };
    let (event_type, payload, by) = ("go".into(), Payload::json("1"), "ada".into());
    let post = EventPost { event_type, payload, event_id: None, by };
    peer.engine.send_event(second.run, post).await.expect("it is open");
    worker.ping().await;
    let verb = Verb { by: "ada".into(), reason: "it hangs".into(), ..Verb::default() };
    peer.engine.send(first.run, InboxKind::Kill, verb, "r1").await.expect("it can be killed");
    let Ok(Message::Revoke(_)) = worker.next().await else { panic!("it is taken away") };
    let lease = worker.lease().await.lease;
    assert_eq!(lease.run, second.run.0);
    // Written down by whoever waited for the first one, or still to be read.
    let rows = lease.rows.into_iter().map(|row| Row::decode(row).expect("it is a row"));
    let written = rows.flat_map(|row| row.events).filter(|event| event.name() == "EventReceived");
    let unread = lease.inbox.iter().filter(|row| row.kind == InboxKind::Event as u32);
    assert_eq!(written.count() + unread.count(), 1);
}

#[tokio::test]
async fn what_a_refused_row_has_not_read_comes_before_the_refusal() {
    let (peer, store) = Peer::start_on_memory().await;
    let mut worker = peer.worker(1).await;
    let started = peer.begin("a").await;
    let mut run = worker.lease().await;
    let row = run.row().expect("the code asks for a step");
    worker.write(row).await;
    // It is durable, and the server has not heard of it yet.
    let cancel = Verb { by: "ada".into(), ..Verb::default() }.to_bytes();
    let put = InboxPut {
        run: started.run,
        kind: InboxKind::Cancel,
        request_id: "verb r1".into(),
        topic: String::new(),
        digest: Payload::json(cancel.clone()).digest(),
        payload: cancel,
        changed: true,
        rows_max: 10,
        seen: 0,
        guard: Vec::new(),
    };
    let put = store.commit(Change::Inbox(Box::new(put))).await.expect("memory is there");
    assert!(matches!(put, StoreAnswer::Accepted { number: 1, .. }), "{put:?}");
    run.paid(1);
    let row = run.row().expect("the code returns");
    worker.say(Said::Append(row)).await;
    let Ok(Message::Inbox(inbox)) = worker.next().await else { panic!("the cancel comes first") };
    assert_eq!((inbox.rows.len(), inbox.rows[0].kind), (1, InboxKind::Cancel as u32));
    let Some(wire::answer::Answer::Refused(refused)) = worker.answer().await.answer else {
        panic!("then the row is refused")
    };
    assert_eq!(refused.why(), Why::Unread);
    // Once, and no more.
    worker.ping().await;
}

#[tokio::test]
async fn p4_when_the_lease_has_ended_the_next_worker_has_the_run_and_the_first_one_writes_nothing()
{
    let peer = Peer::start().await;
    let mut first = peer.worker(1).await;
    let started = peer.begin("a").await;
    let mut run = first.lease().await;
    let row = run.row().expect("the code asks for a step");
    first.write(row).await;
    let mut second = hello(1);
    second.session = vec![2; 16];
    let mut second = peer.talk(second).await.expect("it is taken on");
    peer.clock.advance(LEASE / 2);
    second.ping().await;
    peer.clock.advance(LEASE / 2);
    let mut again = second.lease().await;
    assert!(again.lease.fence > run.lease.fence);
    assert_eq!(first.next().await.expect_err("it is told").code(), tonic::Code::Aborted);
    // The attempt of the first worker is lost, and there is another one.
    again.now_us += LEASE.as_micros() as i64;
    let row = again.row().expect("the attempt is tried again");
    second.write(row).await;
    let view = peer.engine.view(started.run).await.expect("it can be read");
    assert_eq!(view.run.step(1).expect("it is a step").attempts, 2);
}

#[tokio::test]
async fn a_run_whose_worker_was_lost_in_an_attempt_is_pending() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(1).await;
    let started = peer.begin("a").await;
    let mut run = worker.lease().await;
    let row = run.row().expect("the code asks for a step");
    worker.write(row).await;
    worker.leave().await;
    assert_eq!(peer.status("a").await, Status::Running, "it may come back");
    assert!(peer.engine.pending_since(i64::MAX, 1).is_empty());
    peer.clock.advance(LEASE);
    while peer.engine.pending_since(i64::MAX, 1).is_empty() {
        tokio::task::yield_now().await;
    }
    let since_us = T0 + LEASE.as_micros() as i64;
    assert_eq!(peer.engine.pending_since(i64::MAX, 1), [(started.run, since_us)]);
    assert_eq!(peer.status("a").await, Status::Pending);
    let mut other = hello(1);
    other.session = vec![2; 16];
    let mut other = peer.talk(other).await.expect("it is taken on");
    other.lease().await;
    assert!(peer.engine.pending_since(i64::MAX, 1).is_empty());
}

#[tokio::test]
async fn a_worker_that_comes_back_in_time_keeps_its_runs() {
    let peer = Peer::start().await;
    let mut before = peer.worker(1).await;
    peer.begin("a").await;
    let mut run = before.lease().await;
    let row = run.row().expect("the code asks for a step");
    before.write(row).await;
    let mut again = hello(1);
    again.held = vec![run.held(2)];
    let mut after = peer.talk(again).await.expect("it is taken on again");
    assert_eq!(after.welcome.kept.len(), 1);
    assert_eq!(after.welcome.kept[0].fence, run.lease.fence);
    run.paid(1);
    let row = run.row().expect("the code returns");
    after.write(row).await;
    assert_eq!(peer.status("a").await, Status::Succeeded);
}

#[tokio::test]
async fn a_worker_that_comes_back_without_a_run_is_given_it_again() {
    let peer = Peer::start().await;
    let mut before = peer.worker(1).await;
    peer.begin("a").await;
    let run = before.lease().await;
    let mut after = peer.worker(1).await;
    assert!(after.welcome.kept.is_empty());
    let again = after.lease().await;
    assert!(again.lease.fence > run.lease.fence);
}

#[tokio::test]
async fn a_run_that_is_given_back_goes_to_a_worker_again_when_something_happens() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(1).await;
    let started = peer.begin("a").await;
    let mut run = worker.lease().await;
    let row = run.row().expect("the code asks for a step");
    worker.write(row).await;
    worker.say(run.release()).await;
    // With an attempt in flight: it is lost, and the run goes on.
    let mut again = worker.lease().await;
    assert_eq!(again.lease.run, started.run.0);
    let row = again.row().expect("the attempt is tried again");
    worker.write(row).await;
}

#[tokio::test]
async fn a_run_that_is_given_back_untouched_rests_ever_longer_or_goes_to_another_worker() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(9).await;
    peer.begin("a").await;
    let run = worker.lease().await;
    let mut release = run.release();
    for rest_ms in [100, 200, 400] {
        worker.say(release).await;
        // Nothing comes before the Pong.
        worker.ping().await;
        peer.clock.advance(Duration::from_millis(rest_ms - 1));
        worker.ping().await;
        peer.clock.advance(Duration::from_millis(1));
        release = worker.lease().await.release();
    }
    let mut hello = hello(1);
    hello.session = vec![2; 16];
    let mut other = peer.talk(hello).await.expect("it is taken on");
    worker.say(release).await;
    worker.ping().await;
    peer.clock.advance(Duration::from_millis(800));
    let mut run = other.lease().await;
    let row = run.row().expect("the code asks for a step");
    other.write(row).await;
    // What was done since counts: it does not rest.
    other.say(run.release()).await;
    worker.lease().await;
}

#[tokio::test]
async fn p8_what_reaches_a_worker_that_is_just_leaving_is_for_the_next_one() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(1).await;
    let started = peer.begin("a").await;
    let mut run = worker.lease().await;
    let row = run.row().expect("the code asks for a step");
    worker.write(row).await;
    // Nothing is to be done for an hour.
    let failure = Failure::new(Class::Transient, Origin::Body, "Busy", "later");
    let delay_us = Some(3_600_000_000);
    run.session.step_ended(1, 1, AttemptEnd::Failed { failure, delay_us }, T0);
    let row = run.row().expect("the failure is written down");
    worker.write(row).await;
    let verb = Verb { by: "ada".into(), ..Verb::default() };
    let sent = peer.engine.send(started.run, InboxKind::Cancel, verb, "r1").await;
    let number = sent.expect("it can be cancelled").number;
    let Ok(Message::Inbox(inbox)) = worker.next().await else { panic!("the cancel is pushed") };
    assert_eq!(inbox.rows[0].number, number);
    // It was sent the cancel, and has not written it down.
    let wire::Lease { run: no, fence, .. } = run.lease;
    let (inbox, trouble) = (number, String::new());
    worker.say(Said::Release(wire::Release { run: no, fence, inbox, trouble })).await;
    let mut again = worker.lease().await;
    let row = again.row().expect("the step is undone");
    worker.write(row).await;
    assert_eq!(peer.status("a").await, Status::RollingBack);
}

#[tokio::test]
async fn a_run_that_does_not_fit_the_code_of_a_worker_goes_to_the_next_one_that_comes() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(1).await;
    peer.begin("a").await;
    let mut run = worker.lease().await;
    let failure = Failure::new(Class::Attention, Origin::Engine, "Mismatch", "other code");
    run.session.block(BlockKind::Mismatch, failure);
    let row = run.row().expect("the block is written down");
    worker.write(row).await;
    worker.say(run.release()).await;
    worker.ping().await;
    assert_eq!(peer.status("a").await, Status::Blocked);
    let mut mended = hello(1);
    mended.session = vec![2; 16];
    let mut mended = peer.talk(mended).await.expect("it is taken on");
    assert_eq!(mended.lease().await.lease.id, "a");
}

#[tokio::test]
async fn a_worker_that_has_left_in_good_order_is_forgotten() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(1).await;
    worker.say(Said::Drain(wire::Drain {})).await;
    worker.ping().await;
    peer.begin("a").await;
    worker.ping().await;
    assert!(peer.engine.workers()[0].draining);
    assert_eq!(peer.status("a").await, Status::Pending, "it wants no more runs");
    worker.leave().await;
    assert!(peer.engine.workers().is_empty());
}

#[tokio::test]
async fn a_kill_does_not_wait_for_the_worker() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(1).await;
    let started = peer.begin("a").await;
    let mut run = worker.lease().await;
    let row = run.row().expect("the code asks for a step");
    worker.write(row).await;
    let verb = Verb { by: "ada".into(), reason: "it hangs".into(), ..Verb::default() };
    let sent = peer.engine.send(started.run, InboxKind::Kill, verb, "r1").await;
    sent.expect("it can be killed");
    let Ok(Message::Revoke(revoke)) = worker.next().await else { panic!("it is taken away") };
    assert!(!revoke.in_good_order);
    let view = peer.engine.closed(started.run).await.expect("it is over");
    assert_eq!(view.status(true), Status::Terminated);
    run.paid(1);
    let row = run.row().expect("the code returns");
    assert_eq!(worker.write_in_vain(row).await.why(), Why::Lost);
}

#[tokio::test]
async fn a_kill_ends_what_was_cancelled_before_and_a_worker_whose_code_hangs_does_not_end() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(1).await;
    let started = peer.begin("a").await;
    let _hangs = worker.lease().await;
    let verb = Verb { by: "ada".into(), ..Verb::default() };
    let sent = peer.engine.send(started.run, InboxKind::Cancel, verb.clone(), "r1").await;
    assert!(sent.expect("it can be cancelled").changed);
    let Ok(Message::Inbox(_)) = worker.next().await else { panic!("it is told of the cancel") };
    let sent = peer.engine.send(started.run, InboxKind::Kill, verb, "r2").await;
    assert!(sent.expect("it can be killed").changed);
    let Ok(Message::Revoke(_)) = worker.next().await else { panic!("it is taken away") };
    let view = peer.engine.closed(started.run).await.expect("it is over");
    assert_eq!(view.status(true), Status::Terminated);
}

#[tokio::test]
async fn after_a_restart_of_the_server_a_worker_keeps_what_it_runs() {
    let (peer, store) = Peer::start_on_memory().await;
    let mut worker = peer.worker(1).await;
    let started = peer.begin("a").await;
    let mut run = worker.lease().await;
    let row = run.row().expect("the code asks for a step");
    worker.write(row).await;
    // The next owner of the store; the first one can write nothing any more.
    let peer = Peer::on(Arc::new(store.reopen()), peer.clock).await;
    let mut again = hello(1);
    again.held = vec![run.held(2)];
    let mut worker = peer.talk(again).await.expect("it is taken on again");
    let kept = &worker.welcome.kept;
    assert!(kept.len() == 1 && kept[0].fence > run.lease.fence, "{kept:?}");
    run.lease.fence = kept[0].fence;
    run.paid(1);
    let row = run.row().expect("the code returns");
    worker.write(row).await;
    let view = peer.engine.closed(started.run).await.expect("it is over");
    assert_eq!(view.step(1).expect("it is a step").attempts, 1, "nothing was lost");
}

#[tokio::test]
async fn p1_a_server_that_stops_before_a_worker_is_back_leaves_it_what_it_runs() {
    let (peer, store) = Peer::start_on_memory().await;
    let mut worker = peer.worker(1).await;
    let started = peer.begin("a").await;
    let mut run = worker.lease().await;
    let row = run.row().expect("the code asks for a step");
    worker.write(row).await;
    // The next owner stops in good order, with the worker still on its way.
    let store = Arc::new(store.reopen());
    let peer = Peer::on(store.clone(), peer.clock).await;
    peer.engine.stop().await.expect("it stops");
    let peer = Peer::on(Arc::new(store.reopen()), peer.clock).await;
    assert_eq!(peer.engine.journal(started.run).await.expect("it can be read").len(), 2);
    let mut again = hello(1);
    again.held = vec![run.held(2)];
    let worker = peer.talk(again).await.expect("it is taken on again");
    assert_eq!(worker.welcome.kept.len(), 1, "it has its run still");
}

#[tokio::test]
async fn runs_that_are_killed_before_a_worker_comes_do_not_take_the_place_of_others() {
    let peer = Peer::start().await;
    for id in ["a", "b", "c"] {
        let killed = peer.begin(id).await;
        let verb = Verb { by: "ada".into(), ..Verb::default() };
        let sent = peer.engine.send(killed.run, InboxKind::Kill, verb, "r1").await;
        sent.expect("it can be killed");
        peer.engine.closed(killed.run).await.expect("it is over");
    }
    peer.begin("d").await;
    let mut worker = peer.worker(1).await;
    assert_eq!(worker.lease().await.lease.id, "d");
}

#[tokio::test]
async fn p10_a_kill_does_not_wait_behind_what_a_worker_does_not_read() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(1).await;
    let started = peer.begin("a").await;
    let _hangs = worker.lease().await;
    for _ in 0..600 {
        let (event_type, payload, by) = ("go".into(), Payload::json("1"), "ada".into());
        let post = EventPost { event_type, payload, event_id: None, by };
        peer.engine.send_event(started.run, post).await.expect("there is room");
    }
    let verb = Verb { by: "ada".into(), ..Verb::default() };
    peer.engine.send(started.run, InboxKind::Kill, verb, "r1").await.expect("it can be killed");
    while let Ok(Message::Inbox(_)) = worker.next().await {}
    let view = peer.engine.closed(started.run).await.expect("it is over");
    assert_eq!(view.status(true), Status::Terminated);
}
