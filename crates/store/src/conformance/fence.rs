//! An owner that was taken over, and does not know it (P4).

use std::sync::Arc;
use std::thread;

use backstitch_core::inbox::InboxKind;

use super::Subject;
use super::bench::{Bench, assert_appended, assert_refused};
use super::changes::{new_append, new_put, new_start, run_id};
use super::marks::{marked_append, marked_closing, marked_start};
use super::whole::Whole;
use crate::{Answer, Call, Change, Refusal, RunNo, Start, Store};

/// A store with an open run, a closed one, and one that is called; what was offered, and answered.
async fn used(bench: &Bench) -> ([RunNo; 3], Vec<(Change, Answer)>) {
    let mut offered = Vec::new();
    let mut runs = [RunNo(0); 3];
    let fence = bench.store.fence();
    for (number, run) in (1..).zip(&mut runs) {
        let fence = if number == 3 { 0 } else { fence };
        let start = Change::from(marked_start(fence, number));
        let Answer::Started { run: started, at_us, .. } = bench.commit(start.clone()).await else {
            panic!("not started");
        };
        *run = started;
        offered.push((start, Answer::Started { run: started, at_us, first: false }));
    }
    let [open, closed, _] = runs;
    for append in [marked_append(fence, open, 2), marked_closing(fence, closed, 2)] {
        let answer = bench.commit(append.clone()).await;
        assert_appended(answer.clone());
        offered.push((append.into(), answer));
    }
    let put = new_put(open, InboxKind::Pause, "before");
    let Answer::Accepted { number, accepted_at_us, .. } = bench.commit(put.clone()).await else {
        panic!("not accepted");
    };
    let again = Answer::Accepted { number, accepted_at_us, changed: true, first: false };
    offered.push((put.into(), again));
    (runs, offered)
}

/// Whatever it offers, under whatever fence it says that it writes.
pub async fn p4_an_older_owner_writes_nothing_of_any_kind(subject: impl Subject) {
    let mut bench = Bench::new(subject);
    let ([open, closed, called], _) = used(&bench).await;
    let older = bench.take_over();
    let newest = bench.store.fence();
    assert!(newest > older.fence());
    let before = Whole::read(&*bench.store).await;
    for fence in [older.fence(), newest, 0] {
        let changes: [Change; 7] = [
            marked_append(fence, open, 3).into(),
            marked_closing(fence, open, 3).into(),
            new_start(fence, 9).into(),
            Start { expected: Some(closed), ..new_start(fence, 2) }.into(),
            Change::Heard(vec![Call { run: called, times: 1 }]),
            Change::Delete(closed),
            Change::Purge { rows: 100 },
        ];
        for change in changes {
            // The run of an id that was there before would be recognised.
            let change = match change {
                Change::Start(mut start) => {
                    start.execution.run_id = run_id(100);
                    Change::Start(start)
                }
                other => other,
            };
            let answer = older.commit(change.clone()).await.expect("the store works");
            assert_eq!(answer, Answer::Refused(Refusal::Fenced { newest }), "{change:?}");
        }
        for (run, kind) in [
            (open, InboxKind::Cancel),
            (open, InboxKind::Event),
            (closed, InboxKind::Rollback),
            (called, InboxKind::Kill),
        ] {
            let put = new_put(run, kind, &format!("late-{fence}"));
            let answer = older.commit(put.into()).await.expect("the store works");
            assert_refused(answer, Refusal::Fenced { newest });
        }
    }
    assert_eq!(Whole::read(&*bench.store).await, before);
    // The newest one is not held up.
    assert_appended(bench.commit(marked_append(newest, open, 3)).await);
    assert_eq!(bench.commit(Change::Delete(closed)).await, Answer::Deleted);
}

/// What it has done it may hear again, and what is there it may see.
pub async fn p4_an_older_owner_reads_and_gets_its_first_answers(subject: impl Subject) {
    let mut bench = Bench::new(subject);
    let (_, offered) = used(&bench).await;
    let older = bench.take_over();
    bench.set_clock(9_000_000);
    for round in 0..2 {
        for (change, answer) in &offered {
            let again = older.commit(change.clone()).await.expect("the store works");
            assert_eq!(again, *answer, "{change:?}");
        }
        let whole = Whole::read(&*bench.store).await;
        assert_eq!(Whole::read(&*older).await, whole, "it sees what the newest one sees");
        if round == 0 {
            let run = bench.start(7).await;
            assert_appended(bench.commit(bench.new_append(run, 2)).await);
        }
    }
    older.close().await.expect("closes");
    assert_appended(bench.commit(bench.new_append(RunNo(1), 3)).await);
}

/// Each change is there when the newer owner opens the store, or never.
pub async fn p4_what_an_older_owner_has_offered_is_there_at_the_takeover_or_never(
    subject: impl Subject,
) {
    const RUNS: u32 = 8;
    const ROWS: u64 = 40;
    let mut bench = Bench::new(subject);
    for owners in 0..4 {
        let fence = bench.store.fence();
        let mut runs = Vec::new();
        for number in 0..RUNS {
            let number = owners * 1_000 + number;
            let Answer::Started { run, .. } = bench.commit(marked_start(fence, number)).await
            else {
                panic!("not started");
            };
            runs.push(run);
        }
        // Half before the takeover, half beside it.
        let offer = |rows: std::ops::RangeInclusive<u64>, store: Arc<dyn Store>| {
            let runs = runs.clone();
            thread::spawn(move || {
                let offered = rows.flat_map(|seq| runs.iter().map(move |run| (*run, seq)));
                let offered = offered.flat_map(|(run, seq)| {
                    let append = store.commit(marked_append(fence, run, seq).into());
                    let put = new_put(run, InboxKind::Pause, &format!("request-{seq}"));
                    [(run, seq, append), (run, 0, store.commit(put.into()))]
                });
                offered.collect::<Vec<_>>()
            })
        };
        let mut offered = offer(2..=ROWS / 2, bench.store.clone()).join().expect("offers");
        let beside = offer(ROWS / 2 + 1..=ROWS, bench.store.clone());
        let older = bench.take_over();
        let whole = Whole::read(&*bench.store).await;
        whole.check_marks();
        offered.extend(beside.join().expect("offers"));
        let newest = bench.store.fence();
        for (run, seq, answer) in offered {
            let run = whole.run(run).expect("was started before");
            match answer.await.expect("the store works") {
                Answer::Appended { .. } => assert!(run.rows.len() as u64 >= seq, "came later"),
                Answer::Accepted { number, .. } => {
                    assert!(run.inbox.len() as u64 >= number, "came later");
                }
                refused => assert_refused(refused, Refusal::Fenced { newest }),
            }
        }
        assert_eq!(Whole::read(&*bench.store).await, whole, "something came later");
        for run in &whole.runs {
            let next = new_append(fence, run.info.run, run.rows.len() as u64 + 1);
            let late = older.commit(next.into()).await.expect("the store works");
            assert_refused(late, Refusal::Fenced { newest });
        }
    }
}
