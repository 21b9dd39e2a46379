//! Events at the door: durable in the inbox of the run before they are acknowledged, kept until a
//! wait wants them, and bounded.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use backstitch_core::id::name_defect;
use backstitch_core::inbox::{EventMessage, InboxKind, InboxRow};
use backstitch_core::limits::EVENTS_KEPT_BYTES_MAX;
use backstitch_core::payload::Payload;
use backstitch_core::session::{Verdict, judge};
use backstitch_store::{Answer, InboxPut, Refusal, RunNo};

use crate::engine::{Engine, check_words};
use crate::error::{Error, ErrorKind};
use crate::program::ExecutionFacts;
use crate::verbs::{ENDING, gone};

/// An event that is to be sent.
#[derive(Clone, Debug)]
pub struct EventPost {
    /// Its type; what waits ask for.
    pub event_type: String,
    /// What it says.
    pub payload: Payload,
    /// The sender's id of it: the same id with the same type and payload is one event.
    pub event_id: Option<String>,
    /// Who sends it.
    pub by: String,
}

/// The answer to an event: it is durable, and will be kept until a wait takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventAccepted {
    /// The number of the inbox row.
    pub number: u64,
    /// When it was accepted, microseconds since 1970.
    pub accepted_at_us: i64,
    /// False when the same event had been accepted before.
    pub first: bool,
}

/// Whether a run takes events.
enum Door {
    /// It does.
    Open {
        /// The last row of its inbox that it has read.
        inbox_read: u64,
        /// So many rows of its inbox hold none that is kept.
        inbox_done: u64,
        /// What those say that are kept, in bytes.
        kept_bytes: u64,
    },
    /// It does not, and why.
    Shut(String),
}

impl Engine {
    /// Sends an event to a run; the answer comes when it is durable.
    ///
    /// # Errors
    /// `Refused` when the run is rolling back or closed; `Full` when it keeps as many events as it
    /// may; `Invalid` for a bad type or id, a payload that is too large, a type that the workflow
    /// does not know, or an id that was used for another event; `NotFound`; trouble of the store.
    pub async fn send_event(&self, run: RunNo, post: EventPost) -> Result<EventAccepted, Error> {
        if let Some(host) = &self.shared.host {
            return host.send_event(run, post).await;
        }
        let (execution, door) = self.door(run).await?;
        self.check_event(&execution, &post)?;
        let EventPost { event_type, payload, event_id, by } = post;
        // Ids of events and of verbs are apart.
        let request_id = match &event_id {
            Some(id) => format!("event {id}"),
            None => self.shared.ids.request(),
        };
        let event_id = event_id.unwrap_or_default();
        let message = EventMessage { by, event_id: event_id.clone(), payload };
        let digest = message.digest(&event_type);
        let same = |row: &InboxRow| {
            let sent = EventMessage::from_bytes(row.payload.clone());
            sent.is_some_and(|sent| sent.digest(&row.topic) == digest)
        };
        let (seen, done, kept_bytes) = match door {
            Door::Open { inbox_read, inbox_done, kept_bytes } => {
                (inbox_read, inbox_done, kept_bytes)
            }
            Door::Shut(why) => {
                if let Some(row) = self.accepted_before(run, &request_id, same).await? {
                    let (number, accepted_at_us) = (row.number, row.accepted_at_us);
                    return Ok(EventAccepted { number, accepted_at_us, first: false });
                }
                let message = format!(
                    "event {event_type:?} for execution {:?} is refused: {why}",
                    execution.id
                );
                return Err(Error::new(ErrorKind::Refused, message));
            }
        };
        let kept_max = self.shared.options.events_kept_max;
        let bytes = kept_bytes + message.payload.data.len() as u64;
        if kept_bytes > 0 && bytes > EVENTS_KEPT_BYTES_MAX {
            let message = format!(
                "event {event_type:?} for execution {:?} is refused: with it the events that no wait \
                 has taken would have {bytes} bytes, and {EVENTS_KEPT_BYTES_MAX} are allowed; send it \
                 again when some are taken",
                execution.id
            );
            return Err(Error::new(ErrorKind::Full, message));
        }
        let put = InboxPut {
            run,
            kind: InboxKind::Event,
            request_id,
            topic: event_type.clone(),
            payload: message.to_bytes(),
            digest,
            changed: true,
            rows_max: done.saturating_add(kept_max),
            seen,
            guard: InboxKind::ENDING.to_vec(),
        };
        let refused = |kind, why: String| {
            let message =
                format!("event {event_type:?} for execution {:?} is refused: {why}", execution.id);
            Err(Error::new(kind, message))
        };
        match self.put(put).await? {
            Answer::Accepted { number, accepted_at_us, first, .. } => {
                Ok(EventAccepted { number, accepted_at_us, first })
            }
            Answer::Refused(Refusal::Closed) => refused(
                ErrorKind::Refused,
                "the execution has just closed; start another one, or restart it".into(),
            ),
            Answer::Refused(Refusal::Unread(_)) => refused(ErrorKind::Refused, ENDING.into()),
            Answer::Refused(Refusal::Full) => refused(
                ErrorKind::Full,
                format!(
                    "it keeps {kept_max} events that no wait has taken; send it again when some are \
                     taken"
                ),
            ),
            Answer::Refused(Refusal::OtherRequest) => refused(
                ErrorKind::Invalid,
                format!(
                    "the event id {event_id:?} was used before for another event; give each event \
                     an id of its own"
                ),
            ),
            answer => Err(gone(run, &answer)),
        }
    }

