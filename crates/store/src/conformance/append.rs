//! Appends and their guards.

use std::sync::Arc;

use backstitch_core::inbox::InboxKind;
use backstitch_core::row::Row;
use backstitch_core::status::Status;

use super::Subject;
use super::bench::{Bench, assert_appended, assert_refused};
use super::changes::{draft, guard, new_put, update};
use crate::{
    Answer, Append, AttentionChange, AttentionPlace, ExecutionUpdate, Guard, InboxPut, Refusal,
    RunNo,
};

/// A journal is read back as it was written, in pages of any size.
pub async fn rows_come_back_in_order_and_byte_for_byte(subject: impl Subject) {
    let bench = Bench::new(subject);
    let (run, other) = (bench.start(1).await, bench.start(2).await);
    let mut sealed = vec![bench.rows(run).await[0].header.at_us];
    for seq in 2..=9 {
        bench.set_clock(2_000_000 * seq as i64);
        sealed.push(assert_appended(bench.commit(bench.new_append(run, seq)).await));
        assert_appended(bench.commit(bench.new_append(other, seq)).await);
    }
    let mut after = 0;
    for page in [1, 3, 5] {
        for row in bench.store.journal(run, after, page).await.unwrap() {
            after += 1;
            let at_us = sealed[after as usize - 1];
            assert_eq!(row, draft(after, bench.store.fence()).seal(at_us));
        }
    }
    assert_eq!(after, 9);
    assert!(bench.store.journal(run, after, 10).await.unwrap().is_empty());
    assert!(bench.store.journal(run, 0, 0).await.unwrap().is_empty());
}

/// The order of the calls counts, not that of the polls.
pub async fn rows_offered_in_a_row_are_applied_in_that_order(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let offered: Vec<_> =
        (2..=40).map(|seq| bench.store.commit(bench.new_append(run, seq).into())).collect();
    for answer in offered.into_iter().rev() {
        assert_appended(answer.await.unwrap());
    }
    assert_eq!(bench.seqs(run).await, (1..=40).collect::<Vec<_>>());
}

/// A caller that has lost the answer asks again, however much later.
pub async fn b96_a_repeated_append_gets_the_same_answer(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let append = Append {
        update: Some(ExecutionUpdate { wake_at_us: Some(77), ..update(Status::Suspended) }),
        ..bench.new_append(run, 2)
    };
    let first = bench.commit(append.clone()).await;
    bench.set_clock(9_000_000);
    assert_eq!(bench.commit(append.clone()).await, first);
    let update = Some(update(Status::Running));
    assert_appended(bench.commit(Append { update, ..bench.new_append(run, 3) }).await);
    assert_eq!(bench.commit(append).await, first, "also when it is no longer the last one");
    assert_eq!(bench.seqs(run).await, [1, 2, 3]);
    let info = bench.store.run(run).await.unwrap().expect("was started");
    assert_eq!(info.update.status, Status::Running, "a repetition changes nothing");
}

/// What is durable is durable, whoever owns the run by now.
pub async fn b96_a_repeated_append_is_recognised_after_the_run_closed_and_the_owner_changed(
    subject: impl Subject,
) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let closing = bench.new_closing(run, 2);
    let first = bench.commit(closing.clone()).await;
    assert_eq!(bench.commit(closing.clone()).await, first);
    let bench = bench.reopen().await;
    assert_eq!(bench.commit(closing).await, first);
    assert_eq!(bench.seqs(run).await, [1, 2]);
}

/// Only the next place is free.
pub async fn an_append_with_another_seq_is_refused(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    assert_appended(bench.commit(bench.new_append(run, 2)).await);
    for seq in [0, 1, 2, 4, 1 << 40, u64::MAX] {
        let mut append = bench.new_append(run, seq);
        append.draft.header.append_id = vec![9; 16];
        assert_refused(bench.commit(append).await, Refusal::Seq { last: 2 });
    }
    assert_eq!(bench.seqs(run).await, [1, 2]);
    assert_appended(bench.commit(bench.new_append(run, 3)).await);
}

/// Runs begin with a start.
pub async fn an_append_to_an_unknown_run_is_refused(subject: impl Subject) {
    let bench = Bench::new(subject);
    bench.start(1).await;
    for run in [RunNo(-1), RunNo(0), RunNo(99), RunNo(i64::MAX)] {
        assert_refused(bench.commit(bench.new_append(run, 1)).await, Refusal::UnknownRun);
    }
}

