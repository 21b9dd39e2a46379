//! The service to which workers connect.

use std::pin::Pin;
use std::time::Duration;

use backstitch_api::worker as wire;
use backstitch_api::{PROTOCOL, worker::from_server::Message};
use backstitch_core::limits::ROW_PAYLOAD_BYTES_SOFT_MAX;
use backstitch_engine::workers::{
    Connection, Desk, Farewell, Held, Introduction, JOURNAL_PAGE_MAX, OfferedRow,
};
use backstitch_engine::{Engine, Error, ErrorKind};
use backstitch_store::RunNo;
use futures_util::Stream;
use tokio::sync::{mpsc, oneshot};
use tonic::{Request, Response, Status, Streaming};
use wire::from_worker;
use wire::worker_server::{Worker, WorkerServer};

use crate::grpc::outgoing::Outgoing;
use crate::http::limits::HELLO_TIME_MAX;
use crate::paging;

/// What an append may have besides its payloads, in bytes: names, policies, failures.
const APPEND_OVERHEAD_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a message may have besides an append, in bytes.
const MESSAGE_OVERHEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves workers from one engine.
pub struct WorkerService {
    engine: Engine,
    /// How long a worker may take to say Hello.
    hello_time_max: Duration,
}

impl WorkerService {
    /// The service, ready to be mounted.
    pub fn server(engine: Engine) -> WorkerServer<WorkerService> {
        WorkerService::server_within(engine, HELLO_TIME_MAX)
    }

    /// The same, with another bound on how long a worker may take to say Hello.
    pub fn server_within(engine: Engine, hello_time_max: Duration) -> WorkerServer<WorkerService> {
        let message_bytes_max = append_bytes_max(&engine) + MESSAGE_OVERHEAD_BYTES_MAX;
        WorkerServer::new(WorkerService { engine, hello_time_max })
            .max_decoding_message_size(message_bytes_max)
            .max_encoding_message_size(usize::MAX)
    }

    fn welcome(&self, connection: &Connection) -> wire::Welcome {
        let lease = self.engine.lease().expect("a worker was taken on");
        wire::Welcome {
            protocol: PROTOCOL,
            server: concat!("backstitch ", env!("CARGO_PKG_VERSION")).into(),
            lease_us: u64::try_from(lease.as_micros()).expect("a lease has a bound"),
            now_us: self.engine.clock().now_us(),
            limits: Some(crate::grpc::limits(&self.engine)),
            kept: connection
                .kept
                .iter()
                .map(|(run, fence)| wire::Kept { run: run.0, fence: *fence })
                .collect(),
        }
    }
}

pub(super) fn append_bytes_max(engine: &Engine) -> usize {
    ROW_PAYLOAD_BYTES_SOFT_MAX + engine.payload_bytes_max() + APPEND_OVERHEAD_BYTES_MAX
}

#[tonic::async_trait]
impl Worker for WorkerService {
    type WorkStream = Pin<Box<dyn Stream<Item = Result<wire::FromServer, Status>> + Send>>;

    async fn work(
        &self,
        request: Request<Streaming<wire::FromWorker>>,
    ) -> Result<Response<Self::WorkStream>, Status> {
        let mut incoming = request.into_inner();
        let time_max = self.hello_time_max;
        let first = tokio::time::timeout(time_max, incoming.message()).await;
        let first = first.map_err(|_| {
            Status::deadline_exceeded(format!(
                "no Hello came within {time_max:?} of the opening of the stream"
            ))
        })??;
        let connection = self.engine.join(introduction(first)?).await.map_err(status)?;
        let welcome = self.welcome(&connection);
        let Connection { mail, desk, .. } = connection;
        let (outgoing, replies, end) = Outgoing::new(welcome, mail);
        // A task of its own: it goes on while the worker reads slowly.
        let reader = Reader { engine: self.engine.clone(), desk, replies };
        tokio::spawn(reader.read(incoming, end));
        Ok(Response::new(Box::pin(outgoing)))
    }

    async fn journal(
        &self,
        request: Request<wire::JournalRequest>,
    ) -> Result<Response<wire::JournalPage>, Status> {
        let wire::JournalRequest { session, run, fence, after_seq, limit } = request.into_inner();
        let session = sixteen("session", session)?;
        let limit = (limit as usize).clamp(1, JOURNAL_PAGE_MAX);
        let lease = (RunNo(run), fence);
        let read = |after, limit| self.engine.journal_for_worker(&session, lease, after, limit);
        let page = paging::page(after_seq, limit, read, paging::journal_row).await;
        let (rows, last) = page.map_err(status)?;
        let rows = rows.into_iter().map(Vec::from).collect();
        Ok(Response::new(wire::JournalPage { rows, last }))
    }
}

/// Hears what one worker says on one connection.
struct Reader {
    engine: Engine,
    desk: Desk,
    replies: mpsc::Sender<Message>,
}

impl Reader {
    async fn read(self, mut incoming: Streaming<wire::FromWorker>, end: oneshot::Sender<Status>) {
        let why = tokio::select! {
            why = self.read_all(&mut incoming) => why,
            () = self.replies.closed() => return,
            over = self.desk.until_over() => Some(farewell(over)),
        };
        if let Some(why) = why {
            // A worker that is gone hears nothing.
            let _ = end.send(why);
        }
    }

