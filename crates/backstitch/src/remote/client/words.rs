//! From the engine's words to those on the wire, and back.

use backstitch_api::client as api;
use backstitch_api::client::watch_request::{Closed, Published, Settled, What};
use backstitch_core::id::RunId;
use backstitch_core::inbox::InboxRow;
use backstitch_core::run::Outcome;
use backstitch_core::status::Status as RunStatus;
use backstitch_engine::host::Awaited;
use backstitch_engine::start::{Conflict, Retention, Reuse, StartAnswer, StartRequest};
use backstitch_engine::{Error, ErrorKind};
use backstitch_store::{
    AttentionPlace, AttentionRow, ErrorKind as StoreErrorKind, ExecutionUpdate, NewExecution,
    RunInfo, RunNo, StoreError,
};
use prost::Message;
use tonic::{Code, Status};

use crate::remote::wire;

/// The same message under its other name: the fields of the two have the same numbers.
pub(super) fn same<To: Message + Default>(from: &impl Message) -> To {
    To::decode(from.encode_to_vec().as_slice()).expect("the two have the same fields")
}

pub(super) fn start(request: StartRequest) -> api::StartRequest {
    let us =
        |duration: std::time::Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let conflict = match request.conflict {
        Conflict::UseExisting => api::start_request::Conflict::UseExisting,
        Conflict::Fail => api::start_request::Conflict::Fail,
        Conflict::Terminate => api::start_request::Conflict::Terminate,
    };
    let reuse = match request.reuse {
        Reuse::Reject => api::start_request::Reuse::Reject,
        Reuse::AllowIfFailed => api::start_request::Reuse::AllowIfFailed,
        Reuse::Allow => api::start_request::Reuse::Allow,
    };
    api::StartRequest {
        namespace: request.namespace,
        id: request.id,
        workflow: request.workflow,
        version: request.version,
        input: Some(same(&request.input)),
        conflict: conflict as i32,
        reuse: reuse as i32,
        started_by: request.started_by,
        deadline_us: request.deadline.map(us),
        retention_us: match request.retention {
            Retention::Usual => None,
            Retention::Forever => Some(u64::MAX),
            Retention::For(kept) => Some(us(kept)),
        },
        attributes: request.attributes.iter().map(same).collect(),
        request_id: request.request_id,
    }
}

pub(super) fn started(answer: api::StartAnswer) -> Result<StartAnswer, Error> {
    let read = || {
        let (run_id, status) = (RunId::from_slice(&answer.run_id)?, status(answer.status)?);
        Some(StartAnswer { run: RunNo(answer.run), run_id, created: answer.created, status })
    };
    let message =
        "the execution is started, and the server's answer cannot be read: update this program";
    read().ok_or_else(|| Error::new(ErrorKind::Unreadable, message))
}

pub(super) fn awaited(awaited: Awaited) -> What {
    match awaited {
        Awaited::Settled => What::Settled(Settled {}),
        Awaited::Closed => What::Closed(Closed {}),
        Awaited::Published { key, seq } => What::Published(Published { key, seq }),
        Awaited::Row(seq) => What::RowAfter(seq),
    }
}

/// What came of a run; nothing if it is not known what its status means.
pub(super) fn outcome(told: &api::Outcome) -> Option<Outcome> {
    status(told.status)?;
    Some(same(told))
}

fn status(number: u32) -> Option<RunStatus> {
    i32::try_from(number).ok().and_then(|number| RunStatus::try_from(number).ok())
}

pub(super) fn run_answer(answer: api::RunAnswer) -> Result<Option<RunInfo>, StoreError> {
    answer.run.map(run_info).transpose()
}

pub(super) fn run_info(info: api::RunInfo) -> Result<RunInfo, StoreError> {
    let read = || {
        Some(RunInfo {
            run: RunNo(info.run),
            new: NewExecution {
                namespace: info.namespace,
                id: info.id,
                run_id: RunId::from_slice(&info.run_id)?,
                workflow: info.workflow,
                version: info.version,
                input_digest: info.input_digest.as_slice().try_into().ok()?,
                after: info.after.map(RunNo),
            },
            created_at_us: info.created_at_us,
            update: ExecutionUpdate {
                status: status(info.status)?,
                wake_at_us: info.wake_at_us,
                expires_at_us: info.expires_at_us,
            },
            closed_at_us: info.closed_at_us,
        })
    };
    read().ok_or_else(|| not_understood("what is listed of a run"))
}

pub(super) fn inbox_rows(rows: Vec<api::InboxRow>) -> Result<Vec<InboxRow>, StoreError> {
    let rows = rows.into_iter().map(wire::inbox_row).collect::<Result<_, _>>();
    rows.map_err(|why| StoreError::new(StoreErrorKind::TooNew, why))
}

pub(super) fn attention_row(item: api::AttentionItem) -> AttentionRow {
    let api::AttentionItem { run, seq, ord, kind, message, opened_at_us } = item;
    AttentionRow { run: RunNo(run), seq, ord, kind, message, opened_at_us }
}

pub(super) fn attention_place(place: AttentionPlace) -> api::AttentionPlace {
    let AttentionPlace { opened_at_us, run, seq, ord } = place;
    api::AttentionPlace { opened_at_us, run: run.0, seq, ord }
}

fn not_understood(what: &str) -> StoreError {
    let message = format!("{what} cannot be understood: update this program");
    StoreError::new(StoreErrorKind::TooNew, message)
}

/// What a server says is wrong.
pub(super) fn error(status: &Status) -> Error {
    use api::problem::Kind;
    let problem = api::Problem::decode(status.details()).unwrap_or_default();
    let kind = match problem.kind() {
        Kind::NotFound => ErrorKind::NotFound,
        Kind::IdInUse => ErrorKind::IdInUse,
        Kind::OtherInput => ErrorKind::OtherInput,
        Kind::UnknownWorkflow => ErrorKind::UnknownWorkflow,
        Kind::Invalid => ErrorKind::Invalid,
        Kind::Refused => ErrorKind::Refused,
        Kind::Full => ErrorKind::Full,
        Kind::Unreadable => ErrorKind::Unreadable,
        Kind::Stopped | Kind::Unavailable => ErrorKind::Store(StoreErrorKind::Unavailable),
        Kind::Unspecified => {
            let error = store_error(status);
            return Error::new(ErrorKind::Store(error.kind()), error.to_string());
        }
    };
    Error::new(kind, status.message())
}

/// The same where a store is expected.
pub(super) fn store_error(status: &Status) -> StoreError {
    use api::problem::Kind;
    let problem = api::Problem::decode(status.details()).unwrap_or_default();
    match (problem.kind(), status.code()) {
        (Kind::Unspecified, Code::InvalidArgument | Code::Unimplemented | Code::OutOfRange) => {
            let message = format!("the server does not understand it: {status}");
            StoreError::new(StoreErrorKind::Rejected, message)
        }
        (Kind::Unspecified, _) => {
            let message = format!("the server does not answer: {status}; try again");
            StoreError::new(StoreErrorKind::Unavailable, message)
        }
        (Kind::Stopped | Kind::Unavailable, _) => {
            StoreError::new(StoreErrorKind::Unavailable, status.message())
        }
        (Kind::Unreadable, _) => StoreError::new(StoreErrorKind::Corrupt, status.message()),
        (
            Kind::NotFound
            | Kind::IdInUse
            | Kind::OtherInput
            | Kind::UnknownWorkflow
            | Kind::Invalid
            | Kind::Refused
            | Kind::Full,
            _,
        ) => StoreError::new(StoreErrorKind::Rejected, status.message()),
    }
}
