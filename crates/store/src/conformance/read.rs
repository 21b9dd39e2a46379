//! Reads.

use backstitch_core::attribute::AttributeValue;

use super::Subject;
use super::bench::{Bench, assert_appended};
use super::changes::run_id;
use crate::{Answer, AttentionPlace, Change, RunInfo, RunNo};

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

/// A person may mean a run that is not the newest of its execution.
pub async fn a_run_is_found_by_its_execution_and_its_own_id(subject: impl Subject) {
    let bench = Bench::new(subject);
    let first = bench.start(1).await;
    assert_appended(bench.commit(bench.new_closing(first, 2)).await);
    let mut start = bench.new_start(1);
    start.execution.run_id = run_id(100);
    start.execution.after = Some(first);
    start.expected = Some(first);
    let Answer::Started { run: second, .. } = bench.commit(start).await else {
        panic!("the newest run was named, and yet no run began after it");
    };
    let other = bench.start(2).await;
    let bench = bench.reopen().await;
    let run_of = async |namespace: &str, id: &str, run: RunNo| {
        let info = bench.store.run(run).await.unwrap().expect("was started");
        let found = bench.store.run_of(namespace, id, info.new.run_id).await.unwrap();
        assert!(found.is_none() || found == Some(info), "another run has come: {found:?}");
        found.is_some()
    };
    assert!(run_of("default", "order-1", first).await);
    assert!(run_of("default", "order-1", second).await);
    assert!(!run_of("default", "order-1", other).await, "it is another execution's");
    assert!(!run_of("other", "order-1", first).await, "it is in another namespace");
    assert_eq!(bench.store.run_of("default", "order-1", run_id(7)).await.unwrap(), None);
    let deleted = bench.commit(Change::Delete(first)).await;
    assert_eq!(deleted, Answer::Deleted);
    assert!(run_of("default", "order-1", second).await);
    let gone = bench.store.run_of("default", "order-1", run_id(1)).await.unwrap();
    assert_eq!(gone, None, "it was deleted");
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
    assert!(bench.store.attention(AttentionPlace::START, 10).await.unwrap().is_empty());
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
