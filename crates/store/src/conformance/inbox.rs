//! Inbox rows.

use backstitch_core::inbox::{InboxKind, InboxRow};

use super::Subject;
use super::bench::{Bench, assert_appended, assert_refused};
use super::changes::new_put;
use crate::{Answer, InboxPut, Refusal, RunNo};

#[track_caller]
fn assert_accepted(answer: Answer) -> (u64, i64) {
    match answer {
        Answer::Accepted { number, accepted_at_us, changed: true, first: true } => {
            (number, accepted_at_us)
        }
        other => panic!("not accepted for the first time: {other:?}"),
    }
}

/// Order of acceptance is order of reading.
pub async fn requests_are_numbered_per_run_in_order(subject: impl Subject) {
    let bench = Bench::new(subject);
    let (run, other) = (bench.start(1).await, bench.start(2).await);
    let kinds = [InboxKind::Pause, InboxKind::Resume, InboxKind::Cancel];
    let mut expected = Vec::new();
    for (number, kind) in (1..).zip(kinds) {
        let put = new_put(run, kind, &format!("request-{number}"));
        let (given, accepted_at_us) = assert_accepted(bench.commit(put.clone()).await);
        assert_eq!(given, number);
        let InboxPut { request_id, topic, payload, changed, .. } = put;
        let row = InboxRow { number, kind, request_id, topic, payload, changed, accepted_at_us };
        expected.push(row);
        bench.put(other, kind, &format!("other-{number}")).await;
    }
    assert_eq!(bench.store.inbox(run, 0, 10).await.unwrap(), expected);
    assert_eq!(bench.store.inbox(run, 0, 2).await.unwrap(), expected[..2]);
    assert_eq!(bench.store.inbox(run, 2, 10).await.unwrap(), expected[2..]);
    assert!(bench.store.inbox(run, 3, 10).await.unwrap().is_empty());
    let bench = bench.reopen().await;
    assert_eq!(bench.store.inbox(run, 0, 10).await.unwrap(), expected);
    assert_eq!(assert_accepted(bench.put(run, InboxKind::Pause, "again").await).0, 4);
}

/// The same request, sent twice, is one.
pub async fn p8_a_repeated_request_gets_its_first_answer(subject: impl Subject) {
    let bench = Bench::new(subject);
    let (run, other) = (bench.start(1).await, bench.start(2).await);
    let put = new_put(run, InboxKind::Cancel, "request");
    // In one batch, and later.
    let (first, again) =
        (bench.store.commit(put.clone().into()), bench.store.commit(put.clone().into()));
    let (number, accepted_at_us) = assert_accepted(first.await.unwrap());
    let repeated = Answer::Accepted { number, accepted_at_us, changed: true, first: false };
    assert_eq!(again.await.unwrap(), repeated);
    bench.set_clock(9_000_000);
    bench.put(run, InboxKind::Pause, "another").await;
    assert_eq!(bench.commit(put.clone()).await, repeated);
    let bench = bench.reopen().await;
    assert_eq!(bench.commit(put).await, repeated);
    assert_eq!(bench.store.inbox(run, 0, 10).await.unwrap().len(), 2);
    // Request ids are unique within a run only.
    assert_accepted(bench.put(other, InboxKind::Cancel, "request").await);
}

/// A request id cannot mean two things.
pub async fn p8_a_request_id_with_another_content_is_refused(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let put = new_put(run, InboxKind::Cancel, "request");
    assert_accepted(bench.commit(put.clone()).await);
    let mut other_digest = put.clone();
    other_digest.digest = [4; 32];
    assert_refused(bench.commit(other_digest).await, Refusal::OtherRequest);
    let mut other_kind = put;
    other_kind.kind = InboxKind::Terminate;
    assert_refused(bench.commit(other_kind).await, Refusal::OtherRequest);
    assert_eq!(bench.store.inbox(run, 0, 10).await.unwrap().len(), 1);
}

/// Whoever asked before the end gets the same answer after it.
pub async fn p8_a_repeated_request_gets_its_first_answer_after_the_run_closed(
    subject: impl Subject,
) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let put = new_put(run, InboxKind::Cancel, "request");
    let (number, accepted_at_us) = assert_accepted(bench.commit(put.clone()).await);
    assert_appended(bench.commit(bench.new_closing(run, 2)).await);
    let repeated = Answer::Accepted { number, accepted_at_us, changed: true, first: false };
    assert_eq!(bench.commit(put).await, repeated);
}

