//! The store of a worker: the runs that a server has leased to it, as the engine sees a store.
//!
//! **Invariant:** whatever becomes of a run, the engine is not kept waiting for it: what it waits for is
//! answered when the run is lost.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use backstitch_api::worker::{self as api, worker_client::WorkerClient};
use backstitch_core::attribute::AttributeValue;
use backstitch_core::id::RunId;
use backstitch_core::inbox::InboxRow;
use backstitch_store::{
    AfterSync, Answer, Append, AttentionPlace, AttentionRow, Call, Change, CommittedRow, ErrorKind,
    RunInfo, RunNo, Store, StoreError, StoreFuture,
};
use bytes::Bytes;
use tokio::sync::watch;
use tonic::transport::Channel;

use crate::remote::MESSAGE_BYTES_MAX;
use crate::remote::clock::RemoteClock;
use crate::remote::leases::{Leases, Reading};

/// How long a server may take to close a connection that nothing is sent on any more.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// What a worker says of itself.
pub(crate) struct Card {
    pub session: [u8; 16],
    pub name: String,
    pub workflows: Vec<api::Workflow>,
    pub slots: u32,
}

/// Where a worker stands with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Working,
    /// It connects no more.
    Closing,
    Closed,
}

/// A worker of a server.
pub(crate) struct WorkerStore {
    pub card: Card,
    pub channel: Channel,
    pub clock: RemoteClock,
    pub stage: watch::Sender<Stage>,
    leases: Mutex<Leases>,
    after_sync: Option<AfterSync>,
}

impl WorkerStore {
    pub fn new(
        card: Card,
        channel: Channel,
        clock: RemoteClock,
        leases: Leases,
        after_sync: Option<AfterSync>,
    ) -> WorkerStore {
        let stage = watch::Sender::new(Stage::Working);
        WorkerStore { card, channel, clock, stage, leases: Mutex::new(leases), after_sync }
    }

    pub fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().expect("no code runs under this lock")
    }

    /// The worker is being stopped, and wants no further runs.
    pub fn drain(&self) {
        self.leases().drain();
    }

    pub fn stub(&self) -> WorkerClient<Channel> {
        WorkerClient::new(self.channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX)
    }
}

/// Tells of a row that the server has made durable, before the engine hears of it. In its header the server has written
/// its own fence.
async fn tell_first(
    answered: StoreFuture<Answer>,
    append: Arc<Append>,
    after_sync: AfterSync,
) -> Result<Answer, StoreError> {
    let answer = answered.await;
    if let Ok(Answer::Appended { at_us }) = answer {
        let row = Bytes::from(append.draft.seal(at_us));
        after_sync(&[CommittedRow { run: append.run, row }]);
    }
    answer
}

/// Reads on where `reading` ends, until `limit` rows are there or there are no more.
async fn read_on(
    mut stub: WorkerClient<Channel>,
    session: Vec<u8>,
    run: RunNo,
    after_seq: u64,
    reading: Reading,
    limit: usize,
) -> Result<Vec<Bytes>, StoreError> {
    let Reading { fence, mut rows, seq, lost: _ } = reading;
    loop {
        rows.truncate(limit);
        let after_seq = after_seq + rows.len() as u64;
        if rows.len() == limit || after_seq >= seq {
            return Ok(rows);
        }
        let limit = u32::try_from(limit - rows.len()).unwrap_or(u32::MAX);
        let session = session.clone();
        let request = api::JournalRequest { session, run: run.0, fence, after_seq, limit };
        let page = stub.journal(request).await.map_err(|status| {
            StoreError::new(ErrorKind::Unavailable, format!("the journal is not read: {status}"))
        })?;
        let page = page.into_inner();
        if page.rows.is_empty() {
            let message = format!("the server has no row {} of the journal", after_seq + 1);
            return Err(StoreError::new(ErrorKind::Unavailable, message));
        }
        rows.extend(page.rows.into_iter().map(Bytes::from));
    }
}