/// A holder that is no longer the newest can write nothing.
pub async fn p4_an_append_under_an_older_fence_is_refused(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let of_the_older = bench.new_append(run, 2);
    let bench = bench.reopen().await;
    let newest = bench.store.fence();
    assert_refused(bench.commit(of_the_older).await, Refusal::Fenced { newest });
    assert_eq!(bench.seqs(run).await, [1]);
    assert_appended(bench.commit(bench.new_append(run, 2)).await);
}

/// A cancel that was acknowledged is never overtaken by the success that is being written.
pub async fn p8_a_closing_row_is_refused_while_a_cancel_stands_unread(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let put = bench.store.commit(new_put(run, InboxKind::Cancel, "cancel-1").into());
    let guard = guard(InboxKind::DECISIVE);
    let closing = Append { guard, ..bench.new_closing(run, 2) };
    // Offered in one breath, so that both stand in one batch.
    let refused = bench.store.commit(closing.clone().into());
    assert!(matches!(put.await.unwrap(), Answer::Accepted { number: 1, .. }));
    assert_refused(refused.await.unwrap(), Refusal::Unread(vec![InboxKind::Cancel]));
    assert_eq!(bench.seqs(run).await, [1]);
    let info = bench.store.run(run).await.unwrap().expect("was started");
    assert_eq!(info.closed_at_us, None);

    assert_appended(bench.commit(Append { read: 1, ..closing }).await);
}

/// Rows that were read, or that nobody asked about, hold nothing up.
pub async fn a_guard_looks_only_at_its_kinds_and_at_what_is_unread(subject: impl Subject) {
    let bench = Bench::new(subject);
    let (run, other) = (bench.start(1).await, bench.start(2).await);
    let verbs = [InboxKind::RetryStep, InboxKind::Pause, InboxKind::Cancel, InboxKind::Pause];
    for (place, kind) in verbs.into_iter().enumerate() {
        bench.put(run, kind, &format!("request-{place}")).await;
    }
    bench.put(other, InboxKind::Kill, "kill").await;
    let guarded = |read, kinds: &[InboxKind]| Append {
        read,
        guard: guard(kinds),
        ..bench.new_append(run, 2)
    };
    let decisive = InboxKind::DECISIVE;
    let refused = [
        (guarded(0, decisive), vec![InboxKind::Pause, InboxKind::Cancel]),
        (guarded(2, decisive), vec![InboxKind::Cancel, InboxKind::Pause]),
        (guarded(3, decisive), vec![InboxKind::Pause]),
        (guarded(0, &[InboxKind::RetryStep]), vec![InboxKind::RetryStep]),
    ];
    for (append, unread) in refused {
        assert_refused(bench.commit(append).await, Refusal::Unread(unread));
    }
    assert_appended(bench.commit(guarded(1, &[InboxKind::RetryStep, InboxKind::Kill])).await);
    let guard = guard(decisive);
    assert_appended(bench.commit(Append { read: 4, guard, ..bench.new_append(run, 3) }).await);
}

/// An event that was acknowledged in time is not overtaken by the timeout of whoever waits for it.
pub async fn p8_a_wait_does_not_time_out_while_its_event_stands_unread(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    for (place, topic) in ["paid", "shipped", "paid"].into_iter().enumerate() {
        let put = new_put(run, InboxKind::Event, &format!("event-{place}"));
        bench.commit(InboxPut { topic: topic.into(), ..put }).await;
    }
    // A verb whose topic happens to be the one that is waited for.
    let verb = new_put(run, InboxKind::Resume, "resume");
    bench.commit(InboxPut { topic: "resumed".into(), ..verb }).await;
    let waiting = |read, topics: &[&str], kinds: &[InboxKind]| Append {
        read,
        guard: Guard {
            kinds: kinds.to_vec(),
            topics: topics.iter().copied().map(Into::into).collect(),
        },
        ..bench.new_append(run, 2)
    };
    use InboxKind::{Cancel, Event, Resume};
    for (append, unread) in [
        (waiting(0, &["paid"], &[]), vec![Event]),
        (waiting(2, &["other", "paid"], &[]), vec![Event]),
        (waiting(1, &["shipped"], &[Resume]), vec![Event, Resume]),
        (waiting(3, &["paid"], &[Resume]), vec![Resume]),
        (waiting(0, &[], &[Event]), vec![Event]),
    ] {
        assert_refused(bench.commit(append).await, Refusal::Unread(unread));
    }
    assert_appended(bench.commit(waiting(2, &["shipped", "resumed"], &[Cancel])).await);
    let read_all =
        Append { draft: draft(3, bench.store.fence()), ..waiting(4, &["paid"], &[Event]) };
    assert_appended(bench.commit(read_all).await);
}

