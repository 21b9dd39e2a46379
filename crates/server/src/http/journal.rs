//! The journal of an execution: page by page, live, and as a picture.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use backstitch::RunId;
use backstitch::timeline::Style;
use backstitch_api::http::{Code, JournalPage, JournalRow, Problem};
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, watch};
use utoipa::IntoParams;

use super::Shared;
use super::answer::{Answered, Refusal, ok};
use super::limits::{STREAM_BEAT, STREAMS_MAX};
use super::reading::{Id, Query, namespace, number, run_id, text_of};
use crate::service::{Followed, Target};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct JournalQuery {
    /// The namespace of the id; `default` if left out.
    namespace: Option<String>,
    /// The id of one of its runs; the newest run if left out.
    #[serde(default, deserialize_with = "run_id")]
    #[param(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// Only rows after this one; 0 if left out.
    #[serde(default, deserialize_with = "number")]
    after: Option<u64>,
    /// At most so many: 1 to 1000; 200 if left out. Not for a stream of events.
    #[serde(default, deserialize_with = "number")]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// The journal of a run, the newest unless another one is named.
///
/// With `Accept: text/event-stream` the rows come as server-sent events, as they are written, until
/// the run is closed (event `end`). `Last-Event-ID` says where to go on.
#[utoipa::path(get, path = "/v1/executions/{id}/journal", params(
    ("id" = String, Path, description = "The business id"),
    JournalQuery,
    ("Last-Event-ID" = Option<u64>, Header, description = "The last row that was seen of a stream"),
), responses(
    (status = 200, description = "Rows", content(
        (JournalPage = "application/json"),
        (String = "text/event-stream"),
    )),
    (status = "default", body = Problem, content_type = "application/problem+json", description = "Why not"),
))]
pub(super) async fn journal(
    State(shared): State<Shared>,
    Id(id): Id,
    Query(query): Query<JournalQuery>,
    headers: HeaderMap,
) -> Answered {
    let target = Target { namespace: namespace(query.namespace), id, run_id: query.run_id };
    let after = query.after.unwrap_or(0);
    let accept = text_of(&headers, header::ACCEPT.as_str())?.unwrap_or_default();
    if !accept.to_ascii_lowercase().contains("text/event-stream") {
        return ok(&shared.service.journal(&target, after, query.limit).await?);
    }
    if query.limit.is_some() {
        let detail = "limit is for pages, and a stream of events has none; leave it out";
        return Err(Refusal::new(Code::BadQuery, detail));
    }
    let after = match text_of(&headers, "last-event-id")? {
        None => after,
        Some(last) => last.parse().map_err(|_| {
            let detail = format!("last-event-id is {last:?}; it is the number of a row");
            Refusal::new(Code::BadHeader, detail)
        })?,
    };
    let place = shared.streams.clone().try_acquire_owned().map_err(|_| {
        let detail = format!(
            "{STREAMS_MAX} journals are followed at the moment, and no more may be; ask for pages \
             (`after`), or try again later"
        );
        Refusal::new(Code::TooManyStreams, detail)
    })?;
    let followed = shared.service.follow(&target, after).await?;
    Ok(stream_of(Stream { followed, stop: shared.stop.clone(), _place: place, ended: false }))
}

struct Stream {
    followed: Followed,
    stop: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
    ended: bool,
}

fn stream_of(stream: Stream) -> Response {
    let frames = stream::unfold(stream, async |mut stream| {
        if stream.ended {
            return None;
        }
        let frame = stream.next().await;
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(frame)), stream))
    });
    let mut response = Body::from_stream(frames).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

impl Stream {
    /// The next piece of the stream.
    async fn next(&mut self) -> String {
        let told = tokio::select! {
            rows = self.followed.next() => rows,
            () = stopped(&mut self.stop) => {
                Err(Problem::new(Code::Stopped, "the server is stopping; come back later"))
            }
            () = tokio::time::sleep(STREAM_BEAT) => return ": still there\n\n".to_owned(),
        };
        match told {
            Ok(Some(rows)) => rows.iter().map(frame).collect(),
            Ok(None) => {
                self.ended = true;
                "event: end\ndata: {}\n\n".to_owned()
            }
            Err(problem) => self.broken(&problem),
        }
    }

    fn broken(&mut self, problem: &Problem) -> String {
        self.ended = true;
        let problem = serde_json::to_string(problem).expect("problems are JSON by their type");
        format!("event: problem\ndata: {problem}\n\n")
    }
}

/// Completes when the server stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A server that is gone has stopped as well.
    let _ = stop.wait_for(|stop| *stop).await;
}

fn frame(row: &JournalRow) -> String {
    let json = serde_json::to_string(row).expect("rows are JSON by their type");
    // A value of the user may hold line breaks between its parts; each line is one of data.
    let data: String = json.lines().map(|line| format!("data: {line}\n")).collect();
    format!("id: {}\nevent: row\n{data}\n", row.seq)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TimelineQuery {
    /// The namespace of the id; `default` if left out.
    namespace: Option<String>,
    /// The id of one of its runs; the newest run if left out.
    #[serde(default, deserialize_with = "run_id")]
    #[param(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// With the colours of a terminal.
    #[serde(default)]
    colour: bool,
}

/// The journal of a run as a picture for the terminal.
#[utoipa::path(get, path = "/v1/executions/{id}/timeline", params(
    ("id" = String, Path, description = "The business id"), TimelineQuery,
), responses(
    (status = 200, body = String, content_type = "text/plain"),
    (status = "default", body = Problem, content_type = "application/problem+json", description = "Why not"),
))]
pub(super) async fn timeline(
    State(shared): State<Shared>,
    Id(id): Id,
    Query(query): Query<TimelineQuery>,
) -> Answered {
    let target = Target { namespace: namespace(query.namespace), id, run_id: query.run_id };
    let style = if query.colour { Style::Colour } else { Style::Plain };
    let picture = shared.service.timeline(&target, style).await?;
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    Ok(([kind], picture).into_response())
}
