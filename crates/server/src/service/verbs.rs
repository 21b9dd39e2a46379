//! Verbs, events, restart and delete.

use backstitch::core::attribute::AttributeChange;
use backstitch::core::event::Event;
use backstitch::core::inbox::{InboxKind, Verb as Change};
use backstitch::engine::ErrorKind;
use backstitch::engine::events::EventPost;
use backstitch::engine::life::RestartRequest;
use backstitch::store::RunNo;
use backstitch::{AttributeValue, Handle, RunId, Status, StepRef, VerbRequest};
use backstitch_api::http::{
    Asked, Deleted, EventAccepted, Problem, Restart, Resume, SendEvent, Sent, SetAttributes,
    Started, StepAsked, StepName, Value,
};

use super::{Service, Target, instant, told, who};

/// What is asked of an execution.
#[derive(Clone, Debug)]
pub enum Verb {
    /// Roll back, and end as cancelled.
    Cancel(Asked),
    /// Roll back without waiting for bodies, and end as terminated.
    Terminate(Asked),
    /// Undo what was done, also after success.
    Rollback(Asked),
    /// End as it stands.
    Kill(Asked),
    /// Begin nothing new.
    Pause(Asked),
    /// Go on.
    Resume(Resume),
    /// Try a blocked step again.
    RetryStep(StepAsked),
    /// Try a failed undo again.
    RetryUndo(StepAsked),
    /// Take an undo off the debts.
    WaiveUndo(StepAsked),
    /// Set search attributes.
    SetAttributes(SetAttributes),
}

impl Service {
    /// Sends a verb; what is answered is durable.
    ///
    /// # Errors
    /// `refused`, with the reason and the way out; `invalid`; `not_found`; trouble of the store.
    pub async fn verb(
        &self,
        target: &Target,
        verb: Verb,
        request_id: Option<String>,
    ) -> Result<Sent, Problem> {
        let Target { namespace, id, run_id } = target;
        let handle = match run_id {
            None => self.client.handle_in(namespace, id).await,
            Some(run_id) => self.client.handle_of_run(namespace, id, *run_id).await,
        };
        let handle: Handle<()> = handle.map_err(told)?;
        let asked = |request: VerbRequest, asked: Asked| {
            let request = request.by(who(asked.by));
            request.reason(asked.reason.unwrap_or_default())
        };
        let about = |StepAsked { step, by, reason }| (step_ref(step), Asked { by, reason });
        let request = match verb {
            Verb::Cancel(by) => asked(handle.cancel(), by),
            Verb::Terminate(by) => asked(handle.terminate(), by),
            Verb::Rollback(by) => asked(handle.rollback(), by),
            Verb::Kill(by) => asked(handle.kill(), by),
            Verb::Pause(by) => asked(handle.pause(), by),
            Verb::Resume(Resume { shift_timers, by, reason }) => {
                let resume = handle.resume();
                let resume = if shift_timers { resume.shift_timers() } else { resume };
                asked(resume, Asked { by, reason })
            }
            Verb::RetryStep(about_step) => {
                let (step, by) = about(about_step);
                asked(handle.retry_step(step), by)
            }
            Verb::RetryUndo(about_step) => {
                let (step, by) = about(about_step);
                asked(handle.retry_undo(step), by)
            }
            Verb::WaiveUndo(about_step) => {
                let (step, by) = about(about_step);
                asked(handle.waive_undo(step), by)
            }
            Verb::SetAttributes(set) => return self.set_attributes(target, set, request_id).await,
        };
        let request = match request_id {
            Some(id) => request.request_id(id),
            None => request,
        };
        let answer = request.await.map_err(told)?;
        Ok(Sent { number: answer.number, changed: answer.changed })
    }

