//! A guest beside the owner of a file: what each sees of the other, and what a guest may do.

mod fixture;

use std::sync::Arc;

use backstitch_core::inbox::InboxKind;
use backstitch_core::status::Status;
use backstitch_store::conformance::changes::draft;
use backstitch_store::sqlite::{SqliteOptions, SqliteStore};
use backstitch_store::{
    Answer, Append, Change, ExecutionUpdate, Expects, InboxPut, Refusal, RunNo, Start, Store,
};
use fixture::{
    Folder, append, assert_accepted, assert_appended, assert_refused, calls, connect, new_append,
    new_closing, new_put, new_start, open, rows, start,
};

#[tokio::test]
async fn what_a_guest_puts_appears_to_the_owner_with_news() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    let guest = connect(&folder.db());
    assert_eq!(guest.fence(), 0);
    let mut news = owner.news();
    for number in 1..=3 {
        let put = new_put(run, &format!("request-{number}"));
        assert_eq!(assert_accepted(guest.commit(put.into()).await), number);
        // Nobody asks the owner for anything meanwhile.
        news.changed().await.unwrap();
        assert_eq!(calls(&owner).await, [(run, number)]);
        assert_eq!(owner.inbox(run, 0, 10).await.unwrap().len() as u64, number);
    }
    let heard = owner.calls(RunNo(0), 10).await.unwrap();
    assert_eq!(owner.commit(Change::Heard(heard)).await.unwrap(), Answer::Heard);
    assert_eq!(calls(&guest).await, []);
    // The owner's own rows need no call while it drives the run.
    assert_eq!(assert_accepted(owner.commit(new_put(run, "own").into()).await), 4);
    assert_eq!(calls(&owner).await, []);
}

#[tokio::test]
async fn what_the_owner_commits_appears_to_the_guest_with_news() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let (guest, other) = (connect(&folder.db()), connect(&folder.db()));
    let mut news = guest.news();
    let run = start(&owner, 1).await;
    news.changed().await.unwrap();
    assert_eq!(guest.newest("default", "order-1").await.unwrap().unwrap().run, run);
    assert_appended(append(&owner, run, 2).await);
    news.changed().await.unwrap();
    assert_eq!(rows(&guest, run).await, 2);
    // Guests hear of each other as well.
    assert_accepted(other.commit(new_put(run, "request").into()).await);
    news.changed().await.unwrap();
    assert_eq!(guest.inbox(run, 0, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_owner_hears_no_news_when_it_empties_its_own_log() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    let news = owner.news();
    // 16 MiB in the log are copied into the file; a few times so many are written.
    for seq in 2..20 {
        let mut large = new_append(&owner, run, seq);
        large.draft.events = vec![7; 4 << 20].into();
        assert_appended(owner.commit(large.into()).await);
    }
    assert!(!news.has_changed().unwrap());
}

#[tokio::test]
async fn a_run_that_a_guest_begins_is_called_and_the_owner_carries_it_on() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let guest = connect(&folder.db());
    let begun = new_start(&guest, 1);
    let first = guest.commit(begun.clone().into()).await.unwrap();
    let Answer::Started { run, at_us, first: true } = first else { panic!("{first:?}") };
    let again = Answer::Started { run, at_us, first: false };
    assert_eq!(guest.commit(begun.clone().into()).await.unwrap(), again, "the same again (B96)");
    assert_eq!(owner.commit(begun.into()).await.unwrap(), again, "whoever asks");
    assert_eq!(calls(&owner).await, [(run, 1)]);
    assert_appended(append(&owner, run, 2).await);
    assert_accepted(guest.commit(new_put(run, "request").into()).await);
    assert_appended(append(&owner, run, 3).await);
    let closing = Append { read: 1, ..new_closing(&owner, run, 4) };
    assert_appended(owner.commit(closing.into()).await);
    assert_eq!(rows(&guest, run).await, 4);
}

#[tokio::test]
async fn p4_a_guest_carries_no_journal_on() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    let guest = connect(&folder.db());
    let fenced = Refusal::Fenced { newest: 1 };
    assert_refused(append(&guest, run, 2).await, fenced.clone());
    // Not even under the fence of the owner.
    assert_refused(guest.commit(new_append(&owner, run, 2).into()).await, fenced.clone());
    let start = Start { first: draft(1, 1), ..new_start(&guest, 2) };
    assert_refused(guest.commit(start.into()).await, fenced.clone());
    assert_accepted(guest.commit(new_put(run, "request").into()).await);
    let heard = Change::Heard(guest.calls(RunNo(0), 10).await.unwrap());
    assert_refused(guest.commit(heard).await, fenced.clone());
    assert_refused(guest.commit(Change::Purge { rows: 10 }).await, fenced);
    assert_eq!(calls(&owner).await, [(run, 1)]);
    assert_eq!(rows(&owner, run).await, 1);
    // What is durable is recognised all the same.
    assert_appended(append(&owner, run, 2).await);
    assert_appended(guest.commit(new_append(&owner, run, 2).into()).await);
}

