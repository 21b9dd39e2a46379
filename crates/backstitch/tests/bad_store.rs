//! Stores that cannot be used, and stores that fail under the work: a clear error that names the
//! thing and the way out, and nothing lost.

mod world;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use backstitch::engine::{Clock, ManualClock};
use backstitch::store::NowUs;
use backstitch::store::sqlite::{Disk, SqliteOptions, SqliteStore, Testing};
use backstitch::{App, Backstitch, Ctx, Error, ErrorKind, Handle, Result, Status, workflow};
use world::{EPOCH_US, Effects, eventually, until};

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("backstitch-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("work.db")
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.file().display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[workflow]
async fn nap(ctx: Ctx, name: String) -> Result<String> {
    let step = ctx.step("note", async move |s| {
        s.state::<Effects>().add("note");
        Ok(name)
    });
    let name = step.await?;
    ctx.sleep("1h").await?;
    Ok(name)
}

async fn open(folder: &Folder, clock: &ManualClock) -> Result<App, Error> {
    let builder = Backstitch::open(folder.url()).clock(Arc::new(clock.clone()));
    builder.state(Effects::default()).register(nap).run().await
}

/// The store and the engine go by one clock.
fn now_of(clock: &ManualClock) -> NowUs {
    let clock = clock.clone();
    Arc::new(move || clock.now_us())
}

async fn error_of(folder: &Folder) -> Error {
    let opened = open(folder, &ManualClock::new(EPOCH_US)).await;
    opened.err().expect("such a store is refused")
}

fn assert_names(error: &Error, kind: ErrorKind, parts: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part:?} is missing in: {error}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    let folder = Folder::new("no-database");
    std::fs::write(folder.file(), "a shopping list, of some length ".repeat(64)).unwrap();
    assert_names(&error_of(&folder).await, ErrorKind::NotAStore, &["work.db"]);
    assert!(std::fs::read_to_string(folder.file()).unwrap().starts_with("a shopping list"));
}

#[tokio::test]
async fn a_database_of_somebody_else_is_refused_and_left_as_it_is() {
    let folder = Folder::new("other-database");
    let other = rusqlite::Connection::open(folder.file()).unwrap();
    other.execute_batch("CREATE TABLE cats (name TEXT)").unwrap();
    drop(other);
    assert_names(&error_of(&folder).await, ErrorKind::NotAStore, &["work.db"]);
}

#[tokio::test]
async fn t15_a_database_of_a_newer_version_is_refused() {
    let folder = Folder::new("newer");
    open(&folder, &ManualClock::new(EPOCH_US)).await.unwrap().shutdown().await.unwrap();
    let newer = rusqlite::Connection::open(folder.file()).unwrap();
    newer.execute_batch("INSERT INTO migrations VALUES (99, 0)").unwrap();
    drop(newer);
    assert_names(&error_of(&folder).await, ErrorKind::StoreTooNew, &["work.db", "99"]);
}

