//! An append is one insert: what it writes is counted.

mod fixture;

use std::fs;

use backstitch_store::Store;
use fixture::{Folder, append, assert_appended, open, start};

/// A frame of the write-ahead log: one page and its header.
const FRAME_BYTES: u64 = 4096 + 24;

#[tokio::test]
async fn an_append_writes_one_page_and_a_new_page_every_dozen_rows() {
    const APPENDS: u64 = 240;
    let folder = Folder::new();
    let store = open(&folder.db());
    let run = start(&store, 1).await;
    let log = folder.path().join("store.db-wal");
    let before = fs::metadata(&log).unwrap().len();
    for seq in 2..2 + APPENDS {
        assert_appended(append(&store, run, seq).await);
    }
    let pages = (fs::metadata(&log).unwrap().len() - before) / FRAME_BYTES;
    // A new page also changes the one above it and the head of the file.
    let most = APPENDS + 3 * APPENDS / 12;
    assert!(pages <= most, "{APPENDS} appends wrote {pages} pages, more than {most}");
    store.close().await.unwrap();
}