    /// Reads until the worker ends the stream, or says what cannot be.
    async fn read_all(&self, incoming: &mut Streaming<wire::FromWorker>) -> Option<Status> {
        loop {
            match incoming.message().await {
                Ok(Some(message)) => {
                    if let Err(end) = self.hear(message).await {
                        return Some(end);
                    }
                }
                Ok(None) => return None,
                // Its connection broke, or it sent what cannot be decoded.
                Err(end) => return Some(end),
            }
        }
    }

    async fn hear(&self, message: wire::FromWorker) -> Result<(), Status> {
        use from_worker::Message as Said;
        match message.message {
            Some(Said::Hello(_)) => {
                return Err(Status::invalid_argument("Hello is said once, at the beginning"));
            }
            Some(Said::Ping(wire::Ping { number })) => {
                self.desk.ping();
                let now_us = self.engine.clock().now_us();
                let pong = Message::Pong(wire::Pong { number, now_us });
                // A worker that is gone hears nothing.
                let _ = self.replies.send(pong).await;
            }
            Some(Said::Append(append)) => {
                let row = offered(append, append_bytes_max(&self.engine))?;
                self.desk.append(row).await;
            }
            Some(Said::Release(wire::Release { run, fence, inbox: _, trouble })) => {
                let trouble = Some(trouble).filter(|trouble| !trouble.is_empty());
                self.desk.release(RunNo(run), fence, trouble).await;
            }
            Some(Said::Drain(wire::Drain {})) => self.desk.drain(),
            None => {
                let message = "a message without content: either it is empty, or of a protocol newer \
                               than was agreed on";
                return Err(Status::invalid_argument(message));
            }
        }
        Ok(())
    }
}

fn farewell(over: Farewell) -> Status {
    match over {
        Farewell::NotHeardOf => Status::aborted(
            "the worker was not heard of for as long as its leases last: they have ended",
        ),
        Farewell::ConnectedAnew => Status::aborted("the worker has another connection"),
        Farewell::Stopped => Status::unavailable("the server is being stopped: connect again"),
    }
}

fn introduction(first: Option<wire::FromWorker>) -> Result<Introduction, Status> {
    let Some(from_worker::Message::Hello(hello)) = first.and_then(|first| first.message) else {
        return Err(Status::invalid_argument("the first message on a stream has to be Hello"));
    };
    let (min, max) = (hello.protocol_min, hello.protocol_max);
    if !(min..=max).contains(&PROTOCOL) {
        let who = if min > PROTOCOL { "the server" } else { "the worker" };
        return Err(Status::failed_precondition(format!(
            "the worker speaks the protocols {min} to {max}, and this server (backstitch {}) \
             speaks {PROTOCOL}: {who} is to be updated",
            env!("CARGO_PKG_VERSION")
        )));
    }
    if let Some(queue) = hello.queues.iter().find(|queue| *queue != "default") {
        return Err(Status::invalid_argument(format!(
            "the worker serves the queue {queue:?}; this server knows only \"default\""
        )));
    }
    let held = |held: wire::Held| Held {
        run: RunNo(held.run),
        fence: held.fence,
        seq: held.seq,
        inbox: held.inbox,
    };
    let code = |workflow: &wire::Workflow| (workflow.name.clone(), workflow.version.clone());
    let told = |workflow: &wire::Workflow| {
        let types = workflow.event_types.as_ref()?.types.clone();
        Some((code(workflow), types))
    };
    Ok(Introduction {
        session: sixteen("session", hello.session)?,
        name: hello.name,
        sdk: hello.sdk,
        workflows: hello.workflows.iter().map(code).collect(),
        event_types: hello.workflows.iter().filter_map(told).collect(),
        slots: hello.slots as usize,
        held: hello.held.into_iter().map(held).collect(),
    })
}

fn offered(append: wire::Append, bytes_max: usize) -> Result<OfferedRow, Status> {
    let bytes = append.events.len();
    if bytes > bytes_max {
        return Err(Status::invalid_argument(format!(
            "the events of row {} of run {} have {bytes} bytes; an append may have {bytes_max}",
            append.seq, append.run
        )));
    }
    let append_id = sixteen("append_id", append.append_id)?;
    Ok(OfferedRow {
        run: RunNo(append.run),
        fence: append.fence,
        append_id: append_id.to_vec(),
        seq: append.seq,
        turn_now_us: append.turn_now_us,
        version: append.version,
        events: append.events.into(),
    })
}

fn sixteen(what: &str, bytes: Vec<u8>) -> Result<[u8; 16], Status> {
    <[u8; 16]>::try_from(bytes).map_err(|bytes| {
        Status::invalid_argument(format!("`{what}` has {} bytes; it has 16", bytes.len()))
    })
}

fn status(error: Error) -> Status {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::Invalid => Status::invalid_argument(message),
        ErrorKind::NotFound => Status::not_found(message),
        ErrorKind::Full => Status::resource_exhausted(message),
        ErrorKind::Stopped | ErrorKind::Store(_) => Status::unavailable(message),
        ErrorKind::Refused
        | ErrorKind::IdInUse
        | ErrorKind::OtherInput
        | ErrorKind::UnknownWorkflow
        | ErrorKind::Unreadable => Status::failed_precondition(message),
    }
}
