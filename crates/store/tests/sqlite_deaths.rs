//! Deaths inside a transaction: the files as they stand before and after each commit are what a
//! process leaves behind that is killed there.

mod fixture;

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use backstitch_core::inbox::InboxKind;
use backstitch_store::conformance::changes::new_put;
use backstitch_store::conformance::marks::{marked_append, marked_closing, marked_start};
use backstitch_store::conformance::{Script, Whole};
use backstitch_store::sqlite::{Disk, DiskPoint, SqliteOptions, SqliteStore, Testing};
use backstitch_store::{Answer, Change, ErrorKind, RunNo, Store};
use fixture::Folder;
use fixture::files::{FRAME_BYTES, Files};

/// A clock, and options with it.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicI64>);

impl Clock {
    fn set(&self, now_us: i64) {
        self.0.store(now_us, Ordering::SeqCst);
    }

    fn options(&self, disk: impl Fn(DiskPoint) -> Disk + Send + Sync + 'static) -> SqliteOptions {
        let clock = self.clone();
        SqliteOptions {
            now: Arc::new(move || clock.0.load(Ordering::SeqCst)),
            testing: Testing { disk: Some(Arc::new(disk)), ..Default::default() },
            ..Default::default()
        }
    }
}

/// What stands in a store in which the script was played from where it is to its end.
async fn finished(folder: &Folder, mut script: Script) -> Whole {
    let clock = Clock::default();
    let store = SqliteStore::open(folder.db(), clock.options(|_| Disk::Sound)).unwrap();
    script.play(&store, |now_us| clock.set(now_us)).await;
    Whole::read(&store).await.without_fences()
}

#[tokio::test]
async fn p1_b96_a_death_before_or_after_any_commit_leaves_what_the_next_owner_finishes() {
    let folder = Folder::new();
    let copies: Arc<Mutex<Vec<(DiskPoint, Files)>>> = Arc::default();
    let (taken, db, clock) = (copies.clone(), folder.db(), Clock::default());
    let disk = move |point| {
        taken.lock().unwrap().push((point, Files::of(&db)));
        Disk::Sound
    };
    let store = SqliteStore::open(folder.db(), clock.options(disk)).unwrap();
    let mut script = Script::default();
    let mut deaths = Vec::new();
    loop {
        clock.set(script.now_us());
        let Some(change) = script.next(&store).await else { break };
        let answer = store.commit(change).await.unwrap();
        let copies = std::mem::take(&mut *copies.lock().unwrap());
        assert_eq!(copies.len(), 2, "one commit per change");
        deaths.extend(copies.into_iter().map(|copy| (script.clone(), copy)));
        script.hear(&answer);
    }
    let expected = Whole::read(&store).await.without_fences();
    for (script, (point, files)) in deaths {
        let step = script.done();
        let whole = finished(&files.put_down(), script).await;
        assert_eq!(whole, expected, "died {point:?} {step}");
    }
}

#[tokio::test]
async fn p1_b96_a_commit_that_fails_at_any_change_is_applied_once() {
    let expected = finished(&Folder::new(), Script::default()).await;
    for point in [DiskPoint::BeforeCommit, DiskPoint::AfterCommit] {
        let (folder, clock) = (Folder::new(), Clock::default());
        let armed = Arc::new(AtomicUsize::new(0));
        let fails = armed.clone();
        let disk = move |at| {
            let fails = at == point && fails.swap(0, Ordering::SeqCst) == 1;
            if fails { Disk::Fails } else { Disk::Sound }
        };
        let store = SqliteStore::open(folder.db(), clock.options(disk)).unwrap();
        let mut script = Script::default();
        loop {
            clock.set(script.now_us());
            // Each change fails once.
            armed.store(1, Ordering::SeqCst);
            let answer = loop {
                let Some(change) = script.next(&store).await else { break None };
                match store.commit(change).await {
                    Ok(answer) => break Some(answer),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
                }
            };
            let Some(answer) = answer else { break };
            script.hear(&answer);
        }
        assert_eq!(Whole::read(&store).await.without_fences(), expected, "{point:?}");
    }
}

