//! Faults happen at their points, and a death is final.

mod fixture;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use backstitch_core::attribute::AttributeValue;
use backstitch_store::fault::{FaultPlan, FaultStore};
use backstitch_store::memory::MemoryStore;
use backstitch_store::sqlite::{SqliteOptions, SqliteStore};
use backstitch_store::{Answer, Change, ErrorKind, RunNo, Store};
use fixture::{Folder, append, assert_appended, assert_error, new_append, rows, start};

fn faulty() -> (MemoryStore, FaultPlan, FaultStore) {
    let disk = MemoryStore::new(Arc::new(|| 0));
    let plan = FaultPlan::new();
    let store = FaultStore::new(Arc::new(disk.clone()), plan.clone());
    (disk, plan, store)
}

/// Polls once; a future that is to stay pending for ever cannot be awaited.
#[track_caller]
fn assert_pending<T>(future: impl Future<Output = T>) {
    let polled = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending), "a dead store has answered");
}

#[tokio::test]
async fn an_empty_plan_only_counts() {
    let (disk, plan, store) = faulty();
    let run = start(&store, 1).await;
    assert_appended(append(&store, run, 2).await);
    assert_eq!(rows(&store, run).await, 2);
    assert_eq!((plan.count(), plan.is_dead()), (2, false));
    assert_eq!((store.fence(), rows(&disk, run).await), (1, 2));
}

#[tokio::test]
async fn dying_before_a_point_applies_nothing_from_there_on() {
    let (disk, plan, store) = faulty();
    plan.die_before(2);
    let run = start(&store, 1).await;
    let read_before = store.journal(run, 0, 10);
    assert_pending(append(&store, run, 2));
    plan.died().await;
    assert!(plan.is_dead());
    assert_pending(read_before);
    assert_pending(append(&store, run, 2));
    assert_pending(store.run(run));
    assert_pending(store.calls(RunNo(0), 10));
    assert_pending(store.expired(0, 10));
    assert_pending(store.find("Customer", &AttributeValue::Flag(true), run, 10));
    assert_pending(store.commit(Change::Delete(run)));
    assert!(!store.news().has_changed().unwrap(), "what is dead has no news, and they do not end");
    assert_pending(store.close());
    assert_eq!(plan.count(), 2, "nothing that comes later is a point");
    assert_eq!(rows(&disk.reopen(), run).await, 1);
}

#[tokio::test]
async fn dying_after_a_point_applies_it_and_nothing_later() {
    let (disk, plan, store) = faulty();
    plan.die_after(2);
    let run = start(&store, 1).await;
    assert_pending(append(&store, run, 2));
    assert_pending(append(&store, run, 3));
    plan.died().await;
    assert_eq!(rows(&disk.reopen(), run).await, 2);
}

#[tokio::test]
async fn p1_dying_after_a_point_is_over_when_it_is_durable() {
    let folder = Folder::new();
    let inner = Arc::new(SqliteStore::open(folder.db(), SqliteOptions::default()).unwrap());
    let plan = FaultPlan::new();
    plan.die_after(2);
    let store = FaultStore::new(inner.clone(), plan.clone());
    let run = start(&store, 1).await;
    // The caller does not even poll.
    drop(store.commit(new_append(&store, run, 2).into()));
    plan.died().await;
    plan.died().await;
    assert_eq!(rows(&*inner, run).await, 2);
}

#[tokio::test]
async fn b96_a_lost_answer_is_applied_and_reported_as_unavailable() {
    let (disk, plan, store) = faulty();
    plan.lose_answer(2);
    let run = start(&store, 1).await;
    assert_error(append(&store, run, 2).await, ErrorKind::Unavailable);
    assert_eq!(rows(&disk, run).await, 2);
    assert_appended(append(&store, run, 2).await);
    assert_eq!(rows(&disk, run).await, 2);
}

#[tokio::test]
async fn an_unavailable_store_applies_nothing_so_many_times() {
    let (disk, plan, store) = faulty();
    plan.unavailable(2, 3);
    let run = start(&store, 1).await;
    for _ in 0..3 {
        assert_error(append(&store, run, 2).await, ErrorKind::Unavailable);
        assert_eq!(rows(&disk, run).await, 1);
    }
    assert_appended(append(&store, run, 2).await);
    assert_eq!(plan.count(), 5);
}

#[tokio::test]
async fn faults_of_one_plan_happen_one_after_the_other() {
    let (disk, plan, store) = faulty();
    plan.unavailable(2, 1);
    plan.lose_answer(3);
    plan.die_before(4);
    let run = start(&store, 1).await;
    assert_error(append(&store, run, 2).await, ErrorKind::Unavailable);
    assert_error(append(&store, run, 2).await, ErrorKind::Unavailable);
    assert_pending(append(&store, run, 2));
    plan.died().await;
    assert_eq!(rows(&disk, run).await, 2);
}

/// The inner store sees no more changes than there were points before the death.
#[tokio::test]
async fn a_death_is_final_for_every_thread() {
    for point in 1..40 {
        let (disk, plan, store) = faulty();
        plan.die_before(point);
        let store = Arc::new(store);
        let answered_after_death = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (store, plan) = (store.clone(), plan.clone());
                let answered_after_death = answered_after_death.clone();
                std::thread::spawn(move || {
                    for number in 0..20 {
                        let was_dead = plan.is_dead();
                        let mut future =
                            store.commit(fixture::new_start(&*store, thread * 100 + number).into());
                        let mut context = Context::from_waker(Waker::noop());
                        if let Poll::Ready(answer) = future.as_mut().poll(&mut context) {
                            assert!(matches!(answer, Ok(Answer::Started { .. })));
                            answered_after_death.fetch_or(was_dead, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(!answered_after_death.load(Ordering::Relaxed));
        assert_eq!(plan.count(), point);
        let applied = disk.runs(RunNo(i64::MAX), 1_000).await.unwrap().len();
        assert_eq!(applied as u64, point - 1);
    }
}
