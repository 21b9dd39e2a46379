//! The service to which callers connect.
//!
//! **Invariant:** a caller is believed nothing: what it asks for is judged by the engine, which writes every row by
//! itself.

mod watch;
mod words;

use backstitch_api::PROTOCOL;
use backstitch_api::client as wire;
use backstitch_core::attribute::AttributeChange;
use backstitch_core::id::RunId;
use backstitch_core::inbox::{InboxKind, Verb};
use backstitch_engine::Engine;
use backstitch_engine::events::EventPost;
use backstitch_engine::life::RestartRequest;
use backstitch_store::{AttentionPlace, RunNo};
use tonic::{Request, Response, Status, Streaming};
use wire::client_server::{Client, ClientServer};

use crate::grpc::mail;
use crate::paging;

/// Rows and runs that are read at a time, at most.
const PAGE_MAX: usize = 1_000;

/// What a request may have besides a payload, in bytes.
const MESSAGE_OVERHEAD_BYTES_MAX: usize = 256 * 1024;

/// Serves callers from one engine.
pub struct ClientService {
    engine: Engine,
}

impl ClientService {
    /// The service, ready to be mounted.
    pub fn server(engine: Engine) -> ClientServer<ClientService> {
        let message_bytes_max = engine.payload_bytes_max() + MESSAGE_OVERHEAD_BYTES_MAX;
        ClientServer::new(ClientService { engine })
            .max_decoding_message_size(message_bytes_max)
            .max_encoding_message_size(usize::MAX)
    }
}

/// So many at a time; as many as there may be, if none is named.
fn page(limit: u32) -> usize {
    match limit as usize {
        0 => PAGE_MAX,
        limit => limit.min(PAGE_MAX),
    }
}

fn before(run: i64) -> RunNo {
    RunNo(if run == 0 { i64::MAX } else { run })
}

#[tonic::async_trait]
impl Client for ClientService {
    type WatchStream = watch::Answers;

    async fn about(
        &self,
        request: Request<wire::AboutRequest>,
    ) -> Result<Response<wire::AboutAnswer>, Status> {
        let wire::AboutRequest { protocol_min: min, protocol_max: max } = request.into_inner();
        if !(min..=max).contains(&PROTOCOL) {
            let message = format!(
                "the caller speaks the protocols {min} to {max}, and this server speaks {PROTOCOL}: update the \
                 older of the two"
            );
            return Err(Status::failed_precondition(message));
        }
        Ok(Response::new(wire::AboutAnswer {
            protocol: PROTOCOL,
            server: concat!("backstitch ", env!("CARGO_PKG_VERSION")).into(),
            now_us: self.engine.clock().now_us(),
            limits: Some(crate::grpc::limits(&self.engine)),
        }))
    }

    async fn start(
        &self,
        request: Request<wire::StartRequest>,
    ) -> Result<Response<wire::StartAnswer>, Status> {
        let request = words::start(request.into_inner());
        let answer = self.engine.start(request).await.map_err(words::status)?;
        Ok(Response::new(words::started(answer)))
    }

    async fn restart(
        &self,
        request: Request<wire::RestartRequest>,
    ) -> Result<Response<wire::StartAnswer>, Status> {
        let wire::RestartRequest { run, by, version, request_id } = request.into_inner();
        let request = RestartRequest { by, version, request_id };
        let answer = self.engine.restart(RunNo(run), request).await.map_err(words::status)?;
        Ok(Response::new(words::started(answer)))
    }

    async fn send(
        &self,
        request: Request<wire::SendRequest>,
    ) -> Result<Response<wire::SendAnswer>, Status> {
        let wire::SendRequest { run, kind, request_id, verb } = request.into_inner();
        let known = i32::try_from(kind).ok().and_then(|kind| InboxKind::try_from(kind).ok());
        let kind = match known {
            Some(InboxKind::Event) => {
                return Err(words::invalid("an event is no verb: send it by SendEvent"));
            }
            Some(kind) => kind,
            None => return Err(words::invalid(format!("there is no verb of kind {kind}"))),
        };
        let verb: Verb = words::same(&verb.unwrap_or_default());
        let sent = self.engine.send(RunNo(run), kind, verb, &request_id).await;
        let sent = sent.map_err(words::status)?;
        Ok(Response::new(wire::SendAnswer { number: sent.number, changed: sent.changed }))
    }

