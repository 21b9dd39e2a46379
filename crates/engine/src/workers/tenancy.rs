//! The keeper of a run that a worker elsewhere has: it judges and writes the rows that the worker sends, and
//! hands on what comes from outside.
//!
//! **Invariants:** only the keeper writes the run's journal, one row at a time. A row is answered when it is
//! durable, and the same one again with the same answer. When the leases of the worker have ended, no row of
//! it is begun to be written any more.

mod inbox;

use std::sync::Arc;
use std::time::Duration;

use backstitch_core::follow::{Follower, Offered};
use backstitch_core::inbox::{InboxKind, InboxRow};
use backstitch_core::limits::FAILURE_MESSAGE_BYTES_MAX;
use backstitch_core::row::{Draft, Header, Row, RowKind};
use backstitch_core::run::Phase;
use backstitch_store::{RunInfo, RunNo};
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::append::{self, Again, Committed};
use crate::calls;
use crate::driver::called::{Called, Heard};
use crate::driver::{Departure, INBOX_PAGE, leave, unreadable};
use crate::engine::Shared;
use crate::error::{Error, ErrorKind};
use crate::live::{LiveRun, Mail};
use crate::program::{BoxFuture, ExecutionFacts};
use crate::recovery::read_journal;
use crate::workers::{Grant, Leased, Offer, OfferedRow, ToWorker, Written};

/// Rows of a journal that are sent with the lease; the worker asks for the others.
const ROWS_WITH_LEASE: usize = 64;

/// How the worker came to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It is told of it now.
    Leased,
    /// It has it still, from an earlier owner of the store.
    Adopted,
}

pub(crate) struct Tenancy {
    shared: Arc<Shared>,
    run: RunNo,
    execution: Arc<ExecutionFacts>,
    follower: Follower,
    mailbox: mpsc::UnboundedReceiver<Mail>,
    live: LiveRun,
    grant: Grant,
    /// The last row of the journal when the worker was given the run.
    begun_at: u64,
    /// The last row of the inbox that the worker was sent.
    sent: u64,
    /// The last row of it that was looked at for a kill.
    looked: u64,
    /// Whether there may be rows after them: looking costs a read of the store.
    may_have_more: bool,
    /// The append id of the last row, and when it was committed.
    last: Option<(Vec<u8>, i64)>,
    called: Option<Called>,
    /// Completes when the worker has had its time to stop in good order.
    patience: Option<BoxFuture<()>>,
}

/// Why the worker has the run no more.
enum Over {
    Closed,
    /// It gave the run back, with everything durable; perhaps before it has read what it was sent.
    Released,
    /// It is gone, or was told to go.
    Lost,
    /// It sent what does not follow from the journal.
    Spoiled(Error),
    /// The run cannot go on.
    Failed(Error),
}

/// What the keeper waits for.
enum Next {
    Mail(Mail),
    Offer(Offer),
    Over(&'static str),
}

impl Tenancy {
    pub fn new(
        shared: Arc<Shared>,
        run: RunNo,
        execution: Arc<ExecutionFacts>,
        follower: Follower,
        (mailbox, live): (mpsc::UnboundedReceiver<Mail>, LiveRun),
        grant: Grant,
    ) -> Tenancy {
        let (begun_at, sent) = (follower.run().seq, follower.run().inbox_read);
        Tenancy {
            shared,
            run,
            execution,
            follower,
            mailbox,
            live,
            grant,
            begun_at,
            sent,
            looked: sent,
            may_have_more: false,
            last: None,
            called: None,
            patience: None,
        }
    }

    /// Keeps the run until the worker has it no more. `first` is its only row, if it has just been started.
    pub async fn keep(
        mut self,
        info: RunInfo,
        entry: Entry,
        first: Option<Row>,
        called: Option<Called>,
    ) {
        self.called = called;
        let begun = match (entry, first) {
            (Entry::Leased, Some(first)) => {
                self.begin_fresh(info, first).await;
                Ok(None)
            }
            (Entry::Leased | Entry::Adopted, _) => self.begin(info, entry).await,
        };
        let over = match begun {
            Ok(Some(over)) => over,
            Ok(None) => self.serve().await,
            Err(error) => Over::Failed(error),
        };
        self.leave(over);
    }

