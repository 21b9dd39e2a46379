//! Asking a server: what is read comes as from a store ([`ClientStore`]), and what changes something is asked of the
//! server's engine ([`RemoteHost`]).

mod news;
mod words;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use backstitch_api::PROTOCOL;
use backstitch_api::client::{self as api, client_client::ClientClient};
use backstitch_core::attribute::{AttributeChange, AttributeValue};
use backstitch_core::id::RunId;
use backstitch_core::inbox::{InboxKind, InboxRow, Verb};
use backstitch_engine::events::{EventAccepted, EventPost};
use backstitch_engine::host::{Awaited, Host, Told};
use backstitch_engine::life::RestartRequest;
use backstitch_engine::program::BoxFuture;
use backstitch_engine::start::{StartAnswer, StartRequest};
use backstitch_engine::verbs::Sent;
use backstitch_engine::{Clock, Engine, EngineOptions, Error};
use backstitch_store::{
    Answer, AttentionPlace, AttentionRow, Call, Change, ErrorKind as StoreErrorKind, RunInfo,
    RunNo, Store, StoreError, StoreFuture,
};
use bytes::Bytes;
use tokio::sync::watch;
use tonic::transport::Channel;
use tonic::{Response, Status};

use crate::remote::MESSAGE_BYTES_MAX;
use crate::remote::client::news::{Heard, Watch};

type Stub = ClientClient<Channel>;

fn stub(channel: &Channel) -> Stub {
    ClientClient::new(channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX)
}

/// An engine that asks the server at the other end of `channel`.
pub(crate) fn guest(
    channel: &Channel,
    clock: Arc<dyn Clock>,
    limits: Option<&api::Limits>,
) -> Engine {
    let mut options = EngineOptions::default();
    if let Some(limits) = limits {
        super::apply(&mut options, limits);
    }
    let host = Arc::new(RemoteHost { stub: stub(channel), watch: Watch::new(stub(channel)) });
    let store = ClientStore { stub: stub(channel), news: watch::Sender::new(0) };
    Engine::visit_host(host, Arc::new(store), clock, options)
}

/// Asks whether the server is there, and whether the two fit together.
pub(crate) async fn about(channel: &Channel) -> Result<api::AboutAnswer, Status> {
    let request = api::AboutRequest { protocol_min: PROTOCOL, protocol_max: PROTOCOL };
    Ok(stub(channel).about(request).await?.into_inner())
}

/// The server's engine.
struct RemoteHost {
    stub: Stub,
    watch: Watch,
}

impl fmt::Debug for RemoteHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteHost")
    }
}

/// Asks, and reads the answer.
fn ask<A, T, F>(
    asked: F,
    read: impl FnOnce(A) -> Result<T, Error> + Send + 'static,
) -> BoxFuture<Result<T, Error>>
where
    F: Future<Output = Result<Response<A>, Status>> + Send + 'static,
{
    Box::pin(async move {
        let answer = asked.await.map_err(|status| words::error(&status))?;
        read(answer.into_inner())
    })
}

impl Host for RemoteHost {
    fn start(&self, request: StartRequest) -> BoxFuture<Result<StartAnswer, Error>> {
        let (mut stub, request) = (self.stub.clone(), words::start(request));
        ask(async move { stub.start(request).await }, words::started)
    }

    fn restart(
        &self,
        run: RunNo,
        request: RestartRequest,
    ) -> BoxFuture<Result<StartAnswer, Error>> {
        let mut stub = self.stub.clone();
        let RestartRequest { by, version, request_id } = request;
        let request = api::RestartRequest { run: run.0, by, version, request_id };
        ask(async move { stub.restart(request).await }, words::started)
    }

    fn send(
        &self,
        run: RunNo,
        kind: InboxKind,
        verb: Verb,
        request_id: &str,
    ) -> BoxFuture<Result<Sent, Error>> {
        let mut stub = self.stub.clone();
        let (kind, request_id) = (kind as u32, request_id.to_owned());
        let verb = Some(words::same(&verb));
        let request = api::SendRequest { run: run.0, kind, request_id, verb };
        ask(async move { stub.send(request).await }, |sent| {
            Ok(Sent { number: sent.number, changed: sent.changed })
        })
    }

