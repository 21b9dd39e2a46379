//! One store under test, its clock, and what is asked of it most often.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use backstitch_core::inbox::InboxKind;
use backstitch_core::row::Row;

use super::Subject;
use super::changes::{self, new_put};
use crate::{Answer, Append, Change, NowUs, Refusal, RunNo, Start, Store};

pub(super) struct Bench {
    subject: Box<dyn Subject>,
    now_us: Arc<AtomicI64>,
    pub store: Arc<dyn Store>,
}

impl Bench {
    pub(super) fn new(subject: impl Subject) -> Bench {
        Bench::on(Box::new(subject))
    }

    fn on(subject: Box<dyn Subject>) -> Bench {
        let now_us = Arc::new(AtomicI64::new(1_000_000));
        let store = subject.open(clock(&now_us));
        Bench { subject, now_us, store }
    }

    /// A bench with an empty store of the same kind.
    pub(super) fn another(&self) -> Bench {
        Bench::on(self.subject.another())
    }

    pub(super) fn set_clock(&self, now_us: i64) {
        self.now_us.store(now_us, Ordering::SeqCst);
    }

    /// The next owner, after this one has closed.
    pub(super) async fn reopen(self) -> Bench {
        self.store.close().await.expect("closes");
        self.open_again()
    }

    /// The next owner, after this one was dropped without a word.
    pub(super) fn open_again(self) -> Bench {
        let Bench { subject, now_us, store } = self;
        drop(store);
        let store = subject.open(clock(&now_us));
        Bench { subject, now_us, store }
    }

    /// The next owner, while this one still lives; gives the older handle.
    pub(super) fn take_over(&mut self) -> Arc<dyn Store> {
        let next = self.subject.take_over(clock(&self.now_us));
        std::mem::replace(&mut self.store, next)
    }

    pub(super) async fn commit(&self, change: impl Into<Change>) -> Answer {
        self.store.commit(change.into()).await.expect("the store works")
    }

    /// A start that expects nothing, of an id that is named by its number.
    pub(super) fn new_start(&self, number: u32) -> Start {
        changes::new_start(self.store.fence(), number)
    }

    pub(super) async fn start(&self, number: u32) -> RunNo {
        match self.commit(self.new_start(number)).await {
            Answer::Started { run, .. } => run,
            other => panic!("not started: {other:?}"),
        }
    }

    /// An append of nothing but a row.
    pub(super) fn new_append(&self, run: RunNo, seq: u64) -> Append {
        changes::new_append(self.store.fence(), run, seq)
    }

    /// An append that closes the run.
    pub(super) fn new_closing(&self, run: RunNo, seq: u64) -> Append {
        changes::new_closing(self.store.fence(), run, seq)
    }

    pub(super) async fn put(&self, run: RunNo, kind: InboxKind, request_id: &str) -> Answer {
        self.commit(new_put(run, kind, request_id)).await
    }

    /// The rows of a journal, decoded.
    pub(super) async fn rows(&self, run: RunNo) -> Vec<Row> {
        let rows = self.store.journal(run, 0, usize::MAX).await.expect("the store works");
        rows.into_iter().map(|row| Row::decode(row).expect("a sealed row")).collect()
    }

    pub(super) async fn seqs(&self, run: RunNo) -> Vec<u64> {
        self.rows(run).await.iter().map(|row| row.header.seq).collect()
    }
}

/// Asserts that nothing was changed, and why.
#[track_caller]
pub(super) fn assert_refused(answer: Answer, because: Refusal) {
    assert_eq!(answer, Answer::Refused(because));
}

#[track_caller]
pub(super) fn assert_appended(answer: Answer) -> i64 {
    match answer {
        Answer::Appended { at_us } => at_us,
        other => panic!("not appended: {other:?}"),
    }
}

fn clock(now_us: &Arc<AtomicI64>) -> NowUs {
    let now_us = now_us.clone();
    Arc::new(move || now_us.load(Ordering::SeqCst))
}
