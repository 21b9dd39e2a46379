//! What a guest needs to get in, and how schemas come to be.

mod fixture;

use std::fs;

use backstitch_core::inbox::InboxKind;
use backstitch_store::{ErrorKind, RunNo, Store};
use fixture::{
    Folder, append, assert_accepted, assert_appended, assert_error, connect, connect_error,
    new_put, open, start,
};
use rusqlite::Connection;

const FIRST: &str = include_str!("../src/sqlite/migrations/001_journals.sql");

/// A file as the first version of Backstitch has left it, with one run in it.
fn store_of_the_first_schema(folder: &Folder) {
    let raw = Connection::open(folder.db()).unwrap();
    raw.query_row("PRAGMA journal_mode = WAL", (), |_| Ok(())).unwrap();
    raw.pragma_update(None, "application_id", 0x4273_7463).unwrap();
    raw.execute_batch(FIRST).unwrap();
    raw.execute_batch(
        "CREATE TABLE migrations (number INTEGER PRIMARY KEY, checksum INTEGER NOT NULL);
         INSERT INTO executions (run_no, namespace, id, run_id, workflow, version, input_digest,
           created_at_us, status) VALUES (7, 'default', 'order-7', zeroblob(16), 'order', 'v1',
           zeroblob(32), 5, 1);
         INSERT INTO inbox (place, run_no, request_id, kind, payload, digest, accepted_at_us)
           VALUES ((7 << 28) + 1, 7, 'pause-1', 4, x'01', zeroblob(32), 6);
         UPDATE meta SET value = 3 WHERE name = 'fence';",
    )
    .unwrap();
    let checksum = crc32c::crc32c(FIRST.as_bytes());
    raw.execute("INSERT INTO migrations VALUES (1, ?1)", [checksum]).unwrap();
}

#[tokio::test]
async fn p11_a_store_of_the_first_schema_is_migrated_with_its_rows() {
    let folder = Folder::new();
    store_of_the_first_schema(&folder);
    let store = open(&folder.db());
    assert_eq!(store.fence(), 4);
    let run = RunNo(7);
    let info = store.newest("default", "order-7").await.unwrap().unwrap();
    assert_eq!((info.run, info.update.expires_at_us, info.closed_at_us), (run, None, None));
    let inbox = store.inbox(run, 0, 10).await.unwrap();
    assert_eq!(inbox.len(), 1);
    assert_eq!((inbox[0].kind, &*inbox[0].topic, inbox[0].changed), (InboxKind::Pause, "", true));
    assert_eq!(assert_accepted(store.commit(new_put(run, "request").into()).await), 2);
    assert_eq!(start(&store, 8).await, RunNo(8));
}

#[tokio::test]
async fn a_guest_waits_for_the_owner_to_migrate() {
    let folder = Folder::new();
    store_of_the_first_schema(&folder);
    let named = folder.db().display().to_string();
    let names = [&*named, "schema 1", "let the process that owns it open it"];
    connect_error(&folder.db(), ErrorKind::Unavailable, &names);
    open(&folder.db()).close().await.unwrap();
    assert_accepted(connect(&folder.db()).commit(new_put(RunNo(7), "request").into()).await);
}

#[tokio::test]
async fn a_guest_is_refused_by_a_store_of_a_newer_version() {
    let folder = Folder::new();
    open(&folder.db()).close().await.unwrap();
    let raw = Connection::open(folder.db()).unwrap();
    raw.execute("INSERT INTO migrations (number, checksum) VALUES (999, 1)", ()).unwrap();
    let named = folder.db().display().to_string();
    connect_error(&folder.db(), ErrorKind::TooNew, &[&named, "999", "the version that wrote it"]);
}

#[tokio::test]
async fn a_guest_writes_nothing_into_a_store_that_was_migrated_under_it() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    owner.close().await.unwrap();
    let guest = connect(&folder.db());
    assert_accepted(guest.commit(new_put(run, "before").into()).await);
    let raw = Connection::open(folder.db()).unwrap();
    raw.execute("INSERT INTO migrations (number, checksum) VALUES (999, 1)", ()).unwrap();
    for request in ["after", "and again"] {
        let answer = guest.commit(new_put(run, request).into()).await;
        let message = assert_error(answer, ErrorKind::TooNew);
        assert!(message.contains("999"), "{message}");
    }
    assert_eq!(guest.inbox(run, 0, 10).await.unwrap().len(), 1);
    raw.execute("DELETE FROM migrations WHERE number = 999", ()).unwrap();
    assert_accepted(guest.commit(new_put(run, "after").into()).await);
}

#[test]
fn a_guest_makes_no_file() {
    let folder = Folder::new();
    let named = folder.db().display().to_string();
    let names = [&*named, "start the process that owns the store"];
    connect_error(&folder.db(), ErrorKind::Unavailable, &names);
    connect_error(&folder.path().join("missing/store.db"), ErrorKind::Unavailable, &names[1..]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    fs::write(folder.db(), "").unwrap();
    connect_error(&folder.db(), ErrorKind::Unavailable, &[&named, "is empty", names[1]]);
    assert_eq!(fs::read(folder.db()).unwrap(), []);
}

#[test]
fn a_guest_is_told_that_a_path_names_no_store() {
    let folder = Folder::new();
    for path in ["", ":memory:", "file::memory:?cache=shared"] {
        connect_error(path.as_ref(), ErrorKind::NotAStore, &[path, "MemoryStore"]);
    }
    let named = folder.path().display().to_string();
    connect_error(folder.path(), ErrorKind::NotAStore, &[&named, "name a file in it"]);

    let text = "Not a database, but long enough to be taken for one. ".repeat(100);
    fs::write(folder.db(), &text).unwrap();
    let named = folder.db().display().to_string();
    connect_error(&folder.db(), ErrorKind::NotAStore, &[&named, "not a SQLite database"]);
    assert_eq!(fs::read_to_string(folder.db()).unwrap(), text);
}

#[test]
fn a_guest_leaves_the_database_of_another_program_alone() {
    for application_id in [0, 0x1234] {
        let folder = Folder::new();
        let other = Connection::open(folder.db()).unwrap();
        other.execute_batch("CREATE TABLE customers (name TEXT)").unwrap();
        other.pragma_update(None, "application_id", application_id).unwrap();
        drop(other);
        let before = fs::read(folder.db()).unwrap();
        let named = folder.db().display().to_string();
        connect_error(&folder.db(), ErrorKind::NotAStore, &[&named, "another program"]);
        assert_eq!(fs::read(folder.db()).unwrap(), before);
    }
}

#[tokio::test]
async fn a_guest_comes_in_by_any_name_of_the_file_and_beside_others() {
    let folder = Folder::new();
    let owner = open(&folder.db());
    let run = start(&owner, 1).await;
    let by_the_way = folder.path().join("../").join(folder.path()).join("./store.db");
    let guests = [connect(&folder.db()), connect(&by_the_way), connect(&folder.db())];
    for (number, guest) in (1..).zip(&guests) {
        let put = new_put(run, &format!("request-{number}"));
        assert_eq!(assert_accepted(guest.commit(put.into()).await), number);
    }
    assert_appended(append(&owner, run, 2).await);
}
