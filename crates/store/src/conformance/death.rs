//! Deaths at every change, and in the middle of many (P1). The next owner finds each change whole or
//! not at all, and finishes what the one before it has begun.

use std::pin::pin;
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

/// Plays the script with trouble at one change, on a store of its own, and gives what stands there
/// when another owner has finished it.
async fn played(bench: Bench, plan: FaultPlan) -> Whole {
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
    plan.died().await;
    drop(store);
    let bench = bench.open_again();
    script.play(&*bench.store, |now_us| bench.set_clock(now_us)).await;
    assert_eq!(script.done(), Script::LEN);
    let whole = Whole::read(&*bench.store).await;
    let bench = bench.reopen().await;
    assert_eq!(Whole::read(&*bench.store).await, whole, "the next owner sees another store");
    whole.without_fences()
}

/// Whatever is offered again is applied once, and nothing else is different.
pub async fn p1_b96_after_a_death_at_any_change_the_next_owner_gets_the_same_store(
    subject: impl Subject,
) {
    let bench = Bench::new(subject);
    let mut script = Script::default();
    script.play(&*bench.store, |now_us| bench.set_clock(now_us)).await;
    let expected = Whole::read(&*bench.store).await.without_fences();
    assert!(
        expected.runs.len() > 3 && !expected.calls.is_empty() && !expected.attention.is_empty()
    );
    for point in 1..=Script::LEN as u64 {
        for (name, fault) in [
            ("dies before", FaultPlan::die_before as fn(&FaultPlan, u64)),
            ("dies after", FaultPlan::die_after),
            ("loses the answer, and dies after the next", |plan, point| {
                plan.lose_answer(point);
                plan.die_after(point + 1);
            }),
            ("is full, and dies before it has room", |plan, point| {
                plan.unavailable(point, 2);
                plan.die_before(point + 2);
            }),
        ] {
            let plan = FaultPlan::new();
            fault(&plan, point);
            let whole = played(bench.another(), plan).await;
            assert_eq!(whole, expected, "{name} change {point}");
        }
    }
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
