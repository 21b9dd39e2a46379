//! Connecting to what is no store, or not there.

use backstitch::{Backstitch, Error, ErrorKind};

use crate::process::{Folder, Other};

async fn connect_error(url: &str) -> Error {
    Backstitch::connect(url).await.err().expect("it is refused")
}

fn assert_names(error: &Error, kind: ErrorKind, parts: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part:?} is missing in: {error}");
    }
}

#[tokio::test]
async fn a_guest_makes_no_store() {
    let folder = Folder::new();
    let error = connect_error(&folder.url()).await;
    let way_out = "start the process that owns the store";
    assert_names(&error, ErrorKind::Unavailable, &["work.db", way_out]);
    assert!(!folder.file().exists());
    let error = connect_error("sqlite:/no/such/folder/work.db").await;
    assert_names(&error, ErrorKind::Unavailable, &["/no/such/folder/work.db", way_out]);
    std::fs::write(folder.file(), "").unwrap();
    let error = connect_error(&folder.url()).await;
    assert_names(&error, ErrorKind::Unavailable, &["is empty"]);
}

#[tokio::test]
async fn a_guest_leaves_alone_what_is_no_store() {
    let folder = Folder::new();
    let error = connect_error(&format!("sqlite:{}", folder.path().display())).await;
    assert_names(&error, ErrorKind::NotAStore, &["name a file in it"]);
    let text = "a shopping list, of some length ".repeat(64);
    std::fs::write(folder.file(), &text).unwrap();
    let error = connect_error(&folder.url()).await;
    assert_names(&error, ErrorKind::NotAStore, &["work.db", "not a SQLite database"]);
    assert_eq!(std::fs::read_to_string(folder.file()).unwrap(), text);
    std::fs::remove_file(folder.file()).unwrap();
    let other = rusqlite::Connection::open(folder.file()).unwrap();
    other.execute_batch("CREATE TABLE cats (name TEXT)").unwrap();
    drop(other);
    let error = connect_error(&folder.url()).await;
    assert_names(&error, ErrorKind::NotAStore, &["work.db", "another program"]);
}

#[tokio::test]
async fn nobody_connects_to_a_store_in_memory() {
    let error = connect_error("memory:").await;
    assert_names(
        &error,
        ErrorKind::Invalid,
        &["\"memory:\"", "sqlite:PATH", "the process that opened it"],
    );
    for url in ["sqlite:", "sqlite::memory:"] {
        assert_names(&connect_error(url).await, ErrorKind::NotAStore, &[]);
    }
    let error = connect_error("postgres://somewhere").await;
    assert_names(&error, ErrorKind::Invalid, &["postgres://somewhere", "sqlite:PATH"]);
}

#[tokio::test]
async fn a_guest_of_a_newer_or_damaged_store_is_told_so() {
    let folder = Folder::new();
    Other::owner(&folder).stop();
    let newer = rusqlite::Connection::open(folder.file()).unwrap();
    newer.execute_batch("INSERT INTO migrations VALUES (99, 0)").unwrap();
    drop(newer);
    let error = connect_error(&folder.url()).await;
    assert_names(&error, ErrorKind::StoreTooNew, &["work.db", "99"]);
}
