//! The engine of one process: what it knows, and what callers ask of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch_core::id::name_defect;
use backstitch_core::inbox::{InboxKind, InboxRow, Verb};
use backstitch_core::limits::FAILURE_MESSAGE_BYTES_MAX;
use backstitch_core::row::Row;
use backstitch_core::run::{Phase, Run};
use backstitch_core::session::refusal;
use backstitch_store::{
    Answer, AttentionRow, Change, InboxPut, Refusal, RunInfo, RunNo, Store, StoreError,
};
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::append_id::AppendIds;
use crate::clock::Clock;
use crate::driver::INBOX_PAGE;
use crate::error::{Error, ErrorKind};
use crate::feed::{Feed, FeedSender};
use crate::live::{Alarm, LiveRuns, Mail};
use crate::program::Program;
use crate::recovery::{self, read_journal};

/// Settings of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// The name of this worker in turn rows.
    pub worker: String,
    /// How long bodies may take to yield when the engine is stopped.
    pub stop_grace: Duration,
    /// How long to wait before a change is offered again to a store that is unavailable.
    pub unavailable_retry: Duration,
    /// The largest input, output or event, in bytes.
    pub payload_bytes_max: usize,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            worker: format!("pid-{}", std::process::id()),
            stop_grace: Duration::from_secs(10),
            unavailable_retry: Duration::from_millis(250),
            payload_bytes_max: backstitch_core::limits::PAYLOAD_BYTES_MAX_DEFAULT,
        }
    }
}

/// Whether changes are being made durable.
#[derive(Default)]
pub(crate) struct Health(Mutex<Option<StoreError>>);

impl Health {
    pub fn available(&self) {
        let mut trouble = self.0.lock().expect("no code runs under this lock");
        if trouble.take().is_some() {
            tracing::info!("the store is available again");
        }
    }

    pub fn unavailable(&self, error: &StoreError) {
        let mut trouble = self.0.lock().expect("no code runs under this lock");
        if trouble.is_none() {
            tracing::error!(%error, "the store is unavailable; nothing is lost, work is held");
        }
        *trouble = Some(error.clone());
    }
}

pub(crate) struct Shared {
    /// Where everything of this engine runs, whoever calls it.
    pub runtime: Handle,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub options: EngineOptions,
    pub live: Arc<LiveRuns>,
    pub alarm: Arc<Alarm>,
    pub health: Health,
    /// One run at a time of those that were in flight at two crashes in a row.
    pub suspects: Arc<Semaphore>,
    pub append_ids: AppendIds,
    /// By name, then by version.
    programs: HashMap<String, HashMap<String, Arc<dyn Program>>>,
    /// Runs that wait for an earlier run of their id.
    successors: Mutex<HashMap<RunNo, Vec<RunNo>>>,
    /// Runs that are left alone, and why.
    left_alone: Mutex<HashMap<RunNo, Error>>,
    stop: watch::Sender<bool>,
    pub feed: FeedSender,
}

impl Shared {
    pub fn program(&self, workflow: &str, version: &str) -> Option<Arc<dyn Program>> {
        self.programs.get(workflow)?.get(version).cloned()
    }

    pub fn known_workflows(&self) -> String {
        let programs = self.programs.values().flat_map(HashMap::values);
        let name =
            |program: &Arc<dyn Program>| format!("{} {:?}", program.name(), program.version());
        let mut known: Vec<String> = programs.map(name).collect();
        known.sort();
        if known.is_empty() { "none".into() } else { known.join(", ") }
    }

