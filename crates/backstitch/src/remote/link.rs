//! The connection of a worker: opened, kept up, and opened again.
//!
//! **Invariant:** a term begins at the sending of what was answered, and what runs ends a fifth of the lease
//! before the lease does: however late this machine gets round to it, the server is later.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use backstitch_api::PROTOCOL;
use backstitch_api::worker::from_server::Message as Heard;
use backstitch_api::worker::from_worker::Message as Said;
use backstitch_api::worker::{self as api, FromServer, FromWorker};
use backstitch_core::id::draw;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tonic::codegen::tokio_stream::Stream;
use tonic::{Status, Streaming};

use crate::remote::clock::Tick;
use crate::remote::store::{Stage, WorkerStore};
use crate::remote::wire::from_worker;

/// How long a server may take to answer a Hello.
const WELCOME_WAIT: Duration = Duration::from_secs(10);
/// The first pause before the worker connects again; each one is twice as long as the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// The longest pause: a server that is back is found within it.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// A lease is prolonged so often while it lasts, so that one answer may be lost.
const PINGS_PER_LEASE: u32 = 3;
/// How long a lease may go on without a look at the wall clock.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// So many pings may stand unanswered before the connection is taken for broken.
const PINGS_UNANSWERED_MAX: usize = 2;

/// What is said on a stream, as tonic sends it.
pub(crate) struct Outgoing<T>(pub mpsc::UnboundedReceiver<T>);

impl<T> Stream for Outgoing<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_recv(cx)
    }
}

/// A connection on which the server has said Welcome.
struct Connection {
    out: mpsc::UnboundedSender<FromWorker>,
    heard: Streaming<FromServer>,
    lease: Duration,
}

/// Keeps the connection up until the worker is closed. `first` is told how the first try went; if it failed,
/// there is no other.
pub(crate) async fn run(
    worker: Arc<WorkerStore>,
    first: oneshot::Sender<Result<api::Limits, Status>>,
) {
    let mut stage = worker.stage.subscribe();
    let mut first = Some(first);
    let mut tries = 0;
    while *stage.borrow_and_update() == Stage::Working {
        let ended = match connect(&worker).await {
            Ok((connection, limits)) => {
                tries = 0;
                if let Some(first) = first.take() {
                    let _ = first.send(Ok(limits));
                }
                let ended = listen(&worker, connection).await;
                worker.leases().disconnected();
                ended
            }
            Err(status) => match first.take() {
                Some(first) => return drop(first.send(Err(status))),
                None => status,
            },
        };
        if *stage.borrow() != Stage::Working {
            break;
        }
        tracing::warn!(code = ?ended.code(), why = ended.message(), "no connection to the server; trying again");
        let pause = pause(&worker, tries);
        tries += 1;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stage.changed() => {}
        }
    }
    worker.stage.send_replace(Stage::Closed);
}

/// Half of it is left to chance, so that workers that lost a server together do not come back together.
fn pause(worker: &WorkerStore, tries: u32) -> Duration {
    let whole = PAUSE_FIRST.saturating_mul(1 << tries.min(16)).min(PAUSE_MAX);
    let seed = worker.card.session.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    let chance = draw(seed, tries.into(), 0) % 1_000;
    whole / 2 + whole / 2 * u32::try_from(chance).unwrap_or(0) / 1_000
}

