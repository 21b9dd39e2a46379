//! Starting executions: idempotent by id.

use backstitch_core::attribute::AttributeChange;
use backstitch_core::event::{AttributeOrigin, AttributesSet, Event, ExecutionStarted, SEMANTICS};
use backstitch_core::id::{RunId, name_defect};
use backstitch_core::inbox::{InboxKind, Verb};
use backstitch_core::limits::DURATION_US_MAX;
use backstitch_core::payload::Payload;
use backstitch_core::row::{Draft, Header, Row, RowKind};
use backstitch_core::status::Status;
use backstitch_store::{
    Answer, Change, ErrorKind as StoreErrorKind, ExecutionUpdate, NewExecution, Refusal, RunInfo,
    RunNo, Start,
};
use std::sync::Arc;
use std::time::Duration;

use crate::attributes::check_attributes;
use crate::calls;
use crate::driver::{Driver, Origin};
use crate::engine::{Engine, Role, Shared, UnknownWorkflows, check_words, fenced, runtime_gone};
use crate::error::{Error, ErrorKind};
use crate::live::{Mail, Seating};

/// What to do when the id is in use by an open run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflict {
    /// The open run is the answer, if its workflow and input are the same.
    #[default]
    UseExisting,
    /// An error.
    Fail,
    /// The open run is terminated (its rollback runs); the new one begins when it has closed.
    Terminate,
}

/// What to do when the last run of the id is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// No second run is made. With [`Conflict::UseExisting`] the closed run is the answer, if its
    /// workflow and input are the same; else an error.
    #[default]
    Reject,
    /// A new run, if the last one did not succeed; else as for `Reject`.
    AllowIfFailed,
    /// A new run.
    Allow,
}

/// What to start.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// The namespace of the id.
    pub namespace: String,
    /// The business id.
    pub id: String,
    /// The workflow.
    pub workflow: String,
    /// Its version.
    pub version: String,
    /// Its input.
    pub input: Payload,
    /// When the id is in use.
    pub conflict: Conflict,
    /// When the id was used.
    pub reuse: Reuse,
    /// Who starts it; for the journal.
    pub started_by: String,
    /// Rolled back if it is not over so long after its start.
    pub deadline: Option<Duration>,
    /// How long it is kept after it was closed.
    pub retention: Retention,
    /// Its first search attributes.
    pub attributes: Vec<AttributeChange>,
    /// The caller's id of the request, empty if it gave none: sent twice it makes one run.
    pub request_id: String,
    /// The closed run that it does over, and the id of the new one.
    pub restart: Option<Restart>,
}

/// How long a closed run is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// As the engine is set.
    #[default]
    Usual,
    /// So long after it was closed.
    For(Duration),
    /// Until somebody deletes it.
    Forever,
}

/// A start that does a closed run over.
#[derive(Clone, Debug)]
pub struct Restart {
    /// The closed run, which has to be the newest of its id.
    pub from: RunNo,
    /// Its id.
    pub from_id: RunId,
}

/// The answer to a start.
#[derive(Clone, Debug)]
pub struct StartAnswer {
    /// The run.
    pub run: RunNo,
    /// Its id.
    pub run_id: RunId,
    /// Whether this call made it.
    pub created: bool,
    /// The status that was found, or the first one.
    pub status: Status,
}

/// What is to be done about the run that was found.
enum Found {
    Answer(StartAnswer),
    /// It is closed, and a new run may begin; when the one has closed that it waited for, if that is
    /// still open.
    Over(RunNo, Option<(RunNo, RunId)>),
    /// A new run begins when it has closed.
    BeginAfter(RunNo, RunId),
}

