//! A second owner of a file whose lock was taken away, while the first one is in the middle of
//! something (P4).

mod fixture;

use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use backstitch_core::inbox::InboxKind;
use backstitch_store::conformance::Whole;
use backstitch_store::conformance::changes::new_put;
use backstitch_store::conformance::marks::{marked_append, marked_closing, marked_start};
use backstitch_store::sqlite::{Disk, DiskPoint, SqliteOptions, SqliteStore, Testing};
use backstitch_store::{Answer, Call, Change, ErrorKind, Refusal, RunNo, Store};
use fixture::{Folder, assert_appended, assert_error, assert_refused, open};

fn take_over(db: &Path) -> SqliteStore {
    let mut lock = db.as_os_str().to_owned();
    lock.push(".lock");
    std::fs::remove_file(lock).expect("was there");
    open(db)
}

/// An open run, a closed one, and one that is called.
async fn used(store: &dyn Store) -> [RunNo; 3] {
    let mut runs = [RunNo(0); 3];
    for (number, run) in (1..).zip(&mut runs) {
        let fence = if number == 3 { 0 } else { store.fence() };
        let answer = store.commit(marked_start(fence, number).into()).await.unwrap();
        let Answer::Started { run: started, .. } = answer else { panic!("{answer:?}") };
        *run = started;
    }
    assert_appended(store.commit(marked_closing(store.fence(), runs[1], 2).into()).await);
    runs
}

/// A change of each kind.
fn of_each_kind(fence: u64, [open, closed, called]: [RunNo; 3]) -> [Change; 8] {
    [
        marked_append(fence, open, 2).into(),
        new_put(open, InboxKind::Cancel, "cancel").into(),
        new_put(closed, InboxKind::Rollback, "rollback").into(),
        marked_start(fence, 8).into(),
        marked_start(0, 9).into(),
        Change::Heard(vec![Call { run: called, times: 1 }]),
        Change::Delete(closed),
        Change::Purge { rows: 10 },
    ]
}

#[tokio::test]
async fn p4_what_waits_for_its_commit_at_the_takeover_is_refused() {
    let folder = Folder::new();
    // Holds the older owner up after a sync, until a batch has gathered behind it.
    let (arrive, arrived) = channel();
    let (open_gate, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let after_sync = Arc::new(move |rows: &[backstitch_store::CommittedRow]| {
        if rows.iter().any(|row| row.run == RunNo(4)) {
            let _ = arrive.send(());
            let _ = gate.lock().unwrap().recv();
        }
    });
    let options = SqliteOptions { after_sync: Some(after_sync), ..Default::default() };
    let older = SqliteStore::open(folder.db(), options).unwrap();
    let runs = used(&older).await;
    let held = older.commit(marked_start(older.fence(), 4).into());
    arrived.recv().unwrap();
    let offered = of_each_kind(older.fence(), runs).map(|change| older.commit(change));

    let newest = take_over(&folder.db());
    let before = Whole::read(&newest).await;
    assert!(before.run(RunNo(4)).is_some(), "what was synced is there, though nobody was told");
    drop(open_gate);
    assert!(matches!(held.await, Ok(Answer::Started { .. })));
    for answer in offered {
        assert_refused(answer.await, Refusal::Fenced { newest: newest.fence() });
    }
    assert_eq!(Whole::read(&newest).await, before);
    for change in of_each_kind(newest.fence(), runs) {
        let answer = newest.commit(change.clone()).await.unwrap();
        // The closed run was sent something that nobody has heard.
        let is_called = matches!(change, Change::Delete(_));
        assert_eq!(answer == Answer::Refused(Refusal::Called), is_called, "{answer:?}");
    }
}

/// An owner whose next commit fails at `point`, and which is taken over before it has opened the file
/// again.
fn interrupted(folder: &Folder, point: DiskPoint) -> (SqliteStore, Interruption) {
    let interruption = Interruption::default();
    let (state, db) = (interruption.clone(), folder.db());
    let disk = move |at| {
        let mut state = state.0.lock().unwrap();
        match (&*state, at) {
            (State::Armed, at) if at == point => {
                *state = State::Failed;
                Disk::Fails
            }
            (State::Failed, DiskPoint::Reopen) => {
                *state = State::TakenOver(Some(take_over(&db)));
                Disk::Sound
            }
            _ => Disk::Sound,
        }
    };
    let testing = Testing { disk: Some(Arc::new(disk)), ..Default::default() };
    let options = SqliteOptions { testing, ..Default::default() };
    (SqliteStore::open(folder.db(), options).unwrap(), interruption)
}

#[derive(Clone, Default)]
struct Interruption(Arc<Mutex<State>>);

#[derive(Default)]
enum State {
    #[default]
    Quiet,
    Armed,
    Failed,
    TakenOver(Option<SqliteStore>),
}

impl Interruption {
    fn arm(&self) {
        *self.0.lock().unwrap() = State::Armed;
    }

    fn newest(&self) -> SqliteStore {
        match &mut *self.0.lock().unwrap() {
            State::TakenOver(store) => store.take().expect("is asked for once"),
            State::Quiet | State::Armed | State::Failed => panic!("nobody has taken it over"),
        }
    }
}

#[tokio::test]
async fn p4_a_commit_of_unknown_outcome_is_answered_as_the_newest_owner_found_it() {
    for place in 0..8 {
        let folder = Folder::new();
        let (older, interruption) = interrupted(&folder, DiskPoint::BeforeCommit);
        let runs = used(&older).await;
        let before = Whole::read(&older).await;
        let change = of_each_kind(older.fence(), runs)[place].clone();
        interruption.arm();
        assert_error(older.commit(change.clone()).await, ErrorKind::Unavailable);
        let newest = interruption.newest();
        let fenced = Refusal::Fenced { newest: newest.fence() };
        assert_refused(older.commit(change.clone()).await, fenced);
        assert_eq!(Whole::read(&newest).await, before, "{change:?}");

        let folder = Folder::new();
        let (older, interruption) = interrupted(&folder, DiskPoint::AfterCommit);
        let runs = used(&older).await;
        let before = Whole::read(&older).await;
        let change = of_each_kind(older.fence(), runs)[place].clone();
        interruption.arm();
        let answer = older.commit(change.clone()).await;
        let newest = interruption.newest();
        let after = Whole::read(&newest).await;
        match change {
            // It leaves no trace, and nobody can tell.
            Change::Purge { .. } => assert_error(answer, ErrorKind::Unavailable).clear(),
            _ => {
                assert!(!matches!(answer, Ok(Answer::Refused(_)) | Err(_)), "{answer:?}");
                assert_ne!(after, before, "{change:?}");
            }
        }
        assert_refused(
            older.commit(marked_append(older.fence(), runs[0], 3).into()).await,
            Refusal::Fenced { newest: newest.fence() },
        );
        assert_eq!(Whole::read(&newest).await, after);
    }
}
