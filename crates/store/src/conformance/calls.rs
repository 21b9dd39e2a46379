//! Runs that their owner has to look at.

use backstitch_core::inbox::InboxKind;

use super::Subject;
use super::bench::{Bench, assert_appended};
use super::changes::draft;
use crate::{Answer, Append, Call, Change, Expects, RunNo, Start};

impl Bench {
    async fn calls(&self) -> Vec<(RunNo, u64)> {
        let calls = self.store.calls(RunNo(0), usize::MAX).await.expect("the store works");
        calls.into_iter().map(|Call { run, times }| (run, times)).collect()
    }

    async fn hear(&self, run: RunNo, times: u64) {
        assert_eq!(self.commit(Change::Heard(vec![Call { run, times }])).await, Answer::Heard);
    }

    async fn started_by_a_guest(&self, number: u32) -> RunNo {
        let start = Start { first: draft(1, 0), ..self.new_start(number) };
        let Answer::Started { run, .. } = self.commit(start.clone()).await else {
            panic!("not started");
        };
        let again = self.commit(start).await;
        assert!(matches!(again, Answer::Started { run: r, .. } if r == run), "{again:?}");
        run
    }
}

/// Whoever drives a run looks into its inbox by itself.
pub async fn an_open_run_is_not_called_by_its_owner(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    for kind in [InboxKind::Cancel, InboxKind::Rollback, InboxKind::SetAttributes] {
        bench.put(run, kind, kind.name()).await;
    }
    assert_appended(bench.commit(bench.new_append(run, 2)).await);
    assert_eq!(bench.calls().await, []);
}

/// Nobody drives a run that somebody else has begun, or one that is closed.
pub async fn runs_that_nobody_drives_are_called(subject: impl Subject) {
    let bench = Bench::new(subject);
    let closed = bench.start(1).await;
    assert_appended(bench.commit(bench.new_closing(closed, 2)).await);
    let begun = bench.started_by_a_guest(2).await;
    assert_eq!(bench.calls().await, [(begun, 1)], "a repeated start calls once");

    bench.put(closed, InboxKind::Rollback, "rollback").await;
    bench.put(closed, InboxKind::Rollback, "rollback").await;
    bench.put(closed, InboxKind::Cancel, "refused").await;
    let both = [(closed, 1), (begun, 1)];
    assert_eq!(bench.calls().await, both, "neither does a repeated or refused request");
    assert_eq!(bench.store.calls(RunNo(0), 1).await.unwrap(), [Call { run: closed, times: 1 }]);
    assert_eq!(bench.store.calls(closed, 1).await.unwrap(), [Call { run: begun, times: 1 }]);
    assert_eq!(bench.store.calls(begun, 1).await.unwrap(), []);
    let bench = bench.reopen().await;
    assert_eq!(bench.calls().await, both, "the next owner has to look as well");
    bench.put(closed, InboxKind::WaiveUndo, "waive").await;
    assert_eq!(bench.calls().await, [(closed, 2), (begun, 1)]);
}

/// Between reading the inbox and the last row something may come that is not for the driver.
pub async fn p1_a_run_that_closes_over_what_is_for_closed_runs_is_called(subject: impl Subject) {
    let bench = Bench::new(subject);
    for (number, verbs, read, times) in [
        (1, vec![InboxKind::WaiveUndo], 0, 1),
        (2, vec![InboxKind::WaiveUndo], 1, 0),
        (3, vec![InboxKind::RetryUndo, InboxKind::Event], 0, 0),
        (4, vec![InboxKind::WaiveUndo, InboxKind::RetryUndo, InboxKind::SetAttributes], 1, 1),
    ] {
        let run = bench.start(number).await;
        for verb in verbs {
            bench.put(run, verb, verb.name()).await;
        }
        let closing = Append { read, ..bench.new_closing(run, 2) };
        let first = bench.commit(closing.clone()).await;
        assert_appended(first.clone());
        assert_eq!(bench.commit(closing).await, first);
        let expected: Vec<_> = (0..times).map(|_| (run, 1)).collect();
        assert_eq!(bench.calls().await, expected, "case {number}");
        bench.hear(run, 1).await;
        // A row on a closed run closes nothing: what came since has called the run itself.
        let amendment = Append { expects: Expects::Closed, ..bench.new_closing(run, 3) };
        assert_appended(bench.commit(amendment).await);
        assert_eq!(bench.calls().await, [], "case {number}");
    }
}

/// A call that comes while its predecessor is being looked at is not lost.
pub async fn a_call_that_has_grown_is_not_taken_off_the_list(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.started_by_a_guest(1).await;
    let other = bench.started_by_a_guest(2).await;
    assert_appended(bench.commit(bench.new_closing(run, 2)).await);
    bench.put(run, InboxKind::Rollback, "rollback").await;
    bench.hear(run, 1).await;
    bench.hear(run, 3).await;
    bench.hear(RunNo(99), 1).await;
    assert_eq!(bench.calls().await, [(run, 2), (other, 1)]);
    let both = bench.store.calls(RunNo(0), 10).await.unwrap();
    assert_eq!(bench.commit(Change::Heard(both)).await, Answer::Heard);
    assert_eq!(bench.commit(Change::Heard(Vec::new())).await, Answer::Heard);
    assert_eq!(bench.calls().await, []);
    bench.put(run, InboxKind::Rollback, "again").await;
    let bench = bench.reopen().await;
    assert_eq!(bench.calls().await, [(run, 1)], "counted from the start again");
}

/// What one does itself is no news.
pub async fn an_owner_that_is_alone_hears_no_news(subject: impl Subject) {
    let bench = Bench::new(subject);
    let news = bench.store.news();
    let run = bench.start(1).await;
    for seq in 2..=20 {
        assert_appended(bench.commit(bench.new_append(run, seq)).await);
        bench.put(run, InboxKind::Pause, &format!("request-{seq}")).await;
    }
    assert!(!news.has_changed().expect("the store is open"));
}