/// A clock that is set back does not reorder what was accepted.
pub async fn p8_accepted_at_never_runs_backwards(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    bench.set_clock(50_000_000);
    let (_, before_us) = assert_accepted(bench.put(run, InboxKind::Pause, "1").await);
    assert!(before_us >= 50_000_000);
    bench.set_clock(10_000_000);
    let (_, after_us) = assert_accepted(bench.put(run, InboxKind::Resume, "2").await);
    assert!(after_us >= before_us);
    // The store's other stamps do not run backwards either.
    let appended_us = assert_appended(bench.commit(bench.new_append(run, 2)).await);
    assert!(appended_us >= after_us);
    let bench = bench.reopen().await;
    bench.set_clock(20_000_000);
    let (_, later_us) = assert_accepted(bench.put(run, InboxKind::Pause, "3").await);
    assert!(later_us >= after_us, "not even after a restart");
}

/// Nobody would ever read it.
pub async fn a_request_to_an_unknown_run_is_refused(subject: impl Subject) {
    let bench = Bench::new(subject);
    bench.start(1).await;
    for run in [RunNo(-1), RunNo(0), RunNo(99), RunNo(i64::MAX)] {
        assert_refused(bench.put(run, InboxKind::Kill, "kill").await, Refusal::UnknownRun);
    }
}

/// What the sender was told stands with the row, and so does the type of an event.
pub async fn p8_a_repeated_request_is_told_what_the_first_was(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let event = InboxPut {
        topic: "paid".into(),
        changed: false,
        ..new_put(run, InboxKind::Event, "event")
    };
    let first = bench.commit(event.clone()).await;
    let Answer::Accepted { number: 1, accepted_at_us, changed: false, first: true } = first else {
        panic!("not accepted as it was put: {first:?}");
    };
    let again = InboxPut { changed: true, ..event.clone() };
    let repeated = Answer::Accepted { number: 1, accepted_at_us, changed: false, first: false };
    assert_eq!(bench.commit(again.clone()).await, repeated);
    let bench = bench.reopen().await;
    assert_eq!(bench.commit(again).await, repeated);
    let rows = bench.store.inbox(run, 0, 10).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].kind, &*rows[0].topic, rows[0].changed), (event.kind, "paid", false));
}

/// Who has judged by what stood there is told that something has come since.
pub async fn p10_a_request_does_not_overtake_what_it_was_not_judged_with(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let put = |kind, request_id: &str, seen, guard: &[InboxKind]| InboxPut {
        seen,
        guard: guard.to_vec(),
        ..new_put(run, kind, request_id)
    };
    let pause = put(InboxKind::Pause, "pause", 0, InboxKind::VERBS);
    assert_accepted(bench.commit(pause.clone()).await);
    let late = bench.commit(put(InboxKind::Resume, "resume", 0, InboxKind::VERBS)).await;
    assert_refused(late, Refusal::Unread(vec![InboxKind::Pause]));
    // Events are of no interest to a verb, nor a pause to an event; nor what it was judged with.
    assert_accepted(bench.commit(put(InboxKind::Event, "event", 0, InboxKind::ENDING)).await);
    assert_accepted(bench.commit(put(InboxKind::Resume, "resume", 1, InboxKind::VERBS)).await);
    assert_accepted(bench.put(run, InboxKind::Cancel, "cancel").await);
    let late = bench.commit(put(InboxKind::Event, "late", 2, InboxKind::ENDING)).await;
    assert_refused(late, Refusal::Unread(vec![InboxKind::Cancel]));
    // A repeated one gets its first answer, whatever has come since.
    let bench = bench.reopen().await;
    let again = bench.commit(pause).await;
    assert!(matches!(again, Answer::Accepted { number: 1, first: false, .. }), "{again:?}");
    assert_eq!(bench.store.inbox(run, 0, 10).await.unwrap().len(), 4);
}

/// Rows that were read count as well: this bounds what a run can ever be sent (P12).
pub async fn a_full_inbox_takes_nothing_new(subject: impl Subject) {
    let bench = Bench::new(subject);
    let (run, other) = (bench.start(1).await, bench.start(2).await);
    let put = |run, request_id: &str| InboxPut {
        rows_max: 3,
        ..new_put(run, InboxKind::Event, request_id)
    };
    for number in 1..=3 {
        let request_id = format!("event-{number}");
        assert_eq!(assert_accepted(bench.commit(put(run, &request_id)).await).0, number);
    }
    assert_refused(bench.commit(put(run, "event-4")).await, Refusal::Full);
    assert_accepted(bench.commit(put(other, "event-4")).await);
    let bench = bench.reopen().await;
    assert_refused(bench.commit(put(run, "event-4")).await, Refusal::Full);
    let repeated = bench.commit(put(run, "event-1")).await;
    assert!(matches!(repeated, Answer::Accepted { number: 1, first: false, .. }), "{repeated:?}");
    // Who may put more still can.
    let kill = bench.put(run, InboxKind::Kill, "kill").await;
    assert_eq!(assert_accepted(kill).0, 4);
    assert_appended(bench.commit(bench.new_closing(run, 2)).await);
    let late = bench.commit(put(run, "event-4")).await;
    assert_refused(late, Refusal::Closed);
}
