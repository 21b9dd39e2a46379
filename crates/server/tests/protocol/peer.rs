//! A server, and a worker that says what the test tells it to say.

use std::sync::Arc;
use std::time::Duration;

use backstitch_api::worker as wire;
use backstitch_core::id::{Key, KeyKind, Ordinal};
use backstitch_core::payload::Payload;
use backstitch_core::retry::{StepPolicy, UndoPolicy};
use backstitch_core::row::Row;
use backstitch_core::session::{Asked, AskedKind, AttemptEnd, Report, RowOut, Session};
use backstitch_core::status::Status;
use backstitch_engine::engine::UnknownWorkflows;
use backstitch_engine::start::{Conflict, Retention, Reuse, StartAnswer, StartRequest};
use backstitch_engine::{Clock, Engine, EngineOptions, ManualClock};
use backstitch_server::grpc::WorkerService;
use backstitch_store::Store;
use backstitch_store::memory::MemoryStore;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::Streaming;
use tonic::transport::{Channel, Server};
use wire::from_server::Message;
use wire::from_worker::Message as Said;
use wire::worker_client::WorkerClient;

pub const LEASE: Duration = Duration::from_secs(15);
pub const T0: i64 = 1_700_000_000_000_000;

pub struct Peer {
    pub engine: Engine,
    pub clock: ManualClock,
    pub channel: Channel,
}

impl Peer {
    pub async fn start() -> Peer {
        Peer::start_on_memory().await.0
    }

    pub async fn start_on_memory() -> (Peer, Arc<MemoryStore>) {
        let clock = ManualClock::new(T0);
        let now = clock.clone();
        let store = Arc::new(MemoryStore::new(Arc::new(move || now.now_us())));
        (Peer::on(store.clone(), clock).await, store)
    }

    pub async fn on(store: Arc<dyn Store>, clock: ManualClock) -> Peer {
        let options = EngineOptions {
            lease: Some(LEASE),
            unknown_workflows: UnknownWorkflows::Wait,
            ..EngineOptions::default()
        };
        let engine = Engine::run(store, Arc::new(clock.clone()), Vec::new(), options).await;
        let engine = engine.expect("an empty store opens");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let service = WorkerService::server(engine.clone());
        let incoming = futures_util::stream::unfold(listener, |listener| async {
            let accepted = listener.accept().await.map(|(stream, _)| stream);
            Some((accepted, listener))
        });
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
        let channel = Channel::from_shared(format!("http://{address}")).expect("it is a URL");
        let channel = channel.connect().await.expect("the server listens");
        Peer { engine, clock, channel }
    }

    pub async fn begin(&self, id: &str) -> StartAnswer {
        self.begin_with(id, Conflict::default()).await
    }

    pub async fn begin_with(&self, id: &str, conflict: Conflict) -> StartAnswer {
        let request = StartRequest {
            namespace: "default".into(),
            id: id.into(),
            workflow: "transfer".into(),
            version: "1".into(),
            input: Payload::json("1"),
            conflict,
            reuse: Reuse::default(),
            started_by: "ada".into(),
            request_id: String::new(),
            deadline: None,
            retention: Retention::default(),
            attributes: Vec::new(),
            restart: None,
        };
        self.engine.start(request).await.expect("it can be started")
    }

    pub async fn status(&self, id: &str) -> Status {
        let info = self.engine.newest("default", id).await.expect("it is there");
        let view = self.engine.view(info.run).await.expect("it can be read");
        view.status()
    }

    /// A worker with so many slots.
    pub async fn worker(&self, slots: u32) -> Talk {
        self.talk(hello(slots)).await.expect("it is taken on")
    }

    pub async fn talk(&self, hello: wire::Hello) -> Result<Talk, tonic::Status> {
        self.say(Said::Hello(hello)).await
    }

    /// Opens a stream with this as the first message.
    pub async fn say(&self, first: Said) -> Result<Talk, tonic::Status> {
        let (out, mut outgoing) = mpsc::channel(64);
        out.send(wire::FromWorker { message: Some(first) }).await.expect("it has room");
        let stream = futures_util::stream::poll_fn(move |cx| outgoing.poll_recv(cx));
        let mut client = WorkerClient::new(self.channel.clone());
        let incoming = client.work(stream).await?.into_inner();
        let mut talk = Talk { out, incoming, welcome: wire::Welcome::default() };
        match talk.next().await? {
            Message::Welcome(welcome) => talk.welcome = welcome,
            other => panic!("the first message is Welcome, and not {other:?}"),
        }
        Ok(talk)
    }
}

pub fn hello(slots: u32) -> wire::Hello {
    let workflow =
        wire::Workflow { name: "transfer".into(), version: "1".into(), event_types: None };
    wire::Hello {
        protocol_min: 1,
        protocol_max: 1,
        session: vec![7; 16],
        name: "w".into(),
        sdk: "test 1".into(),
        workflows: vec![workflow],
        slots,
        held: Vec::new(),
        queues: Vec::new(),
    }
}

/// What a worker and a server say to each other on one stream.
pub struct Talk {
    out: mpsc::Sender<wire::FromWorker>,
    incoming: Streaming<wire::FromServer>,
    pub welcome: wire::Welcome,
}

impl Talk {
    pub async fn say(&self, said: Said) {
        assert!(self.is_heard(said).await, "the stream is open");
    }

