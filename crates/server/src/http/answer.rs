//! Answers: JSON, and problems.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use backstitch_api::http::{Code, Problem};
use serde::Serialize;

/// What a handler returns.
pub(super) type Answered = Result<Response, Refusal>;

/// A problem as a response.
#[derive(Debug)]
pub(super) struct Refusal(pub Problem);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Refusal {
        Refusal(problem)
    }
}

impl Refusal {
    pub fn new(code: Code, detail: impl Into<String>) -> Refusal {
        Refusal(Problem::new(code, detail))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Refusal(problem) = self;
        let status = StatusCode::from_u16(problem.status).expect("problems have real statuses");
        let mut response = json(status, &problem);
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if matches!(
            problem.code,
            Code::Unavailable | Code::Stopped | Code::Full | Code::TooManyStreams
        ) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// A JSON answer.
pub(super) fn json<T: Serialize>(status: StatusCode, answer: &T) -> Response {
    let body = serde_json::to_vec(answer).expect("answers are JSON by their types");
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// 200.
pub(super) fn ok<T: Serialize>(answer: &T) -> Answered {
    Ok(json(StatusCode::OK, answer))
}
