//! Verbs at the door: judged, made durable in the inbox of the run, and only then answered.

use std::sync::Arc;

use backstitch_core::id::name_defect;
use backstitch_core::inbox::{InboxKind, InboxRow, Verb};
use backstitch_core::limits::VERBS_UNREAD_MAX;
use backstitch_core::payload::Payload;
use backstitch_core::run::{Ending, Phase, Run};
use backstitch_core::session::{Session, Verdict, attributes_refusal, judge};
use backstitch_store::{Answer, Change, InboxPut, Refusal, RunNo};

use crate::attributes::check_attributes;
use crate::calls;
use crate::driver::{INBOX_PAGE, unreadable};
use crate::engine::{Engine, Role, check_words, fenced, runtime_gone};
use crate::error::{Error, ErrorKind};
use crate::live::Mail;
use crate::view::RunView;

/// The answer to a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The number of the inbox row.
    pub number: u64,
    /// Whether it changes more than the journal's notes.
    pub changed: bool,
}

impl Engine {
    /// The id of a request whose sender has none.
    pub fn request_id(&self) -> String {
        self.shared.ids.request()
    }

    /// Puts a verb into the inbox of a run; the answer comes when it is durable. The same request id
    /// with the same verb gets its first answer again.
    ///
    /// # Errors
    /// `Refused`, with the reason and the way out, when the verb does not apply to the run as it
    /// stands; `Full`; `Invalid`; `NotFound`; trouble of the store.
    pub async fn send(
        &self,
        run: RunNo,
        kind: InboxKind,
        verb: Verb,
        request_id: &str,
    ) -> Result<Sent, Error> {
        check_words("by", &verb.by)?;
        check_words("reason", &verb.reason)?;
        check_attributes(&verb.attributes)?;
        if let Some(defect) = name_defect("request id", request_id) {
            return Err(Error::new(ErrorKind::Invalid, defect));
        }
        if let Some(host) = &self.shared.host {
            return host.send(run, kind, verb, request_id).await;
        }
        loop {
            if let Some(sent) = self.judge_and_send(run, kind, &verb, request_id).await? {
                return Ok(sent);
            }
            // Somebody else was faster; whoever is, gets on.
        }
    }

    /// `None` if another verb was accepted, or the run was closed, after this one was judged.
    async fn judge_and_send(
        &self,
        run: RunNo,
        kind: InboxKind,
        verb: &Verb,
        request_id: &str,
    ) -> Result<Option<Sent>, Error> {
        // Ids of verbs and of events are apart.
        let stored_id = format!("verb {request_id}");
        let view = self.view(run).await?;
        let payload = verb.to_bytes();
        let (soon, seen) = self.as_it_will_stand(&view).await?;
        let verdict = match attributes_refusal(&soon, &verb.attributes) {
            Some(why) => Verdict::Refused(why),
            None => judge(&soon, kind, verb.ord),
        };
        let is_ending = is_closed(&soon) && !is_closed(&view.run);
        let verdict = match (verdict, kind) {
            // Whoever is to end it may hang: a kill takes it away.
            (Verdict::Refused(_), InboxKind::Kill) if is_ending && !is_killed(&soon) => {
                Verdict::Changes
            }
            (
                Verdict::Refused(_),
                InboxKind::Cancel | InboxKind::Terminate | InboxKind::Rollback | InboxKind::Kill,
            ) if is_ending => Verdict::NoChange(ENDING.into()),
            (Verdict::Refused(_), _) if is_ending => Verdict::Refused(ENDING.into()),
            (verdict, _) => verdict,
        };
        let changed = match verdict {
            Verdict::Changes => true,
            Verdict::NoChange(_) => false,
            Verdict::Refused(why) => {
                let same = |row: &InboxRow| row.kind == kind && row.payload == payload;
                let before = self.accepted_before(run, &stored_id, same).await?;
                let sent = before.map(|row| Sent { number: row.number, changed: row.changed });
                return sent.map(Some).ok_or_else(|| refused(kind, &view, &why));
            }
        };
        let digest = Payload::json(payload.clone()).digest();
        let done = view.run.inbox_read.saturating_sub(view.run.kept.len() as u64);
        let put = InboxPut {
            run,
            kind,
            request_id: stored_id,
            topic: String::new(),
            payload,
            digest,
            changed,
            rows_max: done
                .saturating_add(self.shared.options.events_kept_max)
                .saturating_add(VERBS_UNREAD_MAX),
            seen,
            guard: InboxKind::VERBS.to_vec(),
        };
        match self.put(put).await? {
            Answer::Accepted { number, changed, .. } => Ok(Some(Sent { number, changed })),
            Answer::Refused(Refusal::Unread(_) | Refusal::Closed) => Ok(None),
            Answer::Refused(Refusal::Full) => {
                let why = "its inbox is full: nobody works on it; run a worker that knows it";
                Err(Error::new(ErrorKind::Full, refused(kind, &view, why).to_string()))
            }
            Answer::Refused(Refusal::OtherRequest) => {
                let message = format!(
                    "request id {request_id:?} was used before for something else; give each \
                     request an id of its own"
                );
                Err(Error::new(ErrorKind::Invalid, message))
            }
            answer => Err(gone(run, &answer)),
        }
    }

