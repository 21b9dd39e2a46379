//! Many who write at once, each waiting for its answers.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use backstitch_core::inbox::InboxKind;

use super::Subject;
use super::bench::{Bench, assert_appended};
use super::changes::{new_append, new_put, new_start, run_id};
use super::whole::Whole;
use crate::{Answer, Change, Refusal, RunNo, Store, StoreFuture};

const WRITERS: u32 = 8;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread: a crowd needs no runtime.
fn wait_for<T>(mut future: StoreFuture<T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(&mut future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer.expect("the store works"),
            Poll::Pending => thread::park(),
        }
    }
}

/// Lets as many threads as there are [`WRITERS`] do `work` with their number, all at once.
fn crowd<T: Send + 'static>(
    store: &Arc<dyn Store>,
    work: impl Fn(u32, &dyn Store) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let begin = Arc::new(Barrier::new(WRITERS as usize));
    let threads: Vec<_> = (0..WRITERS)
        .map(|number| {
            let (store, begin, work) = (store.clone(), begin.clone(), work.clone());
            thread::spawn(move || {
                begin.wait();
                work(number, &*store)
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().expect("has no trouble")).collect()
}

fn append_id(writer: u32, count: u64) -> Vec<u8> {
    (u128::from(writer) << 64 | u128::from(count)).to_be_bytes().into()
}

/// Everybody appends to the run of everybody else: whoever is refused goes on at the end that it is
/// told of.
pub async fn p1_each_acknowledged_row_of_many_appenders_is_there_exactly_once(
    subject: impl Subject,
) {
    const RUNS: u32 = 4;
    const ROWS: u64 = 12;
    let bench = Bench::new(subject);
    let mut runs = Vec::new();
    for number in 0..RUNS {
        runs.push(bench.start(number).await);
    }
    let fence = bench.store.fence();
    let all = runs.clone();
    let told = crowd(&bench.store, move |writer, store| {
        let mut told = Vec::new();
        let mut ends: BTreeMap<RunNo, u64> = all.iter().map(|run| (*run, 1)).collect();
        for count in 0..ROWS * u64::from(RUNS) {
            let run = all[(u64::from(writer) + count) as usize % all.len()];
            loop {
                let end = ends.get_mut(&run).expect("each has an end");
                let mut append = new_append(fence, run, *end + 1);
                let id = append_id(writer, count);
                append.draft.header.append_id.clone_from(&id);
                match wait_for(store.commit(append.into())) {
                    Answer::Appended { .. } => {
                        *end += 1;
                        told.push((run, *end, id));
                        break;
                    }
                    Answer::Refused(Refusal::Seq { last }) => {
                        assert!(last > *end, "the place was free");
                        *end = last;
                    }
                    other => panic!("neither appended nor told where: {other:?}"),
                }
            }
        }
        told
    });
    let mut told: Vec<_> = told.into_iter().flatten().collect();
    told.sort();
    for _ in 0..2 {
        let whole = Whole::read(&*bench.store).await;
        let mut rows = Vec::new();
        for run in &whole.runs {
            for row in &run.rows[1..] {
                rows.push((run.info.run, row.header.seq, row.header.append_id.clone()));
            }
        }
        assert_eq!(rows, told, "neither more nor less, and each in its place");
    }
    assert_eq!(told.len() as u64, ROWS * u64::from(RUNS * WRITERS));
}

/// Two who believe that they own a run, place after place.
pub async fn p4_of_rivals_for_one_place_exactly_one_wins(subject: impl Subject) {
    const ROWS: u64 = 25;
    let bench = Bench::new(subject);
    let mut runs = Vec::new();
    for number in 0..WRITERS / 2 {
        runs.push(bench.start(number).await);
    }
    let fence = bench.store.fence();
    let (all, round) = (runs.clone(), Arc::new(Barrier::new(WRITERS as usize)));
    let wins = crowd(&bench.store, move |writer, store| {
        let run = all[writer as usize / 2];
        let mut wins = Vec::new();
        for seq in 2..=ROWS {
            round.wait();
            let mut append = new_append(fence, run, seq);
            append.draft.header.append_id = append_id(writer, seq);
            match wait_for(store.commit(append.into())) {
                Answer::Appended { .. } => wins.push((run, seq, writer)),
                refused => assert_eq!(refused, Answer::Refused(Refusal::Seq { last: seq })),
            }
        }
        wins
    });
    let mut wins: Vec<_> = wins.into_iter().flatten().collect();
    wins.sort_unstable();
    let mut expected = Vec::new();
    for run in &runs {
        for row in &bench.rows(*run).await[1..] {
            let id = u128::from_be_bytes(row.header.append_id[..].try_into().expect("16 bytes"));
            expected.push((*run, row.header.seq, (id >> 64) as u32));
        }
    }
    assert_eq!(wins, expected, "each place has one winner, and its row");
    assert_eq!(wins.len() as u64, u64::from(WRITERS / 2) * (ROWS - 1));
}

/// Numbers are given out in order of acceptance: what was acknowledged before another request was
/// sent stands before it.
pub async fn p8_requests_of_many_at_once_are_numbered_in_order_of_acceptance(
    subject: impl Subject,
) {
    const PUTS: u64 = 40;
    let bench = Bench::new(subject);
    let runs = [bench.start(1).await, bench.start(2).await];
    let acknowledged: Arc<[AtomicU64; 2]> = Arc::default();
    let told = crowd(&bench.store, move |writer, store| {
        let mut told = Vec::new();
        for count in 0..PUTS {
            let place = (u64::from(writer) + count) as usize % runs.len();
            let before = acknowledged[place].load(Ordering::SeqCst);
            let request = format!("{writer}-{count}");
            let put = new_put(runs[place], InboxKind::Event, &request);
            match wait_for(store.commit(put.into())) {
                Answer::Accepted { number, first: true, .. } => {
                    assert!(number > before, "{number} was sent after {before} was acknowledged");
                    acknowledged[place].fetch_max(number, Ordering::SeqCst);
                    told.push((runs[place], number, request));
                }
                other => panic!("not accepted: {other:?}"),
            }
        }
        told
    });
    let mut told: Vec<_> = told.into_iter().flatten().collect();
    told.sort();
    let whole = Whole::read(&*bench.store).await;
    let rows = whole.runs.iter().flat_map(|run| {
        run.inbox.iter().map(|row| (run.info.run, row.number, row.request_id.clone()))
    });
    assert_eq!(rows.collect::<Vec<_>>(), told);
    assert_eq!(told.len() as u64, PUTS * u64::from(WRITERS));
}

/// A request that many repeat at once is accepted once.
pub async fn p8_a_request_that_many_send_at_once_is_there_once(subject: impl Subject) {
    const REQUESTS: u32 = 20;
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    let told = crowd(&bench.store, move |_, store| {
        let mut told = Vec::new();
        for request in 0..REQUESTS {
            let put = new_put(run, InboxKind::Event, &format!("request-{request}"));
            match wait_for(store.commit(put.into())) {
                Answer::Accepted { number, first, accepted_at_us, .. } => {
                    told.push((number, request, accepted_at_us, first));
                }
                other => panic!("not accepted: {other:?}"),
            }
        }
        told
    });
    let told: Vec<_> = told.into_iter().flatten().collect();
    assert_eq!(told.iter().filter(|answer| answer.3).count() as u32, REQUESTS);
    let answers: BTreeSet<_> = told.iter().map(|(number, id, at, _)| (*number, *id, *at)).collect();
    assert_eq!(answers.len() as u32, REQUESTS, "all are told the same");
    assert_eq!(bench.store.inbox(run, 0, usize::MAX).await.unwrap().len() as u32, REQUESTS);
}

/// Whoever comes first begins the run, and all others are led to it.
pub async fn p4_starts_of_one_id_by_many_at_once_make_one_run(subject: impl Subject) {
    const IDS: u32 = 20;
    let bench = Bench::new(subject);
    let fence = bench.store.fence();
    let told = crowd(&bench.store, move |writer, store| {
        let mut told = Vec::new();
        for number in 0..IDS {
            let mut start = new_start(fence, number);
            // Every other one repeats the same start, the others have a run of their own in mind.
            let own = if writer % 2 == 0 { 0 } else { writer };
            start.execution.run_id = run_id(number * 100 + own);
            match wait_for(store.commit(Change::from(start))) {
                Answer::Started { run, first, .. } => told.push((number, run, first)),
                Answer::Exists(info) => {
                    assert_eq!(info.new.id, format!("order-{number}"));
                    told.push((number, info.run, false));
                }
                other => panic!("neither started nor found: {other:?}"),
            }
        }
        told
    });
    let told: Vec<_> = told.into_iter().flatten().collect();
    assert_eq!(told.iter().filter(|(.., first)| *first).count() as u32, IDS);
    let pairs: BTreeSet<_> = told.iter().map(|(number, run, _)| (*number, *run)).collect();
    assert_eq!(pairs.len() as u32, IDS, "an id has got two runs");
    let whole = Whole::read(&*bench.store).await;
    assert_eq!(whole.runs.len() as u32, IDS);
    // Each of them can be carried on, by whoever asks.
    for (_, run) in pairs {
        assert_appended(bench.commit(bench.new_append(run, 2)).await);
    }
}
