//! Reading requests: paths, queries, headers and bodies.

use std::iter;
use std::str::FromStr;

use axum::extract::{FromRequest, FromRequestParts, Path, Query as AxumQuery, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use backstitch::RunId;
use backstitch_api::http::Code;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use jiff::Timestamp;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use utoipa::IntoParams;

use super::Shared;
use super::answer::Refusal;
use super::limits::BODY_OVERHEAD_BYTES;
use crate::service::{NAMESPACE_DEFAULT, Target};

/// The namespace of the id.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Place {
    /// The namespace of the id; `default` if left out.
    pub namespace: Option<String>,
}

/// The namespace of the id, and the run.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// The namespace of the id; `default` if left out.
    pub namespace: Option<String>,
    /// The id of one of its runs; the newest run if left out.
    #[serde(default, deserialize_with = "run_id")]
    #[param(value_type = Option<String>)]
    pub run_id: Option<RunId>,
}

/// Reads the id of a run in a query.
pub(super) fn run_id<'de, D: Deserializer<'de>>(given: D) -> Result<Option<RunId>, D::Error> {
    let text = String::deserialize(given)?;
    text.parse().map(Some).map_err(D::Error::custom)
}

/// Reads a number in a query.
pub(super) fn number<'de, D: Deserializer<'de>, T: FromStr>(
    given: D,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(given)?;
    let number = text.parse().map(Some);
    number.map_err(|_| D::Error::custom(format!("{text:?} is no whole number, or too large")))
}

/// Reads an instant in a query.
pub(super) fn instant<'de, D: Deserializer<'de>>(given: D) -> Result<Option<Timestamp>, D::Error> {
    let text = String::deserialize(given)?;
    text.parse().map(Some).map_err(|_| {
        D::Error::custom(format!("{text:?} is no instant like 2026-01-31T12:00:00Z (RFC 3339)"))
    })
}

/// The namespace, or the usual one.
pub(super) fn namespace(given: Option<String>) -> String {
    given.unwrap_or_else(|| NAMESPACE_DEFAULT.to_owned())
}

/// The id in the path.
pub(super) struct Id(pub String);

impl FromRequestParts<Shared> for Id {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Id, Refusal> {
        let read = Path::<String>::from_request_parts(parts, shared).await;
        read.map(|Path(id)| Id(id)).map_err(|why| {
            let detail = format!("the id in the path cannot be read: {}", why.body_text());
            Refusal::new(Code::BadPath, detail)
        })
    }
}

/// The query, in which nothing else may stand.
pub(super) struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Shared> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Query<T>, Refusal> {
        let pairs = parts.uri.query().unwrap_or_default().split('&');
        if let Some(bad) = pairs.into_iter().find(|pair| !is_text(pair)) {
            let detail = format!("the query cannot be read: {bad:?} stands for no UTF-8");
            return Err(Refusal::new(Code::BadQuery, detail));
        }
        let read = AxumQuery::<T>::from_request_parts(parts, shared).await;
        read.map(|AxumQuery(query)| Query(query)).map_err(|why| {
            let why = why.body_text();
            let why = why.strip_prefix("Failed to deserialize query string: ").unwrap_or(&why);
            Refusal::new(Code::BadQuery, format!("the query cannot be read: {why}"))
        })
    }
}

/// Whether it is UTF-8 when its `%XX` are bytes.
fn is_text(pair: &str) -> bool {
    let mut parts = pair.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (hex, rest) = part.split_at_checked(2).unwrap_or_default();
        match u8::from_str_radix(hex, 16) {
            Ok(byte) => bytes.extend(iter::once(byte).chain(rest.bytes())),
            // It stands for itself.
            Err(_) => bytes.extend(part.bytes()),
        }
    }
    std::str::from_utf8(&bytes).is_ok()
}

/// The execution that is meant by path and query, where the query says nothing else.
pub(super) struct Meant(pub Target);

impl FromRequestParts<Shared> for Meant {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Meant, Refusal> {
        let Id(id) = Id::from_request_parts(parts, shared).await?;
        let Query(Which { namespace: given, run_id }) =
            Query::<Which>::from_request_parts(parts, shared).await?;
        Ok(Meant(Target { namespace: namespace(given), id, run_id }))
    }
}

/// The `Idempotency-Key`, if there is one.
pub(super) struct RequestId(pub Option<String>);

impl FromRequestParts<Shared> for RequestId {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<RequestId, Refusal> {
        let given = text_of(&parts.headers, "idempotency-key")?;
        if given.as_deref() == Some("") {
            let detail = "the header idempotency-key is empty; give each request an id of its own, \
                          or leave the header out";
            return Err(Refusal::new(Code::BadHeader, detail));
        }
        Ok(RequestId(given))
    }
}

/// A header that is text.
pub(super) fn text_of(headers: &HeaderMap, name: &str) -> Result<Option<String>, Refusal> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match value.to_str() {
        Ok(text) => Ok(Some(text.to_owned())),
        Err(_) => {
            let detail = format!("the header {name} has other characters than visible ASCII");
            Err(Refusal::new(Code::BadHeader, detail))
        }
    }
}

/// The body, which is JSON; no body at all is `{}`.
///
/// It has to be declared as JSON also when it is empty: a page of another origin cannot do that
/// without asking, so that a browser is no way to a server on the same machine.
pub(super) struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Shared> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, shared: &Shared) -> Result<Body<T>, Refusal> {
        let declared = text_of(request.headers(), CONTENT_TYPE.as_str())?.unwrap_or_default();
        let kind = declared.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let said = if kind.is_empty() { "nothing" } else { kind };
            let detail = format!(
                "the body is declared as {said}; send the header content-type: application/json"
            );
            return Err(Refusal::new(Code::UnsupportedMediaType, detail));
        }
        let max = shared.service.payload_bytes_max() + BODY_OVERHEAD_BYTES;
        let collected = Limited::new(request.into_body(), max).collect();
        let time_max = shared.options.limits.body_time_max;
        let bytes = match tokio::time::timeout(time_max, collected).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let detail = format!(
                    "the body has more than {max} bytes; keep large data elsewhere and send its address"
                );
                return Err(Refusal::new(Code::BodyTooLarge, detail));
            }
            Ok(Err(_)) => return Err(Refusal::new(Code::BadBody, "the body broke off")),
            Err(_) => {
                let detail = format!("the body took more than {time_max:?} to arrive");
                return Err(Refusal::new(Code::TimedOut, detail));
            }
        };
        read(if bytes.is_empty() { b"{}" } else { &bytes }).map(Body)
    }
}

fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, Refusal> {
    let refused = |why: serde_json::Error| {
        let what = match why.classify() {
            serde_json::error::Category::Data => "does not say what is asked for",
            serde_json::error::Category::Syntax
            | serde_json::error::Category::Eof
            | serde_json::error::Category::Io => "is not JSON",
        };
        Refusal::new(Code::BadBody, format!("the body {what}: {why}"))
    };
    // A list would be taken for the fields in their order.
    if json.trim_ascii_start().starts_with(b"[") {
        serde_json::from_slice::<IgnoredAny>(json).map_err(refused)?;
        let detail = "the body is a list; send an object with the fields by their names";
        return Err(Refusal::new(Code::BadBody, detail));
    }
    serde_json::from_slice(json).map_err(refused)
}
