//! Deleting runs, and freeing their space.

use backstitch_core::attribute::{AttributeChange, AttributeValue};
use backstitch_core::inbox::InboxKind;
use backstitch_core::status::Status;

use super::Subject;
use super::bench::{Bench, assert_appended, assert_refused};
use super::changes::{run_id, update};
use crate::{
    Answer, Append, AttentionChange, AttentionPlace, Call, Change, ExecutionUpdate, Refusal,
    RunInfo, RunNo, Start,
};

impl Bench {
    /// A run with some of everything, closed.
    async fn closed(&self, number: u32) -> RunNo {
        let run = self.start(number).await;
        for request in ["1", "2", "3"] {
            self.put(run, InboxKind::Pause, request).await;
        }
        let attributes = vec![flag("Kept")];
        let append = Append { attributes, ..self.new_append(run, 2) };
        assert_appended(self.commit(append).await);
        assert_appended(self.commit(self.new_closing(run, 3)).await);
        run
    }

    async fn delete(&self, run: RunNo) {
        assert_eq!(self.commit(Change::Delete(run)).await, Answer::Deleted);
    }

    async fn purge(&self, rows: usize) -> bool {
        match self.commit(Change::Purge { rows }).await {
            Answer::Purged { more } => more,
            other => panic!("not purged: {other:?}"),
        }
    }

    async fn numbers(&self) -> Vec<RunNo> {
        let runs = self.store.runs(RunNo(i64::MAX), 100).await.expect("the store works");
        runs.iter().map(|info| info.run).collect()
    }

    /// Closes a run that may be deleted at `expires_at_us`.
    async fn close_until(&self, run: RunNo, seq: u64, expires_at_us: Option<i64>) {
        let closed = ExecutionUpdate { expires_at_us, ..update(Status::Succeeded) };
        let closing = Append { update: Some(closed), ..self.new_append(run, seq) };
        assert_appended(self.commit(closing).await);
    }
}

fn flag(name: &str) -> AttributeChange {
    AttributeChange { name: name.into(), value: Some(AttributeValue::Flag(true)) }
}

/// Before its space is freed, and after.
pub async fn a_deleted_run_is_seen_by_nobody(subject: impl Subject) {
    let mut bench = Bench::new(subject);
    let (run, other) = (bench.closed(1).await, bench.closed(2).await);
    bench.delete(run).await;
    for round in 0..3 {
        match round {
            1 => bench = bench.reopen().await,
            2 => assert!(!bench.purge(usize::MAX).await),
            _ => {}
        }
        assert_eq!(bench.store.run(run).await.unwrap(), None);
        assert_eq!(bench.store.newest("default", "order-1").await.unwrap(), None);
        assert_eq!(bench.numbers().await, [other]);
        let found = bench.store.find("Kept", &AttributeValue::Flag(true), RunNo(i64::MAX), 10);
        let found: Vec<RunInfo> = found.await.unwrap();
        assert_eq!(found.iter().map(|info| info.run).collect::<Vec<_>>(), [other]);
        assert!(bench.store.journal(run, 0, 10).await.unwrap().is_empty());
        assert!(bench.store.inbox(run, 0, 10).await.unwrap().is_empty());
        assert_refused(bench.put(run, InboxKind::Rollback, "late").await, Refusal::UnknownRun);
        // Neither is a request recognised that was there.
        assert_refused(bench.put(run, InboxKind::Pause, "1").await, Refusal::UnknownRun);
        assert_refused(bench.commit(bench.new_append(run, 4)).await, Refusal::UnknownRun);
        assert_refused(bench.commit(bench.new_closing(run, 3)).await, Refusal::UnknownRun);
        assert_refused(bench.commit(Change::Delete(run)).await, Refusal::UnknownRun);
    }
    assert_eq!(bench.seqs(other).await, [1, 2, 3]);
    assert_eq!(bench.store.inbox(other, 0, 10).await.unwrap().len(), 3);
}

/// What still happens, or waits for its owner, stays.
pub async fn a_run_that_is_open_or_called_is_not_deleted(subject: impl Subject) {
    let bench = Bench::new(subject);
    assert_refused(bench.commit(Change::Delete(RunNo(7))).await, Refusal::UnknownRun);
    let run = bench.start(1).await;
    assert_refused(bench.commit(Change::Delete(run)).await, Refusal::Open);
    assert_appended(bench.commit(bench.new_closing(run, 2)).await);
    bench.put(run, InboxKind::Rollback, "rollback").await;
    assert_refused(bench.commit(Change::Delete(run)).await, Refusal::Called);
    assert_eq!(bench.seqs(run).await, [1, 2]);
    bench.commit(Change::Heard(vec![Call { run, times: 1 }])).await;
    bench.delete(run).await;
    assert_eq!(bench.numbers().await, []);
}

