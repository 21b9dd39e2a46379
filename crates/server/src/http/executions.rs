//! Starting executions and looking at them.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use backstitch::RunId;
use backstitch_api::http::{
    Attribute, Code, Execution, Listing, Outcome, Problem, StartExecution, Started, Status,
};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use utoipa::IntoParams;

use super::Shared;
use super::answer::{Answered, Refusal, json, ok};
use super::limits::WAIT_MAX;
use super::reading::{
    Body, Id, Meant, Place, Query, RequestId, Which, instant, namespace, number, run_id,
};
use crate::service::{Filter, Target};

/// Starts an execution; idempotent by its id.
///
/// With the id of a run of the same workflow and input the answer is that run, and `created` is
/// false. With an `Idempotency-Key` the same request gets its first answer again.
#[utoipa::path(post, path = "/v1/executions", params(
    Place,
    ("Idempotency-Key" = Option<String>, Header, description = "An id of the request, as long as the run that it begins is the newest of its id"),
), request_body = StartExecution, responses(
    (status = 201, body = Started, description = "A run was begun"),
    (status = 200, body = Started, description = "The run that was there"),
    (status = "default", body = Problem, content_type = "application/problem+json", description = "Why not"),
))]
pub(super) async fn start(
    State(shared): State<Shared>,
    Query(place): Query<Place>,
    RequestId(request_id): RequestId,
    Body(mut start): Body<StartExecution>,
) -> Answered {
    start.namespace = match (place.namespace, start.namespace) {
        (Some(asked), Some(said)) if asked != said => {
            let detail = format!(
                "the query says namespace {asked:?} and the body says {said:?}; say it in one place"
            );
            return Err(Refusal::new(Code::Invalid, detail));
        }
        (asked, said) => asked.or(said),
    };
    let started = shared.service.start(start, request_id).await?;
    let status = if started.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json(status, &started))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// The namespace; `default` if left out.
    namespace: Option<String>,
    /// With this status.
    #[param(inline)]
    status: Option<Status>,
    /// Of this workflow.
    workflow: Option<String>,
    /// Started at this instant (RFC 3339) or later.
    #[serde(default, deserialize_with = "instant")]
    #[param(value_type = Option<String>, format = DateTime)]
    started_after: Option<Timestamp>,
    /// Started before this instant (RFC 3339).
    #[serde(default, deserialize_with = "instant")]
    #[param(value_type = Option<String>, format = DateTime)]
    started_before: Option<Timestamp>,
    /// With a search attribute of this name, and of the value `value`.
    attribute: Option<String>,
    /// The value of the attribute: what is a number, `true`, `false`, or a quoted text as JSON is that;
    /// everything else is a text.
    value: Option<String>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// At most so many: 1 to 1000; 50 if left out.
    #[serde(default, deserialize_with = "number")]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Finds executions, newest first.
///
/// A page may have fewer executions than were asked for: go on while there is a `next_cursor`.
#[utoipa::path(get, path = "/v1/executions", params(ListQuery), responses(
    (status = 200, body = Listing),
    (status = "default", body = Problem, content_type = "application/problem+json", description = "Why not"),
))]
pub(super) async fn list(State(shared): State<Shared>, Query(query): Query<ListQuery>) -> Answered {
    let attribute = match (query.attribute, query.value) {
        (Some(name), Some(value)) => {
            let value = attribute_of(&value).map_err(|why| Refusal::new(Code::BadQuery, why))?;
            Some((name, value))
        }
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            let detail = "attribute and value go together: the name of a search attribute, and the \
                          value to look for";
            return Err(Refusal::new(Code::BadQuery, detail));
        }
    };
    let filter = Filter {
        namespace: namespace(query.namespace),
        status: query.status,
        workflow: query.workflow,
        started_after: query.started_after,
        started_before: query.started_before,
        attribute,
        cursor: query.cursor,
        limit: query.limit,
    };
    ok(&shared.service.list(&filter).await?)
}

/// What is JSON is that, and the rest is a text.
///
/// # Errors
/// JSON of no kind that an attribute can have.
pub(crate) fn attribute_of(text: &str) -> Result<Attribute, String> {
    match serde_json::from_str(text) {
        Ok(attribute) => Ok(attribute),
        Err(_) if serde_json::from_str::<IgnoredAny>(text).is_err() => {
            Ok(Attribute::Text(text.to_owned()))
        }
        Err(why) => Err(format!("{text} is no value of a search attribute: {why}")),
    }
}

/// Shows a run of an execution, the newest unless another one is named.
#[utoipa::path(get, path = "/v1/executions/{id}", params(
    ("id" = String, Path, description = "The business id"), Which,
), responses(
    (status = 200, body = Execution),
    (status = "default", body = Problem, content_type = "application/problem+json", description = "Why not"),
))]
pub(super) async fn show(State(shared): State<Shared>, Meant(target): Meant) -> Answered {
    ok(&shared.service.get(&target).await?)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ResultQuery {
    /// The namespace of the id; `default` if left out.
    namespace: Option<String>,
    /// The id of one of its runs; the newest run if left out.
    #[serde(default, deserialize_with = "run_id")]
    #[param(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// How long to wait for the result, in milliseconds: at most 50000; 0 if left out.
    #[serde(default, deserialize_with = "number")]
    #[param(maximum = 50000)]
    wait_ms: Option<u64>,
}

/// The result of an execution, for which it waits if it is told to.
#[utoipa::path(get, path = "/v1/executions/{id}/result", params(
    ("id" = String, Path, description = "The business id"), ResultQuery,
), responses(
    (status = 200, body = Outcome, description = "It is closed, or stuck in its rollback"),
    (status = 202, body = Outcome, description = "It is not over; ask again"),
    (status = "default", body = Problem, content_type = "application/problem+json", description = "Why not"),
))]
pub(super) async fn result(
    State(shared): State<Shared>,
    Id(id): Id,
    Query(query): Query<ResultQuery>,
) -> Answered {
    let (wait, max) = (Duration::from_millis(query.wait_ms.unwrap_or(0)), WAIT_MAX);
    if wait > max {
        let detail = format!(
            "wait_ms is {}; at most {} are allowed: ask again as long as `settled` is false",
            wait.as_millis(),
            max.as_millis()
        );
        return Err(Refusal::new(Code::Invalid, detail));
    }
    let target = Target { namespace: namespace(query.namespace), id, run_id: query.run_id };
    let outcome = shared.service.result(&target, wait).await?;
    let status = if outcome.settled { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok(json(status, &outcome))
}