impl Store for WorkerStore {
    fn commit(&self, change: Change) -> StoreFuture<Answer> {
        match change {
            Change::Append(append) => {
                let answered = self.leases().offer(append.clone());
                match self.after_sync.clone() {
                    None => answered,
                    Some(after_sync) => Box::pin(tell_first(answered, append, after_sync)),
                }
            }
            Change::Heard(calls) => {
                self.leases().heard(&calls);
                ready(Ok(Answer::Heard))
            }
            // The server sees to it.
            Change::Purge { .. } => ready(Ok(Answer::Purged { more: false })),
            Change::Start(_) | Change::Inbox(_) | Change::Delete(_) => {
                let message = "a worker writes only into the journals of its runs";
                ready(Err(StoreError::new(ErrorKind::Rejected, message)))
            }
        }
    }

    /// The server writes the fence of the lease into each row.
    fn fence(&self) -> u64 {
        1
    }

    fn news(&self) -> watch::Receiver<u64> {
        self.leases().news()
    }

    fn journal(&self, run: RunNo, after_seq: u64, limit: usize) -> StoreFuture<Vec<Bytes>> {
        let Some(reading) = self.leases().read(run, after_seq) else {
            let message = "the run is not leased to this worker any more";
            return ready(Err(StoreError::new(ErrorKind::Closed, message)));
        };
        let (stub, session) = (self.stub(), self.card.session.to_vec());
        let mut lost = reading.lost.clone();
        Box::pin(async move {
            tokio::select! {
                rows = read_on(stub, session, run, after_seq, reading, limit) => rows,
                _ = lost.changed() => {
                    let message = "the run was lost while its journal was read";
                    Err(StoreError::new(ErrorKind::Closed, message))
                }
            }
        })
    }

    fn newest(&self, _: &str, _: &str) -> StoreFuture<Option<RunInfo>> {
        ready(Ok(None))
    }

    fn run_of(&self, _: &str, _: &str, _: RunId) -> StoreFuture<Option<RunInfo>> {
        ready(Ok(None))
    }

    /// Asked by the engine when it takes a run up; from then on it says when it leaves it.
    fn run(&self, run: RunNo) -> StoreFuture<Option<RunInfo>> {
        ready(Ok(self.leases().take_up(run)))
    }

    fn inbox(&self, run: RunNo, after: u64, limit: usize) -> StoreFuture<Vec<InboxRow>> {
        ready(Ok(self.leases().inbox(run, after, limit)))
    }

    /// What is leased comes as calls.
    fn open_runs(&self, _: RunNo, _: usize) -> StoreFuture<Vec<RunInfo>> {
        ready(Ok(Vec::new()))
    }

    fn runs(&self, _: RunNo, _: usize) -> StoreFuture<Vec<RunInfo>> {
        ready(Ok(Vec::new()))
    }

    fn find(&self, _: &str, _: &AttributeValue, _: RunNo, _: usize) -> StoreFuture<Vec<RunInfo>> {
        ready(Ok(Vec::new()))
    }

    fn calls(&self, after: RunNo, limit: usize) -> StoreFuture<Vec<Call>> {
        ready(Ok(self.leases().calls(after, limit)))
    }

    fn expired(&self, _: i64, _: usize) -> StoreFuture<Vec<RunNo>> {
        ready(Ok(Vec::new()))
    }

    fn attention(&self, _: AttentionPlace, _: usize) -> StoreFuture<Vec<AttentionRow>> {
        ready(Ok(Vec::new()))
    }

    fn holds(&self, run: RunNo) -> bool {
        self.leases().holds(run)
    }

    fn attempt_fence(&self, run: RunNo) -> u64 {
        self.leases().fence(run)
    }

    fn left(&self, run: RunNo, trouble: Option<&str>) {
        self.leases().left_by_driver(run, trouble);
    }

    fn close(&self) -> StoreFuture<()> {
        self.stage.send_if_modified(|stage| {
            let is_open = *stage == Stage::Working;
            *stage = if is_open { Stage::Closing } else { *stage };
            is_open
        });
        self.leases().close();
        let stage = self.stage.clone();
        Box::pin(async move {
            let mut closed = stage.subscribe();
            let closed = closed.wait_for(|stage| *stage == Stage::Closed);
            if tokio::time::timeout(CLOSE_WAIT, closed).await.is_err() {
                // What was not sent by now comes out when the leases end.
                stage.send_replace(Stage::Closed);
            }
            Ok(())
        })
    }
}

fn ready<T: Send + 'static>(answer: Result<T, StoreError>) -> StoreFuture<T> {
    Box::pin(std::future::ready(answer))
}
