//! The description of the API, made from its code.

use axum::response::Response;
use utoipa::OpenApi;

use super::answer::{Refusal, ok};
use super::{executions, health, journal, verbs};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Backstitch",
        description = "Durable workflows that know how to undo themselves. Errors are \
                       application/problem+json (RFC 9457) with a stable `code`; docs/http.md says more."
    ),
    paths(
        executions::start,
        executions::list,
        executions::show,
        executions::result,
        journal::journal,
        journal::timeline,
        verbs::event,
        verbs::cancel,
        verbs::terminate,
        verbs::rollback,
        verbs::kill,
        verbs::pause,
        verbs::resume,
        verbs::retry_step,
        verbs::retry_undo,
        verbs::waive_undo,
        verbs::set_attributes,
        verbs::restart,
        verbs::delete,
        health::attention,
        health::workers,
        health::healthz,
        health::readyz,
        openapi,
    )
)]
struct Api;

/// The OpenAPI document, as it is committed in docs/openapi.json.
pub fn document() -> String {
    Api::openapi().to_pretty_json().expect("the document is JSON by its type") + "\n"
}

/// This document.
#[utoipa::path(get, path = "/v1/openapi.json", responses(
    (status = 200, body = Object, description = "OpenAPI"),
))]
pub(super) async fn openapi() -> Result<Response, Refusal> {
    ok(&Api::openapi())
}
