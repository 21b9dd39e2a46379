//! Starts.

use backstitch_core::status::Status;

use super::Subject;
use super::bench::{Bench, assert_appended, assert_refused};
use super::changes::{draft, run_id};
use crate::{Answer, Refusal, RunInfo, RunNo, Start};

/// What the caller is told is what stands in the store.
pub async fn start_gives_a_run_with_its_first_row(subject: impl Subject) {
    let bench = Bench::new(subject);
    bench.set_clock(5_000_000);
    let start = bench.new_start(1);
    let Answer::Started { run, at_us, first } = bench.commit(start.clone()).await else {
        panic!("not started");
    };
    assert!(first);
    assert!(at_us >= 5_000_000);
    let info = bench.store.newest("default", "order-1").await.unwrap().expect("was started");
    assert_eq!(info.run, run);
    assert_eq!(info.new, start.execution);
    assert_eq!(info.created_at_us, at_us);
    assert_eq!((info.update.status, info.update.wake_at_us), (Status::Pending, None));
    assert_eq!(info.closed_at_us, None);
    assert_eq!(bench.store.run(run).await.unwrap(), Some(info));

    let rows = bench.rows(run).await;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].header.at_us, at_us);
    assert_eq!(rows[0].header.append_id, start.first.header.append_id);
}

/// An id that is taken is answered with its newest run, and nothing changes.
pub async fn start_is_answered_with_the_run_that_has_the_id(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let mut other = bench.new_start(1);
    other.execution.run_id = run_id(100);
    for expected in [None, Some(RunNo(run.0 + 1))] {
        let start = Start { expected, ..other.clone() };
        let Answer::Exists(found) = bench.commit(start).await else {
            panic!("the id is taken, and yet expecting {expected:?} started a run");
        };
        let RunInfo { run: found, .. } = *found;
        assert_eq!(found, run);
    }
    assert_eq!(bench.store.runs(RunNo(i64::MAX), 10).await.unwrap().len(), 1);
}

/// Whoever knows the newest run may begin the next one.
pub async fn start_after_the_expected_run_makes_the_next_one(subject: impl Subject) {
    let bench = Bench::new(subject);
    let first = bench.start(1).await;
    assert_appended(bench.commit(bench.new_closing(first, 2)).await);
    let mut start = bench.new_start(1);
    start.execution.run_id = run_id(100);
    start.execution.after = Some(first);
    start.expected = Some(first);
    let Answer::Started { run: second, .. } = bench.commit(start).await else {
        panic!("not started");
    };
    assert!(second > first, "numbers are given out upwards");
    let newest = bench.store.newest("default", "order-1").await.unwrap().expect("was started");
    assert_eq!(newest.run, second);
    assert_eq!(newest.new.after, Some(first));
    assert_eq!(bench.seqs(second).await, [1]);
    assert_eq!(bench.seqs(first).await, [1, 2], "the first run keeps its journal");
}

/// There is no run that the answer could name.
pub async fn start_that_expects_a_run_which_is_not_there_is_refused(subject: impl Subject) {
    let bench = Bench::new(subject);
    let start = Start { expected: Some(RunNo(7)), ..bench.new_start(1) };
    assert_refused(bench.commit(start).await, Refusal::UnknownRun);
    assert_eq!(bench.store.newest("default", "order-1").await.unwrap(), None);
}

/// A caller that has lost the answer asks again.
pub async fn b96_a_repeated_start_gets_the_same_answer(subject: impl Subject) {
    let bench = Bench::new(subject);
    let start = bench.new_start(1);
    let Answer::Started { run, at_us, .. } = bench.commit(start.clone()).await else {
        panic!("not started");
    };
    let again = Answer::Started { run, at_us, first: false };
    bench.set_clock(9_000_000);
    assert_eq!(bench.commit(start.clone()).await, again);
    let bench = bench.reopen().await;
    assert_eq!(bench.commit(start).await, again);
    assert_eq!(bench.store.runs(RunNo(i64::MAX), 10).await.unwrap().len(), 1);
}

/// Who is no longer the owner begins nothing.
pub async fn p4_a_start_under_an_older_fence_is_refused(subject: impl Subject) {
    let bench = Bench::new(subject);
    let older = bench.store.fence();
    let bench = bench.reopen().await;
    let newest = bench.store.fence();
    let start = Start { first: draft(1, older), ..bench.new_start(1) };
    assert_refused(bench.commit(start).await, Refusal::Fenced { newest });
    assert_eq!(bench.store.newest("default", "order-1").await.unwrap(), None);
}

/// The same id in two namespaces is two executions.
pub async fn ids_are_apart_in_each_namespace(subject: impl Subject) {
    let bench = Bench::new(subject);
    let here = bench.start(1).await;
    let mut start = bench.new_start(1);
    start.execution.namespace = "other".into();
    start.execution.run_id = run_id(100);
    let Answer::Started { run: there, .. } = bench.commit(start).await else {
        panic!("not started");
    };
    let newest = bench.store.newest("default", "order-1").await.unwrap().expect("was started");
    assert_eq!(newest.run, here);
    let newest = bench.store.newest("other", "order-1").await.unwrap().expect("was started");
    assert_eq!(newest.run, there);
    assert_eq!(bench.store.newest("third", "order-1").await.unwrap(), None);
}