    /// Says something, and gives whether the stream was open.
    pub async fn is_heard(&self, said: Said) -> bool {
        self.out.send(wire::FromWorker { message: Some(said) }).await.is_ok()
    }

    pub async fn next(&mut self) -> Result<Message, tonic::Status> {
        match self.incoming.message().await? {
            Some(message) => Ok(message.message.expect("a server says nothing empty")),
            None => Err(tonic::Status::cancelled("the server has ended the stream")),
        }
    }

    /// Ends the stream, and waits until the server has ended it too.
    pub async fn leave(self) {
        let Talk { out, mut incoming, .. } = self;
        drop(out);
        while let Ok(Some(_)) = incoming.message().await {}
    }

    pub async fn lease(&mut self) -> Leasehold {
        match self.next().await {
            Ok(Message::Lease(lease)) => Leasehold::new(lease),
            other => panic!("a lease was to come, and not {other:?}"),
        }
    }

    pub async fn answer(&mut self) -> wire::Answer {
        match self.next().await {
            Ok(Message::Answer(answer)) => answer,
            other => panic!("an answer was to come, and not {other:?}"),
        }
    }

    /// Appends, and gives the instant at which the row was committed.
    pub async fn write(&mut self, append: wire::Append) -> i64 {
        self.say(Said::Append(append)).await;
        durable_at(self.answer().await)
    }

    /// Appends what is refused, and gives why.
    pub async fn write_in_vain(&mut self, append: wire::Append) -> wire::Refused {
        self.say(Said::Append(append)).await;
        match self.answer().await.answer {
            Some(wire::answer::Answer::Refused(refused)) => refused,
            other => panic!("it was to be refused, and not {other:?}"),
        }
    }

    /// Pings, and waits for the answer: everything that was said before has been heard.
    pub async fn ping(&mut self) {
        self.say(Said::Ping(wire::Ping { number: 5 })).await;
        match self.next().await {
            Ok(Message::Pong(pong)) => assert_eq!(pong.number, 5),
            other => panic!("a pong was to come, and not {other:?}"),
        }
    }
}

pub fn durable_at(answer: wire::Answer) -> i64 {
    match answer.answer {
        Some(wire::answer::Answer::DurableAtUs(at_us)) => at_us,
        other => panic!("it was to be written, and not {other:?}"),
    }
}

/// A run, as the worker has it: its code asks for the step `pay`, which has an undo, and returns.
pub struct Leasehold {
    pub lease: wire::Lease,
    pub session: Session,
    /// What the worker's clock shows.
    pub now_us: i64,
    appends: u8,
}

impl Leasehold {
    pub fn new(lease: wire::Lease) -> Leasehold {
        let rows = lease.rows.iter().map(|row| Row::decode(row.clone()).expect("it is a row"));
        let rows: Vec<Row> = rows.collect();
        let mut session = Session::load(&rows, lease.fence, "w", Status::Running, None)
            .expect("the journal can be read");
        session.attach();
        while session.is_replaying() {
            let group = session.next_group().expect("there are groups left");
            session.end_group(code(group.show.is_some())).expect("it fits");
        }
        session.recover(T0, |_| false, |_| false);
        Leasehold { lease, session, now_us: T0, appends: 0 }
    }

    /// The next row.
    pub fn row(&mut self) -> Option<wire::Append> {
        self.session.open_row(self.now_us);
        while let Some(group) = self.session.next_group() {
            self.session.end_group(code(group.show.is_some())).expect("it fits");
        }
        self.appends += 1;
        // Other than those of an earlier lease of the run.
        let mut append_id = [self.appends; 16];
        append_id[..8].copy_from_slice(&self.lease.fence.to_be_bytes());
        let out = self.session.close_row(append_id)?;
        Some(append(&self.lease, out))
    }

    /// The body of the step returned.
    pub fn paid(&mut self, ord: Ordinal) {
        let attempt = self.session.run().step(ord).map_or(0, |step| step.attempts);
        self.session.step_ended(ord, attempt, AttemptEnd::Returned(Payload::json("2")), T0);
    }

    pub fn release(&self) -> Said {
        let wire::Lease { run, fence, .. } = self.lease;
        let inbox = self.session.run().inbox_read;
        Said::Release(wire::Release { run, fence, inbox, trouble: String::new() })
    }

    pub fn held(&self, seq: u64) -> wire::Held {
        let wire::Lease { run, fence, .. } = self.lease;
        wire::Held { run, fence, seq, inbox: self.session.run().inbox_read }
    }
}

fn append(lease: &wire::Lease, out: RowOut) -> wire::Append {
    let header = out.draft.header;
    wire::Append {
        run: lease.run,
        fence: lease.fence,
        append_id: header.append_id,
        seq: header.seq,
        turn_now_us: header.now_us,
        version: header.version.unwrap_or_default(),
        events: out.draft.events.into(),
    }
}

fn code(paid: bool) -> Report {
    if paid {
        return Report { ended: Some(Ok(Payload::json("2"))), ..Report::default() };
    }
    let key = Key { scope: Vec::new(), kind: KeyKind::Step as i32, name: "pay".into(), count: 1 };
    let (policy, undo) = (StepPolicy::step_default(), Some(UndoPolicy::undo_default()));
    let what = AskedKind::Step { policy, undo };
    Report { asks: vec![Asked { key, place: "here".into(), what }], ..Report::default() }
}
