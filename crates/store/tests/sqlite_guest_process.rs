//! A guest in a second process, and the deaths of both sides.
//!
//! **Invariant:** as in `sqlite_process.rs`, no test takes the lock of a file that this process has
//! had before.

mod fixture;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use backstitch_core::inbox::InboxKind;
use backstitch_core::row::Row;
use backstitch_store::{Answer, InboxPut, RunNo, Store};
use fixture::process::{path_of_the_child, say, start_child, wait_for_the_parent};
use fixture::{Folder, append, assert_appended, calls, connect, new_put, new_start, open, start};

/// Puts a row into the inbox of `run` and says so when it is acknowledged.
async fn put(store: &dyn Store, run: RunNo, request_id: &str) -> u64 {
    let put = InboxPut { kind: InboxKind::Event, ..new_put(run, request_id) };
    match store.commit(put.into()).await.unwrap() {
        Answer::Accepted { number, .. } => number,
        other => panic!("not accepted: {other:?}"),
    }
}

/// Runs `work` in as many threads, each with a number and a runtime of its own.
fn in_threads<T: Send + 'static>(
    threads: u32,
    work: impl AsyncFn(u32) -> T + Clone + Send + 'static,
) -> Vec<thread::JoinHandle<T>> {
    (0..threads)
        .map(|number| {
            let work = work.clone();
            thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(work(number))
            })
        })
        .collect()
}

/// Rows that a child has said it was told of: by run, request ids by number.
#[derive(Default)]
struct Told {
    puts: BTreeMap<RunNo, BTreeMap<u64, String>>,
    starts: BTreeMap<RunNo, u32>,
}

impl Told {
    fn hear(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["put", run, number, request_id] => {
                let (Ok(run), Ok(number)) = (run.parse(), number.parse()) else { return };
                self.puts.entry(RunNo(run)).or_default().insert(number, request_id.to_owned());
            }
            ["started", run, id] => {
                let (Ok(run), Ok(id)) = (run.parse(), id.parse()) else { return };
                assert_eq!(self.starts.insert(RunNo(run), id), None, "a number was shared");
            }
            _ => {}
        }
    }

    /// All of it is there, in order, without gaps.
    async fn check(&self, store: &dyn Store) {
        for (run, puts) in &self.puts {
            let inbox = store.inbox(*run, 0, usize::MAX).await.unwrap();
            for (number, row) in (1..).zip(&inbox) {
                assert_eq!(row.number, number);
            }
            for (number, request_id) in puts {
                assert_eq!(inbox[*number as usize - 1].request_id, *request_id);
            }
            let stamps: Vec<_> = inbox.iter().map(|row| row.accepted_at_us).collect();
            assert!(stamps.is_sorted(), "accepted_at runs backwards (P8)");
        }
        for (run, id) in &self.starts {
            let info = store.run(*run).await.unwrap().expect("was acknowledged");
            assert_eq!(info.new.id, format!("order-{id}"));
        }
    }

    fn put_rows(&self) -> usize {
        self.puts.values().map(BTreeMap::len).sum()
    }
}

async fn seqs(store: &dyn Store, run: RunNo) -> Vec<u64> {
    let rows = store.journal(run, 0, usize::MAX).await.unwrap();
    rows.into_iter().map(|row| Row::decode(row).unwrap().header.seq).collect()
}

