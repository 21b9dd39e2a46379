//! Two processes and one file: who owns it, and what a death leaves behind.
//!
//! Each test plays both sides: run by itself, it starts a second process of itself.
//!
//! **Invariant:** in this file the parent opens a store only after a child has had it. A process
//! that is just being started holds a copy of every file of the parent for a moment, locks too.

mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use backstitch_core::inbox::InboxKind;
use backstitch_core::row::Row;
use backstitch_store::conformance::Whole;
use backstitch_store::conformance::changes::new_put;
use backstitch_store::conformance::marks::{marked_append, marked_closing, marked_start};
use backstitch_store::sqlite::{SqliteOptions, SqliteStore};
use backstitch_store::{AfterSync, Answer, ErrorKind, RunNo, Store};
use fixture::process::{path_of_the_child, say, start_child, wait_for_the_parent};
use fixture::{Folder, open_error};

#[test]
fn p4_a_second_process_is_told_who_owns_the_store_until_the_owner_dies() {
    if let Some(path) = path_of_the_child() {
        let _store = fixture::open(&path);
        say("opened");
        return wait_for_the_parent();
    }
    let folder = Folder::new();
    let name = "p4_a_second_process_is_told_who_owns_the_store_until_the_owner_dies";
    let (mut owner, mut said) = start_child(name, &folder.db());
    assert!(said.any(|line| line.unwrap() == "opened"), "the owner could not open the store");
    let pid = format!("process {}", owner.id());
    open_error(&folder.db(), ErrorKind::InUse, &[&folder.db().display().to_string(), &pid]);
    owner.kill().unwrap();
    owner.wait().unwrap();
    let store = SqliteStore::open(folder.db(), SqliteOptions::default()).expect("is free again");
    assert_eq!(store.fence(), 2);
}

/// Begins runs, appends to them and closes them until something ends the process, from several threads, and
/// says each thing that was acknowledged. A start is said as its id and its number, an append as
/// its run and its seq.
fn work_for_ever(store: SqliteStore) {
    let store = Arc::new(store);
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let store = store.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                for number in 0.. {
                    runtime.block_on(work(&*store, thread * 1_000_000 + number));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

async fn work(store: &dyn Store, number: u32) {
    let fence = store.fence();
    let answer = store.commit(marked_start(fence, number).into()).await.unwrap();
    let Answer::Started { run, .. } = answer else { panic!("not started: {answer:?}") };
    say(&format!("started {number} {}", run.0));
    for seq in 2..=5 {
        // Nobody waits for these, so that batches hold changes of each kind.
        let request = format!("request-{seq}");
        drop(store.commit(new_put(run, InboxKind::WaiveUndo, &request).into()));
        let append = if seq < 5 { marked_append } else { marked_closing };
        let answer = store.commit(append(fence, run, seq).into()).await.unwrap();
        assert!(matches!(answer, Answer::Appended { .. }), "{answer:?}");
        say(&format!("appended {} {seq}", run.0));
    }
}

/// What the child has said it was told.
#[derive(Default)]
struct Acknowledged {
    started: BTreeMap<u32, i64>,
    last: BTreeMap<i64, u64>,
}

impl Acknowledged {
    /// Takes a line in; the last one may be torn.
    fn hear(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["started", id, run] => {
                let (Ok(id), Ok(run)) = (id.parse(), run.parse()) else { return };
                self.started.insert(id, run);
                self.last.entry(run).or_insert(1);
            }
            ["appended", run, seq] => {
                let (Ok(run), Ok(seq)) = (run.parse(), seq.parse()) else { return };
                self.last.insert(run, seq);
            }
            _ => {}
        }
    }

    async fn check(&self, store: &dyn Store) {
        assert!(self.last.len() > 8, "the child had hardly begun");
        for (id, run) in &self.started {
            let found = store.newest("default", &format!("order-{id}")).await.unwrap();
            assert_eq!(found.expect("was acknowledged").run, RunNo(*run));
        }
        for (run, last) in &self.last {
            let rows = store.journal(RunNo(*run), 0, usize::MAX).await.unwrap();
            let rows = rows.into_iter().map(|row| Row::decode(row).unwrap().header.seq);
            let rows: Vec<_> = rows.collect();
            assert!(rows.len() as u64 >= *last, "run {run} lost a row that was acknowledged");
            assert_eq!(rows, (1..=rows.len() as u64).collect::<Vec<_>>());
        }
        // Nothing is half there, acknowledged or not.
        Whole::read(store).await.check_marks();
    }
}

#[tokio::test]
async fn p1_a_death_between_sync_and_answer_loses_nothing() {
    if let Some(path) = path_of_the_child() {
        let syncs = AtomicU32::new(0);
        let after_sync: AfterSync = Arc::new(move |_| {
            if syncs.fetch_add(1, Ordering::Relaxed) == 60 {
                std::process::abort();
            }
        });
        let options = SqliteOptions { after_sync: Some(after_sync), ..Default::default() };
        work_for_ever(SqliteStore::open(path, options).unwrap());
    }
    let folder = Folder::new();
    let name = "p1_a_death_between_sync_and_answer_loses_nothing";
    let (mut child, said) = start_child(name, &folder.db());
    let mut acknowledged = Acknowledged::default();
    for line in said.map_while(Result::ok) {
        acknowledged.hear(&line);
    }
    assert!(!child.wait().unwrap().success());
    acknowledged.check(&fixture::open(&folder.db())).await;
}

#[tokio::test]
async fn p1_a_kill_at_any_instant_loses_nothing() {
    if let Some(path) = path_of_the_child() {
        work_for_ever(SqliteStore::open(path, SqliteOptions::default()).unwrap());
    }
    for lines in [50, 333, 1_000] {
        let folder = Folder::new();
        let (mut child, mut said) =
            start_child("p1_a_kill_at_any_instant_loses_nothing", &folder.db());
        let mut acknowledged = Acknowledged::default();
        for line in said.by_ref().take(2 * lines) {
            acknowledged.hear(&line.unwrap());
        }
        child.kill().unwrap();
        for line in said.map_while(Result::ok) {
            acknowledged.hear(&line);
        }
        child.wait().unwrap();
        acknowledged.check(&fixture::open(&folder.db())).await;
    }
}
