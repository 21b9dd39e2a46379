//! Opening Backstitch inside a program.

use std::sync::Arc;

use backstitch_core::limits::{PAYLOAD_BYTES_MAX, RunLimits};
use backstitch_engine::program::{Intercept, Program};
use backstitch_engine::{Clock, Engine, EngineOptions, SystemClock, UnknownWorkflows};
use backstitch_store::memory::MemoryStore;
use backstitch_store::sqlite::{SqliteOptions, SqliteStore};
use backstitch_store::{AfterSync, NowUs, Store};

use crate::app::App;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::state::StateMap;
use crate::workflow::{Registered, Workflow};

/// The entry of the library: [`Backstitch::open`].
pub struct Backstitch;

impl Backstitch {
    /// Opens a store, once [`Builder::run`] is called.
    ///
    /// `sqlite:PATH` is a file that is made if it is not there; `memory:` keeps everything in
    /// memory and is for tests. With the feature `remote`, `http://HOST:PORT` is a server: the program works on
    /// the executions that the server gives it, and the server keeps the store.
    pub fn open(url: impl Into<String>) -> Builder {
        Builder::new(Place::Url(url.into()))
    }

    /// Connects to a store that another process works on (or nobody, at the moment): to start
    /// executions, to look at them, and to send them verbs and events. The process that works on it
    /// notices within some 20 ms, or when it starts.
    ///
    /// The store has to be there: nothing is made, and nothing is migrated. With the feature `remote`,
    /// `http://HOST:PORT` is a server.
    ///
    /// # Errors
    /// A store that is not there, or of an older or newer version (see [`ErrorKind`]).
    pub async fn connect(url: &str) -> Result<Client, Error> {
        if url == "memory:" {
            let message = "\"memory:\" is in the memory of the process that opened it; connect to a \
                           file, \"sqlite:PATH\"";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        #[cfg(feature = "remote")]
        if url.starts_with("http://") {
            return crate::remote::connect(&crate::remote::channel(url)?).await;
        }
        let path = path_of(url)?;
        let store = SqliteStore::connect(path, SqliteOptions::default())?;
        Ok(Backstitch::connect_on(Arc::new(store), Arc::new(SystemClock)))
    }

    /// Connects to a store that the caller brings. Call it on a tokio runtime.
    pub fn connect_on(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Client {
        Client::new(Engine::visit(store, clock, EngineOptions::default()))
    }

    /// Works for a server to which the caller brings the connection. For tests.
    #[cfg(feature = "remote")]
    #[doc(hidden)]
    pub fn open_through(channel: tonic::transport::Channel) -> Builder {
        Builder::new(Place::Server(channel))
    }

    /// Asks a server to which the caller brings the connection. For tests.
    ///
    /// # Errors
    /// A server that does not answer, or does not fit.
    #[cfg(feature = "remote")]
    #[doc(hidden)]
    pub async fn connect_through(channel: tonic::transport::Channel) -> Result<Client, Error> {
        crate::remote::connect(&channel).await
    }

    /// Uses a store that the caller brings.
    pub fn on(store: Arc<dyn Store>) -> Builder {
        Builder::new(Place::Store(store))
    }
}

enum Place {
    Url(String),
    Store(Arc<dyn Store>),
    #[cfg(feature = "remote")]
    Server(tonic::transport::Channel),
}

type Make = Box<dyn FnOnce(Arc<[String]>, Arc<StateMap>, usize) -> Arc<dyn Program> + Send>;

/// A workflow that was registered.
pub(crate) struct Registration {
    pub name: String,
    pub version: String,
    /// The types of the events that it takes; empty if it takes any.
    pub events: Arc<[String]>,
    make: Make,
}

/// The workflows that were registered, with what their bodies take.
pub(crate) struct Programs {
    state: Arc<StateMap>,
    registered: Vec<Registration>,
}

impl Programs {
    /// What was registered.
    #[cfg(feature = "remote")]
    pub fn registered(&self) -> &[Registration] {
        &self.registered
    }

    /// The same for the engine.
    pub fn make(self, payload_bytes_max: usize) -> Vec<Arc<dyn Program>> {
        let Programs { state, registered } = self;
        let made = registered.into_iter().map(|Registration { events, make, .. }| {
            make(events, state.clone(), payload_bytes_max)
        });
        made.collect()
    }

    fn check(&self) -> Result<(), Error> {
        let mut seen = std::collections::HashSet::new();
        for Registration { name, version, .. } in &self.registered {
            use backstitch_core::id::name_defect;
            let defect = name_defect("workflow name", name)
                .or_else(|| name_defect("workflow version", version));
            if let Some(defect) = defect {
                return Err(Error::new(ErrorKind::Invalid, defect));
            }
            if !seen.insert((name, version)) {
                let message = format!(
                    "workflow {name:?} version {version:?} is registered twice; give one another \
                     name or version"
                );
                return Err(Error::new(ErrorKind::Invalid, message));
            }
        }
        Ok(())
    }
}

/// Everything there is to set before work begins.
#[must_use = "nothing happens before run()"]
pub struct Builder {
    place: Place,
    state: StateMap,
    programs: Vec<Registration>,
    #[cfg(feature = "remote")]
    slots: u32,
    clock: Arc<dyn Clock>,
    after_sync: Option<AfterSync>,
    options: EngineOptions,
}

impl Builder {
    fn new(place: Place) -> Builder {
        Builder {
            place,
            state: StateMap::default(),
            programs: Vec::new(),
            #[cfg(feature = "remote")]
            slots: crate::remote::SLOTS_DEFAULT,
            clock: Arc::new(SystemClock),
            after_sync: None,
            options: EngineOptions::default(),
        }
    }

    /// Gives bodies and undos a value, which they take by its type. One value per type: the last
    /// one given stands.
    pub fn state<S: Send + Sync + 'static>(mut self, state: S) -> Builder {
        self.state.insert(state);
        self
    }

    /// Registers a workflow. Open executions of it, in its version, are taken over.
    pub fn register<W: Workflow>(mut self, workflow: W) -> Builder {
        let (name, version) = (workflow.name().to_owned(), workflow.version().to_owned());
        let events = workflow.events().into();
        let make: Make = Box::new(move |events, state, payload_bytes_max| {
            Arc::new(Registered { workflow, events, state, payload_bytes_max })
        });
        self.programs.push(Registration { name, version, events, make });
        self
    }

    /// The largest input, output or event, in bytes (default: 1 MiB).
    pub fn payload_bytes_max(mut self, bytes: usize) -> Builder {
        self.options.payload_bytes_max = bytes;
        self
    }

    /// The most events that an execution keeps and no wait has taken (default: 1,000). Further ones
    /// are refused to their senders.
    pub fn events_kept_max(mut self, events: u64) -> Builder {
        self.options.events_kept_max = events;
        self
    }

    /// The bounds of each execution on its way forward. One that exceeds one of them fails, and is
    /// rolled back.
    pub fn limits(mut self, limits: RunLimits) -> Builder {
        self.options.limits = limits;
        self
    }

    /// How long closed executions are kept that do not say so themselves (default: 30 days). Those
    /// with an open matter stay until it is settled.
    pub fn retention(mut self, kept: std::time::Duration) -> Builder {
        self.options.retention = Some(kept);
        self
    }

    /// Keeps closed executions until somebody deletes them.
    pub fn keep_forever(mut self) -> Builder {
        self.options.retention = None;
        self
    }

    /// How many executions a worker of a server has at once (default: 1,000; at most 100,000).
    #[cfg(feature = "remote")]
    pub fn slots(mut self, executions: u32) -> Builder {
        self.slots = executions;
        self
    }

    /// Leases executions to workers of other processes: one that is not heard of for so long (500 ms to 1 h) loses
    /// them. For servers; what is registered here stays here, and what is not waits for such a worker.
    pub fn lease(mut self, lease: std::time::Duration) -> Builder {
        self.options.lease = Some(lease);
        self
    }

    /// Accepts starts of workflows that are not registered: they wait, as `pending`, for a worker that
    /// knows them. Without it they are refused.
    pub fn keep_unknown_workflows(mut self) -> Builder {
        self.options.unknown_workflows = UnknownWorkflows::Wait;
        self
    }

    /// How long bodies may take to yield when the program is stopped (default: 10 s).
    pub fn stop_grace(mut self, grace: std::time::Duration) -> Builder {
        self.options.stop_grace = grace;
        self
    }

    /// The clock (default: that of the machine). For tests. At a server it is the clock of the server that counts.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Builder {
        self.clock = clock;
        self
    }

