//! Deaths at every change, and in the middle of many (P1). The next owner finds each change whole or
//! not at all, and finishes what the one before it has begun.

use std::pin::{Pin, pin};
use std::task::Poll;

use backstitch_core::inbox::InboxKind;

use super::Subject;
use super::bench::Bench;
use super::changes::new_put;
use super::marks::{marked_append, marked_closing, marked_start};
use super::script::Script;
use super::whole::Whole;
use crate::fault::{FaultPlan, FaultStore};
use crate::{Answer, Change, ErrorKind, RunNo, Store, StoreError, StoreFuture};

/// The answer, or `None` if the store dies before it.
async fn unless_dead(
    plan: &FaultPlan,
    answer: StoreFuture<Answer>,
) -> Option<Result<Answer, StoreError>> {
    let (mut answer, mut died) = (answer, pin!(plan.died()));
    std::future::poll_fn(|context| {
        if let Poll::Ready(answer) = answer.as_mut().poll(context) {
            return Poll::Ready(Some(answer));
        }
        died.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// How many deaths are died at once: each store waits for its disk most of the time.
const AT_ONCE: usize = 4;

/// Waits for all of them.
async fn all<T>(mut futures: Vec<Pin<Box<impl Future<Output = T>>>>) -> Vec<T> {
    let mut ended: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, ended) in futures.iter_mut().zip(&mut ended) {
            if ended.is_none()
                && let Poll::Ready(end) = future.as_mut().poll(context)
            {
                *ended = Some(end);
            }
        }
        if ended.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    ended.into_iter().flatten().collect()
}

/// Plays the script as `plan` lets it, and after a death by the next owner; gives what stands in the
/// store then.
async fn played(mut bench: Bench, plan: FaultPlan) -> Whole {
    let mut script = Script::default();
    let store = FaultStore::new(bench.store.clone(), plan.clone());
    loop {
        bench.set_clock(script.now_us());
        let Some(change) = script.next(&store).await else { break };
        match unless_dead(&plan, store.commit(change)).await {
            Some(Ok(answer)) => script.hear(&answer),
            Some(Err(error)) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
            None => break,
        }
    }
    drop(store);
    if plan.is_dead() {
        plan.died().await;
        bench = bench.open_again();
        script.play(&*bench.store, |now_us| bench.set_clock(now_us)).await;
    }
    assert_eq!(script.done(), Script::LEN);
    Whole::read(&*bench.store).await.without_fences()
}

/// Whatever is offered again is applied once, and nothing else is different.
pub async fn p1_b96_after_a_death_at_any_change_the_next_owner_gets_the_same_store(
    subject: impl Subject,
) {
    let bench = Bench::new(subject);
    let expected = played(bench.another(), FaultPlan::new()).await;
    assert!(
        expected.runs.len() > 3 && !expected.calls.is_empty() && !expected.attention.is_empty()
    );
    let points: Vec<_> = (1..=Script::LEN as u64).collect();
    for points in points.chunks(AT_ONCE) {
        let played = points.iter().flat_map(|point| {
            let (before, after) = (FaultPlan::new(), FaultPlan::new());
            before.die_before(*point);
            after.die_after(*point);
            [before, after].map(|plan| Box::pin(played(bench.another(), plan)))
        });
        for (place, whole) in all(played.collect()).await.into_iter().enumerate() {
            let (point, when) = (points[place / 2], ["before", "after"][place % 2]);
            assert_eq!(whole, expected, "died {when} change {point}");
        }
    }
}

/// Each change is offered three times: in vain, without getting its answer, and again.
pub async fn b96_changes_that_are_offered_again_and_again_are_applied_once(subject: impl Subject) {
    let bench = Bench::new(subject);
    let expected = played(bench.another(), FaultPlan::new()).await;
    let plan = FaultPlan::new();
    for change in 0..Script::LEN as u64 {
        plan.unavailable(3 * change + 1, 1);
        plan.lose_answer(3 * change + 2);
    }
    assert_eq!(played(bench.another(), plan.clone()).await, expected);
    assert_eq!(plan.count(), 3 * Script::LEN as u64);
}

/// Changes to offer in one breath: each run gets the same, one after the other.
fn offers(store: &dyn Store, runs: &[RunNo]) -> Vec<Change> {
    let fence = store.fence();
    let mut changes = Vec::new();
    for seq in 2..=5 {
        for (number, run) in (0..).zip(runs) {
            changes.push(marked_append(fence, *run, seq).into());
            changes.push(new_put(*run, InboxKind::WaiveUndo, &format!("request-{seq}")).into());
            // Every other one as a guest starts it, which calls it.
            let fence = if number % 2 == 0 { fence } else { 0 };
            changes.push(marked_start(fence, 100 * seq as u32 + number).into());
        }
    }
    changes.extend(runs.iter().map(|run| marked_closing(fence, *run, 6).into()));
    changes
}

/// What was offered before the death is there, what came after it is not, and no change is torn.
pub async fn p1_a_death_in_the_middle_of_many_changes_tears_none(subject: impl Subject) {
    const RUNS: u32 = 3;
    let bench = Bench::new(subject);
    let changes = (RUNS * (4 * 3 + 1)) as usize;
    for last in 1..=changes {
        let bench = bench.another();
        let mut runs = Vec::new();
        for number in 0..RUNS {
            let start = marked_start(bench.store.fence(), number);
            let Answer::Started { run, .. } = bench.commit(start).await else {
                panic!("not started");
            };
            runs.push(run);
        }
        let plan = FaultPlan::new();
        plan.die_after(last as u64);
        let store = FaultStore::new(bench.store.clone(), plan.clone());
        let offered = offers(&*bench.store, &runs);
        assert_eq!(offered.len(), changes);
        // Nobody waits for any of them.
        offered.iter().for_each(|change| drop(store.commit(change.clone())));
        plan.died().await;
        drop(store);
        let bench = bench.open_again();
        let whole = Whole::read(&*bench.store).await;
        whole.check_marks();
        for (place, change) in offered.into_iter().enumerate() {
            let there = match &change {
                Change::Append(append) => {
                    let rows = &whole.run(append.run).expect("was started before").rows;
                    rows.len() as u64 >= append.draft.header.seq
                }
                Change::Inbox(put) => {
                    let inbox = &whole.run(put.run).expect("was started before").inbox;
                    inbox.iter().any(|row| row.request_id == put.request_id)
                }
                Change::Start(start) => {
                    let mut infos = whole.runs.iter().map(|run| &run.info);
                    infos.any(|info| info.new == start.execution)
                }
                Change::Heard(_) | Change::Delete(_) | Change::Purge { .. } => unreachable!(),
            };
            assert_eq!(there, place < last, "change {} of {last}: {change:?}", place + 1);
        }
    }
}
