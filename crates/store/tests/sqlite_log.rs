//! Write-ahead logs that end too early or are damaged: whoever opens them finds the commits up to
//! there, each of them whole, and never an error.
//!
//! What was synced is not lost by a death or a power cut. These tests go further than that promise:
//! a disk that lies about a sync takes away the newest commits, and nothing else.

mod fixture;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use backstitch_store::conformance::marks::{marked_append, marked_closing};
use backstitch_store::conformance::{Script, Whole};
use backstitch_store::sqlite::{SqliteOptions, SqliteStore};
use backstitch_store::{Answer, Change, Store};
use fixture::files::{FRAME_BYTES, Files, HEADER_BYTES};
use fixture::{Folder, assert_appended, open, start};

/// A store that is not closed, and what stood in it after each commit.
struct Recorded {
    files: Files,
    /// Where the log ended, and what the store was then.
    commits: Vec<(usize, Whole)>,
}

impl Recorded {
    /// Plays the script on a store in which `prepare` has written something.
    async fn script(prepare: impl AsyncFn(&SqliteStore, &Folder)) -> Recorded {
        let folder = Folder::new();
        let now_us = Arc::new(AtomicI64::new(0));
        let clock = now_us.clone();
        let now = Arc::new(move || clock.load(Ordering::SeqCst));
        let options = SqliteOptions { now, ..Default::default() };
        let store = SqliteStore::open(folder.db(), options).unwrap();
        prepare(&store, &folder).await;
        let mut recorded = Recorded { files: Files::of(&folder.db()), commits: Vec::new() };
        recorded.record(&store, &folder).await;
        let mut script = Script::default();
        loop {
            now_us.store(script.now_us(), Ordering::SeqCst);
            let Some(change) = script.next(&store).await else { break };
            script.hear(&store.commit(change).await.unwrap());
            recorded.record(&store, &folder).await;
        }
        assert!(recorded.commits.is_sorted_by_key(|(end, _)| *end));
        recorded
    }

    async fn record(&mut self, store: &dyn Store, folder: &Folder) {
        let files = Files::of(&folder.db());
        let whole = Whole::read(store).await.without_fences();
        if files.salt() != self.files.salt() {
            // The log was begun anew: what it held before is in the database for good.
            let before = self.commits.pop().expect("something filled it").1;
            self.commits = vec![(0, before)];
        }
        self.commits.push((files.log_end(), whole));
        self.files = files;
    }

    /// Opens `files`, whose log is good up to `end`.
    async fn check(&self, files: &Files, end: usize, what: &str) {
        let folder = files.put_down();
        let store = open(&folder.db());
        let whole = Whole::read(&store).await.without_fences();
        let last = self.commits.iter().rev().find(|(at, _)| *at <= end);
        match last {
            Some((_, expected)) => assert_eq!(whole, *expected, "{what}"),
            None => assert!(whole.runs.is_empty(), "{what}: not even migrated"),
        }
        // It can be written to, and no number is given out twice.
        let run = start(&store, 99).await;
        assert!(whole.run(run).is_none(), "{what}");
    }

    /// Where the frames begin.
    fn frames(&self) -> impl Iterator<Item = usize> + use<> {
        (HEADER_BYTES..self.files.log_end()).step_by(FRAME_BYTES)
    }

    async fn check_all_cuts(&self) {
        // Places in a frame: in each part of its header, and in its page.
        for (frame, place) in self.frames().zip([1, 7, 12, 20, 24, 2_000, 4_119].iter().cycle()) {
            for cut in [frame, frame + place] {
                self.check(&self.files.cut(cut), frame, &format!("cut at {cut}")).await;
            }
        }
        let whole = self.files.log_end();
        self.check(&self.files.cut(whole), whole, "not cut").await;
    }
}

async fn nothing(_: &SqliteStore, _: &Folder) {}

/// As much as a log holds before it is copied into the database: the next commit begins it anew. Most
/// of it is about a run that is deleted again, so that the store stays small.
async fn a_full_log(store: &SqliteStore, folder: &Folder) {
    let log = folder.path().join("store.db-wal");
    for (number, frames) in [(1_000, 3_600), (1_001, 4_000)] {
        let full = (HEADER_BYTES + frames * FRAME_BYTES) as u64;
        let run = start(store, number).await;
        let mut seq = 2;
        while std::fs::metadata(&log).unwrap().len() < full {
            let append = marked_append(store.fence(), run, seq);
            assert_appended(store.commit(append.into()).await);
            seq += 1;
        }
        if number == 1_000 {
            let closing = marked_closing(store.fence(), run, seq);
            assert_appended(store.commit(closing.into()).await);
            assert_eq!(store.commit(Change::Delete(run)).await.unwrap(), Answer::Deleted);
            let purged = store.commit(Change::Purge { rows: usize::MAX }).await.unwrap();
            assert_eq!(purged, Answer::Purged { more: false });
        }
    }
}

#[tokio::test]
async fn p1_a_log_that_is_cut_anywhere_holds_the_commits_before_the_cut() {
    let recorded = Recorded::script(nothing).await;
    for cut in [0, 1, HEADER_BYTES - 1] {
        recorded.check(&recorded.files.cut(cut), 0, &format!("cut at {cut}")).await;
    }
    recorded.check_all_cuts().await;
}

#[tokio::test]
async fn p1_a_log_that_was_begun_anew_and_is_cut_loses_nothing_from_before() {
    let recorded = Recorded::script(a_full_log).await;
    assert_eq!(recorded.commits[0].0, 0, "the log was not begun anew");
    assert!(recorded.files.log_end() < recorded.files.log.len(), "no older frames are left in it");
    recorded.check_all_cuts().await;
    // The older frames that stand behind the newer ones are not taken for their successors.
    let end = recorded.files.log_end();
    recorded.check(&recorded.files, end, "with older frames").await;
}

#[tokio::test]
async fn p1_a_log_with_a_damaged_byte_holds_the_commits_before_it() {
    let recorded = Recorded::script(nothing).await;
    for place in 0..HEADER_BYTES {
        recorded.check(&recorded.files.damage(place), 0, &format!("damaged at {place}")).await;
    }
    for (frame, place) in
        recorded.frames().zip([2, 7, 9, 14, 17, 23, 24, 2_000, 4_119].iter().cycle())
    {
        let damaged = recorded.files.damage(frame + place);
        recorded.check(&damaged, frame, &format!("damaged at {frame} + {place}")).await;
    }
}

#[tokio::test]
async fn p1_what_stands_behind_the_end_of_a_log_is_ignored() {
    let recorded = Recorded::script(nothing).await;
    let end = recorded.files.log_end();
    let frame = recorded.files.log[end - FRAME_BYTES..end].to_vec();
    for tail in [vec![0; FRAME_BYTES], vec![0xA5; 3 * FRAME_BYTES + 7], frame] {
        let mut files = recorded.files.cut(end);
        files.log.extend(&tail);
        recorded.check(&files, end, &format!("{} bytes more", tail.len())).await;
    }
}