    /// Completes when the engine is asked to stop.
    pub async fn stop_asked(&self) {
        let mut stop = self.stop.subscribe();
        // An engine that is dropped was not asked to stop.
        if stop.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    pub fn wake_after(&self, before: RunNo, run: RunNo) {
        let mut successors = self.successors.lock().expect("no code runs under this lock");
        let waiting = successors.entry(before).or_default();
        if !waiting.contains(&run) {
            waiting.push(run);
        }
    }

    pub fn tell_successors(&self, before: RunNo) {
        let waiting = self.successors.lock().expect("no code runs under this lock").remove(&before);
        for run in waiting.unwrap_or_default() {
            self.live.tell(run, Mail::Look);
        }
    }

    pub fn leave_alone(&self, run: RunNo, why: Error) {
        self.left_alone.lock().expect("no code runs under this lock").insert(run, why);
    }

    pub async fn info(&self, run: RunNo) -> Result<RunInfo, Error> {
        let info = self.store.run(run).await?;
        info.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no run {}", run.0)))
    }
}

/// What a run looks like, with what is known of it besides its journal.
#[derive(Clone, Debug)]
pub struct RunView {
    /// The execution's own row.
    pub info: RunInfo,
    /// The fold of the journal.
    pub run: Arc<Run>,
    /// Whether a worker of this process has its code.
    pub owned: bool,
}

/// The answer to a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The number of the inbox row.
    pub number: u64,
    /// Whether it changes more than the list of causes.
    pub changed: bool,
}

/// The engine of one process. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

impl Engine {
    /// Takes over the open runs of `store` and begins to drive them. Call it on a tokio runtime.
    ///
    /// # Errors
    /// When the open runs cannot be listed. A run that cannot be read is no error: it is left
    /// alone, and listed by [`Engine::attention`].
    pub async fn run(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        programs: Vec<Arc<dyn Program>>,
        options: EngineOptions,
    ) -> Result<Engine, Error> {
        let mut by_name: HashMap<String, HashMap<_, _>> = HashMap::new();
        for program in programs {
            let versions = by_name.entry(program.name().to_owned()).or_default();
            versions.insert(program.version().to_owned(), program);
        }
        let shared = Arc::new(Shared {
            runtime: Handle::current(),
            store,
            clock,
            options,
            live: Arc::default(),
            alarm: Arc::default(),
            health: Health::default(),
            suspects: Arc::new(Semaphore::new(1)),
            append_ids: AppendIds::new(),
            programs: by_name,
            successors: Mutex::default(),
            left_alone: Mutex::default(),
            stop: watch::Sender::new(false),
            feed: FeedSender::new(),
        });
        shared.runtime.spawn(shared.alarm.clone().run(shared.clock.clone(), shared.live.clone()));
        recovery::run(&shared).await?;
        Ok(Engine { shared })
    }

    /// The largest payload, in bytes.
    pub fn payload_bytes_max(&self) -> usize {
        self.shared.options.payload_bytes_max
    }

