//! Verbs, events, restart and delete.

use axum::extract::State;
use axum::http::StatusCode;
use backstitch::RunId;
use backstitch_api::http::{
    Asked, Deleted, EventAccepted, Problem, Restart, Resume, SendEvent, Sent, SetAttributes,
    Started, StepAsked,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Shared;
use super::answer::{Answered, json, ok};
use super::reading::{Body, Id, Meant, Query, RequestId, Which, namespace, run_id};
use crate::service::{Target, Verb};

macro_rules! verbs {
    ($($(#[doc = $doc:literal])* $name:ident $path:literal $body:ident $verb:ident,)*) => {$(
        $(#[doc = $doc])*
        #[utoipa::path(post, path = $path, params(
            ("id" = String, Path, description = "The business id"),
            Which,
            ("Idempotency-Key" = Option<String>, Header, description = "An id of the request: among the verbs of a run those with the same one are one"),
        ), request_body = $body, responses(
            (status = 200, body = Sent),
            (
                status = "default", body = Problem,
                content_type = "application/problem+json", description = "Why not"
            ),
        ))]
        pub(super) async fn $name(
            State(shared): State<Shared>,
            Meant(target): Meant,
            RequestId(request_id): RequestId,
            Body(asked): Body<$body>,
        ) -> Answered {
            ok(&shared.service.verb(&target, Verb::$verb(asked), request_id).await?)
        }
    )*};
}

verbs! {
    /// Rolls an execution back; it ends as cancelled.
    cancel "/v1/executions/{id}/cancel" Asked Cancel,
    /// Rolls an execution back without waiting for bodies; it ends as terminated.
    terminate "/v1/executions/{id}/terminate" Asked Terminate,
    /// Undoes what an execution did, also after it has succeeded.
    rollback "/v1/executions/{id}/rollback" Asked Rollback,
    /// Ends an execution without a rollback; what it owes stays an open matter.
    kill "/v1/executions/{id}/kill" Asked Kill,
    /// Begins nothing new; bodies in flight finish.
    pause "/v1/executions/{id}/pause" Asked Pause,
    /// Ends a pause.
    resume "/v1/executions/{id}/resume" Resume Resume,
    /// Has a blocked step tried again.
    retry_step "/v1/executions/{id}/retry-step" StepAsked RetryStep,
    /// Has a failed undo tried again.
    retry_undo "/v1/executions/{id}/retry-undo" StepAsked RetryUndo,
    /// Takes an undo off the debts, in the name of a person.
    waive_undo "/v1/executions/{id}/waive-undo" StepAsked WaiveUndo,
    /// Sets search attributes, or takes them away.
    set_attributes "/v1/executions/{id}/set-attributes" SetAttributes SetAttributes,
}

/// Sends an event, which is kept until a wait takes it.
#[utoipa::path(post, path = "/v1/executions/{id}/events", params(
    ("id" = String, Path, description = "The business id"),
    Which,
    ("Idempotency-Key" = Option<String>, Header, description = "An id of the event: among the events of a run those with the same one are one"),
), request_body = SendEvent, responses(
    (status = 200, body = EventAccepted),
    (status = "default", body = Problem, content_type = "application/problem+json", description = "Why not"),
))]
pub(super) async fn event(
    State(shared): State<Shared>,
    Meant(target): Meant,
    RequestId(event_id): RequestId,
    Body(event): Body<SendEvent>,
) -> Answered {
    ok(&shared.service.event(&target, event, event_id).await?)
}

/// Does a closed execution over, as a new run.
#[utoipa::path(post, path = "/v1/executions/{id}/restart", params(
    ("id" = String, Path, description = "The business id"),
    Which,
    ("Idempotency-Key" = Option<String>, Header, description = "An id of the request, as long as the run that it begins is the newest of its id"),
), request_body = Restart, responses(
    (status = 201, body = Started),
    (status = 200, body = Started, description = "The run that was there"),
    (status = "default", body = Problem, content_type = "application/problem+json", description = "Why not"),
))]
pub(super) async fn restart(
    State(shared): State<Shared>,
    Meant(target): Meant,
    RequestId(request_id): RequestId,
    Body(restart): Body<Restart>,
) -> Answered {
    let started = shared.service.restart(&target, restart, request_id).await?;
    let status = if started.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json(status, &started))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DeleteQuery {
    /// The namespace of the id; `default` if left out.
    namespace: Option<String>,
    /// The id of one of its runs; the newest run if left out.
    #[serde(default, deserialize_with = "run_id")]
    #[param(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// Who asks; stands in the log.
    by: Option<String>,
    /// Why; stands in the log.
    reason: Option<String>,
}

/// Deletes one closed run of an execution with all that is known of it.
///
/// Other runs of the id stay, and the answer names the newest of them.
#[utoipa::path(delete, path = "/v1/executions/{id}", params(
    ("id" = String, Path, description = "The business id"), DeleteQuery,
), responses(
    (status = 200, body = Deleted, description = "It is gone"),
    (status = "default", body = Problem, content_type = "application/problem+json", description = "Why not"),
))]
pub(super) async fn delete(
    State(shared): State<Shared>,
    Id(id): Id,
    Query(query): Query<DeleteQuery>,
) -> Answered {
    let target = Target { namespace: namespace(query.namespace), id, run_id: query.run_id };
    let asked = Asked { by: query.by, reason: query.reason };
    ok(&shared.service.delete(&target, asked).await?)
}
