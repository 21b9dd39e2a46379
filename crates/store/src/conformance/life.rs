//! Opening, closing, dropping.

use backstitch_core::inbox::InboxKind;

use super::Subject;
use super::bench::{Bench, assert_appended};
use crate::{ErrorKind, RunNo};

/// An answer outlives the process that gave it.
pub async fn p1_reopening_shows_everything_acknowledged(subject: impl Subject) {
    let mut bench = Bench::new(subject);
    let mut runs = Vec::new();
    for generation in 0..3 {
        for number in 0..5 {
            runs.push(bench.start(generation * 5 + number).await);
        }
        for run in &runs {
            let next = bench.seqs(*run).await.len() as u64 + 1;
            assert_appended(bench.commit(bench.new_append(*run, next)).await);
            bench.put(*run, InboxKind::Pause, &format!("request-{generation}")).await;
        }
        let before = bench.store.runs(RunNo(i64::MAX), 100).await.unwrap();
        bench = bench.reopen().await;
        assert_eq!(bench.store.runs(RunNo(i64::MAX), 100).await.unwrap(), before);
        for (place, run) in runs.iter().enumerate() {
            let appended = generation as usize + 1 - place / 5;
            let expected: Vec<u64> = (1..=appended as u64 + 1).collect();
            assert_eq!(bench.seqs(*run).await, expected);
            assert_eq!(bench.store.inbox(*run, 0, 100).await.unwrap().len(), appended);
        }
    }
    runs.dedup();
    assert_eq!(runs.len(), 15, "a run number was given out twice");
}

/// Each owner is newer than all before it, whether or not they wrote anything.
pub async fn fences_grow_with_each_owner(subject: impl Subject) {
    let mut bench = Bench::new(subject);
    let mut newest = 0;
    for _ in 0..4 {
        assert!(bench.store.fence() > newest);
        newest = bench.store.fence();
        bench = bench.reopen().await;
    }
}

/// Who stops waiting does not take the change back.
pub async fn offers_are_applied_though_their_futures_are_dropped(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    for seq in 2..=9 {
        drop(bench.store.commit(bench.new_append(run, seq).into()));
    }
    assert_appended(bench.commit(bench.new_append(run, 10)).await);
    assert_eq!(bench.seqs(run).await, (1..=10).collect::<Vec<_>>());
}

/// A store that is dropped without a word loses nothing that was offered.
pub async fn dropping_the_store_applies_what_was_offered(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let offered: Vec<_> =
        (2..=50).map(|seq| bench.store.commit(bench.new_append(run, seq).into())).collect();
    let bench = bench.open_again();
    for answer in offered {
        assert_appended(answer.await.unwrap());
    }
    assert_eq!(bench.seqs(run).await, (1..=50).collect::<Vec<_>>());
}

/// Closing is orderly: what came before it is answered.
pub async fn closing_applies_what_was_offered(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let offered: Vec<_> =
        (2..=50).map(|seq| bench.store.commit(bench.new_append(run, seq).into())).collect();
    bench.store.close().await.unwrap();
    for answer in offered {
        assert_appended(answer.await.unwrap());
    }
}

/// After the end there is an error, and no waiting.
pub async fn a_closed_store_says_so(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    bench.store.close().await.unwrap();
    bench.store.close().await.expect("closing twice is closing");
    let refused = bench.store.commit(bench.new_append(run, 2).into()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Closed);
    let refused = bench.store.journal(run, 0, 1).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Closed);
    let refused = bench.store.newest("default", "order-1").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Closed);
    let bench = bench.open_again();
    assert_eq!(bench.seqs(run).await, [1]);
}
