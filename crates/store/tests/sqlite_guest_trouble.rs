//! Commits of unknown outcome in a file that several write to, and waiting for a turn.

mod fixture;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use backstitch_core::inbox::InboxKind;
use backstitch_store::sqlite::{Disk, DiskPoint, SqliteOptions, SqliteStore, Testing};
use backstitch_store::{Answer, Call, Change, ErrorKind, InboxPut, Refusal, RunNo, Store};
use fixture::{
    Folder, append, assert_accepted, assert_appended, assert_error, assert_refused, calls, connect,
    new_append, new_closing, new_put, new_start, open, rows, start,
};
use rusqlite::Connection;

/// Fails once at a point, when it is told to.
#[derive(Clone, Default)]
struct Script(Arc<Mutex<Option<DiskPoint>>>);

impl Script {
    fn fail_next(&self, point: DiskPoint) {
        *self.0.lock().unwrap() = Some(point);
    }

    fn options(&self) -> SqliteOptions {
        let script = self.clone();
        let disk = move |point| match script.0.lock().unwrap().take_if(|next| *next == point) {
            Some(_) => Disk::Fails,
            None => Disk::Sound,
        };
        let testing = Testing { disk: Some(Arc::new(disk)), ..Default::default() };
        SqliteOptions { testing, ..Default::default() }
    }
}

#[tokio::test]
async fn p1_a_guests_failed_commit_that_was_applied_gets_its_normal_answer() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    let closed = start(&owner, 2).await;
    assert_appended(owner.commit(new_closing(&owner, closed, 2).into()).await);
    let script = Script::default();
    let guest = SqliteStore::connect(folder.db(), script.options()).unwrap();

    script.fail_next(DiskPoint::AfterCommit);
    assert_eq!(assert_accepted(guest.commit(new_put(run, "request").into()).await), 1);
    assert_appended(append(&owner, run, 2).await);
    script.fail_next(DiskPoint::AfterCommit);
    let begun = start(&guest, 3).await;
    script.fail_next(DiskPoint::AfterCommit);
    assert_eq!(guest.commit(Change::Delete(closed)).await.unwrap(), Answer::Deleted);

    assert_eq!(calls(&owner).await, [(run, 1), (begun, 1)]);
    assert_eq!(owner.run(closed).await.unwrap(), None);
    assert_appended(append(&owner, begun, 2).await);
    assert_eq!(assert_accepted(guest.commit(new_put(run, "next").into()).await), 2);
}

#[tokio::test]
async fn p1_a_guests_failed_commit_that_was_not_applied_can_be_offered_again() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    let closed = start(&owner, 2).await;
    assert_appended(owner.commit(new_closing(&owner, closed, 2).into()).await);
    let script = Script::default();
    let guest = SqliteStore::connect(folder.db(), script.options()).unwrap();
    let changes: [Change; 3] =
        [new_put(run, "request").into(), new_start(&guest, 3).into(), Change::Delete(closed)];
    for change in &changes {
        script.fail_next(DiskPoint::BeforeCommit);
        let message = assert_error(guest.commit(change.clone()).await, ErrorKind::Unavailable);
        assert!(message.contains("nothing was applied"), "{message}");
    }
    assert_eq!(calls(&owner).await, []);
    assert_eq!(owner.newest("default", "order-3").await.unwrap(), None);
    assert!(owner.run(closed).await.unwrap().is_some());
    assert_appended(append(&owner, run, 2).await);
    for change in changes {
        let answer = guest.commit(change).await.unwrap();
        assert!(!matches!(answer, Answer::Refused(_)), "{answer:?}");
    }
}

#[tokio::test]
async fn p1_what_leaves_no_trace_of_its_own_is_answered_as_the_file_stands() {
    let folder = Folder::new();
    let script = Script::default();
    let owner = SqliteStore::open(folder.db(), script.options()).unwrap();
    let guest = connect(&folder.db());
    let run = start(&guest, 1).await;
    let heard = || Change::Heard(vec![Call { run, times: 1 }]);
    script.fail_next(DiskPoint::BeforeCommit);
    assert_error(owner.commit(heard()).await, ErrorKind::Unavailable);
    assert_eq!(calls(&owner).await, [(run, 1)]);
    script.fail_next(DiskPoint::AfterCommit);
    assert_eq!(owner.commit(heard()).await.unwrap(), Answer::Heard);
    assert_eq!(calls(&owner).await, []);

    assert_appended(owner.commit(new_closing(&owner, run, 2).into()).await);
    script.fail_next(DiskPoint::AfterCommit);
    assert_eq!(owner.commit(Change::Delete(run)).await.unwrap(), Answer::Deleted);
    assert_refused(owner.commit(Change::Delete(run)).await, Refusal::UnknownRun);
    script.fail_next(DiskPoint::AfterCommit);
    let purge = || Change::Purge { rows: 1 };
    assert_error(owner.commit(purge()).await, ErrorKind::Unavailable);
    assert_eq!(owner.commit(purge()).await.unwrap(), Answer::Purged { more: false });
}

