//! The engine of one process: what it knows, and what callers ask of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backstitch_core::id::RunId;
use backstitch_core::limits::{EVENTS_KEPT_MAX_DEFAULT, FAILURE_MESSAGE_BYTES_MAX, RunLimits};
use backstitch_core::row::Row;
use backstitch_core::run::Run;
use backstitch_store::{AttentionPlace, AttentionRow, RunInfo, RunNo, Store, StoreError};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::calls;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind};
use crate::feed::{Feed, FeedSender};
use crate::host::Host;
use crate::ids::Ids;
use crate::live::{Alarm, LiveRuns, Mail};
use crate::pending::PendingRuns;
use crate::program::{Intercept, Program};
use crate::recovery::{self, Suspects, read_journal};
use crate::retention;
use crate::workers::Workers;

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
    /// The bounds of each run on its way forward.
    pub limits: RunLimits,
    /// The most events that a run keeps and no wait has taken.
    pub events_kept_max: u64,
    /// How long a closed run is kept that does not say so itself; for ever, if absent.
    pub retention: Option<Duration>,
    /// How long runs are leased to workers elsewhere; absent if there are none. Without a worker, and with no
    /// program of its own for it, a run waits.
    pub lease: Option<Duration>,
    /// What becomes of starts of workflows that no worker knows.
    pub unknown_workflows: UnknownWorkflows,
    /// What ids are made from, random bits if absent. For tests that have to run the same way again: two
    /// engines with one seed give out the same ids.
    pub seed: Option<u64>,
    /// Makes the futures of attempts in the place of bodies and undos. For tests.
    pub intercept: Option<Arc<dyn Intercept>>,
}

/// What becomes of the start of a workflow, in a version, that no worker of this process knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownWorkflows {
    /// It is refused: a mistyped name is told at the door.
    #[default]
    Refused,
    /// It is accepted, and waits for a worker that knows it: workers come and go.
    Wait,
}

/// What this process is to its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It drives the runs.
    Owner,
    /// It looks, and sends; another process drives the runs.
    Guest,
}

/// How long a closed run is kept by default: 30 days.
const RETENTION_DEFAULT: Duration = Duration::from_secs(30 * 86_400);

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            worker: format!("pid-{}", std::process::id()),
            stop_grace: Duration::from_secs(10),
            unavailable_retry: Duration::from_millis(250),
            payload_bytes_max: backstitch_core::limits::PAYLOAD_BYTES_MAX_DEFAULT,
            limits: RunLimits::default(),
            events_kept_max: EVENTS_KEPT_MAX_DEFAULT,
            retention: Some(RETENTION_DEFAULT),
            lease: None,
            unknown_workflows: UnknownWorkflows::default(),
            seed: None,
            intercept: None,
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
    pub role: Role,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub options: EngineOptions,
    pub live: LiveRuns,
    pub alarm: Alarm,
    pub health: Health,
    /// One run at a time of those that were in flight at two crashes in a row.
    pub suspects: Arc<Suspects>,
    pub ids: Ids,
    /// By name, then by version.
    pub programs: HashMap<String, HashMap<String, Arc<dyn Program>>>,
    /// Runs that wait for an earlier run of their id.
    successors: Mutex<HashMap<RunNo, Vec<RunNo>>>,
    /// Runs that are left alone, and why.
    left_alone: Mutex<HashMap<RunNo, Error>>,
    stop: watch::Sender<bool>,
    /// True when nothing is driven any more.
    stopped: watch::Sender<bool>,
    /// Closed when the runtime of an owner has ended.
    home: watch::Receiver<()>,
    pub feed: FeedSender,
    pub pending: PendingRuns,
    /// Workers elsewhere, if runs are leased.
    pub workers: Option<Workers>,
    /// For a guest that is not at the store: whom it asks.
    pub host: Option<Arc<dyn Host>>,
}

/// Wakes runs at their instants, until the engine is stopped. With it ends what is `_alive`.
async fn watch_alarm(shared: Arc<Shared>, _alive: watch::Sender<()>) {
    let stop = shared.clone();
    tokio::select! {
        () = stop.stop_asked() => {}
        () = async {
            loop {
                for run in shared.alarm.due(&*shared.clock).await {
                    calls::wake(&shared, run, Mail::Look);
                }
            }
        } => {}
    }
}

impl Shared {
    pub fn new(
        role: Role,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        programs: HashMap<String, HashMap<String, Arc<dyn Program>>>,
        options: EngineOptions,
        home: watch::Receiver<()>,
        host: Option<Arc<dyn Host>>,
    ) -> Arc<Shared> {
        let ids = Ids::new(options.seed);
        let workers = options.lease.map(Workers::new);
        Arc::new(Shared {
            runtime: Handle::current(),
            role,
            store,
            clock,
            options,
            live: LiveRuns::default(),
            alarm: Alarm::default(),
            health: Health::default(),
            suspects: Arc::default(),
            ids,
            programs,
            successors: Mutex::default(),
            left_alone: Mutex::default(),
            stop: watch::Sender::new(false),
            stopped: watch::Sender::new(false),
            home,
            feed: FeedSender::new(),
            pending: PendingRuns::default(),
            workers,
            host,
        })
    }

    pub fn program(&self, workflow: &str, version: &str) -> Option<Arc<dyn Program>> {
        self.programs.get(workflow)?.get(version).cloned()
    }