    /// Nothing has to be read: what its driver has read of the inbox before would stand in a second row, and what
    /// has come since is told by mail.
    async fn begin_fresh(&mut self, info: RunInfo, first: Row) {
        let header = Header { at_us: 0, ..first.header.clone() };
        let row = Draft::new(header, &first.events).seal(first.header.at_us);
        self.last = Some((first.header.append_id, first.header.at_us));
        self.tell_lease(info, vec![row.into()], Vec::new()).await;
    }

    async fn begin(&mut self, info: RunInfo, entry: Entry) -> Result<Option<Over>, Error> {
        let seq = self.follower.run().seq;
        let last = self.shared.store.journal(self.run, seq - 1, 1).await?;
        self.last = last.into_iter().next().and_then(|bytes| {
            let header = Row::decode(bytes).ok()?.header;
            Some((header.append_id, header.at_us))
        });
        if entry == Entry::Adopted {
            return Ok(self.look_into_inbox().await);
        }
        let rows = self.shared.store.journal(self.run, 0, ROWS_WITH_LEASE).await?;
        let inbox = self.shared.store.inbox(self.run, self.sent, INBOX_PAGE).await?;
        if inbox.iter().any(|row| row.kind == InboxKind::Kill) {
            // Not for a worker: it is ended without its code.
            return Ok(Some(Over::Lost));
        }
        self.sent = inbox.last().map_or(self.sent, |row| row.number);
        self.may_have_more = inbox.len() >= INBOX_PAGE;
        self.tell_lease(info, rows, inbox).await;
        Ok(None)
    }

    async fn tell_lease(&mut self, info: RunInfo, rows: Vec<Bytes>, inbox: Vec<InboxRow>) {
        let lease = Leased {
            run: self.run,
            fence: self.grant.fence,
            version: self.execution.version.clone(),
            new: info.new,
            created_at_us: info.created_at_us,
            rows,
            seq: self.follower.run().seq,
            inbox,
        };
        self.grant.worker.send(ToWorker::Lease(Box::new(lease))).await;
    }

    async fn serve(&mut self) -> Over {
        loop {
            let over = match self.next().await {
                Next::Mail(mail) => self.handle(mail).await,
                Next::Offer(Offer::Row(row)) => self.write(row).await,
                Next::Offer(Offer::Release { trouble: Some(trouble) }) => {
                    Some(Over::Failed(self.cannot_be_driven(&trouble)))
                }
                Next::Offer(Offer::Release { trouble: None }) => Some(Over::Released),
                Next::Offer(Offer::Resumed { inbox }) => {
                    self.sent = inbox.clamp(self.follower.run().inbox_read, self.sent);
                    self.look_into_inbox().await
                }
                Next::Offer(Offer::Forgotten) => Some(Over::Lost),
                Next::Over(why) => {
                    tracing::debug!(id = %self.execution.id, run_id = %self.execution.run_id, why);
                    Some(Over::Lost)
                }
            };
            if let Some(over) = over {
                return over;
            }
        }
    }

    fn cannot_be_driven(&self, trouble: &str) -> Error {
        let (name, id) = (self.grant.worker.name(), &self.execution.id);
        let end = trouble.floor_char_boundary(FAILURE_MESSAGE_BYTES_MAX);
        let message = format!(
            "worker {name:?} cannot work on execution {id:?} (run {}): {}. It is left alone until the server \
             is started again",
            self.execution.run_id,
            &trouble[..end]
        );
        Error::new(ErrorKind::Unreadable, message)
    }