impl Engine {
    /// Starts an execution. When the answer comes it is durable.
    ///
    /// # Errors
    /// `UnknownWorkflow`, `Invalid` (a bad name or a payload that is too large), `IdInUse`,
    /// `OtherInput`; trouble of the store.
    pub async fn start(&self, request: StartRequest) -> Result<StartAnswer, Error> {
        self.check(&request)?;
        if let Some(host) = &self.shared.host {
            return host.start(request).await;
        }
        let restart = request.restart.as_ref();
        let run_id = self.shared.ids.run(self.shared.clock.now_us());
        let mut expected = restart.map(|restart| restart.from);
        let mut after = match expected {
            Some(from) => self.shared.open_before(&self.info(from).await?).await?,
            None => None,
        };
        loop {
            let (start, row) = self.first_change(&request, run_id, expected, after);
            let status = start.status;
            match self.begin(start, row).await? {
                Answer::Started { run, .. } => {
                    return Ok(StartAnswer { run, run_id, created: true, status });
                }
                Answer::Exists(found) if restart.is_some() => {
                    let message = format!(
                        "execution {:?} has a newer run ({}) than the one to do over; look at that \
                         one",
                        request.id, found.new.run_id
                    );
                    return Err(Error::new(ErrorKind::Refused, message));
                }
                Answer::Exists(found) => match self.found(&request, *found).await? {
                    Found::Answer(answer) => return Ok(answer),
                    Found::Over(run, before) => (expected, after) = (Some(run), before),
                    Found::BeginAfter(run, run_id) => {
                        (expected, after) = (Some(run), Some((run, run_id)));
                    }
                },
                // The run that it was to follow was deleted.
                Answer::Refused(Refusal::UnknownRun) if restart.is_none() && expected.is_some() => {
                    (expected, after) = (None, None);
                }
                Answer::Refused(Refusal::Fenced { .. }) => {
                    self.shared.health.unavailable(&fenced());
                    return Err(fenced().into());
                }
                answer => {
                    let message = format!("the store answered {answer:?} to a start");
                    return Err(Error::new(ErrorKind::Invalid, message));
                }
            }
        }
    }

