//! From the words of callers to the engine's, and back.

use std::time::Duration;

use backstitch_api::client as wire;
use backstitch_engine::start::{Conflict, Retention, Reuse, StartAnswer, StartRequest};
use backstitch_engine::{Error, ErrorKind};
use backstitch_store::{AttentionPlace, AttentionRow, RunInfo, RunNo};
use prost::Message;
use tonic::{Code, Response, Status};
use wire::problem::Kind;

/// The same message under its other name: the fields of the two have the same numbers.
pub(super) fn same<To: Message + Default>(from: &impl Message) -> To {
    To::decode(from.encode_to_vec().as_slice()).expect("the two have the same fields")
}

pub(super) fn start(request: wire::StartRequest) -> StartRequest {
    let conflict = match request.conflict() {
        wire::start_request::Conflict::UseExisting => Conflict::UseExisting,
        wire::start_request::Conflict::Fail => Conflict::Fail,
        wire::start_request::Conflict::Terminate => Conflict::Terminate,
    };
    let reuse = match request.reuse() {
        wire::start_request::Reuse::Reject => Reuse::Reject,
        wire::start_request::Reuse::AllowIfFailed => Reuse::AllowIfFailed,
        wire::start_request::Reuse::Allow => Reuse::Allow,
    };
    StartRequest {
        namespace: request.namespace,
        id: request.id,
        workflow: request.workflow,
        version: request.version,
        input: same(&request.input.unwrap_or_default()),
        conflict,
        reuse,
        started_by: request.started_by,
        deadline: request.deadline_us.map(Duration::from_micros),
        retention: match request.retention_us {
            None => Retention::Usual,
            Some(u64::MAX) => Retention::Forever,
            Some(us) => Retention::For(Duration::from_micros(us)),
        },
        attributes: request.attributes.iter().map(same).collect(),
        request_id: request.request_id,
        restart: None,
    }
}

pub(super) fn started(answer: StartAnswer) -> wire::StartAnswer {
    wire::StartAnswer {
        run: answer.run.0,
        run_id: answer.run_id.to_vec(),
        created: answer.created,
        status: answer.status as u32,
    }
}

pub(super) fn run_answer(
    found: Result<RunInfo, Error>,
) -> Result<Response<wire::RunAnswer>, Status> {
    match found {
        Ok(info) => Ok(Response::new(wire::RunAnswer { run: Some(run_info(info)) })),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Ok(Response::new(wire::RunAnswer { run: None }))
        }
        Err(error) => Err(status(error)),
    }
}

pub(super) fn runs_page(
    found: Result<Vec<RunInfo>, Error>,
) -> Result<Response<wire::RunsPage>, Status> {
    let runs = found.map_err(status)?.into_iter().map(run_info).collect();
    Ok(Response::new(wire::RunsPage { runs }))
}

fn run_info(info: RunInfo) -> wire::RunInfo {
    let RunInfo { run, new, created_at_us, update, closed_at_us } = info;
    wire::RunInfo {
        run: run.0,
        namespace: new.namespace,
        id: new.id,
        run_id: new.run_id.to_vec(),
        workflow: new.workflow,
        version: new.version,
        input_digest: new.input_digest.to_vec(),
        after: new.after.map(|run| run.0),
        created_at_us,
        status: update.status as u32,
        wake_at_us: update.wake_at_us,
        expires_at_us: update.expires_at_us,
        closed_at_us,
    }
}

pub(super) fn attention_item(row: AttentionRow) -> wire::AttentionItem {
    let AttentionRow { run, seq, ord, kind, message, opened_at_us } = row;
    wire::AttentionItem { run: run.0, seq, ord, kind, message, opened_at_us }
}

pub(super) fn attention_place(place: wire::AttentionPlace) -> AttentionPlace {
    let wire::AttentionPlace { opened_at_us, run, seq, ord } = place;
    AttentionPlace { opened_at_us, run: RunNo(run), seq, ord }
}

pub(super) fn invalid(message: impl Into<String>) -> Status {
    status(Error::new(ErrorKind::Invalid, message))
}

pub(super) fn status(error: Error) -> Status {
    let (kind, code) = match error.kind() {
        ErrorKind::NotFound => (Kind::NotFound, Code::NotFound),
        ErrorKind::IdInUse => (Kind::IdInUse, Code::AlreadyExists),
        ErrorKind::OtherInput => (Kind::OtherInput, Code::AlreadyExists),
        ErrorKind::UnknownWorkflow => (Kind::UnknownWorkflow, Code::FailedPrecondition),
        ErrorKind::Invalid => (Kind::Invalid, Code::InvalidArgument),
        ErrorKind::Refused => (Kind::Refused, Code::FailedPrecondition),
        ErrorKind::Full => (Kind::Full, Code::ResourceExhausted),
        ErrorKind::Unreadable => (Kind::Unreadable, Code::DataLoss),
        ErrorKind::Stopped => (Kind::Stopped, Code::Unavailable),
        ErrorKind::Store(backstitch_store::ErrorKind::Rejected) => {
            (Kind::Invalid, Code::InvalidArgument)
        }
        ErrorKind::Store(_) => (Kind::Unavailable, Code::Unavailable),
    };
    let problem = wire::Problem { kind: kind as i32 };
    Status::with_details(code, error.to_string(), problem.encode_to_vec().into())
}
