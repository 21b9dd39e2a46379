//! Copying a store while it is worked on.

mod fixture;

use std::fs;

use backstitch_store::sqlite::{backup, give_up_backup};
use backstitch_store::{ErrorKind, RunNo, Store};
use fixture::{Folder, append, assert_appended, connect, open, rows, start};

#[tokio::test]
async fn p1_a_copy_holds_all_that_was_acknowledged_and_is_a_store() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    assert_appended(append(&owner, run, 2).await);
    let copy = folder.path().join("copy.db");
    let bytes = backup(folder.db(), &copy).unwrap();
    assert_eq!(bytes, fs::metadata(&copy).unwrap().len());
    assert!(!folder.path().join("copy.db-wal").exists(), "the copy is one file");

    // What comes later is not in it, and neither of the two knows of the other.
    assert_appended(append(&owner, run, 3).await);
    let guest = connect(&copy);
    assert_eq!(rows(&guest, run).await, 2);
    guest.close().await.unwrap();
    let restored = open(&copy);
    assert_eq!(restored.fence(), owner.fence() + 1);
    assert_eq!(restored.open_runs(RunNo(0), 10).await.unwrap()[0].run, run);
    assert_appended(append(&restored, run, 3).await);
    assert_appended(append(&restored, run, 4).await);
    assert_eq!((rows(&owner, run).await, rows(&restored, run).await), (3, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_made_while_the_owner_writes_has_whole_changes() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    for copy in 0..5_u64 {
        let (from, to) = (folder.db(), folder.path().join(format!("copy-{copy}.db")));
        let acknowledged = rows(&owner, run).await as u64;
        let copying = tokio::task::spawn_blocking(move || backup(from, to));
        let mut seq = acknowledged;
        while !copying.is_finished() {
            seq += 1;
            assert_appended(append(&owner, run, seq).await);
        }
        copying.await.unwrap().unwrap();
        let guest = connect(&folder.path().join(format!("copy-{copy}.db")));
        let copied = rows(&guest, run).await as u64;
        assert!((acknowledged..=seq).contains(&copied), "{acknowledged} {copied} {seq}");
        guest.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_copy_takes_no_name_that_is_taken_and_leaves_nothing_half_done() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    start(&owner, 1).await;
    let kept = folder.path().join("kept");
    fs::write(&kept, "mine").unwrap();
    let refused = backup(folder.db(), &kept).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Rejected);
    assert!(refused.to_string().contains("already; name one that is not there"), "{refused}");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "mine");
    let itself = backup(folder.db(), folder.db()).unwrap_err();
    assert!(itself.to_string().contains("already"), "{itself}");

    let foreign = backup(&kept, folder.path().join("copy.db")).unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::NotAStore, "{foreign}");
    let missing = backup(folder.path().join("none.db"), folder.path().join("copy.db")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Unavailable, "{missing}");
    let nowhere = backup(folder.db(), folder.path().join("none/copy.db")).unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::Unavailable, "{nowhere}");
    let named =
        format!("the copy {} cannot be written", folder.path().join("none/copy.db").display());
    assert!(nowhere.to_string().contains(&named), "{nowhere}");
    let names = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().contains("copy")).collect();
    assert_eq!(left, Vec::<std::ffi::OsString>::new());
}

#[cfg(unix)]
#[tokio::test]
async fn what_a_dead_process_has_left_of_a_copy_is_taken_away_by_the_next_one() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    start(&owner, 1).await;
    let ours = format!("copy.db.{}.part", std::process::id());
    let left = ["copy.db.7.part", "copy.db.7.part-journal", &ours];
    let kept = ["copy.db.8.part", "copy.db.x.part", "other.db.7.part"];
    for name in left.iter().chain(&kept) {
        fs::write(folder.path().join(name), "half").unwrap();
    }
    let held = fs::File::open(folder.path().join("copy.db.8.part")).unwrap();
    held.lock().unwrap();
    let copy = folder.path().join("copy.db");
    backup(folder.db(), &copy).unwrap();
    let is_there = |name: &&str| folder.path().join(name).exists();
    assert!(!left.iter().any(is_there) && kept.iter().all(is_there));

    fs::write(folder.path().join(&ours), "half").unwrap();
    give_up_backup(&copy);
    assert!(!is_there(&&*ours) && kept.iter().all(is_there) && copy.exists());
}