    fn check_event(&self, execution: &ExecutionFacts, post: &EventPost) -> Result<(), Error> {
        let invalid = |why: String| Err(Error::new(ErrorKind::Invalid, why));
        let id = post.event_id.as_deref();
        let defect = name_defect("type of the event", &post.event_type)
            .or_else(|| id.and_then(|id| name_defect("id of the event", id)));
        if let Some(defect) = defect {
            return invalid(defect);
        }
        check_words("by", &post.by)?;
        let (bytes, max) = (post.payload.data.len(), self.payload_bytes_max());
        if bytes > max {
            return invalid(format!(
                "the event {:?} has {bytes} bytes; at most {max} are allowed: keep large data \
                 elsewhere and send its address, or raise the limit",
                post.event_type
            ));
        }
        let known = self.event_types(&execution.workflow, &execution.version);
        if let Some(known) = known.filter(|known| !known.contains(&post.event_type)) {
            let takes = if known.is_empty() { "none".into() } else { known.join(", ") };
            return invalid(format!(
                "the workflow {:?} takes no events of type {:?}; it takes: {takes}",
                execution.workflow, post.event_type
            ));
        }
        Ok(())
    }

    /// The types of the events that a workflow takes, as far as its code is here, or at a worker that tells.
    fn event_types(&self, workflow: &str, version: &str) -> Option<Vec<String>> {
        if let Some(program) = self.shared.program(workflow, version) {
            return Some(program.event_types().to_vec()).filter(|types| !types.is_empty());
        }
        let workers = self.shared.workers.as_ref()?;
        let types = workers.event_types(&(workflow.to_owned(), version.to_owned()))?;
        Some(types.into_iter().collect())
    }

    /// The execution, and whether it takes events: from what its driver says of it, or from its
    /// journal.
    async fn door(&self, run: RunNo) -> Result<(Arc<ExecutionFacts>, Door), Error> {
        if let Some(gist) = self.shared.live.gist(run)
            && let Some(execution) = gist.execution.get()
            // Before `takes_events`, which is stored before it.
            && let inbox_read = gist.inbox_read.load(Ordering::SeqCst)
            && gist.takes_events.load(Ordering::SeqCst)
        {
            let inbox_done = gist.inbox_done.load(Ordering::SeqCst);
            let kept_bytes = gist.kept_bytes.load(Ordering::SeqCst);
            return Ok((execution.clone(), Door::Open { inbox_read, inbox_done, kept_bytes }));
        }
        let view = self.view(run).await?;
        let new = view.info.new.clone();
        let execution = Arc::new(ExecutionFacts {
            namespace: new.namespace,
            id: new.id,
            run_id: new.run_id,
            workflow: new.workflow,
            version: view.run.version.clone(),
        });
        let door = match judge(&view.run, InboxKind::Event, 0) {
            Verdict::Changes => {
                let kept = &view.run.kept;
                let inbox_read = view.run.inbox_read;
                let inbox_done = inbox_read.saturating_sub(kept.len() as u64);
                Door::Open { inbox_read, inbox_done, kept_bytes: kept.bytes() }
            }
            Verdict::NoChange(why) | Verdict::Refused(why) => {
                Door::Shut(format!("{why} (its status is {})", view.status()))
            }
        };
        Ok((execution, door))
    }
}
