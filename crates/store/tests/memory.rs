//! The memory store passes the suite, and acts as a disk that outlives its owners.

use std::sync::{Arc, Mutex};

use backstitch_core::id::RunId;
use backstitch_core::row::{Draft, Header};
use backstitch_core::status::Status;
use backstitch_store::conformance::Subject;
use backstitch_store::memory::MemoryStore;
use backstitch_store::{
    Answer, Append, Call, Change, CommittedRow, Expects, Guard, NewExecution, NowUs, Refusal,
    RunNo, Start, Store,
};

#[derive(Default)]
struct Memory(Mutex<Option<MemoryStore>>);

impl Subject for Memory {
    fn open(&self, now: NowUs) -> Arc<dyn Store> {
        let mut newest = self.0.lock().unwrap();
        let next = match &*newest {
            None => MemoryStore::new(now),
            Some(older) => older.reopen(),
        };
        *newest = Some(next.clone());
        Arc::new(next)
    }
}

backstitch_store::conformance_tests!(Memory::default());

fn draft(seq: u64, fence: u64) -> Draft {
    let append_id = vec![seq as u8; 16];
    Draft::new(Header { seq, fence, append_id, ..Header::default() }, &[])
}

fn new_start(fence: u64) -> Start {
    let execution = NewExecution {
        namespace: "default".into(),
        id: "order".into(),
        run_id: RunId::from_slice(&[1; 16]).unwrap(),
        workflow: "order".into(),
        version: "v1".into(),
        input_digest: [0; 32],
        after: None,
    };
    Start {
        execution,
        first: draft(1, fence),
        expected: None,
        status: Status::Pending,
        attributes: Vec::new(),
    }
}

fn new_append(run: RunNo, seq: u64, fence: u64) -> Append {
    Append {
        run,
        draft: draft(seq, fence),
        expects: Expects::Open,
        read: 0,
        guard: Guard::default(),
        update: None,
        attention: Vec::new(),
        attributes: Vec::new(),
    }
}

async fn started(store: &MemoryStore) -> RunNo {
    match store.commit(new_start(store.fence()).into()).await.unwrap() {
        Answer::Started { run, .. } => run,
        other => panic!("not started: {other:?}"),
    }
}

#[tokio::test]
async fn p4_reopening_fences_off_every_older_handle() {
    let first = MemoryStore::new(Arc::new(|| 0));
    let run = started(&first).await;
    let second = first.reopen();
    let fenced = Answer::Refused(Refusal::Fenced { newest: 2 });
    assert_eq!(first.commit(new_append(run, 2, 1).into()).await.unwrap(), fenced);
    let appended = second.commit(new_append(run, 2, 2).into()).await.unwrap();
    assert_eq!(appended, Answer::Appended { at_us: 0 });
    let third = first.reopen();
    assert_eq!(third.fence(), 3, "a handle of any age leads to the newest owner");
    assert_eq!(third.journal(run, 0, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn p4_an_older_owner_neither_hears_calls_nor_frees_space() {
    let first = MemoryStore::new(Arc::new(|| 0));
    let run = match first.commit(new_start(0).into()).await.unwrap() {
        Answer::Started { run, .. } => run,
        other => panic!("not started: {other:?}"),
    };
    let second = first.reopen();
    let fenced = Answer::Refused(Refusal::Fenced { newest: 2 });
    let heard = || Change::Heard(vec![Call { run, times: 1 }]);
    assert_eq!(first.commit(heard()).await.unwrap(), fenced);
    assert_eq!(first.commit(Change::Purge { rows: 1 }).await.unwrap(), fenced);
    assert_eq!(second.calls(RunNo(0), 10).await.unwrap(), [Call { run, times: 1 }]);
    assert_eq!(second.commit(heard()).await.unwrap(), Answer::Heard);
    assert_eq!(second.calls(RunNo(0), 10).await.unwrap(), []);
}

#[tokio::test]
async fn news_of_a_store_without_guests_never_come_and_never_end() {
    let store = MemoryStore::new(Arc::new(|| 0));
    let news = store.news();
    started(&store).await;
    assert!(!news.has_changed().expect("somebody could still tell"));
}

#[tokio::test]
async fn the_hook_sees_each_row_before_the_answer() {
    let seen: Arc<Mutex<Vec<CommittedRow>>> = Arc::default();
    let hook = seen.clone();
    let after_sync = Arc::new(move |rows: &[CommittedRow]| {
        hook.lock().unwrap().extend_from_slice(rows);
    });
    let store = MemoryStore::with_after_sync(Arc::new(|| 5), after_sync);
    let run = started(&store).await;
    store.commit(new_append(run, 2, 1).into()).await.unwrap();
    store.commit(new_append(run, 2, 1).into()).await.unwrap();
    let rows = store.journal(run, 0, 10).await.unwrap();
    let seen: Vec<_> = seen.lock().unwrap().iter().map(|row| row.row.clone()).collect();
    assert_eq!(seen, rows, "a repetition is not seen again");
}