    fn check(&self, request: &StartRequest) -> Result<(), Error> {
        let names = [
            ("namespace", &request.namespace),
            ("execution id", &request.id),
            ("workflow name", &request.workflow),
            ("workflow version", &request.version),
        ];
        if let Some(defect) = names.iter().find_map(|(what, name)| name_defect(what, name)) {
            return Err(Error::new(ErrorKind::Invalid, defect));
        }
        check_words("by", &request.started_by)?;
        if !request.request_id.is_empty()
            && let Some(defect) = name_defect("request id", &request.request_id)
        {
            return Err(Error::new(ErrorKind::Invalid, defect));
        }
        let refused = match (self.shared.role, self.shared.options.unknown_workflows) {
            (Role::Owner, UnknownWorkflows::Refused) => !self.is_known(request),
            (Role::Owner, UnknownWorkflows::Wait) | (Role::Guest, _) => false,
        };
        if refused {
            let message = format!(
                "no workflow {:?} version {:?} is registered; these are: {}. Take one of these, or \
                 register it",
                request.workflow,
                request.version,
                self.shared.known_workflows()
            );
            return Err(Error::new(ErrorKind::UnknownWorkflow, message));
        }
        let (bytes, max) = (request.input.data.len(), self.payload_bytes_max());
        if bytes > max {
            let message = format!(
                "the input of execution {:?} has {bytes} bytes; at most {max} are allowed: keep \
                 large data elsewhere and pass its address, or raise the limit",
                request.id
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        check_attributes(&request.attributes)?;
        if self.shared.is_stopping() {
            return Err(Error::new(ErrorKind::Stopped, "the engine was stopped"));
        }
        Ok(())
    }

    fn is_known(&self, request: &StartRequest) -> bool {
        let code = (request.workflow.clone(), request.version.clone());
        self.shared.program(&request.workflow, &request.version).is_some()
            || self.shared.workers.as_ref().is_some_and(|workers| workers.know(&code))
    }

    fn first_change(
        &self,
        request: &StartRequest,
        run_id: RunId,
        expected: Option<RunNo>,
        after: Option<(RunNo, RunId)>,
    ) -> (Box<Start>, Row) {
        let (digest, restart) = (request.input.digest(), request.restart.as_ref());
        // The random bits of the run id are as good a seed as any, and the same when offered again.
        let (_, seed) = run_id.0.as_u64_pair();
        let started = ExecutionStarted {
            namespace: request.namespace.clone(),
            id: request.id.clone(),
            run_id: run_id.to_vec(),
            workflow: request.workflow.clone(),
            version: request.version.clone(),
            semantics: SEMANTICS,
            seed,
            input: request.input.clone(),
            input_digest: digest.to_vec(),
            started_by: request.started_by.clone(),
            after: after.map(|(_, run_id)| run_id.to_vec()),
            deadline_at_us: request.deadline.map(|deadline| {
                let us = u64::try_from(deadline.as_micros()).unwrap_or(u64::MAX);
                self.shared.clock.now_us().saturating_add_unsigned(us.min(DURATION_US_MAX))
            }),
            retention_us: match request.retention {
                Retention::Usual => None,
                Retention::For(kept) => Some(u64::try_from(kept.as_micros()).unwrap_or(u64::MAX)),
                Retention::Forever => Some(u64::MAX),
            },
            restarted_from: restart.map(|restart| restart.from_id.to_vec()),
            request_id: request.request_id.clone(),
            ..ExecutionStarted::default()
        };
        let mut events: Vec<Event> = vec![started.into()];
        if !request.attributes.is_empty() {
            let changes = request.attributes.clone();
            let origin = AttributeOrigin::Start as i32;
            events.push(AttributesSet { changes, origin, ..AttributesSet::default() }.into());
        }
        let header = Header {
            seq: 1,
            kind: RowKind::Engine as i32,
            fence: self.shared.store.fence(),
            append_id: run_id.to_vec(),
            ..Header::default()
        };
        let row = Row { header, events };
        let start = Box::new(Start {
            execution: NewExecution {
                namespace: request.namespace.clone(),
                id: request.id.clone(),
                run_id,
                workflow: request.workflow.clone(),
                version: request.version.clone(),
                input_digest: digest,
                after: after.map(|(run, _)| run),
            },
            first: Draft::new(row.header.clone(), &row.events),
            expected,
            status: match (self.shared.role, after) {
                (Role::Owner, None) if self.is_known(request) => Status::Running,
                (Role::Owner, None | Some(_)) | (Role::Guest, _) => Status::Pending,
            },
            attributes: request.attributes.clone(),
        });
        (start, row)
    }

    /// Commits the start and dispatches the run, also if the caller goes away meanwhile: what is
    /// durable must not wait for the next restart.
    async fn begin(&self, start: Box<Start>, mut row: Row) -> Result<Answer, Error> {
        let shared = self.shared.clone();
        let begun = self.shared.runtime.spawn(async move {
            let (new, status) = (start.execution.clone(), start.status);
            let mut answer = shared.store.commit(Change::Start(start)).await;
            if let Err(error) = &answer
                && matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::Corrupt)
            {
                shared.health.unavailable(error);
                // Nobody else would drive it if only the answer was lost.
                let found = shared.store.newest(&new.namespace, &new.id).await.ok().flatten();
                if let Some(info) = found.filter(|info| info.new.run_id == new.run_id) {
                    let (run, at_us) = (info.run, info.created_at_us);
                    answer = Ok(Answer::Started { run, at_us, first: false });
                }
            }
            match (&answer, shared.role) {
                (Ok(Answer::Started { run, at_us, first: true }), Role::Owner) => {
                    shared.health.available();
                    let update = ExecutionUpdate { status, wake_at_us: None, expires_at_us: None };
                    let (run, created_at_us) = (*run, *at_us);
                    let info = RunInfo { run, new, created_at_us, update, closed_at_us: None };
                    row.header.at_us = created_at_us;
                    dispatch(&shared, info, row);
                }
                // It was begun before, and may have gone on since.
                (Ok(Answer::Started { run, first: false, .. }), Role::Owner) => {
                    calls::wake(&shared, *run, Mail::Look);
                }
                // Its owner is called.
                (Ok(_) | Err(_), Role::Owner | Role::Guest) => {}
            }
            answer
        });
        Ok(begun.await.map_err(|_| runtime_gone())??)
    }

    async fn found(&self, request: &StartRequest, found: RunInfo) -> Result<Found, Error> {
        if let Some(answer) = self.started_before(request, &found).await? {
            return Ok(Found::Answer(answer));
        }
        let closed = found.update.status.is_closed();
        let again = match (closed, request.reuse) {
            (true, Reuse::Allow) => true,
            (true, Reuse::AllowIfFailed) => found.update.status != Status::Succeeded,
            (true, Reuse::Reject) | (false, _) => false,
        };
        if again {
            let before = self.shared.open_before(&found).await?;
            return Ok(Found::Over(found.run, before));
        }
        match request.conflict {
            Conflict::UseExisting => {
                let answer = self.same(request, &found)?;
                if !closed && self.shared.role == Role::Owner {
                    // It may have no driver: one whose first start was answered by nobody.
                    calls::wake(&self.shared, found.run, Mail::Look);
                }
                Ok(Found::Answer(answer))
            }
            Conflict::Terminate if !closed => {
                self.terminate_for(request, &found).await?;
                Ok(Found::BeginAfter(found.run, found.new.run_id))
            }
            Conflict::Fail | Conflict::Terminate => {
                let what = if closed { "was used by a closed run" } else { "is in use" };
                let message = format!(
                    "the execution id {:?} {what} (its status is {}); take another id, or allow \
                     it by the conflict or reuse policy",
                    request.id, found.update.status
                );
                Err(Error::new(ErrorKind::IdInUse, message))
            }
        }
    }

    /// The first answer again, if the same request has begun the run that was found.
    async fn started_before(
        &self,
        request: &StartRequest,
        found: &RunInfo,
    ) -> Result<Option<StartAnswer>, Error> {
        if request.request_id.is_empty() {
            return Ok(None);
        }
        let rows = self.journal_after(found.run, 0, 1).await?;
        let Some(Event::ExecutionStarted(started)) =
            rows.first().and_then(|row| row.events.first())
        else {
            return Ok(None);
        };
        if started.request_id != request.request_id || started.restarted_from.is_some() {
            return Ok(None);
        }
        match self.same(request, found) {
            Ok(answer) => Ok(Some(StartAnswer { created: true, ..answer })),
            Err(_) => {
                let message = format!(
                    "request id {:?} was used before to start execution {:?} otherwise; give each \
                     request an id of its own",
                    request.request_id, request.id
                );
                Err(Error::new(ErrorKind::Invalid, message))
            }
        }
    }

    fn same(&self, request: &StartRequest, found: &RunInfo) -> Result<StartAnswer, Error> {
        let other_workflow = found.new.workflow != request.workflow;
        if other_workflow || found.new.input_digest != request.input.digest() {
            let what = if other_workflow { "for another workflow" } else { "with another input" };
            let message = format!(
                "the execution id {:?} is in use {what} (run {}, workflow {:?}); take another id",
                request.id, found.new.run_id, found.new.workflow
            );
            return Err(Error::new(ErrorKind::OtherInput, message));
        }
        Ok(StartAnswer {
            run: found.run,
            run_id: found.new.run_id,
            created: false,
            status: found.update.status,
        })
    }

    async fn terminate_for(&self, request: &StartRequest, found: &RunInfo) -> Result<(), Error> {
        let reason = "a new run of the same id was started".to_owned();
        let verb = Verb { by: request.started_by.clone(), reason, ..Verb::default() };
        let request_id = self.shared.ids.request();
        match self.send(found.run, InboxKind::Terminate, verb, &request_id).await {
            // It closed by itself in the meantime.
            Err(error) if error.kind() == ErrorKind::Refused => Ok(()),
            sent => sent.map(|_| ()),
        }
    }
}

/// Drives a run that has just been started.
fn dispatch(shared: &Arc<Shared>, info: RunInfo, first: Row) {
    let Seating::Seated(seat) = shared.live.take_seat(info.run) else {
        // The engine was stopped in this moment: the next owner goes on with it.
        return;
    };
    let rows = std::slice::from_ref(&first);
    let driver = Driver::new(shared.clone(), info, seat, Origin::Started, rows);
    let driver = driver.expect("a first row folds");
    if shared.feed.is_watched() {
        shared.feed.publish(driver.execution(), first);
    }
    tracing::info!(
        id = %driver.execution().id, run_id = %driver.execution().run_id,
        workflow = %driver.execution().workflow, "execution started"
    );
    shared.runtime.spawn(driver.drive());
}
