//! Working for a server: the engine drives the runs that the server leases to this program, and the server
//! keeps their journals. And asking a server ([`client`]).
//!
//! The engine is the one that works on a file, on a store whose runs come and go ([`store::WorkerStore`]).
//! [`leases`] knows what becomes of each run, [`link`] keeps the connection up, [`clock`] knows the time.

mod client;
mod clock;
mod leases;
mod link;
mod store;
mod wire;

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use backstitch_api::worker as api;
use backstitch_core::limits::RunLimits;
use backstitch_engine::{Engine, EngineOptions, SystemClock};
use backstitch_store::AfterSync;
use tokio::sync::{mpsc, oneshot};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use uuid::Uuid;

use crate::app::App;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::open::Programs;
use crate::remote::clock::RemoteClock;
use crate::remote::leases::{Leases, Notice};
use crate::remote::store::Card;
pub(crate) use crate::remote::store::WorkerStore;

/// The largest message that is taken from a server: a lease with the beginning of a journal, and its inbox.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// How long a connection may take to come about.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// How often a connection is asked whether it is still there, and how long it may take to say so.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// So many runs a worker has at once that does not say so itself.
pub(crate) const SLOTS_DEFAULT: u32 = 1_000;

/// The connection to the server at `url`, which is made when it is first needed.
pub(crate) fn channel(url: &str) -> Result<Channel, Error> {
    let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| {
        let message = format!("{url:?} names no server ({error}); write \"http://HOST:PORT\"");
        Error::new(ErrorKind::Invalid, message)
    })?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_WAIT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true);
    Ok(endpoint.connect_lazy())
}

/// Connects to a server, to ask it.
pub(crate) async fn connect(channel: &Channel) -> Result<Client, Error> {
    let about = client::about(channel).await.map_err(|status| not_there(&status))?;
    let limits = about.limits.as_ref();
    Ok(Client::new(client::guest(channel, Arc::new(SystemClock), limits)))
}

/// Begins to work for a server.
pub(crate) async fn run(
    channel: Channel,
    programs: Programs,
    slots: u32,
    after_sync: Option<AfterSync>,
    mut options: EngineOptions,
) -> Result<App, Error> {
    if programs.registered().is_empty() {
        let message = "this program has no workflow, and so nothing to work with; `register` one, or ask the server \
                       through `Backstitch::connect`";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let workflows = programs.registered().iter().map(|workflow| api::Workflow {
        name: workflow.name.clone(),
        version: workflow.version.clone(),
        // One that names none takes any, which is what it means not to tell.
        event_types: (!workflow.events.is_empty())
            .then(|| api::EventTypes { types: workflow.events.to_vec() }),
    });
    let (session, name) = (session(), options.worker.clone());
    let card = Card { session, name, workflows: workflows.collect(), slots };
    let (notices, told) = mpsc::unbounded_channel();
    let clock = RemoteClock::default();
    let leases = Leases::new(notices);
    let worker = WorkerStore::new(card, channel.clone(), clock.clone(), leases, after_sync);
    let worker = Arc::new(worker);
    let (first, welcomed) = oneshot::channel();
    tokio::spawn(link::run(worker.clone(), first));
    let welcomed = welcomed.await.unwrap_or_else(|_| Err(Status::cancelled("it was closed")));
    let limits = welcomed.map_err(|status| not_welcome(&status))?;
    tokio::spawn(link::watch(worker.clone()));
    apply(&mut options, &limits);
    let guest = client::guest(&channel, Arc::new(clock.clone()), Some(&limits));
    let programs = programs.make(options.payload_bytes_max);
    let engine = Engine::run(worker.clone(), Arc::new(clock), programs, options).await?;
    tokio::spawn(pass_on(engine.clone(), worker.clone(), told));
    Ok(App::of_worker(Client::new(guest), engine, worker))
}

/// The bounds of a run are those of its server: it would otherwise depend on the worker how it ends.
fn apply(options: &mut EngineOptions, limits: &api::Limits) {
    let usual = RunLimits::default();
    let given = |value: u64| usize::try_from(value).ok().filter(|value| *value > 0);
    options.limits = RunLimits {
        asks_max: given(limits.asks_max).unwrap_or(usual.asks_max),
        waits_open_max: given(limits.waits_open_max).unwrap_or(usual.waits_open_max),
        journal_bytes_max: match limits.journal_bytes_max {
            0 => usual.journal_bytes_max,
            bytes => bytes,
        },
    };
    let bytes = given(limits.payload_bytes_max);
    options.payload_bytes_max = bytes.unwrap_or(options.payload_bytes_max);
}

/// Tells the engine what becomes of its runs.
async fn pass_on(
    engine: Engine,
    worker: Arc<WorkerStore>,
    mut told: mpsc::UnboundedReceiver<Notice>,
) {
    let mut stage = worker.stage.subscribe();
    let closed = async move {
        let _ = stage.wait_for(|stage| *stage == store::Stage::Closed).await;
    };
    tokio::pin!(closed);
    loop {
        let notice = tokio::select! {
            notice = told.recv() => notice,
            () = &mut closed => return,
        };
        match notice {
            // Not if it was left, and leased again, in the meantime.
            Some(Notice::Lost(run)) if worker.leases().is_gone(run) => engine.give_up(run),
            Some(Notice::Lost(_)) => {}
            Some(Notice::HandBack(run)) => engine.hand_back(run),
            None => return,
        }
    }
}

/// 16 random bytes.
fn session() -> [u8; 16] {
    // Half of a UUID of version 7 is random.
    let half = || Uuid::now_v7().as_u64_pair().1;
    (u128::from(half()) << 64 | u128::from(half())).to_be_bytes()
}

fn not_welcome(status: &Status) -> Error {
    not_answered("the server has not taken this worker on", status)
}

fn not_there(status: &Status) -> Error {
    not_answered("the server does not answer", status)
}

fn not_answered(what: &str, status: &Status) -> Error {
    if speaks_no_http2(status) {
        let message =
            format!("{what}: what answers there is no Backstitch server; look at the address");
        return Error::new(ErrorKind::Invalid, message);
    }
    let (kind, way_out) = match status.code() {
        Code::FailedPrecondition => (ErrorKind::Invalid, "update the older of the two"),
        Code::InvalidArgument => (ErrorKind::Invalid, "mend what it names"),
        Code::Unimplemented => (
            ErrorKind::Invalid,
            "look whether a Backstitch server of this version is at the address",
        ),
        Code::ResourceExhausted => (ErrorKind::Unavailable, "stop other workers first"),
        _ => (ErrorKind::Unavailable, "look whether it runs there, and try again"),
    };
    let message = format!("{what}: {status}; {way_out}");
    Error::new(kind, message)
}

/// The first bytes of an answer in HTTP/1, or in nearly anything else, are the length of a frame that may not be.
fn speaks_no_http2(status: &Status) -> bool {
    let whys = std::iter::successors(status.source(), |why| (*why).source());
    whys.map(ToString::to_string).any(|why| why.contains("frame with invalid size"))
}
