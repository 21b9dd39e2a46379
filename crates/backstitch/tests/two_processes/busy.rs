//! One process works, the other one asks without a pause: neither ever finds the store locked, and
//! whatever was acknowledged is in the journal of its run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use backstitch::core::event::Event;
use backstitch::{Backstitch, Client, ErrorKind, Handle, Row, Status};

use crate::checked;
use crate::job::{Plan, job};
use crate::process::{Folder, Other, say};
use crate::world::until;

/// How long the guest is busy, in seconds: CI gives it more.
const SECONDS: &str = "BACKSTITCH_BUSY_SECONDS";
const SECONDS_DEFAULT: u64 = 3;

/// How many things the guest does at the same time.
const TASKS: u32 = 3;

/// The execution that all of them send to.
const SHARED: &str = "shared";

/// Asks as long as it is to. Says `ID NUMBER` for each inbox row that was acknowledged, and `done` at
/// the end.
pub async fn ask(guest: Client) {
    let seconds = std::env::var(SECONDS).map_or(SECONDS_DEFAULT, |s| s.parse().expect("a number"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let guest = guest.clone();
            tokio::spawn(async move {
                let shared = guest.handle::<u32>(SHARED).await.unwrap();
                let mut round = 0;
                while Instant::now() < end {
                    ask_once(&guest, &shared, task, round).await;
                    round += 1;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    say("done");
}

async fn ask_once(guest: &Client, shared: &Handle<u32>, task: u32, round: u32) {
    let id = format!("{task}-{round}");
    let told = |id: &str, number: u64| say(&format!("{id} {number}"));
    let handle = guest.start(job, &id, Plan::Takes(3)).await.unwrap();
    assert!(!guest.list(20).await.unwrap().is_empty());
    for value in 1..=2 {
        told(&id, handle.send_event("part", &value).await.unwrap().number);
    }
    if round % 8 == task {
        told(SHARED, shared.send_event("part", &1).id(&id).await.unwrap().number);
        told(SHARED, shared.pause().await.unwrap().number);
        told(SHARED, shared.resume().await.unwrap().number);
    }
    match round % 4 {
        0 => told(&id, handle.cancel().await.unwrap().number),
        // It may be over before the cancel arrives.
        1 => {
            told(&id, handle.send_event("part", &3).await.unwrap().number);
            match handle.cancel().await {
                Ok(answer) => told(&id, answer.number),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Refused, "{error}"),
            }
        }
        2 => {
            told(&id, handle.pause().await.unwrap().number);
            told(&id, handle.resume().await.unwrap().number);
            told(&id, handle.send_event("part", &3).await.unwrap().number);
            assert_eq!(handle.result().await.unwrap(), 6);
        }
        _ => {
            told(&id, handle.send_event("part", &3).await.unwrap().number);
            assert_eq!(handle.result().await.unwrap(), 6);
        }
    }
}

/// The inbox rows that stand in a journal, each as what has become of it.
fn copied(rows: &[Row]) -> BTreeSet<u64> {
    let mut copied = BTreeSet::new();
    for event in rows.iter().flat_map(|row| &row.events) {
        let number = match event {
            Event::EventReceived(event) => event.inbox,
            Event::CancelRequested(event) => event.inbox,
            Event::PauseRequested(event) => event.inbox,
            Event::Resumed(event) => event.inbox,
            Event::VerbRefused(event) => event.inbox,
            _ => continue,
        };
        assert!(copied.insert(number), "row {number} was copied twice");
    }
    copied
}

// The parent reads what the child says on this thread, while its engine works on others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t16_p1_what_a_busy_guest_was_told_is_in_the_journals_and_nobody_finds_the_store_locked() {
    let folder = Folder::new();
    let app = Backstitch::open(folder.url()).state(folder.place()).register(job);
    let app = app.run().await.unwrap();
    let shared = app.start(job, SHARED, Plan::Takes(1_000_000)).await.unwrap();
    let mut guest = Other::busy_guest(&folder);
    let mut told: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    let mut is_done = false;
    while let Some(word) = guest.next_word() {
        // A store that was found locked is reported for a quarter of a second at least.
        assert!(app.trouble().is_none(), "{:?}", app.trouble());
        match word.split_once(' ') {
            Some((id, number)) => {
                let number = number.parse().unwrap();
                assert!(told.entry(id.to_owned()).or_default().insert(number), "{word} twice");
            }
            None => is_done |= word == "done",
        }
    }
    assert!(is_done, "the guest had trouble");
    guest.stop();
    assert!(told.len() > 20 && told[SHARED].len() > 6, "the guest had hardly begun");
    until(&shared, Status::Suspended).await;
    shared.cancel().await.unwrap();
    for (id, numbers) in told {
        let handle = app.handle::<u32>(&id).await.unwrap();
        let closed = handle.closed().await.unwrap();
        assert!(matches!(closed, Status::Succeeded | Status::Cancelled), "{id}: {closed:?}");
        let copied = copied(&handle.journal().await.unwrap());
        let lost: Vec<_> = numbers.difference(&copied).collect();
        assert!(lost.is_empty(), "{id}: {lost:?} were acknowledged and are not in the journal");
        checked(&handle).await;
    }
    app.shutdown().await.unwrap();
}