#[tokio::test]
async fn t16_owner_and_guest_write_at_the_same_time_and_nothing_is_lost() {
    const RUNS: u32 = 4;
    const ROUNDS: u32 = 250;
    if let Some(path) = path_of_the_child() {
        let guest = Arc::new(connect(&path));
        let work = async move |thread: u32| {
            let run = RunNo(i64::from(thread) + 1);
            for round in 0..ROUNDS {
                let request_id = format!("guest-{round}");
                let number = put(&*guest, run, &request_id).await;
                say(&format!("put {} {number} {request_id}", run.0));
                if round % 5 == 0 {
                    let id = 1_000 + thread * ROUNDS + round;
                    let begun = start(&*guest, id).await;
                    say(&format!("started {} {id}", begun.0));
                }
            }
        };
        in_threads(RUNS, work).into_iter().for_each(|thread| thread.join().unwrap());
        return say("done");
    }
    let folder = Folder::new();
    let owner = Arc::new(open(&folder.db()));
    for number in 0..RUNS {
        assert_eq!(start(&*owner, number).await, RunNo(i64::from(number) + 1));
    }
    let name = "t16_owner_and_guest_write_at_the_same_time_and_nothing_is_lost";
    let (mut child, said) = start_child(name, &folder.db());
    let child_works = Arc::new(AtomicBool::new(true));
    let (store, go_on) = (owner.clone(), child_works.clone());
    // The owner has no pause as long as the child works.
    let threads = in_threads(RUNS, async move |thread: u32| {
        let run = RunNo(i64::from(thread) + 1);
        let (mut seq, mut told) = (1, Told::default());
        while go_on.load(Ordering::SeqCst) || seq < 100 {
            seq += 1;
            assert_appended(append(&*store, run, seq).await);
            if seq.is_multiple_of(5) {
                let request_id = format!("owner-{seq}");
                let number = put(&*store, run, &request_id).await;
                told.puts.entry(run).or_default().insert(number, request_id);
                let id = 1_000_000 * (thread + 1) + seq as u32;
                told.starts.insert(start(&*store, id).await, id);
            }
        }
        (run, seq, told)
    });
    let mut told = Told::default();
    let mut is_done = false;
    for line in said.map_while(Result::ok) {
        told.hear(&line);
        is_done |= line == "done";
    }
    child_works.store(false, Ordering::SeqCst);
    assert!(child.wait().unwrap().success() && is_done, "the guest had trouble");
    assert_eq!(told.put_rows(), (RUNS * ROUNDS) as usize);
    let by_the_guest = told.starts.len();
    told.check(&*owner).await;
    let mut rows = told.put_rows();
    for thread in threads {
        let (run, seq, own) = thread.join().unwrap();
        assert_eq!(seqs(&*owner, run).await, (1..=seq).collect::<Vec<_>>());
        own.check(&*owner).await;
        rows += own.put_rows();
        for (run, id) in own.starts {
            assert_eq!(told.starts.insert(run, id), None, "a number was shared");
        }
    }
    let mut inbox_rows = 0;
    for number in 1..=RUNS {
        inbox_rows += owner.inbox(RunNo(number.into()), 0, usize::MAX).await.unwrap().len();
    }
    assert_eq!(inbox_rows, rows, "neither less nor more than was acknowledged");
    let runs = owner.runs(RunNo(i64::MAX), usize::MAX).await.unwrap().len();
    assert_eq!(runs, told.starts.len() + RUNS as usize);
    assert_eq!(calls(&*owner).await.len(), by_the_guest + RUNS as usize);
}

#[tokio::test]
async fn p1_calls_outlive_the_owner_while_a_guest_goes_on() {
    if let Some(path) = path_of_the_child() {
        let owner = open(&path);
        let run = start(&owner, 1).await;
        say("opened");
        for seq in 2.. {
            assert_appended(append(&owner, run, seq).await);
            say(&format!("appended {seq}"));
        }
    }
    let folder = Folder::new();
    let name = "p1_calls_outlive_the_owner_while_a_guest_goes_on";
    let (mut child, mut said) = start_child(name, &folder.db());
    assert!(said.any(|line| line.unwrap() == "opened"), "the owner could not open the store");
    let guest = connect(&folder.db());
    let mut told = Told::default();
    let run = RunNo(1);
    for round in 1..=60 {
        if round == 30 {
            child.kill().unwrap();
        }
        let request_id = format!("request-{round}");
        let number = put(&guest, run, &request_id).await;
        told.hear(&format!("put {} {number} {request_id}", run.0));
        let begun = start(&guest, 100 + round).await;
        told.hear(&format!("started {} {}", begun.0, 100 + round));
    }
    child.wait().unwrap();
    let words = said.map_while(Result::ok).filter_map(|line| {
        line.strip_prefix("appended ").and_then(|seq| seq.parse::<usize>().ok())
    });
    let appended = words.last().unwrap_or(1);

    let owner = open(&folder.db());
    assert_eq!(owner.fence(), 2);
    told.check(&owner).await;
    let mut expected: Vec<_> = told.starts.keys().map(|begun| (*begun, 1)).collect();
    expected.insert(0, (run, 60));
    assert_eq!(calls(&owner).await, expected);
    let rows = seqs(&owner, run).await;
    assert!(rows.len() >= appended, "a row that was acknowledged is lost");
    assert_appended(append(&owner, run, rows.len() as u64 + 1).await);
    put(&guest, run, "after").await;
    assert_eq!(calls(&owner).await[0], (run, 61));
}