/// A row that is refused takes its update and its attention items with it.
pub async fn a_refused_append_changes_nothing(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    bench.put(run, InboxKind::Cancel, "cancel").await;
    let before = bench.store.run(run).await.unwrap();
    let opened = AttentionChange::Open { ord: 1, kind: "k".into(), message: "m".into() };
    let append = Append {
        guard: guard(&[InboxKind::Cancel]),
        update: Some(ExecutionUpdate { wake_at_us: Some(1), ..update(Status::Failed) }),
        attention: vec![opened],
        ..bench.new_append(run, 2)
    };
    assert_refused(bench.commit(append).await, Refusal::Unread(vec![InboxKind::Cancel]));
    assert_eq!(bench.store.run(run).await.unwrap(), before);
    assert!(bench.store.attention(AttentionPlace::START, 10).await.unwrap().is_empty());
    assert_eq!(bench.seqs(run).await, [1]);
}

/// Nothing comes after the closing row.
pub async fn a_closed_run_refuses_rows_and_requests(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    bench.set_clock(5_000_000);
    let closed_at_us = assert_appended(bench.commit(bench.new_closing(run, 2)).await);
    let info = bench.store.run(run).await.unwrap().expect("was started");
    assert_eq!(info.update.status, Status::Succeeded);
    assert_eq!(info.closed_at_us, Some(closed_at_us));
    assert_refused(bench.commit(bench.new_append(run, 3)).await, Refusal::Closed);
    assert_refused(bench.put(run, InboxKind::Cancel, "late").await, Refusal::Closed);
    assert!(bench.store.open_runs(RunNo(0), 10).await.unwrap().is_empty());
    let bench = bench.reopen().await;
    assert_refused(bench.commit(bench.new_append(run, 3)).await, Refusal::Closed);
    assert_refused(bench.put(run, InboxKind::Cancel, "late").await, Refusal::Closed);
}

/// The row of the run says what its owner said last.
pub async fn an_update_changes_the_execution_row(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let updates = [(Status::Suspended, Some(123)), (Status::Running, None), (Status::Stuck, None)];
    for (seq, (status, wake_at_us)) in (2..).zip(updates) {
        let update = ExecutionUpdate { wake_at_us, ..update(status) };
        let append = Append { update: Some(update.clone()), ..bench.new_append(run, seq) };
        assert_appended(bench.commit(append).await);
        let info = bench.store.run(run).await.unwrap().expect("was started");
        assert_eq!((info.update, info.closed_at_us), (update, None));
    }
    assert_appended(bench.commit(bench.new_append(run, 5)).await);
    let info = bench.store.run(run).await.unwrap().expect("was started");
    assert_eq!(info.update.status, Status::Stuck, "a row without an update leaves it alone");
}

/// Two rows that were made without knowing of each other.
pub async fn p4_of_two_rows_for_one_place_one_is_applied(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let mut rival = bench.new_append(run, 2);
    rival.draft.header.append_id = vec![9; 16];
    let first = bench.store.commit(bench.new_append(run, 2).into());
    let second = bench.store.commit(rival.into());
    assert_appended(first.await.unwrap());
    assert_refused(second.await.unwrap(), Refusal::Seq { last: 2 });
    assert_eq!(bench.rows(run).await[1].header, {
        let rows = bench.store.journal(run, 1, 1).await.unwrap();
        Row::decode(rows[0].clone()).expect("a sealed row").header
    });
    assert_ne!(bench.rows(run).await[1].header.append_id, [9; 16]);
}

/// Batches of many runs from many threads, each run in its own order.
pub async fn sixty_four_appenders_at_once_keep_their_orders(subject: impl Subject) {
    const RUNS: u32 = 64;
    const ROWS: u64 = 20;
    let bench = Arc::new(Bench::new(subject));
    let mut runs = Vec::new();
    for number in 0..RUNS {
        runs.push(bench.start(number).await);
    }
    let threads: Vec<_> = runs
        .chunks(8)
        .map(|runs| {
            let (bench, runs) = (bench.clone(), runs.to_vec());
            std::thread::spawn(move || {
                let places = (2..=ROWS).flat_map(|seq| runs.iter().map(move |run| (*run, seq)));
                let offered =
                    places.map(|(run, seq)| bench.store.commit(bench.new_append(run, seq).into()));
                offered.collect::<Vec<_>>()
            })
        })
        .collect();
    for thread in threads {
        for answer in thread.join().expect("offers") {
            assert_appended(answer.await.unwrap());
        }
    }
    for run in runs {
        assert_eq!(bench.seqs(run).await, (1..=ROWS).collect::<Vec<_>>());
    }
}
