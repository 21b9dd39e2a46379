//! Reads.

use backstitch_core::attribute::AttributeValue;

use super::Subject;
use super::bench::{Bench, assert_appended};
use crate::{RunInfo, RunNo};

fn numbers(runs: &[RunInfo]) -> Vec<RunNo> {
    runs.iter().map(|info| info.run).collect()
}

/// Recovery walks through what is open, and through nothing else.
pub async fn open_runs_are_read_page_by_page(subject: impl Subject) {
    let bench = Bench::new(subject);
    let mut open = Vec::new();
    for number in 0..10 {
        let run = bench.start(number).await;
        if number % 3 == 0 {
            assert_appended(bench.commit(bench.new_closing(run, 2)).await);
        } else {
            open.push(run);
        }
    }
    let mut read = Vec::new();
    let mut after = RunNo(0);
    loop {
        let page = bench.store.open_runs(after, 4).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 4);
        after = last.run;
        read.extend(page);
    }
    assert_eq!(numbers(&read), open);
    let bench = bench.reopen().await;
    assert_eq!(bench.store.open_runs(RunNo(0), usize::MAX).await.unwrap(), read);
}

/// The newest run is the first that people want to see.
pub async fn runs_are_read_page_by_page_newest_first(subject: impl Subject) {
    let bench = Bench::new(subject);
    let mut started = Vec::new();
    for number in 0..10 {
        started.push(bench.start(number).await);
    }
    assert_appended(bench.commit(bench.new_closing(started[4], 2)).await);
    let mut read = Vec::new();
    let mut before = RunNo(i64::MAX);
    loop {
        let page = bench.store.runs(before, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 3);
        before = last.run;
        read.extend(page);
    }
    started.reverse();
    assert_eq!(numbers(&read), started);
}

/// What is not there is no error.
pub async fn reads_of_what_is_not_there_are_empty(subject: impl Subject) {
    let bench = Bench::new(subject);
    assert_eq!(bench.store.newest("default", "order-1").await.unwrap(), None);
    for run in [RunNo(i64::MIN), RunNo(0), RunNo(1), RunNo(i64::MAX)] {
        assert_eq!(bench.store.run(run).await.unwrap(), None);
        for after in [0, 1, u64::MAX] {
            assert!(bench.store.journal(run, after, 10).await.unwrap().is_empty());
            assert!(bench.store.inbox(run, after, 10).await.unwrap().is_empty());
        }
    }
    assert!(bench.store.open_runs(RunNo(0), 10).await.unwrap().is_empty());
    assert!(bench.store.runs(RunNo(i64::MAX), 10).await.unwrap().is_empty());
    assert!(bench.store.attention(10).await.unwrap().is_empty());
    assert!(bench.store.calls(RunNo(0), 10).await.unwrap().is_empty());
    assert!(bench.store.expired(i64::MAX, 10).await.unwrap().is_empty());
    let value = AttributeValue::Flag(true);
    assert!(bench.store.find("Vip", &value, RunNo(i64::MAX), 10).await.unwrap().is_empty());
    // Neither is what lies beyond the end of a journal.
    let run = bench.start(1).await;
    for after in [1, 2, 1 << 28, u64::MAX] {
        assert!(bench.store.journal(run, after, 10).await.unwrap().is_empty());
    }
}

/// Read your writes, many times over.
pub async fn a_read_sees_what_was_acknowledged_before_it(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    for seq in 2..=100 {
        assert_appended(bench.commit(bench.new_append(run, seq)).await);
        let last = bench.store.journal(run, seq - 1, 1).await.unwrap();
        assert_eq!(last.len(), 1, "row {seq} was acknowledged and is not seen");
    }
}
