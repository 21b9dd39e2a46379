//! What cannot be opened is refused with a reason and a way out, and left as it was.

#![cfg(unix)]

mod fixture;

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use backstitch_store::{ErrorKind, Store};
use fixture::{Folder, open, open_error};
use rusqlite::Connection;

/// A store with a few runs, closed.
async fn closed_store(folder: &Folder) {
    let store = open(&folder.db());
    for number in 0..20 {
        fixture::start(&store, number).await;
    }
    store.close().await.unwrap();
}

#[test]
fn a_path_that_names_no_file_is_refused_with_the_name_of_the_memory_store() {
    for path in ["", ":memory:", "file::memory:?cache=shared", "file:a.db?mode=memory"] {
        open_error(Path::new(path), ErrorKind::NotAStore, &[path, "MemoryStore"]);
    }
}

#[test]
fn a_missing_folder_is_named() {
    let folder = Folder::new();
    let missing = folder.path().join("missing");
    let named = missing.display().to_string();
    open_error(&missing.join("store.db"), ErrorKind::Unavailable, &[&named, "create it"]);
    assert!(!missing.exists());
}

#[test]
fn a_folder_is_not_a_store() {
    let folder = Folder::new();
    let named = folder.path().display().to_string();
    open_error(folder.path(), ErrorKind::NotAStore, &[&named, "name a file in it"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    // Permissions do not hold the superuser back; the kernel's own folders do.
    let root = fs::write(folder.path().join("probe"), "").is_ok();
    let path = if root { Path::new("/sys/store.db").to_owned() } else { folder.db() };
    if root && !Path::new("/sys").is_dir() {
        return;
    }
    open_error(&path, ErrorKind::Unavailable, &[&path.display().to_string(), "write access"]);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let folder = Folder::new();
    let text = "Not a database, but long enough to be taken for one. ".repeat(100);
    fs::write(folder.db(), &text).unwrap();
    let named = folder.db().display().to_string();
    open_error(&folder.db(), ErrorKind::NotAStore, &[&named, "not a SQLite database"]);
    assert_eq!(fs::read_to_string(folder.db()).unwrap(), text);
}

#[test]
fn the_database_of_another_program_is_refused_and_left_alone() {
    for application_id in [0, 0x1234] {
        let folder = Folder::new();
        let other = Connection::open(folder.db()).unwrap();
        other.execute_batch("CREATE TABLE customers (name TEXT)").unwrap();
        other.pragma_update(None, "application_id", application_id).unwrap();
        drop(other);
        let before = fs::read(folder.db()).unwrap();
        let named = folder.db().display().to_string();
        open_error(&folder.db(), ErrorKind::NotAStore, &[&named, "another program"]);
        assert_eq!(fs::read(folder.db()).unwrap(), before);
    }
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let folder = Folder::new();
    fs::write(folder.db(), "").unwrap();
    closed_store(&folder).await;
    assert_eq!(open(&folder.db()).fence(), 2);
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_refused() {
    let folder = Folder::new();
    closed_store(&folder).await;
    let raw = Connection::open(folder.db()).unwrap();
    raw.execute("INSERT INTO migrations (number, checksum) VALUES (999, 1)", ()).unwrap();
    drop(raw);
    let named = folder.db().display().to_string();
    open_error(&folder.db(), ErrorKind::TooNew, &[&named, "999", "the version that wrote it"]);
}

#[tokio::test]
async fn a_store_whose_migration_has_another_checksum_is_refused() {
    let folder = Folder::new();
    closed_store(&folder).await;
    let raw = Connection::open(folder.db()).unwrap();
    raw.execute("UPDATE migrations SET checksum = checksum + 1", ()).unwrap();
    drop(raw);
    let named = folder.db().display().to_string();
    open_error(&folder.db(), ErrorKind::NotAStore, &[&named, "migration 1", "backup"]);
}

#[tokio::test]
async fn a_store_whose_first_page_is_damaged_is_corrupt() {
    let folder = Folder::new();
    closed_store(&folder).await;
    let file = fs::OpenOptions::new().write(true).open(folder.db()).unwrap();
    file.write_all_at(&[0xA5; 3_900], 108).unwrap();
    let named = folder.db().display().to_string();
    open_error(&folder.db(), ErrorKind::Corrupt, &[&named, "damaged", "backup"]);
}

#[tokio::test]
async fn a_second_handle_in_this_process_is_refused() {
    let folder = Folder::new();
    let store = open(&folder.db());
    let named = folder.db().display().to_string();
    open_error(&folder.db(), ErrorKind::InUse, &[&named, "this process itself"]);
    store.close().await.unwrap();
    open(&folder.db()).close().await.unwrap();
}

#[tokio::test]
async fn p4_another_name_of_the_same_file_is_the_same_store() {
    let folder = Folder::new();
    let other_name = folder.path().join("link.db");
    let store = open(&folder.db());
    std::os::unix::fs::symlink(folder.db(), &other_name).unwrap();
    open_error(&other_name, ErrorKind::InUse, &["store.db"]);
    open_error(
        &folder.path().join("../").join(folder.path()).join("./store.db"),
        ErrorKind::InUse,
        &[],
    );
    store.close().await.unwrap();
    assert_eq!(open(&other_name).fence(), 2);
}

#[test]
fn what_stands_in_a_stale_lock_file_does_not_matter() {
    let folder = Folder::new();
    let mut lock = fs::File::create(folder.path().join("store.db.lock")).unwrap();
    lock.write_all(b"4294967295 and some more that is longer than any process id").unwrap();
    drop(lock);
    open(&folder.db());
    let pid = fs::read_to_string(folder.path().join("store.db.lock")).unwrap();
    assert_eq!(pid, std::process::id().to_string());
}
