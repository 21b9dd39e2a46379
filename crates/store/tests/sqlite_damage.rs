//! A damaged page is a matter of the runs that stand on it.

#![cfg(unix)]

mod fixture;

use std::fs;
use std::os::unix::fs::FileExt;

use backstitch_store::{Answer, ErrorKind, Store};
use fixture::{Folder, append, assert_appended, assert_error, new_append, open, rows, start};

/// Overwrites the page that holds `row`.
fn damage_page_of(folder: &Folder, row: &[u8]) {
    const PAGE_BYTES: usize = 4096;
    let bytes = fs::read(folder.db()).unwrap();
    let place = bytes.windows(row.len()).position(|window| window == row).expect("is in the file");
    let file = fs::OpenOptions::new().write(true).open(folder.db()).unwrap();
    let page = place / PAGE_BYTES * PAGE_BYTES;
    file.write_all_at(&[0xA5; PAGE_BYTES], page as u64).unwrap();
}

#[tokio::test]
async fn a_damaged_page_is_named_and_the_other_runs_go_on() {
    const ROWS: u64 = 60;
    let folder = Folder::new();
    let store = open(&folder.db());
    let mut runs = Vec::new();
    for number in 0..3 {
        let run = start(&store, number).await;
        for seq in 2..=ROWS {
            assert_appended(append(&store, run, seq).await);
        }
        runs.push(run);
    }
    let row = store.journal(runs[1], ROWS / 2 - 1, 1).await.unwrap().remove(0);
    store.close().await.unwrap();
    damage_page_of(&folder, &row);

    let store = open(&folder.db());
    let error = store.journal(runs[1], 0, usize::MAX).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let message = error.to_string();
    assert!(message.contains(&folder.db().display().to_string()), "{message}");
    assert!(message.contains("restore a backup"), "{message}");
    assert_eq!(rows(&store, runs[0]).await, ROWS as usize);
    assert_eq!(rows(&store, runs[2]).await, ROWS as usize);

    // A repeated append has to read the damaged page. Offered in one breath with others, it is
    // the only one that fails.
    let damaged = store.commit(new_append(&store, runs[1], ROWS / 2).into());
    let others = [runs[0], runs[2]].map(|run| append(&store, run, ROWS + 1));
    let new = start(&store, 99);
    let message = assert_error(damaged.await, ErrorKind::Corrupt);
    assert!(message.contains("damaged"), "{message}");
    for other in others {
        assert_appended(other.await);
    }
    let new = new.await;
    let appended = append(&store, new, 2).await;
    assert!(matches!(appended, Ok(Answer::Appended { .. })), "{appended:?}");
    store.close().await.unwrap();
}
