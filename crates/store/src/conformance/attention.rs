//! The index of attention items.

use super::Subject;
use super::bench::{Bench, assert_appended};
use crate::{Append, AttentionChange, AttentionPlace, AttentionRow};

fn open(ord: u32, kind: &str) -> AttentionChange {
    AttentionChange::Open { ord, kind: kind.into(), message: format!("step {ord} needs a person") }
}

/// An item is named by run, row and step.
pub async fn attention_items_open_and_close_with_their_rows(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let attention = vec![open(0, "blocked"), open(3, "undo_failed")];
    let opened = Append { attention, ..bench.new_append(run, 2) };
    let at_us = assert_appended(bench.commit(opened.clone()).await);
    let item = |ord, kind: &str| AttentionRow {
        run,
        seq: 2,
        ord,
        kind: kind.into(),
        message: format!("step {ord} needs a person"),
        opened_at_us: at_us,
    };
    let both = vec![item(0, "blocked"), item(3, "undo_failed")];
    assert_eq!(bench.store.attention(AttentionPlace::START, 10).await.unwrap(), both);
    let bench = bench.reopen().await;
    assert_eq!(bench.store.attention(AttentionPlace::START, 10).await.unwrap(), both);

    let attention = vec![AttentionChange::Close { seq: 2, ord: 3 }];
    assert_appended(bench.commit(Append { attention, ..bench.new_append(run, 3) }).await);
    assert_eq!(bench.store.attention(AttentionPlace::START, 10).await.unwrap(), both[..1]);
    bench.commit(opened).await;
    assert_eq!(
        bench.store.attention(AttentionPlace::START, 10).await.unwrap(),
        both[..1],
        "a repetition opens nothing"
    );
}

/// Whoever has waited longest is met first.
pub async fn attention_items_are_listed_oldest_first(subject: impl Subject) {
    let bench = Bench::new(subject);
    let (first, second) = (bench.start(1).await, bench.start(2).await);
    for (run, seq, now_us) in
        [(second, 2, 2_000_000), (first, 2, 3_000_000), (second, 3, 4_000_000)]
    {
        bench.set_clock(now_us);
        let attention = vec![open(1, "blocked")];
        assert_appended(bench.commit(Append { attention, ..bench.new_append(run, seq) }).await);
    }
    let listed = bench.store.attention(AttentionPlace::START, 10).await.unwrap();
    let places: Vec<_> = listed.iter().map(|item| (item.run, item.seq)).collect();
    assert_eq!(places, [(second, 2), (first, 2), (second, 3)]);
    assert_eq!(bench.store.attention(AttentionPlace::START, 2).await.unwrap(), listed[..2]);
    for (i, item) in listed.iter().enumerate() {
        let rest = bench.store.attention(item.place(), 10).await.unwrap();
        assert_eq!(rest, listed[i + 1..], "behind {i}");
    }
    let end = AttentionPlace { opened_at_us: i64::MAX, seq: u64::MAX, ..listed[0].place() };
    assert!(bench.store.attention(end, 10).await.unwrap().is_empty());
}
