//! Rows and requests after the end: amendments, and a way back in.

use backstitch_core::inbox::InboxKind;
use backstitch_core::status::Status;

use super::Subject;
use super::bench::{Bench, assert_appended, assert_refused};
use super::changes::{new_put, update};
use crate::{Answer, Append, ExecutionUpdate, Expects, Refusal, RunNo};

impl Bench {
    /// An append to a run that was closed.
    fn new_amendment(&self, run: RunNo, seq: u64) -> Append {
        Append { expects: Expects::Closed, ..self.new_append(run, seq) }
    }
}

/// Whoever writes knows whether the run is closed.
pub async fn a_row_that_finds_the_run_in_another_state_is_refused(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    assert_refused(bench.commit(bench.new_amendment(run, 2)).await, Refusal::Open);
    assert_appended(bench.commit(bench.new_closing(run, 2)).await);
    assert_refused(bench.commit(bench.new_append(run, 3)).await, Refusal::Closed);
    assert_refused(bench.commit(bench.new_amendment(run, 4)).await, Refusal::Seq { last: 2 });
    assert_appended(bench.commit(bench.new_amendment(run, 3)).await);
    assert_eq!(bench.seqs(run).await, [1, 2, 3]);
}

/// A note at the end of a journal changes nothing else.
pub async fn a_row_without_an_update_leaves_a_closed_run_closed(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let expires_at_us = Some(77);
    let closed = ExecutionUpdate { expires_at_us, ..update(Status::Failed) };
    let closing = Append { update: Some(closed), ..bench.new_append(run, 2) };
    assert_appended(bench.commit(closing).await);
    let before = bench.store.run(run).await.unwrap().expect("was started");
    assert_eq!(before.update.expires_at_us, expires_at_us);
    bench.set_clock(9_000_000);
    for seq in 3..6 {
        assert_appended(bench.commit(bench.new_amendment(run, seq)).await);
    }
    assert_eq!(bench.store.run(run).await.unwrap(), Some(before));
    assert!(bench.store.open_runs(RunNo(0), 10).await.unwrap().is_empty());
    assert_refused(bench.put(run, InboxKind::Cancel, "late").await, Refusal::Closed);
}

/// What a run has come to can change after its end, and when it may be deleted.
pub async fn an_update_of_a_closed_run_stamps_its_end_anew(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    assert_appended(bench.commit(bench.new_closing(run, 2)).await);
    bench.set_clock(9_000_000);
    let later = ExecutionUpdate { expires_at_us: Some(99), ..update(Status::Cancelled) };
    let amendment = Append { update: Some(later.clone()), ..bench.new_amendment(run, 3) };
    let at_us = assert_appended(bench.commit(amendment).await);
    let info = bench.store.run(run).await.unwrap().expect("was started");
    assert_eq!((info.update, info.closed_at_us), (later, Some(at_us)));
    assert!(bench.store.open_runs(RunNo(0), 10).await.unwrap().is_empty());
}

/// A rollback that is asked for after the end.
pub async fn a_closed_run_can_be_opened_again(subject: impl Subject) {
    let bench = Bench::new(subject);
    let (run, other) = (bench.start(1).await, bench.start(2).await);
    let closed = ExecutionUpdate { expires_at_us: Some(77), ..update(Status::Succeeded) };
    let closing = Append { update: Some(closed), ..bench.new_append(run, 2) };
    assert_appended(bench.commit(closing).await);

    // An expiry makes no sense in an open run.
    let opened = ExecutionUpdate { expires_at_us: Some(88), ..update(Status::RollingBack) };
    let opening = Append { update: Some(opened), ..bench.new_amendment(run, 3) };
    let first = bench.commit(opening.clone()).await;
    assert_appended(first.clone());
    assert_eq!(bench.commit(opening).await, first, "a repetition changes nothing (B96)");
    let info = bench.store.run(run).await.unwrap().expect("was started");
    assert_eq!((info.update, info.closed_at_us), (update(Status::RollingBack), None));
    assert_eq!(bench.store.expired(i64::MAX, 10).await.unwrap(), []);
    let bench = bench.reopen().await;
    let open = bench.store.open_runs(RunNo(0), 10).await.unwrap();
    assert_eq!(open.iter().map(|info| info.run).collect::<Vec<_>>(), [run, other]);
    let put = bench.put(run, InboxKind::Kill, "kill").await;
    assert!(matches!(put, Answer::Accepted { .. }), "{put:?}");

    assert_refused(bench.commit(bench.new_amendment(run, 4)).await, Refusal::Open);
    assert_appended(bench.commit(bench.new_append(run, 4)).await);
    let cancelled = Some(update(Status::Cancelled));
    let closing = Append { update: cancelled, ..bench.new_append(run, 5) };
    let at_us = assert_appended(bench.commit(closing).await);
    let info = bench.store.run(run).await.unwrap().expect("was started");
    assert_eq!((info.update.status, info.closed_at_us), (Status::Cancelled, Some(at_us)));
    assert_eq!(bench.store.open_runs(RunNo(0), 10).await.unwrap().len(), 1);
}

/// Verbs for what is over are taken; the others would never be read.
pub async fn a_closed_run_takes_only_what_is_for_closed_runs(subject: impl Subject) {
    use InboxKind::{
        Cancel, Event, Kill, Pause, Resume, RetryStep, RetryUndo, Rollback, SetAttributes,
        Terminate, WaiveUndo,
    };
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    assert_appended(bench.commit(bench.new_closing(run, 2)).await);
    let others = [Cancel, Terminate, Kill, Pause, Resume, RetryStep, RetryUndo, Event];
    for kind in others {
        assert_refused(bench.put(run, kind, kind.name()).await, Refusal::Closed);
    }
    for (number, kind) in (1..).zip([Rollback, WaiveUndo, SetAttributes]) {
        let answer = bench.put(run, kind, kind.name()).await;
        assert!(matches!(answer, Answer::Accepted { number: n, .. } if n == number), "{answer:?}");
    }
    assert_eq!(bench.store.inbox(run, 0, 10).await.unwrap().len(), 3);
    // It is bounded like that of an open run.
    let full = crate::InboxPut { rows_max: 3, ..new_put(run, Rollback, "fourth") };
    assert_refused(bench.commit(full).await, Refusal::Full);
}
