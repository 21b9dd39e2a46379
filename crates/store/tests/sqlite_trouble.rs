//! A disk that fails while the store is open, and changes that cannot be stored.

mod fixture;

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use backstitch_core::row::{Row, RowError};
use backstitch_store::sqlite::{Disk, DiskPoint, SqliteOptions, SqliteStore, Testing};
use backstitch_store::{Answer, CommittedRow, ErrorKind, Store};
use fixture::{
    Folder, append, assert_appended, assert_error, new_append, new_closing, new_put, new_start,
    open, rows, start,
};
use rusqlite::Connection;

/// Makes SQLite refuse rows of more than 1,000 bytes, for good.
fn poison_long_rows(folder: &Folder) {
    let raw = Connection::open(folder.db()).unwrap();
    raw.execute_batch(
        "CREATE TRIGGER poison BEFORE INSERT ON journal WHEN length(new.row) > 1000
         BEGIN SELECT RAISE(ABORT, 'too long'); END",
    )
    .unwrap();
}

#[tokio::test]
async fn b97_a_row_that_cannot_be_stored_does_not_fail_its_batch() {
    let folder = Folder::new();
    open(&folder.db()).close().await.unwrap();
    poison_long_rows(&folder);

    // Holds the first batch up until the second one has gathered behind it.
    let (arrive, arrived) = channel();
    let (open_gate, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let batches = Arc::new(Mutex::new(Vec::new()));
    let seen = batches.clone();
    let after_sync = Arc::new(move |rows: &[CommittedRow]| {
        let _ = arrive.send(());
        let _ = gate.lock().unwrap().recv();
        seen.lock().unwrap().push(rows.len());
    });
    let options = SqliteOptions { after_sync: Some(after_sync), ..Default::default() };
    let store = SqliteStore::open(folder.db(), options).unwrap();
    let first = store.commit(new_start(&store, 0).into());
    arrived.recv().unwrap();
    let offered: Vec<_> = (1..=9)
        .map(|number| {
            let mut start = new_start(&store, number);
            if number == 5 {
                start.first.header.worker = Some("w".repeat(2_000));
            }
            store.commit(start.into())
        })
        .collect();
    drop(open_gate);
    assert!(matches!(first.await, Ok(Answer::Started { .. })));
    for (number, answer) in (1..=9).zip(offered) {
        let answer = answer.await;
        if number == 5 {
            let message = assert_error(answer, ErrorKind::Rejected);
            assert!(message.contains("too long"), "{message}");
        } else {
            let Ok(Answer::Started { run, .. }) = answer else { panic!("{number}: {answer:?}") };
            assert_eq!(rows(&store, run).await, 1);
        }
    }
    assert_eq!(store.newest("default", "order-5").await.unwrap(), None, "nothing of it is left");
    assert_eq!(*batches.lock().unwrap(), [1; 9], "each in a transaction of its own");
}

#[tokio::test]
async fn b97_an_append_after_the_bad_one_finds_the_journal_as_it_is() {
    let folder = Folder::new();
    open(&folder.db()).close().await.unwrap();
    poison_long_rows(&folder);
    let store = open(&folder.db());
    let run = start(&store, 1).await;
    let mut bad = new_append(&store, run, 2);
    bad.draft.header.worker = Some("w".repeat(2_000));
    let (bad, next) = (store.commit(bad.into()), append(&store, run, 3));
    assert_error(bad.await, ErrorKind::Rejected);
    let seq = Answer::Refused(backstitch_store::Refusal::Seq { last: 1 });
    assert_eq!(next.await.unwrap(), seq);
    assert_appended(append(&store, run, 2).await);
}

#[tokio::test]
async fn a_full_disk_applies_nothing_and_the_work_goes_on_when_there_is_room() {
    let folder = Folder::new();
    let pages_max = Arc::new(AtomicU32::new(u32::MAX - 1));
    let testing = Testing { pages_max: Some(pages_max.clone()), ..Default::default() };
    let options = SqliteOptions { testing, ..Default::default() };
    let store = SqliteStore::open(folder.db(), options).unwrap();
    let run = start(&store, 1).await;
    // Not below what it has already.
    pages_max.store(1, Ordering::SeqCst);
    let mut seq = 1;
    let full = loop {
        match append(&store, run, seq + 1).await {
            Ok(_) => seq += 1,
            full @ Err(_) => break full,
        }
    };
    let message = assert_error(full, ErrorKind::Unavailable);
    assert!(message.contains("is full; free space and the work goes on"), "{message}");
    assert!(message.contains(&folder.db().display().to_string()), "{message}");
    assert_eq!(rows(&store, run).await as u64, seq);
    assert_error(append(&store, run, seq + 1).await, ErrorKind::Unavailable);
    let before = store.run(run).await.unwrap();
    let closing = new_closing(&store, run, seq + 1);
    assert_error(store.commit(closing.clone().into()).await, ErrorKind::Unavailable);
    assert_eq!(store.run(run).await.unwrap(), before);

    pages_max.store(u32::MAX - 1, Ordering::SeqCst);
    assert_appended(store.commit(closing.into()).await);
    assert_eq!(rows(&store, run).await as u64, seq + 1);
}

/// A store whose disk fails at the points in `script`, in turn; then it is sound.
fn scripted(folder: &Folder, script: &[(DiskPoint, Disk)]) -> (SqliteStore, Arc<AtomicUsize>) {
    let script = script.to_vec();
    let next = Arc::new(AtomicUsize::new(usize::MAX));
    let place = next.clone();
    let disk = move |point| {
        let at = place.load(Ordering::SeqCst);
        match script.get(at) {
            Some((expected, disk)) if *expected == point => {
                place.store(at + 1, Ordering::SeqCst);
                *disk
            }
            Some(_) | None => Disk::Sound,
        }
    };
    let testing = Testing { disk: Some(Arc::new(disk)), ..Default::default() };
    let options = SqliteOptions { testing, ..Default::default() };
    (SqliteStore::open(folder.db(), options).unwrap(), next)
}

#[tokio::test]
async fn p1_a_failed_commit_that_was_applied_gets_its_normal_answer() {
    let folder = Folder::new();
    let (store, script) = scripted(&folder, &[(DiskPoint::AfterCommit, Disk::Fails)]);
    let run = start(&store, 1).await;
    let fail_next = || script.store(0, Ordering::SeqCst);

    fail_next();
    assert_appended(append(&store, run, 2).await);
    fail_next();
    let second = start(&store, 2).await;
    fail_next();
    let accepted = store.commit(new_put(run, "request").into()).await.unwrap();
    assert!(matches!(accepted, Answer::Accepted { number: 1, first: true, .. }), "{accepted:?}");

    assert_appended(append(&store, second, 2).await);
    assert_appended(append(&store, run, 3).await);
    assert_eq!((rows(&store, run).await, rows(&store, second).await), (3, 2));
}

#[tokio::test]
async fn p1_a_failed_commit_that_was_not_applied_is_unavailable_and_can_be_offered_again() {
    let folder = Folder::new();
    let (store, script) = scripted(&folder, &[(DiskPoint::BeforeCommit, Disk::Fails)]);
    let run = start(&store, 1).await;
    let fail_next = || script.store(0, Ordering::SeqCst);

    fail_next();
    let message = assert_error(append(&store, run, 2).await, ErrorKind::Unavailable);
    assert!(message.contains("nothing was applied"), "{message}");
    fail_next();
    let failed = store.commit(new_start(&store, 2).into()).await;
    assert_error(failed, ErrorKind::Unavailable);
    fail_next();
    assert_error(store.commit(new_put(run, "request").into()).await, ErrorKind::Unavailable);

    assert_eq!(rows(&store, run).await, 1);
    assert_eq!(store.newest("default", "order-2").await.unwrap(), None);
    assert!(store.inbox(run, 0, 10).await.unwrap().is_empty());
    assert_appended(append(&store, run, 2).await);
    start(&store, 2).await;
    let accepted = store.commit(new_put(run, "request").into()).await.unwrap();
    assert!(matches!(accepted, Answer::Accepted { number: 1, first: true, .. }), "{accepted:?}");
}

#[tokio::test]
async fn changes_are_unavailable_while_the_file_cannot_be_opened_again() {
    let folder = Folder::new();
    let reopen = (DiskPoint::Reopen, Disk::Fails);
    let lost = (DiskPoint::BeforeCommit, Disk::Fails);
    let (store, script) = scripted(&folder, &[lost, reopen, reopen, reopen]);
    let run = start(&store, 1).await;
    script.store(0, Ordering::SeqCst);
    // The first fails with its commit, the others because the file is not open; how often it was
    // tried in between does not matter, so they are offered until it goes well.
    let message = assert_error(append(&store, run, 2).await, ErrorKind::Unavailable);
    assert!(message.contains(&folder.db().display().to_string()), "{message}");
    let mut unavailable = 0;
    let answer = loop {
        let answer = append(&store, run, 2).await;
        if answer.is_ok() {
            break answer;
        }
        assert_error(answer, ErrorKind::Unavailable);
        unavailable += 1;
        assert_eq!(rows(&store, run).await, 1, "reads go on");
    };
    assert!(unavailable <= 2);
    assert_appended(answer);
    assert_eq!(rows(&store, run).await, 2);
}

#[tokio::test]
async fn p1_an_unknown_outcome_is_settled_by_itself_when_the_disk_is_sound_again() {
    let folder = Folder::new();
    let reopen = (DiskPoint::Reopen, Disk::Fails);
    let applied = (DiskPoint::AfterCommit, Disk::Fails);
    let (store, script) = scripted(&folder, &[applied, reopen, reopen]);
    let run = start(&store, 1).await;
    script.store(0, Ordering::SeqCst);
    // Nobody offers anything else.
    assert_appended(append(&store, run, 2).await);
    assert_eq!(script.load(Ordering::SeqCst), 3, "the whole script was played");
}

#[tokio::test]
async fn closing_settles_an_unknown_outcome() {
    let folder = Folder::new();
    let reopen = (DiskPoint::Reopen, Disk::Fails);
    let applied = (DiskPoint::AfterCommit, Disk::Fails);
    let (store, script) = scripted(&folder, &[applied, reopen]);
    let run = start(&store, 1).await;
    script.store(0, Ordering::SeqCst);
    let answer = append(&store, run, 2);
    let (answer, closed) = tokio::join!(answer, store.close());
    closed.unwrap();
    assert_appended(answer);
    assert_eq!(rows(&open(&folder.db()), run).await, 2);
}

#[tokio::test]
async fn the_hook_sees_each_row_once_even_if_its_commit_seemed_to_fail() {
    let folder = Folder::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hook = seen.clone();
    let commits = AtomicUsize::new(0);
    let disk = move |point| {
        let second = point == DiskPoint::AfterCommit && commits.fetch_add(1, Ordering::SeqCst) == 1;
        if second { Disk::Fails } else { Disk::Sound }
    };
    let options = SqliteOptions {
        after_sync: Some(Arc::new(move |rows: &[CommittedRow]| {
            hook.lock().unwrap().extend(rows.iter().map(|row| row.row.clone()));
        })),
        testing: Testing { disk: Some(Arc::new(disk)), ..Default::default() },
        ..Default::default()
    };
    let store = SqliteStore::open(folder.db(), options).unwrap();
    let run = start(&store, 1).await;
    for seq in [2, 2, 3] {
        assert_appended(append(&store, run, seq).await);
    }
    let rows = store.journal(run, 0, 10).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), rows);
}

#[tokio::test]
async fn a_row_that_was_changed_on_disk_is_given_as_it_is_and_decoding_says_so() {
    let folder = Folder::new();
    let store = open(&folder.db());
    let run = start(&store, 1).await;
    assert_appended(append(&store, run, 2).await);
    store.close().await.unwrap();
    let raw = Connection::open(folder.db()).unwrap();
    raw.execute_batch(
        "UPDATE journal SET row = CAST(substr(row, 1, 99) || x'00' || substr(row, 101) AS BLOB)
         WHERE place = (SELECT min(place) FROM journal)",
    )
    .unwrap();
    drop(raw);

    let store = open(&folder.db());
    let rows = store.journal(run, 0, 10).await.unwrap();
    assert_eq!(Row::decode(rows[0].clone()), Err(RowError::Checksum { bytes: rows[0].len() }));
    assert!(Row::decode(rows[1].clone()).is_ok());
    // Verbs still work: a kill only appends.
    assert_appended(store.commit(new_closing(&store, run, 3).into()).await);
}