    /// Called with the rows of each batch after they were synced and before anybody is told. It
    /// holds up every commit: meant for live feeds and for fault injection. At a server these are the rows that
    /// this process writes, when the server has said that they are durable.
    pub fn after_sync(mut self, after_sync: AfterSync) -> Builder {
        self.after_sync = Some(after_sync);
        self
    }

    /// Makes every id that this process gives out from `seed`, and not from random bits. For
    /// simulations that have to run the same way again; two processes that work on one store must
    /// not have the same seed.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.options.worker = format!("seed-{seed}");
        self.options.seed = Some(seed);
        self
    }

    /// The `process`th process of a test, the same each time it is run.
    pub(crate) fn under_test(mut self, process: u64, intercept: Arc<dyn Intercept>) -> Builder {
        self.options.worker = format!("process-{process}");
        self.options.seed = Some(process);
        self.options.intercept = Some(intercept);
        self
    }

    /// Opens the store, takes over what an earlier process left open, and begins to work.
    ///
    /// # Errors
    /// A store that cannot be opened (see [`ErrorKind`]); two workflows of one name and version; a
    /// bad workflow name or version.
    pub async fn run(self) -> Result<App, Error> {
        let programs = Programs { state: Arc::new(self.state), registered: self.programs };
        programs.check()?;
        let (bytes, max) = (self.options.payload_bytes_max, PAYLOAD_BYTES_MAX);
        if !(1..=max).contains(&bytes) {
            let message = format!("payload_bytes_max is {bytes}; it can be 1 to {max} bytes");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let now: NowUs = {
            let clock = self.clock.clone();
            Arc::new(move || clock.now_us())
        };
        let store = match self.place {
            Place::Store(store) => store,
            #[cfg(feature = "remote")]
            Place::Server(channel) => {
                let (slots, after_sync) = (self.slots, self.after_sync);
                return crate::remote::run(channel, programs, slots, after_sync, self.options)
                    .await;
            }
            #[cfg(feature = "remote")]
            Place::Url(url) if url.starts_with("http://") => {
                let channel = crate::remote::channel(&url)?;
                let (slots, after_sync) = (self.slots, self.after_sync);
                return crate::remote::run(channel, programs, slots, after_sync, self.options)
                    .await;
            }
            Place::Url(url) => open_store(&url, now, self.after_sync)?,
        };
        let programs = programs.make(self.options.payload_bytes_max);
        let engine = Engine::run(store, self.clock, programs, self.options).await?;
        Ok(App::new(engine))
    }
}

fn open_store(
    url: &str,
    now: NowUs,
    after_sync: Option<AfterSync>,
) -> Result<Arc<dyn Store>, Error> {
    if url == "memory:" {
        return Ok(Arc::new(MemoryStore::new(now)));
    }
    let options = SqliteOptions { now, after_sync, ..SqliteOptions::default() };
    Ok(Arc::new(SqliteStore::open(path_of(url)?, options)?))
}

fn path_of(url: &str) -> Result<&str, Error> {
    if url.starts_with("http://") {
        let message = format!(
            "{url:?} is the address of a server, and this program was built without the feature \"remote\" of \
             the crate backstitch; add it in Cargo.toml"
        );
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    if url.starts_with("https://") {
        let message = format!(
            "{url:?} asks for TLS, which servers do not have yet; write \"http://HOST:PORT\", and lead it through \
             a tunnel if the network between is not yours"
        );
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    url.strip_prefix("sqlite:").ok_or_else(|| {
        let message = format!(
            "{url:?} names no store; write \"sqlite:PATH\" for a file, \"memory:\" for tests in one process, or \
             \"http://HOST:PORT\" for a server (with the feature \"remote\")"
        );
        Error::new(ErrorKind::Invalid, message)
    })
}
