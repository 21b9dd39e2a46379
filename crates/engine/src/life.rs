//! What is done with closed runs: they are done over, or deleted.

use backstitch_core::id::name_defect;
use backstitch_core::run::Phase;
use backstitch_core::status::Status;
use backstitch_store::{Answer, Change, Refusal, RunNo};

use crate::engine::{Engine, Role, check_words};
use crate::error::{Error, ErrorKind};
use crate::retention;
use crate::start::{Conflict, Restart, Retention, Reuse, StartAnswer, StartRequest};
use crate::verbs::gone;
use crate::view::RunView;

/// How a closed run is done over.
#[derive(Clone, Debug, Default)]
pub struct RestartRequest {
    /// Who wants it.
    pub by: String,
    /// The version of the workflow; the one that ran it last, if absent.
    pub version: Option<String>,
    /// The caller's id of the request: sent twice it makes one run.
    pub request_id: Option<String>,
}

impl Engine {
    /// Does a closed run over: a new run of the same id, with the same workflow and input, its
    /// retention and attributes, and with keys of its own.
    ///
    /// # Errors
    /// `Refused` when the run is not closed, or is not the newest of its id; `UnknownWorkflow`;
    /// trouble of the store.
    pub async fn restart(&self, run: RunNo, request: RestartRequest) -> Result<StartAnswer, Error> {
        check_words("by", &request.by)?;
        if let Some(host) = &self.shared.host {
            return host.restart(run, request).await;
        }
        let request_id = request.request_id.clone().unwrap_or_default();
        if let Some(id) = &request.request_id
            && let Some(defect) = name_defect("request id", id)
        {
            return Err(Error::new(ErrorKind::Invalid, defect));
        }
        let view = self.view(run).await?;
        if let Some(before) = self.restarted_before(&view, &request_id).await? {
            return Ok(before);
        }
        self.must_be_closed("restart", "cancel it", &view).await?;
        let (new, started) = (&view.info.new, &view.run.started);
        let attributes = view.run.attributes.iter().map(|(name, value)| {
            let value = Some(value.clone());
            backstitch_core::attribute::AttributeChange { name: name.clone(), value }
        });
        let start = StartRequest {
            namespace: new.namespace.clone(),
            id: new.id.clone(),
            workflow: new.workflow.clone(),
            version: request.version.unwrap_or_else(|| view.run.version.clone()),
            input: started.input.clone(),
            conflict: Conflict::Fail,
            reuse: Reuse::Allow,
            started_by: request.by,
            deadline: started.deadline_at_us.map(|deadline_at_us| {
                let us = deadline_at_us.saturating_sub(view.info.created_at_us);
                std::time::Duration::from_micros(u64::try_from(us).unwrap_or(0))
            }),
            retention: match started.retention_us {
                None => Retention::Usual,
                Some(u64::MAX) => Retention::Forever,
                Some(us) => Retention::For(std::time::Duration::from_micros(us)),
            },
            attributes: attributes.collect(),
            request_id: request_id.clone(),
            restart: Some(Restart { from: run, from_id: new.run_id }),
        };
        match self.start(start).await {
            // Perhaps the same request was faster.
            Err(error) if error.kind() == ErrorKind::Refused => {
                self.restarted_before(&view, &request_id).await?.ok_or(error)
            }
            begun => begun,
        }
    }

    /// What the same request has begun, if that is the newest run.
    async fn restarted_before(
        &self,
        view: &RunView,
        request_id: &str,
    ) -> Result<Option<StartAnswer>, Error> {
        let new = &view.info.new;
        if request_id.is_empty() {
            return Ok(None);
        }
        let newest = self.newest(&new.namespace, &new.id).await?;
        let newest = self.view(newest.run).await?;
        let started = &newest.run.started;
        let same = started.request_id == request_id
            && started.restarted_from.as_deref() == Some(new.run_id.to_vec().as_slice());
        Ok(same.then_some(StartAnswer {
            run: newest.info.run,
            run_id: newest.info.new.run_id,
            created: false,
            status: newest.info.update.status,
        }))
    }

    /// With what stands in its inbox: that may open it again, or be about to close it.
    async fn must_be_closed(&self, verb: &str, to_end: &str, view: &RunView) -> Result<(), Error> {
        let status = view.status();
        if status.is_closed() {
            return Ok(());
        }
        let (soon, _) = self.as_it_will_stand(view).await?;
        let why = match (&soon.phase, soon.status(true)) {
            (Phase::Closed(_), _) => {
                "it is ending, by what was accepted before; wait for its end".into()
            }
            (_, Status::Stuck) => {
                format!("it is not closed ({status}); retry or waive its failed undos, or kill it")
            }
            (Phase::RollingBack, Status::Paused) => {
                format!(
                    "it is not closed (its rollback is {status}); resume it, and wait for its end"
                )
            }
            (Phase::RollingBack, _) => format!("it is not closed ({status}); wait for its end"),
            (Phase::Forward, _) => {
                format!("it is not closed (its status is {status}); wait for its end, or {to_end}")
            }
        };
        let message = format!("{verb} of execution {:?} is refused: {why}", view.info.new.id);
        Err(Error::new(ErrorKind::Refused, message))
    }

    /// Deletes a closed run with all that is known of it. Other runs of its id stay.
    ///
    /// # Errors
    /// `Refused` when the run is not closed, while one of its open matters is not settled, or while the run is
    /// open that it was to follow;
    /// trouble of the store.
    pub async fn delete(&self, run: RunNo, by: &str, reason: &str) -> Result<(), Error> {
        check_words("by", by)?;
        check_words("reason", reason)?;
        if let Some(host) = &self.shared.host {
            return host.delete(run, by, reason).await;
        }
        let view = self.view(run).await?;
        let id = &view.info.new.id;
        self.must_be_closed("delete", "terminate it", &view).await?;
        let refused = |why: &str| {
            let message = format!("delete of execution {id:?} is refused: {why}");
            Err(Error::new(ErrorKind::Refused, message))
        };
        if self.shared.open_before(&view.info).await?.is_some() {
            // A third one has to find the first.
            return refused("the run before it is still open; wait for its end");
        }
        match self.shared.store.commit(Change::Delete(run)).await? {
            Answer::Deleted => {
                tracing::info!(%id, run_id = %view.info.new.run_id, by, reason, "execution deleted");
                if self.shared.role == Role::Owner {
                    let shared = self.shared.clone();
                    self.shared.runtime.spawn(async move { retention::purge(&shared).await });
                }
                Ok(())
            }
            Answer::Refused(Refusal::Open) => refused("it was opened again"),
            Answer::Refused(Refusal::Called) => {
                refused("something was sent to it that is not carried out yet; try again")
            }
            Answer::Refused(Refusal::Attention) => {
                let open: Vec<&str> =
                    view.run.attention.iter().map(|item| item.message.as_str()).collect();
                let why = format!(
                    "open matters have to be settled first: {}; waive them",
                    open.join("; ")
                );
                refused(&why)
            }
            answer => Err(gone(run, &answer)),
        }
    }
}