    fn send_event(&self, run: RunNo, post: EventPost) -> BoxFuture<Result<EventAccepted, Error>> {
        let mut stub = self.stub.clone();
        let EventPost { event_type, payload, event_id, by } = post;
        let payload = Some(words::same(&payload));
        let request =
            api::SendEventRequest { run: run.0, r#type: event_type, payload, event_id, by };
        ask(async move { stub.send_event(request).await }, |accepted| {
            let api::SendEventAnswer { number, accepted_at_us, first } = accepted;
            Ok(EventAccepted { number, accepted_at_us, first })
        })
    }

    fn delete(&self, run: RunNo, by: &str, reason: &str) -> BoxFuture<Result<(), Error>> {
        let mut stub = self.stub.clone();
        let (by, reason) = (by.to_owned(), reason.to_owned());
        let request = api::DeleteRequest { run: run.0, by, reason };
        ask(async move { stub.delete(request).await }, |_| Ok(()))
    }

    fn outcome(&self, run: RunNo) -> BoxFuture<Told> {
        let heard = self.watch.wait(run, words::awaited(Awaited::Settled));
        Box::pin(async move {
            match heard.await {
                Heard::Answer(outcome) => {
                    let outcome = outcome.as_deref().and_then(words::outcome);
                    outcome.map_or(Told::Nothing { was_there: true }, Told::Outcome)
                }
                Heard::Nothing { was_there } => Told::Nothing { was_there },
            }
        })
    }

    fn wait(&self, run: RunNo, awaited: Awaited) -> BoxFuture<()> {
        let told = self.watch.wait(run, words::awaited(awaited));
        Box::pin(async move { drop(told.await) })
    }
}

/// What the server has, for those who look.
struct ClientStore {
    stub: Stub,
    /// Nobody tells: who waits asks the server.
    news: watch::Sender<u64>,
}

/// Reads, and makes what is wanted of the answer.
fn read<A, T, F>(
    asked: F,
    made: impl FnOnce(A) -> Result<T, StoreError> + Send + 'static,
) -> StoreFuture<T>
where
    F: Future<Output = Result<Response<A>, Status>> + Send + 'static,
{
    Box::pin(async move {
        let answer = asked.await.map_err(|status| words::store_error(&status))?;
        made(answer.into_inner())
    })
}

fn limit_of(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

impl Store for ClientStore {
    fn commit(&self, _: Change) -> StoreFuture<Answer> {
        let message = "a caller of a server changes nothing by itself";
        Box::pin(std::future::ready(Err(StoreError::new(StoreErrorKind::Rejected, message))))
    }

    fn fence(&self) -> u64 {
        0
    }

    fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    fn journal(&self, run: RunNo, after_seq: u64, limit: usize) -> StoreFuture<Vec<Bytes>> {
        let mut stub = self.stub.clone();
        Box::pin(async move {
            let mut rows: Vec<Bytes> = Vec::new();
            while rows.len() < limit {
                let after_seq = after_seq + rows.len() as u64;
                let limit = limit_of(limit - rows.len());
                let request = api::RowsRequest { run: run.0, after_seq, limit };
                let page = stub.rows(request).await.map_err(|s| words::store_error(&s))?;
                let page = page.into_inner();
                let is_last = page.last || page.rows.is_empty();
                rows.extend(page.rows.into_iter().map(Bytes::from));
                if is_last {
                    break;
                }
            }
            Ok(rows)
        })
    }

    fn newest(&self, namespace: &str, id: &str) -> StoreFuture<Option<RunInfo>> {
        let mut stub = self.stub.clone();
        let request = api::NewestRequest { namespace: namespace.to_owned(), id: id.to_owned() };
        read(async move { stub.newest(request).await }, words::run_answer)
    }

    fn run_of(&self, namespace: &str, id: &str, run_id: RunId) -> StoreFuture<Option<RunInfo>> {
        let mut stub = self.stub.clone();
        let (namespace, id, run_id) = (namespace.to_owned(), id.to_owned(), run_id.to_vec());
        let request = api::RunOfRequest { namespace, id, run_id };
        read(async move { stub.run_of(request).await }, words::run_answer)
    }

    fn run(&self, run: RunNo) -> StoreFuture<Option<RunInfo>> {
        let mut stub = self.stub.clone();
        let request = api::RunRequest { run: run.0 };
        read(async move { stub.run(request).await }, words::run_answer)
    }

    fn inbox(&self, run: RunNo, after: u64, limit: usize) -> StoreFuture<Vec<InboxRow>> {
        let mut stub = self.stub.clone();
        // Who reads an inbox reads on until there is nothing more, so a page may be short.
        let request = api::InboxRowsRequest { run: run.0, after, limit: limit_of(limit) };
        read(async move { stub.inbox_rows(request).await }, |page| words::inbox_rows(page.rows))
    }

    fn open_runs(&self, _: RunNo, _: usize) -> StoreFuture<Vec<RunInfo>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn runs(&self, before: RunNo, limit: usize) -> StoreFuture<Vec<RunInfo>> {
        let stub = self.stub.clone();
        let page = move |before: RunNo, limit| {
            let request = api::RunsRequest { before: before.0, limit };
            let mut stub = stub.clone();
            async move { stub.runs(request).await }
        };
        pages(before, limit, page)
    }

    fn find(
        &self,
        name: &str,
        value: &AttributeValue,
        before: RunNo,
        limit: usize,
    ) -> StoreFuture<Vec<RunInfo>> {
        let stub = self.stub.clone();
        let attribute = AttributeChange { name: name.to_owned(), value: Some(value.clone()) };
        let attribute: api::AttributeChange = words::same(&attribute);
        let page = move |before: RunNo, limit| {
            let attribute = Some(attribute.clone());
            let request = api::FindRequest { attribute, before: before.0, limit };
            let mut stub = stub.clone();
            async move { stub.find(request).await }
        };
        pages(before, limit, page)
    }

    fn calls(&self, _: RunNo, _: usize) -> StoreFuture<Vec<Call>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn expired(&self, _: i64, _: usize) -> StoreFuture<Vec<RunNo>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn attention(&self, after: AttentionPlace, limit: usize) -> StoreFuture<Vec<AttentionRow>> {
        let mut stub = self.stub.clone();
        Box::pin(async move {
            let mut items: Vec<AttentionRow> = Vec::new();
            while items.len() < limit {
                let after = items.last().map_or(after, AttentionRow::place);
                let (after, limit) = (words::attention_place(after), limit_of(limit - items.len()));
                let page =
                    stub.attention(api::AttentionRequest { limit, after: Some(after) }).await;
                let page = page.map_err(|status| words::store_error(&status))?.into_inner();
                if page.items.is_empty() {
                    break;
                }
                items.extend(page.items.into_iter().map(words::attention_row));
            }
            Ok(items)
        })
    }

    fn close(&self) -> StoreFuture<()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Lists runs page by page: the server gives no more than it likes at a time.
fn pages<F>(
    before: RunNo,
    limit: usize,
    mut page: impl FnMut(RunNo, u32) -> F + Send + 'static,
) -> StoreFuture<Vec<RunInfo>>
where
    F: Future<Output = Result<Response<api::RunsPage>, Status>> + Send + 'static,
{
    Box::pin(async move {
        let mut runs: Vec<RunInfo> = Vec::new();
        while runs.len() < limit {
            let before = runs.last().map_or(before, |info| info.run);
            let came = page(before, limit_of(limit - runs.len())).await;
            let came = came.map_err(|status| words::store_error(&status))?.into_inner().runs;
            if came.is_empty() {
                break;
            }
            for info in came {
                runs.push(words::run_info(info)?);
            }
        }
        Ok(runs)
    })
}