/// Changes of all kinds for each run, among them rows that are too large for the cache of the writer:
/// their pages go into the log before the commit.
fn batch(fence: u64, runs: &[RunNo]) -> Vec<Change> {
    let mut changes = Vec::new();
    for (number, run) in (0..).zip(runs) {
        for seq in 2..=3 {
            let mut large = marked_append(fence, *run, seq);
            large.draft.header.worker = Some("w".repeat(1 << 20));
            changes.push(large.into());
            changes.push(new_put(*run, InboxKind::WaiveUndo, &seq.to_string()).into());
            changes.push(marked_start(number % 2, (100 * seq + number) as u32).into());
        }
        changes.push(marked_closing(fence, *run, 4).into());
    }
    changes
}

/// What another owner finds in `files`; each change is whole.
async fn found_in(files: &Files) -> Whole {
    let folder = files.put_down();
    let whole = Whole::read(&fixture::open(&folder.db())).await;
    whole.check_marks();
    whole
}

#[tokio::test]
async fn p1_a_batch_that_dies_half_way_or_is_cut_is_there_whole_or_not_at_all() {
    const RUNS: usize = 4;
    let folder = Folder::new();
    // Holds up the commit after the starts until a batch has gathered behind it, and copies the files
    // at both.
    let (arrive, arrived) = channel();
    let (open_gate, gate) = channel::<()>();
    let (gate, commits) = (Mutex::new(gate), AtomicUsize::new(0));
    let copies: Arc<Mutex<Vec<Files>>> = Arc::default();
    let (taken, db) = (copies.clone(), folder.db());
    let disk = move |point| {
        if point == DiskPoint::BeforeCommit && commits.fetch_add(1, Ordering::SeqCst) == RUNS {
            let _ = arrive.send(());
            let _ = gate.lock().unwrap().recv();
        }
        if commits.load(Ordering::SeqCst) > RUNS {
            taken.lock().unwrap().push(Files::of(&db));
        }
        Disk::Sound
    };
    let store = SqliteStore::open(folder.db(), Clock::default().options(disk)).unwrap();
    let mut runs = Vec::new();
    for number in 0..RUNS {
        let start = marked_start(store.fence(), number as u32);
        let answer = store.commit(start.into()).await.unwrap();
        let Answer::Started { run, .. } = answer else { panic!("not started: {answer:?}") };
        runs.push(run);
    }
    let first = store.commit(new_put(runs[0], InboxKind::Pause, "first").into());
    arrived.recv().unwrap();
    let batch = batch(store.fence(), &runs).into_iter();
    let offered: Vec<_> = batch.map(|change| store.commit(change)).collect();
    drop(open_gate);
    first.await.unwrap();
    for answer in offered {
        let answer = answer.await.unwrap();
        assert!(!matches!(answer, Answer::Refused(_)), "{answer:?}");
    }
    let after = Whole::read(&store).await;
    assert_eq!(after.calls.len(), 2 * RUNS, "guests begin half of the runs, and half close called");

    let copies = std::mem::take(&mut *copies.lock().unwrap());
    let [_, before, half, whole] = &copies[..] else { panic!("two commits, not {}", copies.len()) };
    let (begin, end) = (before.log_end(), whole.log_end());
    assert!(half.log_end() > begin, "no page went into the log before the commit");
    let before = found_in(before).await;
    assert!(before != after && found_in(half).await == before);
    let frames = (end - begin) / FRAME_BYTES;
    // All over the batch, and the last frames one by one.
    let cuts = (0..frames).filter(|frame| frame % (frames / 40) == 0 || frame + 5 > frames);
    for cut in cuts.map(|frame| begin + frame * FRAME_BYTES) {
        for cut in [cut, cut + 99] {
            assert!(found_in(&whole.cut(cut)).await == before, "cut at {cut}, torn");
        }
    }
    assert!(found_in(whole).await == after, "what was acknowledged is lost");
}