/// A store whose disk fails before the next commit when `armed`, and lets `meanwhile` happen before
/// the file is opened again.
fn interrupted(
    folder: &Folder,
    armed: Arc<AtomicBool>,
    meanwhile: impl Fn() + Send + Sync + 'static,
) -> SqliteStore {
    let disk = move |point| match point {
        DiskPoint::BeforeCommit if armed.swap(false, Ordering::SeqCst) => Disk::Fails,
        DiskPoint::Reopen => {
            meanwhile();
            Disk::Sound
        }
        DiskPoint::BeforeCommit | DiskPoint::AfterCommit => Disk::Sound,
    };
    // A clock of its own, as another process may have.
    let testing = Testing { disk: Some(Arc::new(disk)), ..Default::default() };
    let options = SqliteOptions { now: Arc::new(|| 77), testing, ..Default::default() };
    SqliteStore::connect(folder.db(), options).unwrap()
}

#[tokio::test]
async fn p1_what_others_wrote_meanwhile_is_not_taken_for_the_lost_commit() {
    let folder = Folder::new();
    let owner = Arc::new(open(&folder.db()));
    let run = start(&*owner, 1).await;
    let armed = Arc::new(AtomicBool::new(false));
    let (other, times) = (owner.clone(), AtomicUsize::new(0));
    let guest = interrupted(&folder, armed.clone(), move || {
        // The same request by another way, and a run that takes the number.
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        match times.fetch_add(1, Ordering::SeqCst) {
            0 => drop(runtime.block_on(other.commit(new_put(run, "request").into())).unwrap()),
            _ => drop(runtime.block_on(other.commit(new_start(&*other, 8).into())).unwrap()),
        }
    });
    armed.store(true, Ordering::SeqCst);
    let lost = guest.commit(new_put(run, "request").into()).await;
    assert_error(lost, ErrorKind::Unavailable);
    let again = guest.commit(new_put(run, "request").into()).await.unwrap();
    assert!(matches!(again, Answer::Accepted { number: 1, first: false, .. }), "{again:?}");

    armed.store(true, Ordering::SeqCst);
    let lost = guest.commit(new_start(&guest, 9).into()).await;
    assert_error(lost, ErrorKind::Unavailable);
    let eighth = owner.newest("default", "order-8").await.unwrap().unwrap().run;
    assert!(start(&guest, 9).await > eighth);
}

#[tokio::test]
async fn a_guest_waits_for_its_turn() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    let guest = connect(&folder.db());
    let raw = Connection::open(folder.db()).unwrap();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting = guest.commit(new_put(run, "request").into());
    let mut owners = Vec::new();
    for seq in 2..20 {
        owners.push(owner.commit(new_append(&owner, run, seq).into()));
    }
    // Reads do not wait.
    assert_eq!(rows(&owner, run).await, 1);
    assert_eq!(rows(&guest, run).await, 1);
    raw.execute_batch("COMMIT").unwrap();
    assert_accepted(waiting.await);
    for answer in owners {
        assert_appended(answer.await);
    }
}

#[tokio::test]
async fn space_is_freed_in_small_steps_while_owner_and_guest_write() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let guest = connect(&folder.db());
    let open_run = start(&owner, 0).await;
    let mut doomed = Vec::new();
    for number in 1..=5 {
        let run = start(&owner, number).await;
        for seq in 2..=40 {
            drop(append(&owner, run, seq));
            drop(owner.commit(new_put(run, &format!("request-{seq}")).into()));
        }
        assert_appended(owner.commit(new_closing(&owner, run, 41).into()).await);
        doomed.push(run);
    }
    for run in &doomed {
        assert_eq!(guest.commit(Change::Delete(*run)).await.unwrap(), Answer::Deleted);
    }
    // 41 journal rows and 39 inbox rows each.
    let (mut steps, mut seq) = (0, 1);
    loop {
        seq += 1;
        let appended = append(&owner, open_run, seq);
        let purged = owner.commit(Change::Purge { rows: 7 });
        let put = InboxPut { kind: InboxKind::Event, ..new_put(open_run, &format!("{seq}")) };
        assert_accepted(guest.commit(put.into()).await);
        assert_appended(appended.await);
        steps += 1;
        match purged.await.unwrap() {
            Answer::Purged { more: true } => {}
            Answer::Purged { more: false } => break,
            other => panic!("not purged: {other:?}"),
        }
    }
    assert_eq!(steps, (5 * 80_u64).div_ceil(7));
    assert_eq!(rows(&owner, open_run).await as u64, seq);
    let raw = Connection::open(folder.db()).unwrap();
    let left = |sql| -> u64 { raw.query_row(sql, (), |row| row.get::<_, u32>(0)).unwrap().into() };
    assert_eq!(left("SELECT count(*) FROM journal"), seq);
    assert_eq!(left("SELECT count(*) FROM inbox"), steps);
    assert_eq!(left("SELECT count(*) FROM doomed"), 0);
    assert_eq!(owner.runs(RunNo(i64::MAX), 10).await.unwrap().len(), 1);
}