    async fn next(&mut self) -> Next {
        let worker = self.grant.worker.clone();
        let patience = async {
            match &mut self.patience {
                Some(patience) => patience.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = worker.until_gone() => Next::Over("the leases of the worker have ended"),
            mail = self.mailbox.recv() => {
                Next::Mail(mail.expect("the keeper itself holds a sender"))
            }
            offer = self.grant.offers.recv() => match offer {
                Some(offer) => Next::Offer(offer),
                None => Next::Over("the worker has another lease of the run"),
            },
            () = patience => Next::Over("the worker did not stop in time"),
        }
    }

    async fn handle(&mut self, mail: Mail) -> Option<Over> {
        match mail {
            Mail::Inbox(Some(row)) if row.number <= self.sent => None,
            Mail::Inbox(_) => self.look_into_inbox().await,
            Mail::Called => {
                self.called = Some(Called::Told);
                self.answer_call().await
            }
            Mail::Stop => {
                self.revoke("the server is being stopped", true).await;
                self.patience = Some(self.shared.clock.sleep(self.stop_patience()));
                None
            }
            Mail::Lost => Some(Over::Lost),
            // The worker has the clock of its run, and the code.
            Mail::Look | Mail::Foreign | Mail::Ended(_) => None,
        }
    }

    /// Bodies get the grace; then the worker needs a moment to say how they ended.
    fn stop_patience(&self) -> Duration {
        self.shared.options.stop_grace + Duration::from_secs(1)
    }

    async fn revoke(&mut self, why: &str, in_good_order: bool) {
        let (run, fence, why) = (self.run, self.grant.fence, why.to_owned());
        self.grant.worker.send(ToWorker::Revoke { run, fence, why, in_good_order }).await;
    }

    /// Judges a row, writes it, and says what became of it.
    async fn write(&mut self, row: OfferedRow) -> Option<Over> {
        let append_id = row.append_id.clone();
        let again = self.last.as_ref().filter(|(last, _)| *last == append_id);
        let (answer, over) = match again {
            Some((_, at_us)) => (Written::Durable { at_us: *at_us }, None),
            None => self.judge_and_write(row).await,
        };
        if matches!(answer, Written::Unread(_)) {
            // Before the answer: who replays has to read it then, or would be refused again.
            let over = self.push_inbox().await;
            if over.is_some() {
                return over;
            }
        }
        let run = self.run;
        self.grant.worker.send(ToWorker::Answer { run, append_id, answer }).await;
        if over.is_some() {
            return over;
        }
        let over = self.push_inbox().await;
        if over.is_some() {
            return over;
        }
        self.answer_call().await
    }

    async fn judge_and_write(&mut self, row: OfferedRow) -> (Written, Option<Over>) {
        if self.grant.worker.is_gone() {
            return (Written::Lost("the lease has ended".into()), Some(Over::Lost));
        }
        let append_id = row.append_id.clone();
        let offered = self.with_header(row);
        let now_us = self.shared.clock.now_us();
        let row = match self.follower.follow(offered, now_us, self.sent) {
            Ok(row) => row,
            Err(why) => {
                let message = format!(
                    "worker {:?} sent what does not follow from the journal of execution {:?} (run {}): \
                     {why}. Nothing of it was written; mend the worker, and start it again",
                    self.grant.worker.name(),
                    self.execution.id,
                    self.execution.run_id
                );
                let error = Error::new(ErrorKind::Unreadable, message.clone());
                return (Written::Illegal(message), Some(Over::Spoiled(error)));
            }
        };
        let append = append::compose(&self.shared, self.run, self.follower.run(), row);
        match append::offer(&self.shared, &self.execution, append, Again::UntilStopped).await {
            Committed::Durable { at_us } => {
                self.last = Some((append_id, at_us));
                let run = self.follower.run();
                self.live.tell_waiters(run, self.sent);
                let closed = matches!(run.phase, Phase::Closed(_));
                (Written::Durable { at_us }, closed.then_some(Over::Closed))
            }
            Committed::Void => match self.load_again().await {
                Ok(()) => {
                    self.may_have_more = true;
                    (Written::Unread("something stands unread".into()), None)
                }
                Err(error) => (Written::Lost(error.to_string()), Some(Over::Failed(error))),
            },
            Committed::NotOurs(why) => (Written::Lost(why), Some(Over::Lost)),
            Committed::Impossible(error) => {
                (Written::Rejected(error.to_string()), Some(Over::Failed(error)))
            }
        }
    }

    fn with_header(&self, row: OfferedRow) -> Offered {
        let is_turn = row.turn_now_us.is_some();
        let kind = if is_turn { RowKind::Turn } else { RowKind::Engine };
        let header = Header {
            seq: row.seq,
            kind: kind as i32,
            at_us: 0,
            fence: self.shared.store.fence(),
            append_id: row.append_id,
            now_us: row.turn_now_us,
            worker: is_turn.then(|| self.grant.worker.name().to_owned()),
            version: is_turn.then_some(row.version),
        };
        Offered { header, events: row.events }
    }

    /// A row was folded that the store has refused.
    async fn load_again(&mut self) -> Result<(), Error> {
        let rows = read_journal(&self.shared, self.run).await?;
        let info = self.shared.info(self.run).await?;
        let update = &info.update;
        self.follower = Follower::load(&rows, update.status, update.wake_at_us)
            .map_err(|illegal| unreadable(&info, &illegal.to_string()))?;
        Ok(())
    }

    /// The run is taken off the list of calls when the worker has written down what it was called for.
    async fn answer_call(&mut self) -> Option<Over> {
        while let Some(called) = self.called {
            let is_read = self.follower.run().inbox_read >= self.sent;
            if matches!(called, Called::Read(_)) && !is_read {
                // When it is.
                return None;
            }
            match called.answer(&self.shared, self.run).await {
                Ok(Heard::Nothing) => self.called = None,
                Ok(Heard::Call) => self.called = Some(Called::Told),
                Ok(Heard::NotYet(read)) => {
                    self.called = Some(read);
                    let over = self.look_into_inbox().await;
                    if over.is_some() {
                        return over;
                    }
                }
                Err(error) => {
                    tracing::warn!(id = %self.execution.id, %error, "a call is answered later");
                    self.called = None;
                    if !self.shared.is_stopping() {
                        calls::look_later(&self.shared);
                    }
                }
            }
        }
        None
    }

    fn leave(mut self, over: Over) {
        let (shared, run) = (self.shared.clone(), self.run);
        let called = self.called.is_some();
        let fold = self.follower.run();
        let wake_at_us = fold.next_due_us();
        let is_unfit = fold.is_held_by_block();
        // It may have reached a worker that was just about to leave. Nobody tells of it again.
        let is_unread = fold.inbox_read < self.sent;
        let wants_code = fold.wants_code(shared.clock.now_us()) && !is_unfit;
        let is_unmended = match over {
            Over::Spoiled(_) => true,
            Over::Released => is_unfit,
            Over::Closed | Over::Lost | Over::Failed(_) => false,
        };
        let workers = shared.workers.as_ref().expect("who leases has workers");
        let code = (self.execution.workflow.clone(), self.execution.version.clone());
        let is_in_vain = matches!(over, Over::Released) && fold.seq == self.begun_at;
        let in_vain = is_in_vain && wants_code && !is_unread;
        let rest = workers.rest(run, &code, in_vain.then_some(&*self.grant.worker));
        let goes_on = match over {
            Over::Closed => {
                workers.forget_closed(&code, run);
                let status = self.follower.run().status(true).name();
                tracing::info!(
                    id = %self.execution.id, run_id = %self.execution.run_id,
                    workflow = %self.execution.workflow, status, "execution closed"
                );
                let ended = Arc::new(self.follower.into_run());
                leave(&shared, run, Departure::Closed(ended), &mut self.mailbox);
                false
            }
            Over::Released | Over::Lost if shared.is_stopping() => {
                leave(&shared, run, Departure::ForGood, &mut self.mailbox);
                false
            }
            Over::Released => {
                let rested = |rest: Duration| shared.clock.now_us() + rest.as_micros() as i64;
                let wake_at_us = rest.map(rested).or(wake_at_us);
                leave(&shared, run, Departure::Parked { wake_at_us }, &mut self.mailbox);
                rest.is_none() && (is_unread || wants_code)
            }
            // What the worker has not done is for the next one.
            Over::Lost => {
                leave(&shared, run, Departure::Parked { wake_at_us }, &mut self.mailbox);
                true
            }
            Over::Spoiled(error) | Over::Failed(error) => {
                tracing::error!(id = %self.execution.id, run_id = %self.execution.run_id, %error, "run left alone");
                if !shared.is_stopping() {
                    shared.leave_alone(run, error);
                }
                leave(&shared, run, Departure::ForGood, &mut self.mailbox);
                false
            }
        };
        if is_unmended {
            // Last: a worker that comes from now on finds all of it.
            workers.wait_until_mended(code, run);
        }
        // The slot is free before the run looks for one.
        drop(self.grant);
        if goes_on {
            calls::wake(&shared, run, Mail::Look);
        }
        if called && !shared.is_stopping() {
            calls::wake(&shared, run, Mail::Called);
        }
    }
}