    async fn set_attributes(
        &self,
        target: &Target,
        set: SetAttributes,
        request_id: Option<String>,
    ) -> Result<Sent, Problem> {
        let run = self.meant(target).await?.run;
        let changes = set.attributes.into_iter().map(|(name, value)| {
            let value = value.map(AttributeValue::from);
            AttributeChange { name, value }
        });
        let verb = Change {
            by: who(set.by),
            reason: set.reason.unwrap_or_default(),
            attributes: changes.collect(),
            ..Change::default()
        };
        let request_id = request_id.unwrap_or_else(|| self.engine().request_id());
        let sent = self.engine().send(run, InboxKind::SetAttributes, verb, &request_id).await;
        sent.map(|sent| Sent { number: sent.number, changed: sent.changed }).map_err(told)
    }

    /// Sends an event; what is answered is durable.
    ///
    /// # Errors
    /// `refused` when the execution is rolling back or closed; `full`; `invalid`; `not_found`; trouble
    /// of the store.
    pub async fn event(
        &self,
        target: &Target,
        event: SendEvent,
        event_id: Option<String>,
    ) -> Result<EventAccepted, Problem> {
        let run = self.meant(target).await?.run;
        let post = EventPost {
            event_type: event.event_type,
            payload: event.payload.unwrap_or_else(Value::null).payload(),
            event_id,
            by: who(event.by),
        };
        let accepted = self.engine().send_event(run, post).await.map_err(told)?;
        Ok(EventAccepted {
            number: accepted.number,
            accepted_at: instant(accepted.accepted_at_us),
            first: accepted.first,
        })
    }

    /// Does a closed execution over, as a new run.
    ///
    /// # Errors
    /// `refused` when it is not closed; `unknown_workflow`; `not_found`; trouble of the store.
    pub async fn restart(
        &self,
        target: &Target,
        restart: Restart,
        request_id: Option<String>,
    ) -> Result<Started, Problem> {
        let meant = self.meant(target).await?;
        // Who names the run says which one was before.
        if let (Some(id), None) = (&request_id, target.run_id)
            && self.was_restarted_by(meant.run, id).await?
        {
            // The same request again: it means the run before, which is not the newest any more.
            return Ok(started(target, meant.new.run_id, true, meant.update.status));
        }
        let by = who(restart.by);
        let request = RestartRequest { by, version: restart.version, request_id };
        let begun = self.engine().restart(meant.run, request).await.map_err(told)?;
        Ok(started(target, begun.run_id, begun.created, begun.status))
    }

    async fn was_restarted_by(&self, run: RunNo, request_id: &str) -> Result<bool, Problem> {
        let rows = self.engine().journal_after(run, 0, 1).await.map_err(told)?;
        Ok(rows.iter().flat_map(|row| &row.events).any(|event| {
            matches!(event, Event::ExecutionStarted(started)
                if started.request_id == request_id && started.restarted_from.is_some())
        }))
    }

    /// Deletes a closed run of an execution with all that is known of it; other runs of the id stay.
    ///
    /// # Errors
    /// `refused` when it is not closed, or while a matter of it is open; `not_found`; trouble of the
    /// store.
    pub async fn delete(&self, target: &Target, asked: Asked) -> Result<Deleted, Problem> {
        let meant = self.meant(target).await?;
        let by = who(asked.by);
        let reason = asked.reason.unwrap_or_default();
        self.engine().delete(meant.run, &by, &reason).await.map_err(told)?;
        let Target { namespace, id, .. } = target.clone();
        let still_there = match self.engine().newest(&namespace, &id).await {
            Ok(newest) => Some(newest.new.run_id.to_string()),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(told(error)),
        };
        Ok(Deleted { namespace, id, run_id: meant.new.run_id.to_string(), still_there })
    }
}

fn started(target: &Target, run_id: RunId, created: bool, status: Status) -> Started {
    Started {
        namespace: target.namespace.clone(),
        id: target.id.clone(),
        run_id: run_id.to_string(),
        created,
        status: status.into(),
    }
}

fn step_ref(name: StepName) -> StepRef {
    match name {
        StepName::Ord(ord) => StepRef::Ordinal(ord),
        StepName::Key(key) => StepRef::Key(key),
    }
}