    /// Whether a worker elsewhere has the run, or will have it as soon as it can go on.
    pub fn has_worker(&self, run: RunNo, workflow: &str, version: &str, fold: &Run) -> bool {
        self.workers.as_ref().is_some_and(|workers| {
            let code = (workflow.to_owned(), version.to_owned());
            let rests = !fold.wants_code(self.clock.now_us());
            workers.have(run) || (rests && workers.know(&code))
        })
    }

    /// What an earlier owner left open is loaded.
    pub fn all_loaded(&self) {
        if let Some(workers) = &self.workers {
            workers.all_loaded();
        }
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

    /// Completes when the engine has stopped: nothing is driven any more.
    pub async fn has_stopped(&self) {
        let mut stopped = self.stopped.subscribe();
        // The sender lives as long as this.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Completes when the runtime on which the owner works has ended.
    pub async fn home_gone(&self) {
        let mut home = self.home.clone();
        while home.changed().await.is_ok() {}
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
            // A run that waits for another one is not parked; one that is gone need not be told.
            let _ = self.live.tell(run, Mail::Look);
        }
    }

    pub fn is_left_alone(&self, run: RunNo) -> bool {
        self.left_alone.lock().expect("no code runs under this lock").contains_key(&run)
    }

    pub fn leave_alone(&self, run: RunNo, why: Error) {
        self.pending.forget(run);
        // What is not held any more is not to be blamed.
        if self.store.holds(run) {
            self.left_alone.lock().expect("no code runs under this lock").insert(run, why);
        }
    }

    /// Tells the store that a driver leaves its run. Call it while the seat is still taken: who comes for the
    /// run from now on finds the mailbox, and what is in that is forwarded.
    pub fn tell_left(&self, run: RunNo) {
        let why = self.left_alone.lock().expect("no code runs under this lock").get(&run).cloned();
        self.store.left(run, why.map(|why| why.to_string()).as_deref());
    }

    /// The run that this one was to follow, if that is open: this one was closed before it began, and two runs of
    /// an id are never at work at once.
    pub async fn open_before(&self, run: &RunInfo) -> Result<Option<(RunNo, RunId)>, StoreError> {
        let mut before = run.new.after;
        while let Some(run) = before {
            let Some(info) = self.store.run(run).await? else { return Ok(None) };
            if info.closed_at_us.is_none() {
                return Ok(Some((run, info.new.run_id)));
            }
            before = info.new.after;
        }
        Ok(None)
    }

    pub fn no_longer_left_alone(&self, run: RunNo) {
        self.left_alone.lock().expect("no code runs under this lock").remove(&run);
    }

    pub async fn info(&self, run: RunNo) -> Result<RunInfo, Error> {
        let info = self.store.run(run).await?;
        info.ok_or_else(|| {
            let message = format!(
                "the execution is not there any more: its run (number {} in the store) was deleted, \
                 or has expired",
                run.0
            );
            Error::new(ErrorKind::NotFound, message)
        })
    }
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
        let (alive, home) = watch::channel(());
        let shared = Shared::new(Role::Owner, store, clock, by_name, options, home, None);
        shared.runtime.spawn(watch_alarm(shared.clone(), alive));
        recovery::run(&shared).await?;
        shared.runtime.spawn(calls::run(shared.clone()));
        shared.runtime.spawn(retention::run(shared.clone()));
        Ok(Engine { shared })
    }

    /// The largest payload, in bytes.
    pub fn payload_bytes_max(&self) -> usize {
        self.shared.options.payload_bytes_max
    }

    /// The bounds of each run on its way forward.
    pub fn limits(&self) -> RunLimits {
        self.shared.options.limits
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

    /// The run of an execution that has this id, the newest or an earlier one.
    ///
    /// # Errors
    /// `NotFound`; trouble of the store.
    pub async fn run_of(&self, namespace: &str, id: &str, run_id: RunId) -> Result<RunInfo, Error> {
        self.shared.store.run_of(namespace, id, run_id).await?.ok_or_else(|| {
            let message = format!(
                "execution {id:?} in namespace {namespace:?} has no run {run_id}; it was deleted or has \
                 expired, or is another execution's (lists show the ids of runs)"
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

    /// All runs, newest first, below `before`.
    ///
    /// # Errors
    /// Trouble of the store.
    pub async fn runs(&self, before: RunNo, limit: usize) -> Result<Vec<RunInfo>, Error> {
        Ok(self.shared.store.runs(before, limit).await?)
    }

    /// The rows of a journal.
    ///
    /// # Errors
    /// As [`Engine::view`].
    pub async fn journal(&self, run: RunNo) -> Result<Vec<Row>, Error> {
        read_journal(&self.shared, run).await
    }

    /// Open matters that only a person can settle, oldest first.
    ///
    /// # Errors
    /// Trouble of the store.
    pub async fn attention(
        &self,
        after: AttentionPlace,
        limit: usize,
    ) -> Result<Vec<AttentionRow>, Error> {
        let mut items = self.shared.store.attention(after, limit).await?;
        let left_alone = self.shared.left_alone.lock().expect("no code runs under this lock");
        let unreadable = left_alone.iter().map(|(run, why)| AttentionRow {
            run: *run,
            seq: 0,
            ord: 0,
            kind: "unreadable".into(),
            message: why.to_string(),
            opened_at_us: 0,
        });
        items.extend(unreadable.filter(|item| item.place() > after));
        items.sort_by_key(AttentionRow::place);
        items.truncate(limit);
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
        self.shared.stopped.send_replace(true);
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
