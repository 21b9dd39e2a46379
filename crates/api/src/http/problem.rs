//! Errors, as RFC 9457 has them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not carried out. Sent as `application/problem+json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// `urn:backstitch:problem:` and the code.
    #[serde(rename = "type")]
    pub type_urn: String,
    /// What kind of problem it is, for people.
    pub title: String,
    /// The status of the response.
    pub status: u16,
    /// What kind of problem it is, for programs.
    pub code: Code,
    /// Names the thing and the way out.
    pub detail: String,
}

impl Problem {
    /// A problem of this kind.
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        let (status, title) = code.status_and_title();
        let name = serde_json::to_value(code).unwrap_or_default();
        let type_urn = format!("urn:backstitch:problem:{}", name.as_str().unwrap_or_default());
        Problem { type_urn, title: title.into(), status, code, detail: detail.into() }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $status:literal $title:literal,)*) => {
        /// The kinds of problems. A kind is never renamed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every kind.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            fn status_and_title(self) -> (u16, &'static str) {
                match self { $(Code::$name => ($status, $title),)* }
            }
        }
    };
}

codes! {
    /// There is no such execution, step or page.
    NotFound 404 "Not found",
    /// The id is in use, or was used, in a way that the policy does not allow.
    IdInUse 409 "The id is in use",
    /// The id is in use with another input or another workflow.
    OtherInput 409 "The id is in use for something else",
    /// No worker knows the workflow in that version.
    UnknownWorkflow 422 "Unknown workflow",
    /// A name, an id, a payload or a setting is not acceptable.
    Invalid 422 "Not acceptable",
    /// The verb does not apply to the execution as it stands.
    Refused 409 "Refused",
    /// The execution keeps as many events as it may.
    Full 429 "Full",
    /// The journal of the execution cannot be read.
    Unreadable 500 "Unreadable journal",
    /// The server is stopping.
    Stopped 503 "Stopping",
    /// Nothing can be made durable at the moment.
    Unavailable 503 "Store unavailable",
    /// Another process has the store.
    StoreInUse 503 "Store in use",
    /// The store was written by a newer version.
    StoreTooNew 503 "Store too new",
    /// The file is not a store of Backstitch.
    NotAStore 503 "Not a store",
    /// The store is damaged.
    Corrupt 500 "Store damaged",

    /// The body is not JSON, or not the JSON that is asked for.
    BadBody 400 "Bad body",
    /// The query has something that is not asked for.
    BadQuery 400 "Bad query",
    /// The path is no text.
    BadPath 400 "Bad path",
    /// A header is not what it should be.
    BadHeader 400 "Bad header",
    /// The path, the query and the headers have too many bytes together.
    HeadTooLarge 431 "Head too large",
    /// The body is not declared as JSON.
    UnsupportedMediaType 415 "Unsupported media type",
    /// The body has too many bytes.
    BodyTooLarge 413 "Body too large",
    /// The body took too long to arrive, or the answer to be made.
    TimedOut 408 "Timed out",
    /// There is nothing at this path.
    UnknownRoute 404 "Unknown route",
    /// There is something at this path, and not with this method.
    MethodNotAllowed 405 "Method not allowed",
    /// The request was sent to a name that is not of this machine.
    NotLocal 421 "Not a local name",
    /// As many journals are followed as may be.
    TooManyStreams 429 "Too many streams",
    /// The server has as many connections as it may.
    TooManyConnections 503 "Too many connections",
    /// A bug of the server.
    Internal 500 "Internal error",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_its_kind_three_times() {
        let problem = Problem::new(Code::IdInUse, "the id \"a\" is in use; take another one");
        let json = serde_json::to_string(&problem).expect("it is JSON");
        let head = r#"{"type":"urn:backstitch:problem:id_in_use","title":"The id is in use","#;
        assert!(json.starts_with(head), "{json}");
        assert!(json.contains(r#""status":409,"code":"id_in_use""#), "{json}");
    }
}