#[tokio::test]
async fn t16_a_second_owner_of_one_file_is_refused_and_the_first_works_on() {
    let folder = Folder::new("second");
    let clock = ManualClock::new(EPOCH_US);
    let first = open(&folder, &clock).await.unwrap();
    let pid = std::process::id().to_string();
    assert_names(&error_of(&folder).await, ErrorKind::StoreInUse, &["work.db", &pid]);
    let handle = first.start(nap, "a", "Ada".into()).await.unwrap();
    until(&handle, Status::Suspended).await;
    clock.advance(Duration::from_secs(3600));
    assert_eq!(handle.result().await.unwrap(), "Ada");
    first.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_folder_that_is_not_there_or_takes_no_files_is_named() {
    for url in ["sqlite:/no/such/folder/work.db", "sqlite:/proc/work.db"] {
        let opened = Backstitch::open(url).run().await;
        let error = opened.err().expect("there is no such place");
        assert_names(&error, ErrorKind::Unavailable, &[url.strip_prefix("sqlite:").unwrap()]);
    }
}

#[tokio::test]
async fn a_url_that_names_no_store_is_refused() {
    for (url, says) in [
        ("postgres://somewhere", "sqlite:PATH"),
        ("127.0.0.1:7070", "http://HOST:PORT"),
        ("https://backstitch.example", "TLS"),
    ] {
        let opened = Backstitch::open(url).run().await;
        let error = opened.err().expect("not yet");
        assert_names(&error, ErrorKind::Invalid, &[url, says]);
        let connected = Backstitch::connect(url).await;
        assert_names(&connected.err().expect("not yet"), ErrorKind::Invalid, &[url, says]);
    }
}

/// Damages the journal of one execution, and gives both back, opened again.
async fn with_a_damaged_row(folder: &Folder, clock: &ManualClock) -> (App, Handle<String>) {
    let app = open(folder, clock).await.unwrap();
    for id in ["bad", "good"] {
        let handle = app.start(nap, id, id.into()).await.unwrap();
        until(&handle, Status::Suspended).await;
    }
    app.shutdown().await.unwrap();
    let damaged = rusqlite::Connection::open(folder.file()).unwrap();
    let flip = "UPDATE journal SET row = CAST(row || x'00' AS BLOB) \
                WHERE place = (SELECT min(place) + 1 FROM journal)";
    assert_eq!(damaged.execute(flip, ()).unwrap(), 1);
    drop(damaged);
    let app = open(folder, clock).await.unwrap();
    let bad = app.handle("bad").await.unwrap();
    (app, bad)
}

#[tokio::test]
async fn w35_a_row_that_fails_its_checksum_is_named_and_all_others_go_on() {
    let folder = Folder::new("checksum");
    let clock = ManualClock::new(EPOCH_US);
    let (app, bad) = with_a_damaged_row(&folder, &clock).await;
    let error = bad.status().await.expect_err("its journal cannot be read");
    assert_names(&error, ErrorKind::Unreadable, &["\"bad\"", "row 2", "checksum", "backup"]);
    let good: Handle<String> = app.handle("good").await.unwrap();
    clock.advance(Duration::from_secs(3600));
    assert_eq!(good.result().await.unwrap(), "good");
    assert_eq!(bad.result().await.expect_err("unreadable").kind(), ErrorKind::Unreadable);
    let attention = app.attention(10).await.unwrap();
    assert_eq!(attention.len(), 1);
    assert_eq!(attention[0].kind, "unreadable");
    app.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_damaged_page_is_an_error_that_names_the_file_not_a_wrong_answer() {
    let folder = Folder::new("page");
    let clock = ManualClock::new(EPOCH_US);
    let app = open(&folder, &clock).await.unwrap();
    for n in 0..200 {
        app.start(nap, format!("n-{n}"), "x".repeat(500)).await.unwrap();
    }
    app.shutdown().await.unwrap();
    let mut bytes = std::fs::read(folder.file()).unwrap();
    let page = 4096;
    for start in (page..bytes.len() - page).step_by(page) {
        bytes[start..start + 64].fill(0xEE);
    }
    std::fs::write(folder.file(), bytes).unwrap();
    assert_names(&error_of(&folder).await, ErrorKind::Corrupt, &["work.db", "backup"]);
}

#[tokio::test]
async fn b66_t3_a_full_disk_ends_nothing_and_the_work_goes_on_when_there_is_room() {
    let folder = Folder::new("full");
    let clock = ManualClock::new(EPOCH_US);
    let pages = Arc::new(AtomicU32::new(u32::MAX - 1));
    let testing = Testing { pages_max: Some(pages.clone()), ..Testing::default() };
    let options = SqliteOptions { now: now_of(&clock), testing, ..SqliteOptions::default() };
    let store = SqliteStore::open(folder.file(), options).unwrap();
    let effects = Effects::default();
    let app = Backstitch::on(Arc::new(store))
        .clock(Arc::new(clock.clone()))
        .state(effects.clone())
        .register(nap)
        .run()
        .await
        .unwrap();
    let first = app.start(nap, "first", "Ada".into()).await.unwrap();
    until(&first, Status::Suspended).await;

    pages.store(1, Ordering::SeqCst);
    let mut n = 0;
    let refused = loop {
        n += 1;
        match app.start(nap, format!("more-{n}"), "x".repeat(20_000)).await {
            Ok(_) => assert!(n < 100, "the disk never gets full"),
            Err(error) => break error,
        }
    };
    assert_names(&refused, ErrorKind::Unavailable, &["work.db"]);
    clock.advance(Duration::from_secs(3600));

    pages.store(u32::MAX - 1, Ordering::SeqCst);
    assert_eq!(result_while_retrying(&first, &clock).await, "Ada");
    assert!(app.trouble().is_none(), "the trouble is over");
    let again = app.start(nap, format!("more-{n}"), "x".repeat(20_000)).await.unwrap();
    assert!(again.created(), "what was refused was not half done");
    app.shutdown().await.unwrap();
}

/// The result, with the clock moved on so that changes are offered again.
async fn result_while_retrying(handle: &Handle<String>, clock: &ManualClock) -> String {
    let result = handle.result();
    tokio::pin!(result);
    loop {
        tokio::select! {
            biased;
            result = &mut result => return result.unwrap(),
            () = tokio::task::yield_now() => clock.advance(Duration::from_millis(250)),
        }
    }
}

#[tokio::test]
async fn p1_t3_a_disk_whose_commits_fail_is_reported_and_nothing_is_lost_or_doubled() {
    let folder = Folder::new("failing");
    let clock = ManualClock::new(EPOCH_US);
    let sound = Arc::new(AtomicBool::new(true));
    let disk = {
        let sound = sound.clone();
        move |_| if sound.load(Ordering::SeqCst) { Disk::Sound } else { Disk::Fails }
    };
    let testing = Testing { disk: Some(Arc::new(disk)), ..Testing::default() };
    let options = SqliteOptions { now: now_of(&clock), testing, ..SqliteOptions::default() };
    let store = SqliteStore::open(folder.file(), options).unwrap();
    let effects = Effects::default();
    let builder = Backstitch::on(Arc::new(store)).clock(Arc::new(clock.clone()));
    let app = builder.state(effects.clone()).register(nap).run().await.unwrap();
    let first = app.start(nap, "first", "Ada".into()).await.unwrap();
    until(&first, Status::Suspended).await;

    sound.store(false, Ordering::SeqCst);
    let refused = app.start(nap, "second", "Bob".into()).await.err().expect("the disk fails");
    assert_names(&refused, ErrorKind::Unavailable, &["work.db"]);
    clock.advance(Duration::from_secs(3600));
    eventually("readiness says so", async || app.trouble().is_some()).await;

    sound.store(true, Ordering::SeqCst);
    assert_eq!(result_while_retrying(&first, &clock).await, "Ada");
    assert!(app.trouble().is_none(), "the trouble is over");
    let second = app.start(nap, "second", "Bob".into()).await.unwrap();
    until(&second, Status::Suspended).await;
    assert_eq!(effects.count("note"), 2);
    app.shutdown().await.unwrap();
}

#[tokio::test]
async fn p1_a_file_that_is_deleted_under_the_work_acknowledges_nothing_more() {
    let folder = Folder::new("deleted");
    let app = open(&folder, &ManualClock::new(EPOCH_US)).await.unwrap();
    app.start(nap, "a", "Ada".into()).await.unwrap();
    std::fs::remove_file(folder.file()).unwrap();
    let refused = app.start(nap, "b", "Bob".into()).await.err().expect("it would be lost");
    assert_names(&refused, ErrorKind::Unavailable, &["work.db", "deleted"]);
    assert!(!folder.file().exists(), "no empty file was put in its place");
}

#[tokio::test]
async fn p4_t2_an_owner_whose_lock_was_taken_away_writes_nothing_once_another_one_came() {
    let folder = Folder::new("fenced");
    let clock = ManualClock::new(EPOCH_US);
    let first = open(&folder, &clock).await.unwrap();
    let handle = first.start(nap, "a", "Ada".into()).await.unwrap();
    until(&handle, Status::Suspended).await;
    std::fs::remove_file(folder.0.join("work.db.lock")).unwrap();
    let second = open(&folder, &clock).await.unwrap();
    let refused = first.start(nap, "b", "Bob".into()).await.err().expect("it is fenced");
    assert_names(&refused, ErrorKind::StoreInUse, &["taken this store over"]);
    assert_names(&handle.cancel().await.unwrap_err(), ErrorKind::StoreInUse, &["taken this"]);
    assert_eq!(first.trouble().expect("it is told").kind(), ErrorKind::StoreInUse);
    clock.advance(Duration::from_secs(3600));
    let taken_over: Handle<String> = second.handle("a").await.unwrap();
    assert_eq!(taken_over.result().await.unwrap(), "Ada");
    second.shutdown().await.unwrap();
}