/// What only a person can settle is not swept away.
pub async fn b94_a_run_is_never_deleted_while_an_attention_item_is_open(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let opened = AttentionChange::Open { ord: 3, kind: "k".into(), message: "m".into() };
    let append = Append { attention: vec![opened], ..bench.new_append(run, 2) };
    assert_appended(bench.commit(append).await);
    bench.close_until(run, 3, Some(0)).await;
    assert_refused(bench.commit(Change::Delete(run)).await, Refusal::Attention);
    assert_eq!(bench.store.expired(i64::MAX, 10).await.unwrap(), []);
    let bench = bench.reopen().await;
    assert_refused(bench.commit(Change::Delete(run)).await, Refusal::Attention);
    assert_eq!(bench.store.attention(AttentionPlace::START, 10).await.unwrap().len(), 1);

    let attention = vec![AttentionChange::Close { seq: 2, ord: 3 }];
    let expects = crate::Expects::Closed;
    let append = Append { attention, expects, ..bench.new_append(run, 4) };
    assert_appended(bench.commit(append).await);
    assert_eq!(bench.store.expired(i64::MAX, 10).await.unwrap(), [run]);
    bench.delete(run).await;
}

/// The id is given back.
pub async fn the_id_of_a_deleted_run_has_the_run_before_it_or_is_free(subject: impl Subject) {
    let bench = Bench::new(subject);
    let mut runs = Vec::new();
    for number in 0..3 {
        let mut start: Start = bench.new_start(1);
        start.execution.run_id = run_id(100 + number);
        start.expected = runs.last().copied();
        let Answer::Started { run, .. } = bench.commit(start).await else { panic!("not started") };
        assert_appended(bench.commit(bench.new_closing(run, 2)).await);
        runs.push(run);
    }
    let newest = async || {
        let newest = bench.store.newest("default", "order-1").await.expect("the store works");
        newest.map(|info| info.run)
    };
    bench.delete(runs[1]).await;
    assert_eq!(newest().await, Some(runs[2]));
    bench.delete(runs[2]).await;
    assert_eq!(newest().await, Some(runs[0]));
    let mut start = bench.new_start(1);
    start.expected = Some(runs[2]);
    assert!(matches!(bench.commit(start).await, Answer::Exists(info) if info.run == runs[0]));
    bench.delete(runs[0]).await;
    assert_eq!(newest().await, None);
    let again = bench.start(1).await;
    assert_eq!(newest().await, Some(again));
}

/// Whatever still names a deleted run never means another one.
pub async fn numbers_of_deleted_runs_are_not_used_again(subject: impl Subject) {
    let mut bench = Bench::new(subject);
    let mut before = bench.closed(0).await;
    for number in 1..6 {
        bench.delete(before).await;
        if number % 2 == 0 {
            assert!(!bench.purge(100).await);
        }
        if number > 2 {
            bench = bench.reopen().await;
        }
        let run = bench.closed(number).await;
        assert!(run > before, "{run:?} was used before");
        assert_eq!(bench.seqs(run).await, [1, 2, 3]);
        assert_eq!(bench.store.inbox(run, 0, 10).await.unwrap().len(), 3);
        before = run;
    }
}

/// Space is freed in small bites, between which the work goes on.
pub async fn purging_frees_so_many_rows_at_a_time(subject: impl Subject) {
    let bench = Bench::new(subject);
    assert!(!bench.purge(10).await, "there is nothing to free");
    let open = bench.start(10).await;
    let doomed = [bench.closed(1).await, bench.closed(2).await];
    let kept = bench.closed(3).await;
    assert!(!bench.purge(10).await, "nothing was deleted yet");
    for run in doomed {
        bench.delete(run).await;
    }
    assert!(bench.purge(0).await);
    // Two runs of six rows each.
    for (seq, more) in (2..).zip([true, true, false, false]) {
        assert_eq!(bench.purge(4).await, more);
        assert_appended(bench.commit(bench.new_append(open, seq)).await);
    }
    let bench = bench.reopen().await;
    assert!(!bench.purge(4).await);
    assert_eq!(bench.seqs(kept).await, [1, 2, 3]);
    assert_eq!(bench.store.inbox(kept, 0, 10).await.unwrap().len(), 3);
    assert_eq!(bench.seqs(open).await, [1, 2, 3, 4, 5]);
    assert_eq!(bench.numbers().await, [kept, open]);
}

/// Whoever cleans up asks what there is to do.
pub async fn expired_runs_are_listed_in_the_order_of_their_expiry(subject: impl Subject) {
    let bench = Bench::new(subject);
    let mut runs = Vec::new();
    for number in 0..6 {
        runs.push(bench.start(number).await);
    }
    for (place, expires_at_us) in [(0, Some(300)), (1, Some(100)), (2, None), (3, Some(200))] {
        bench.close_until(runs[place], 2, expires_at_us).await;
    }
    bench.close_until(runs[4], 2, Some(50)).await;
    bench.put(runs[4], InboxKind::Rollback, "rollback").await;
    let expired = async |now_us, limit| bench.store.expired(now_us, limit).await.unwrap();
    assert_eq!(expired(99, 10).await, [], "one is called");
    assert_eq!(expired(100, 10).await, [runs[1]]);
    assert_eq!(expired(299, 10).await, [runs[1], runs[3]]);
    assert_eq!(expired(i64::MAX, 10).await, [runs[1], runs[3], runs[0]]);
    assert_eq!(expired(i64::MAX, 2).await, [runs[1], runs[3]]);
    bench.delete(runs[1]).await;
    assert_eq!(expired(i64::MAX, 10).await, [runs[3], runs[0]]);
}