    /// The newest run of an execution.
    ///
    /// # Errors
    /// `NotFound`; trouble of the store.
    pub async fn newest(&self, namespace: &str, id: &str) -> Result<RunInfo, Error> {
        self.shared.store.newest(namespace, id).await?.ok_or_else(|| {
            let message = format!(
                "there is no execution {id:?} in namespace {namespace:?}; start it, or look at \
                 the id"
            );
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// The execution's own row of a run.
    ///
    /// # Errors
    /// `NotFound`; trouble of the store.
    pub async fn info(&self, run: RunNo) -> Result<RunInfo, Error> {
        self.shared.info(run).await
    }

    /// What a run looks like now, from its journal.
    ///
    /// # Errors
    /// `NotFound`; `Unreadable` when its journal cannot be read; trouble of the store.
    pub async fn view(&self, run: RunNo) -> Result<RunView, Error> {
        let info = self.shared.info(run).await?;
        let rows = read_journal(&self.shared, run).await?;
        let folded = Run::fold(&rows)
            .map_err(|illegal| crate::driver::unreadable(&info, &illegal.to_string()))?;
        let known = self.shared.program(&folded.started.workflow, &folded.version).is_some();
        let owned = known && info.new.after.is_none_or(|_| folded.turns > 0);
        Ok(RunView { info, run: Arc::new(folded), owned })
    }

    /// The rows of a journal.
    ///
    /// # Errors
    /// As [`Engine::view`].
    pub async fn journal(&self, run: RunNo) -> Result<Vec<Row>, Error> {
        read_journal(&self.shared, run).await
    }

    /// Waits until the run is closed or stuck; at once if it is. A run that gets stuck is told as
    /// such to everybody who waits, and may be waited for again.
    ///
    /// # Errors
    /// As [`Engine::view`]; `Stopped` when the engine stops meanwhile.
    pub async fn settled(&self, run: RunNo) -> Result<Arc<Run>, Error> {
        if let Some(live) = self.shared.live.get(run) {
            let mut settled = live.settled;
            if let Ok(seen) = settled.wait_for(Option::is_some).await {
                return Ok(seen.clone().expect("waited for"));
            }
        }
        let view = self.view(run).await?;
        let status = view.run.status(view.owned);
        if status.is_closed() || status == backstitch_core::status::Status::Stuck {
            return Ok(view.run);
        }
        Err(self.left_alone(run).unwrap_or_else(stopped))
    }

    /// Waits until the run is closed, however often it gets stuck before.
    ///
    /// # Errors
    /// As [`Engine::settled`].
    pub async fn closed(&self, run: RunNo) -> Result<Arc<Run>, Error> {
        if let Some(live) = self.shared.live.get(run) {
            let mut settled = live.settled;
            let closed = |seen: &Option<Arc<Run>>| {
                seen.as_ref().is_some_and(|run| run.status(true).is_closed())
            };
            if let Ok(seen) = settled.wait_for(closed).await {
                return Ok(seen.clone().expect("waited for"));
            }
        }
        let settled = self.settled(run).await?;
        match settled.status(true).is_closed() {
            true => Ok(settled),
            false => Err(self.left_alone(run).unwrap_or_else(stopped)),
        }
    }

    /// Puts a verb into the inbox of a run; the answer comes when it is durable.
    ///
    /// # Errors
    /// `Refused`, with the reason and the way out, when the verb does not apply to the run as it
    /// stands; `NotFound`; trouble of the store.
    pub async fn send(
        &self,
        run: RunNo,
        kind: InboxKind,
        verb: Verb,
        request_id: &str,
    ) -> Result<Sent, Error> {
        check_words("by", &verb.by)?;
        check_words("reason", &verb.reason)?;
        if let Some(defect) = name_defect("request id", request_id) {
            return Err(Error::new(ErrorKind::Invalid, defect));
        }
        let view = self.view(run).await?;
        let payload = verb.to_bytes();
        if let Some(why) = refusal(&view.run, kind, &verb) {
            if let Some(number) = self.accepted_before(run, kind, &payload, request_id).await? {
                return Ok(Sent { number, changed: true });
            }
            let message = format!(
                "{} of execution {:?} is refused: {why} (its status is {})",
                kind.name(),
                view.info.new.id,
                view.run.status(view.owned)
            );
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let digest = backstitch_core::payload::Payload::json(payload.clone()).digest();
        let put = InboxPut { run, kind, request_id: request_id.to_owned(), payload, digest };
        match self.put(put).await? {
            Answer::Accepted { number, .. } => {
                let changed = !matches!(
                    (kind, &view.run.phase),
                    (
                        InboxKind::Cancel | InboxKind::Terminate | InboxKind::Rollback,
                        Phase::RollingBack
                    )
                );
                Ok(Sent { number, changed })
            }
            Answer::Refused(Refusal::Closed) => {
                let message = format!("{} is refused: the execution has just closed", kind.name());
                Err(Error::new(ErrorKind::Refused, message))
            }
            Answer::Refused(Refusal::OtherRequest) => {
                let message = format!(
                    "request id {request_id:?} was used before for something else; give each \
                     request an id of its own"
                );
                Err(Error::new(ErrorKind::Invalid, message))
            }
            answer => Err(Error::new(ErrorKind::NotFound, format!("{run:?}: {answer:?}"))),
        }
    }

    /// The number under which the same request was accepted before: it gets its first answer again,
    /// though by now the verb would be refused.
    async fn accepted_before(
        &self,
        run: RunNo,
        kind: InboxKind,
        payload: &Bytes,
        request_id: &str,
    ) -> Result<Option<u64>, Error> {
        let mut number = 0;
        loop {
            let rows = self.shared.store.inbox(run, number, INBOX_PAGE).await?;
            let Some(last) = rows.last() else { return Ok(None) };
            number = last.number;
            let same = |row: &&InboxRow| {
                row.request_id == request_id && row.kind == kind && row.payload == *payload
            };
            if let Some(row) = rows.iter().find(same) {
                return Ok(Some(row.number));
            }
        }
    }

    /// Commits an inbox row and tells the driver, also if the caller goes away meanwhile: what is
    /// durable must not wait for the next restart.
    async fn put(&self, put: InboxPut) -> Result<Answer, Error> {
        let shared = self.shared.clone();
        let done = self.shared.runtime.spawn(async move {
            let run = put.run;
            let answer = shared.store.commit(Change::Inbox(Box::new(put))).await;
            shared.live.tell(run, Mail::Inbox);
            answer
        });
        Ok(done.await.map_err(|_| runtime_gone())??)
    }

    /// Open matters that only a person can settle, oldest first.
    ///
    /// # Errors
    /// Trouble of the store.
    pub async fn attention(&self, limit: usize) -> Result<Vec<AttentionRow>, Error> {
        let mut items = self.shared.store.attention(limit).await?;
        let left_alone = self.shared.left_alone.lock().expect("no code runs under this lock");
        items.extend(left_alone.iter().map(|(run, why)| AttentionRow {
            run: *run,
            seq: 0,
            ord: 0,
            kind: "unreadable".into(),
            message: why.to_string(),
            opened_at_us: 0,
        }));
        Ok(items)
    }

    pub(crate) fn left_alone(&self, run: RunNo) -> Option<Error> {
        self.shared.left_alone.lock().expect("no code runs under this lock").get(&run).cloned()
    }

    /// A live feed of the rows that are committed from now on.
    pub fn feed(&self) -> Feed {
        self.shared.feed.subscribe()
    }

    /// Why the store takes no changes at the moment, if it takes none.
    pub fn trouble(&self) -> Option<StoreError> {
        self.shared.health.0.lock().expect("no code runs under this lock").clone()
    }

    /// The clock of the engine.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    /// Stops in good order: running bodies are dropped and recorded as interrupted, outcomes that
    /// are known are recorded, the store is closed. Everything goes on when it is opened again.
    ///
    /// # Errors
    /// Trouble of the store while it is closed; nothing that was acknowledged is lost by it.
    pub async fn stop(&self) -> Result<(), Error> {
        self.shared.stop.send_replace(true);
        for mail in self.shared.live.stop_all() {
            mail.closed().await;
        }
        Ok(self.shared.store.close().await?)
    }
}

/// Another process has taken the store over.
pub(crate) fn fenced() -> StoreError {
    let message = "another process has taken this store over, so nothing is written here any more; \
                   stop this one, and find out how two came to own one store";
    StoreError::new(backstitch_store::ErrorKind::InUse, message)
}

/// What people say about themselves and their reasons is bounded like the message of a failure.
pub(crate) fn check_words(what: &str, words: &str) -> Result<(), Error> {
    let (bytes, max) = (words.len(), FAILURE_MESSAGE_BYTES_MAX);
    if bytes > max {
        let message = format!("{what} has {bytes} bytes; at most {max} are allowed");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(())
}

/// The runtime on which the engine was started has ended.
pub(crate) fn runtime_gone() -> Error {
    let message = "the tokio runtime that Backstitch was started on has ended; what was \
                   acknowledged goes on when the store is opened again";
    Error::new(ErrorKind::Stopped, message)
}

fn stopped() -> Error {
    let message = "the engine was stopped (or its tokio runtime ended) before the execution was over; \
                   it goes on when the store is opened again";
    Error::new(ErrorKind::Stopped, message)
}
