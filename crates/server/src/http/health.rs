//! Whether all is well, who works, and what only a person can settle.

use axum::extract::State;
use axum::http::StatusCode;
use backstitch_api::http::{Matters, Problem, Readiness, Workers};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Shared;
use super::answer::{Answered, json, ok};
use super::reading::{Query, number};

/// No parameters at all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// The process answers.
#[utoipa::path(get, path = "/healthz", responses(
    (status = 200, body = str, content_type = "text/plain", description = "It does"),
))]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether the server does its work.
#[utoipa::path(get, path = "/readyz", responses(
    (status = 200, body = Readiness, description = "It does"),
    (status = 503, body = Readiness, description = "It does not, and why"),
))]
pub(super) async fn readyz(State(shared): State<Shared>) -> Answered {
    let mut readiness = shared.service.ready(shared.options.ready_pending_max).await;
    if *shared.stop.borrow() {
        readiness.ready = false;
        readiness.reasons.push("the server is stopping".to_owned());
    }
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(json(status, &readiness))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AttentionQuery {
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// At most so many: 1 to 1000; 50 if left out.
    #[serde(default, deserialize_with = "number")]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Open matters of all namespaces that only a person can settle, oldest first.
#[utoipa::path(get, path = "/v1/attention", params(AttentionQuery), responses(
    (status = 200, body = Matters),
    (status = "default", body = Problem, content_type = "application/problem+json", description = "Why not"),
))]
pub(super) async fn attention(
    State(shared): State<Shared>,
    Query(query): Query<AttentionQuery>,
) -> Answered {
    ok(&shared.service.attention(query.cursor.as_deref(), query.limit).await?)
}

/// Who runs workflows.
#[utoipa::path(get, path = "/v1/workers", responses(
    (status = 200, body = Workers),
    (status = "default", body = Problem, content_type = "application/problem+json", description = "Why not"),
))]
pub(super) async fn workers(
    State(shared): State<Shared>,
    Query(Nothing {}): Query<Nothing>,
) -> Answered {
    ok(&shared.service.workers())
}
