//! The memory store passes the suite, and acts as a disk that outlives its owners.

use std::sync::{Arc, Mutex};

use backstitch_store::conformance::Subject;
use backstitch_store::conformance::changes::{new_append, new_start};
use backstitch_store::memory::MemoryStore;
use backstitch_store::{Answer, Call, Change, CommittedRow, NowUs, Refusal, RunNo, Store};

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

    fn take_over(&self, now: NowUs) -> Arc<dyn Store> {
        self.open(now)
    }

    fn another(&self) -> Box<dyn Subject> {
        Box::new(Memory::default())
    }
}

backstitch_store::conformance_tests!(Memory::default());

async fn started(store: &MemoryStore) -> RunNo {
    match store.commit(new_start(store.fence(), 1).into()).await.unwrap() {
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
    assert_eq!(first.commit(new_append(1, run, 2).into()).await.unwrap(), fenced);
    let appended = second.commit(new_append(2, run, 2).into()).await.unwrap();
    assert_eq!(appended, Answer::Appended { at_us: 0 });
    let third = first.reopen();
    assert_eq!(third.fence(), 3, "a handle of any age leads to the newest owner");
    assert_eq!(third.journal(run, 0, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn p4_an_older_owner_neither_hears_calls_nor_frees_space() {
    let first = MemoryStore::new(Arc::new(|| 0));
    let run = match first.commit(new_start(0, 1).into()).await.unwrap() {
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
    store.commit(new_append(1, run, 2).into()).await.unwrap();
    store.commit(new_append(1, run, 2).into()).await.unwrap();
    let rows = store.journal(run, 0, 10).await.unwrap();
    let seen: Vec<_> = seen.lock().unwrap().iter().map(|row| row.row.clone()).collect();
    assert_eq!(seen, rows, "a repetition is not seen again");
}