#[tokio::test]
async fn p1_the_death_of_a_guest_loses_nothing_and_holds_nobody_up() {
    if let Some(path) = path_of_the_child() {
        let guest = Arc::new(connect(&path));
        let work = async move |thread: u32| {
            for round in 0_u32.. {
                let request_id = format!("guest-{thread}-{round}");
                let number = put(&*guest, RunNo(1), &request_id).await;
                say(&format!("put 1 {number} {request_id}"));
                let id = 1_000_000 * (thread + 1) + round;
                let answer = guest.commit(new_start(&*guest, id).into()).await.unwrap();
                let Answer::Started { run, .. } = answer else { panic!("{answer:?}") };
                say(&format!("started {} {id}", run.0));
            }
        };
        in_threads(3, work).into_iter().for_each(|thread| thread.join().unwrap());
        return;
    }
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    let mut seq = 1;
    let mut told = Told::default();
    for lines in [20, 100, 300] {
        let name = "p1_the_death_of_a_guest_loses_nothing_and_holds_nobody_up";
        let (mut child, mut said) = start_child(name, &folder.db());
        for line in said.by_ref().take(2 * lines) {
            told.hear(&line.unwrap());
            seq += 1;
            assert_appended(append(&owner, run, seq).await);
        }
        child.kill().unwrap();
        seq += 1;
        assert_appended(append(&owner, run, seq).await);
        for line in said.map_while(Result::ok) {
            told.hear(&line);
        }
        child.wait().unwrap();
        // The next one repeats what this one has asked for, and is answered as it was.
        told.check(&owner).await;
        told.starts.clear();
    }
    assert_eq!(seqs(&owner, run).await, (1..=seq).collect::<Vec<_>>());
    assert!(told.put_rows() > 100, "the guests had hardly begun");
    assert!(calls(&owner).await.len() > 30);
}

#[tokio::test]
async fn what_a_guest_process_puts_is_news_to_the_owner() {
    if let Some(path) = path_of_the_child() {
        let guest = connect(&path);
        say("connected");
        wait_for_the_parent();
        put(&guest, RunNo(1), "request").await;
        let mut news = guest.news();
        say("put");
        // The owner answers with an append.
        while guest.journal(RunNo(1), 1, 1).await.unwrap().is_empty() {
            news.changed().await.unwrap();
        }
        return say("seen");
    }
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    let name = "what_a_guest_process_puts_is_news_to_the_owner";
    let (mut child, mut said) = start_child(name, &folder.db());
    assert!(said.any(|line| line.unwrap() == "connected"), "the guest could not connect");
    let mut news = owner.news();
    drop(child.stdin.take());
    news.changed().await.unwrap();
    assert_eq!(calls(&owner).await, [(run, 1)]);
    assert!(said.any(|line| line.unwrap() == "put"));
    assert_appended(append(&owner, run, 2).await);
    assert!(said.any(|line| line.unwrap() == "seen"), "the owner's row was no news to the guest");
    assert!(child.wait().unwrap().success());
}