    async fn send_event(
        &self,
        request: Request<wire::SendEventRequest>,
    ) -> Result<Response<wire::SendEventAnswer>, Status> {
        let wire::SendEventRequest { run, r#type, payload, event_id, by } = request.into_inner();
        let payload = words::same(&payload.unwrap_or_default());
        let post = EventPost { event_type: r#type, payload, event_id, by };
        let accepted = self.engine.send_event(RunNo(run), post).await.map_err(words::status)?;
        Ok(Response::new(wire::SendEventAnswer {
            number: accepted.number,
            accepted_at_us: accepted.accepted_at_us,
            first: accepted.first,
        }))
    }

    async fn delete(
        &self,
        request: Request<wire::DeleteRequest>,
    ) -> Result<Response<wire::DeleteAnswer>, Status> {
        let wire::DeleteRequest { run, by, reason } = request.into_inner();
        self.engine.delete(RunNo(run), &by, &reason).await.map_err(words::status)?;
        Ok(Response::new(wire::DeleteAnswer {}))
    }

    async fn newest(
        &self,
        request: Request<wire::NewestRequest>,
    ) -> Result<Response<wire::RunAnswer>, Status> {
        let wire::NewestRequest { namespace, id } = request.into_inner();
        words::run_answer(self.engine.newest(&namespace, &id).await)
    }

    async fn run_of(
        &self,
        request: Request<wire::RunOfRequest>,
    ) -> Result<Response<wire::RunAnswer>, Status> {
        let wire::RunOfRequest { namespace, id, run_id } = request.into_inner();
        let Some(run_id) = RunId::from_slice(&run_id) else {
            let message = format!("a run id has 16 bytes, and this one has {}", run_id.len());
            return Err(words::invalid(message));
        };
        words::run_answer(self.engine.run_of(&namespace, &id, run_id).await)
    }

    async fn run(
        &self,
        request: Request<wire::RunRequest>,
    ) -> Result<Response<wire::RunAnswer>, Status> {
        words::run_answer(self.engine.info(RunNo(request.into_inner().run)).await)
    }

    async fn rows(
        &self,
        request: Request<wire::RowsRequest>,
    ) -> Result<Response<wire::JournalPage>, Status> {
        let wire::RowsRequest { run, after_seq, limit } = request.into_inner();
        let read = |after, limit| self.engine.sealed_rows(RunNo(run), after, limit);
        let page = paging::page(after_seq, page(limit), read, paging::journal_row).await;
        let (rows, last) = page.map_err(words::status)?;
        let rows = rows.into_iter().map(Vec::from).collect();
        Ok(Response::new(wire::JournalPage { rows, last }))
    }

    async fn inbox_rows(
        &self,
        request: Request<wire::InboxRowsRequest>,
    ) -> Result<Response<wire::InboxRowsPage>, Status> {
        let wire::InboxRowsRequest { run, after, limit } = request.into_inner();
        let read = |after, limit| self.engine.inbox_rows(RunNo(run), after, limit);
        let page = paging::page(after, page(limit), read, paging::numbered).await;
        let (rows, last) = page.map_err(words::status)?;
        let rows = rows.into_iter().map(mail::inbox_row).collect();
        Ok(Response::new(wire::InboxRowsPage { rows, last }))
    }

    async fn runs(
        &self,
        request: Request<wire::RunsRequest>,
    ) -> Result<Response<wire::RunsPage>, Status> {
        let request = request.into_inner();
        words::runs_page(self.engine.runs(before(request.before), page(request.limit)).await)
    }

    async fn find(
        &self,
        request: Request<wire::FindRequest>,
    ) -> Result<Response<wire::RunsPage>, Status> {
        let wire::FindRequest { attribute, before: below, limit } = request.into_inner();
        let attribute: AttributeChange = words::same(&attribute.unwrap_or_default());
        let Some(value) = attribute.value else {
            return Err(words::invalid("there is no value to look for"));
        };
        let (below, limit) = (before(below), page(limit));
        words::runs_page(self.engine.find(&attribute.name, &value, below, limit).await)
    }

    async fn attention(
        &self,
        request: Request<wire::AttentionRequest>,
    ) -> Result<Response<wire::AttentionPage>, Status> {
        let wire::AttentionRequest { limit, after } = request.into_inner();
        let after = after.map_or(AttentionPlace::START, words::attention_place);
        let items = self.engine.attention(after, page(limit)).await.map_err(words::status)?;
        let items = items.into_iter().map(words::attention_item).collect();
        Ok(Response::new(wire::AttentionPage { items }))
    }

    async fn watch(
        &self,
        request: Request<Streaming<wire::WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        Ok(Response::new(watch::serve(self.engine.clone(), request.into_inner())))
    }
}
