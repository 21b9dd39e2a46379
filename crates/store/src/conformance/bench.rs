//! One store under test, its clock, and changes to offer.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use backstitch_core::id::RunId;
use backstitch_core::inbox::InboxKind;
use backstitch_core::row::{Draft, Header, Row, RowKind};
use backstitch_core::status::Status;
use bytes::Bytes;

use super::Subject;
use crate::{
    Answer, Append, Change, ExecutionUpdate, Expects, Guard, InboxPut, NewExecution, NowUs,
    Refusal, RunNo, Start, Store,
};

pub(super) struct Bench {
    subject: Box<dyn Subject>,
    now_us: Arc<AtomicI64>,
    pub store: Arc<dyn Store>,
}

impl Bench {
    pub(super) fn new(subject: impl Subject) -> Bench {
        let now_us = Arc::new(AtomicI64::new(1_000_000));
        let store = subject.open(clock(&now_us));
        Bench { subject: Box::new(subject), now_us, store }
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

    pub(super) async fn commit(&self, change: impl Into<Change>) -> Answer {
        self.store.commit(change.into()).await.expect("the store works")
    }

    /// A start that expects nothing, of an id that is named by its number.
    pub(super) fn new_start(&self, number: u32) -> Start {
        Start {
            execution: NewExecution {
                namespace: "default".into(),
                id: format!("order-{number}"),
                run_id: run_id(number),
                workflow: "order".into(),
                version: "v1".into(),
                input_digest: [7; 32],
                after: None,
            },
            first: draft(1, self.store.fence()),
            expected: None,
            status: Status::Pending,
            attributes: Vec::new(),
        }
    }

    pub(super) async fn start(&self, number: u32) -> RunNo {
        match self.commit(self.new_start(number)).await {
            Answer::Started { run, .. } => run,
            other => panic!("not started: {other:?}"),
        }
    }

    /// An append of nothing but a row.
    pub(super) fn new_append(&self, run: RunNo, seq: u64) -> Append {
        let draft = draft(seq, self.store.fence());
        Append {
            run,
            draft,
            expects: Expects::Open,
            read: 0,
            guard: Guard::default(),
            update: None,
            attention: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// An append that closes the run.
    pub(super) fn new_closing(&self, run: RunNo, seq: u64) -> Append {
        let update = Some(update(Status::Succeeded));
        Append { update, ..self.new_append(run, seq) }
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

pub(super) fn new_put(run: RunNo, kind: InboxKind, request_id: &str) -> InboxPut {
    let payload = Bytes::copy_from_slice(request_id.as_bytes());
    InboxPut {
        run,
        kind,
        request_id: request_id.into(),
        topic: String::new(),
        payload,
        digest: [3; 32],
        changed: true,
        rows_max: u64::MAX,
    }
}

/// An update that says nothing but a status.
pub(super) fn update(status: Status) -> ExecutionUpdate {
    ExecutionUpdate { status, wake_at_us: None, expires_at_us: None }
}

/// A guard against unread rows of these kinds.
pub(super) fn guard(kinds: &[InboxKind]) -> Guard {
    Guard { kinds: kinds.to_vec(), topics: Vec::new() }
}

pub(super) fn run_id(number: u32) -> RunId {
    RunId::from_slice(&u128::from(number).to_be_bytes()).expect("16 bytes")
}

/// A row with an append id of its own for each seq and fence, about 300 bytes long.
pub(super) fn draft(seq: u64, fence: u64) -> Draft {
    let header = Header {
        seq,
        kind: RowKind::Turn as i32,
        at_us: 0,
        fence,
        append_id: (u128::from(fence) << 64 | u128::from(seq)).to_be_bytes().into(),
        now_us: Some(1),
        worker: Some("w".repeat(240)),
        version: Some("v1".into()),
    };
    Draft::new(header, &[])
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