/// Says Hello, and waits for the Welcome.
async fn connect(worker: &WorkerStore) -> Result<(Connection, api::Limits), Status> {
    let (out, outgoing) = mpsc::unbounded_channel();
    let (since, held) = (Tick::now(), worker.leases().hello());
    let card = &worker.card;
    let hello = api::Hello {
        protocol_min: PROTOCOL,
        protocol_max: PROTOCOL,
        session: card.session.to_vec(),
        name: card.name.clone(),
        sdk: concat!("backstitch-rust ", env!("CARGO_PKG_VERSION")).into(),
        workflows: card.workflows.clone(),
        slots: card.slots,
        held: held.clone(),
        queues: Vec::new(),
    };
    let _ = out.send(from_worker(Said::Hello(hello)));
    let mut stub = worker.stub();
    let welcomed = async {
        let mut heard = stub.work(Outgoing(outgoing)).await?.into_inner();
        match next(&mut heard).await? {
            Heard::Welcome(welcome) => Ok((heard, welcome)),
            _ => Err(Status::internal("the server has said something before its Welcome")),
        }
    };
    let (heard, welcome) = timeout(WELCOME_WAIT, welcomed)
        .await
        .map_err(|_| Status::deadline_exceeded("the server has not answered a Hello"))??;
    if welcome.protocol != PROTOCOL {
        let message = format!(
            "the server speaks protocol {}, and this worker {PROTOCOL}: update the older of the two",
            welcome.protocol
        );
        return Err(Status::failed_precondition(message));
    }
    let lease = Duration::from_micros(welcome.lease_us);
    if lease.is_zero() {
        return Err(Status::internal("the server leases for no time at all"));
    }
    worker.clock.heard(welcome.now_us);
    let mut leases = worker.leases();
    leases.in_time();
    leases.prolong(since, term(lease));
    leases.connected(&welcome.kept, &held, out.clone());
    Ok((Connection { out, heard, lease }, welcome.limits.unwrap_or_default()))
}

/// A fifth of the lease is for what takes its time to end.
fn term(lease: Duration) -> Duration {
    lease / 5 * 4
}

async fn next(heard: &mut Streaming<FromServer>) -> Result<Heard, Status> {
    loop {
        match heard.message().await? {
            Some(FromServer { message: Some(message) }) => return Ok(message),
            // Of a later protocol.
            Some(FromServer { message: None }) => {}
            None => return Err(Status::unavailable("the server has closed the connection")),
        }
    }
}

/// Does what the server says, until the connection ends.
async fn listen(worker: &WorkerStore, connection: Connection) -> Status {
    let Connection { out, mut heard, lease } = connection;
    let mut stage = worker.stage.subscribe();
    let period = lease / PINGS_PER_LEASE;
    let mut pings = interval_at(Instant::now() + period, period);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut unanswered: Vec<(u64, Tick)> = Vec::new();
    let mut number = 0;
    let mut out = Some(out);
    loop {
        match *stage.borrow_and_update() {
            Stage::Working => {}
            // The server hears what was said before, and closes.
            Stage::Closing => out = None,
            Stage::Closed => return Status::cancelled("the worker was closed"),
        }
        let Some(time_left) = worker.leases().time_left() else {
            return Status::deadline_exceeded("the server has not answered in time");
        };
        tokio::select! {
            message = next(&mut heard) => match message {
                Ok(Heard::Pong(pong)) => {
                    if let Some(place) = unanswered.iter().position(|(sent, _)| *sent == pong.number) {
                        let (_, since) = unanswered.drain(..=place).next_back().expect("there is one");
                        worker.clock.heard(pong.now_us);
                        let mut leases = worker.leases();
                        if leases.in_time() {
                            leases.prolong(since, term(lease));
                        }
                    }
                }
                Ok(message) => take_in(worker, message),
                Err(status) => return status,
            },
            _ = pings.tick() => {
                if unanswered.len() >= PINGS_UNANSWERED_MAX {
                    return Status::deadline_exceeded("the server does not answer");
                }
                number += 1;
                unanswered.push((number, Tick::now()));
                if let Some(out) = &out {
                    let _ = out.send(from_worker(Said::Ping(api::Ping { number })));
                }
            }
            () = tokio::time::sleep(time_left.min(LOOK_AGAIN)) => drop(worker.leases().in_time()),
            _ = stage.changed() => {}
        }
    }
}
fn take_in(worker: &WorkerStore, message: Heard) {
    let mut leases = worker.leases();
    match message {
        Heard::Lease(lease) => leases.leased(lease),
        Heard::Answer(answer) => leases.answered(answer),
        Heard::Inbox(put) => leases.put(put),
        Heard::Revoke(revoke) => leases.revoked(revoke),
        // Said once, or taken in elsewhere.
        Heard::Welcome(_) | Heard::Pong(_) => {}
    }
}

/// Drops everything when its time is over, also while there is no connection.
pub(crate) async fn watch(worker: Arc<WorkerStore>) {
    while *worker.stage.borrow() != Stage::Closed {
        let left = worker.leases().time_left().unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN);
        tokio::time::sleep(left).await;
        worker.leases().in_time();
    }
}