    /// The run with what stands in its inbox, and the last row there: whoever pauses and then resumes it
    /// means what was paused a moment ago, though its owner may not have read that yet.
    pub(crate) async fn as_it_will_stand(&self, view: &RunView) -> Result<(Arc<Run>, u64), Error> {
        let (run, store) = (view.info.run, &self.shared.store);
        let mut unread = store.inbox(run, view.run.inbox_read, INBOX_PAGE).await?;
        if unread.is_empty() {
            return Ok((view.run.clone(), view.run.inbox_read));
        }
        let rows = self.journal(run).await?;
        let (status, wake_at_us) = (view.info.update.status, view.info.update.wake_at_us);
        let mut session = Session::load(&rows, 0, "", status, wake_at_us)
            .map_err(|illegal| unreadable(&view.info, &illegal.to_string()))?;
        while !unread.is_empty() {
            unread.into_iter().for_each(|row| session.inbox(row));
            unread = store.inbox(run, session.inbox_seen(), INBOX_PAGE).await?;
        }
        let seen = session.inbox_seen();
        // One row may not have room for all of it.
        let now_us = self.shared.clock.now_us();
        session.open_row(now_us);
        while session.has_unread() {
            session.close_row([0; 16]);
            session.open_row(now_us);
        }
        Ok((Arc::new(session.into_run()), seen))
    }

    /// The row of the same request, if it was accepted before: it gets its first answer again,
    /// though by now it would be refused.
    pub(crate) async fn accepted_before(
        &self,
        run: RunNo,
        request_id: &str,
        same: impl Fn(&InboxRow) -> bool,
    ) -> Result<Option<InboxRow>, Error> {
        let mut number = 0;
        loop {
            let rows = self.shared.store.inbox(run, number, INBOX_PAGE).await?;
            let Some(last) = rows.last() else { return Ok(None) };
            number = last.number;
            let found = rows.into_iter().find(|row| row.request_id == request_id && same(row));
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Commits an inbox row and tells the driver, also if the caller goes away meanwhile: what is
    /// durable must not wait for the next restart.
    pub(crate) async fn put(&self, put: InboxPut) -> Result<Answer, Error> {
        let shared = self.shared.clone();
        let done = self.shared.runtime.spawn(async move {
            let run = put.run;
            let mut row = InboxRow {
                number: 0,
                kind: put.kind,
                request_id: put.request_id.clone(),
                topic: put.topic.clone(),
                payload: put.payload.clone(),
                changed: put.changed,
                accepted_at_us: 0,
            };
            let answer = shared.store.commit(Change::Inbox(Box::new(put))).await;
            let mail = match &answer {
                Ok(Answer::Accepted { number, accepted_at_us, first: true, .. }) => {
                    (row.number, row.accepted_at_us) = (*number, *accepted_at_us);
                    if row.changed && InboxKind::SETTLING.contains(&row.kind) {
                        shared.live.unstick(run, *number);
                    }
                    Some(Box::new(row))
                }
                // Perhaps it is there, and perhaps it was never told.
                Ok(_) | Err(_) => None,
            };
            if shared.role == Role::Owner && shared.live.tell(run, Mail::Inbox(mail)).is_err() {
                // It is parked, or closed.
                calls::look_for(&shared, run);
            }
            answer
        });
        Ok(done.await.map_err(|_| runtime_gone())??)
    }
}

/// Said of a run that is not closed, and has in its inbox what closes it.
pub(crate) const ENDING: &str =
    "the execution is ending, by what was accepted before; wait for its end";

fn is_closed(run: &Run) -> bool {
    matches!(run.phase, Phase::Closed(_))
}

fn is_killed(run: &Run) -> bool {
    matches!(run.phase, Phase::Closed(Ending::Killed { .. }))
}

fn refused(kind: InboxKind, view: &RunView, why: &str) -> Error {
    let message = format!(
        "{} of execution {:?} is refused: {why} (its status is {})",
        kind.name(),
        view.info.new.id,
        view.status()
    );
    Error::new(ErrorKind::Refused, message)
}

/// The run was there a moment ago, or this process has lost the store.
pub(crate) fn gone(run: RunNo, answer: &Answer) -> Error {
    if let Answer::Refused(Refusal::Fenced { .. }) = answer {
        return fenced().into();
    }
    tracing::debug!(run = run.0, ?answer, "gone");
    Error::new(ErrorKind::NotFound, "the execution was deleted in the meantime")
}