#[tokio::test]
async fn a_run_that_a_guest_deletes_is_gone_for_the_owner_that_remembers_it() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    assert_appended(append(&owner, run, 2).await);
    let guest = connect(&folder.db());
    assert_refused(guest.commit(Change::Delete(run)).await, Refusal::Open);
    assert_appended(owner.commit(new_closing(&owner, run, 3).into()).await);
    assert_eq!(guest.commit(Change::Delete(run)).await.unwrap(), Answer::Deleted);

    let amendment = Append { expects: Expects::Closed, ..new_append(&owner, run, 4) };
    assert_refused(owner.commit(amendment.into()).await, Refusal::UnknownRun);
    let put = InboxPut { kind: InboxKind::Rollback, ..new_put(run, "late") };
    assert_refused(owner.commit(put.into()).await, Refusal::UnknownRun);
    let again = start(&owner, 1).await;
    assert!(again > run, "a number that was deleted is not used again");
    assert_eq!(rows(&owner, again).await, 1);
    let purged = owner.commit(Change::Purge { rows: 100 }).await.unwrap();
    assert_eq!(purged, Answer::Purged { more: false });
    assert_eq!(rows(&guest, again).await, 1);
}

#[tokio::test]
async fn a_guest_that_remembers_a_run_sees_it_close_and_open_again() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    let guest = connect(&folder.db());
    assert_accepted(guest.commit(new_put(run, "1").into()).await);
    let closing = Append { read: 1, ..new_closing(&owner, run, 2) };
    assert_appended(owner.commit(closing.into()).await);
    assert_refused(guest.commit(new_put(run, "2").into()).await, Refusal::Closed);
    let late = InboxPut { kind: InboxKind::Rollback, ..new_put(run, "3") };
    assert_eq!(assert_accepted(guest.commit(late.into()).await), 2);
    let (status, wake_at_us, expires_at_us) = (Status::RollingBack, None, None);
    let opening = Append {
        expects: Expects::Closed,
        update: Some(ExecutionUpdate { status, wake_at_us, expires_at_us }),
        ..new_append(&owner, run, 3)
    };
    assert_appended(owner.commit(opening.into()).await);
    assert_eq!(assert_accepted(guest.commit(new_put(run, "4").into()).await), 3);
}

#[tokio::test]
async fn starts_of_owner_and_guest_never_share_a_run_number() {
    let folder = Folder::new();
    let owner = Arc::new(open(&folder.db()));
    let guest = Arc::new(connect(&folder.db()));
    let mut runs = Vec::new();
    for number in 0..20 {
        let store = if number % 2 == 0 { &owner } else { &guest };
        runs.push(start(&**store, number).await);
        // The newest one goes, and its number with it.
        if number % 5 == 4 {
            let run = *runs.last().unwrap();
            let heard = Change::Heard(owner.calls(RunNo(0), 10).await.unwrap());
            owner.commit(heard).await.unwrap();
            assert_appended(owner.commit(new_closing(&*owner, run, 2).into()).await);
            assert_eq!(store.commit(Change::Delete(run)).await.unwrap(), Answer::Deleted);
        }
    }
    // And at the same time, in batches.
    let offered: Vec<_> = (100..500)
        .map(|number| {
            let store = if number % 2 == 0 { &owner } else { &guest };
            store.commit(new_start(&**store, number).into())
        })
        .collect();
    for answer in offered {
        let Answer::Started { run, .. } = answer.await.unwrap() else { panic!("not started") };
        runs.push(run);
    }
    let started = runs.len();
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs.len(), started, "a number was given out twice");
}

#[tokio::test]
async fn a_guest_works_while_nobody_owns_the_file() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    owner.close().await.unwrap();
    let guest = connect(&folder.db());
    let begun = start(&guest, 2).await;
    assert_accepted(guest.commit(new_put(run, "request").into()).await);
    // The next owner comes while the guest is there, and one more after the guest has gone.
    let owner = open(&folder.db());
    assert_eq!(owner.fence(), 2);
    assert_eq!(calls(&owner).await, [(run, 1), (begun, 1)]);
    assert_accepted(guest.commit(new_put(begun, "request").into()).await);
    guest.close().await.unwrap();
    owner.close().await.unwrap();
    let owner = open(&folder.db());
    assert_eq!(calls(&owner).await, [(run, 1), (begun, 2)]);
    assert_appended(append(&owner, begun, 2).await);
}

#[tokio::test]
async fn a_guest_that_leaves_does_not_disturb_the_owner() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    let log = folder.path().join("store.db-wal");
    for number in 1..=10 {
        let guest = connect(&folder.db());
        let put = new_put(run, &format!("request-{number}"));
        assert_eq!(assert_accepted(guest.commit(put.into()).await), number);
        let before = std::fs::metadata(&log).unwrap().len();
        match number % 2 {
            0 => guest.close().await.unwrap(),
            _ => drop(guest),
        }
        assert_appended(append(&owner, run, number + 1).await);
        let after = std::fs::metadata(&log).unwrap().len();
        assert!(after >= before, "the log of the owner was emptied");
    }
    assert_eq!(calls(&owner).await, [(run, 10)]);
    owner.close().await.unwrap();
    assert_eq!(rows(&open(&folder.db()), run).await, 11);
}

#[tokio::test]
async fn a_closed_guest_says_so() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    let guest = SqliteStore::connect(folder.db(), SqliteOptions::default()).unwrap();
    guest.close().await.unwrap();
    let refused = guest.commit(new_put(run, "request").into()).await.unwrap_err();
    assert_eq!(refused.kind(), backstitch_store::ErrorKind::Closed);
    assert_eq!(owner.run(RunNo(run.0)).await.unwrap().unwrap().run, run);
}
