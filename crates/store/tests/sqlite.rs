//! The SQLite store passes the suite.

mod fixture;

use std::fs::File;
use std::sync::Arc;

use backstitch_store::conformance::Subject;
use backstitch_store::sqlite::{SqliteOptions, SqliteStore};
use backstitch_store::{NowUs, Store};
use fixture::Folder;

struct Sqlite(Folder);

impl Subject for Sqlite {
    fn open(&self, now: NowUs) -> Arc<dyn Store> {
        // A store that was dropped gives its lock up when it has written everything.
        if let Ok(lock) = File::open(self.0.path().join("store.db.lock")) {
            lock.lock().expect("can be locked");
        }
        let options = SqliteOptions { now, ..SqliteOptions::default() };
        Arc::new(SqliteStore::open(self.0.db(), options).expect("opens"))
    }

    fn take_over(&self, now: NowUs) -> Arc<dyn Store> {
        // Nothing else lets two processes own one file: somebody has taken the lock away.
        std::fs::remove_file(self.0.path().join("store.db.lock")).expect("was there");
        let options = SqliteOptions { now, ..SqliteOptions::default() };
        Arc::new(SqliteStore::open(self.0.db(), options).expect("opens"))
    }

    fn another(&self) -> Box<dyn Subject> {
        Box::new(Sqlite(Folder::new()))
    }
}

backstitch_store::conformance_tests!(Sqlite(Folder::new()));
