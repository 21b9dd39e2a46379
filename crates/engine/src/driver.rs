//! The owner of one run: the task that asks the session what to do, and does it.
//!
//! **Invariants:** bodies and undos start only after the row that says so is durable (P2). One row
//! is on its way at a time. A refused row voids the session, never a running body.

pub(crate) mod called;
mod commit;
mod leave;
mod lodge;
mod park;
mod play;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use backstitch_core::failure::{self, Class, Failure};
use backstitch_core::id::Ordinal;
use backstitch_core::row::Row;
use backstitch_core::session::{AttemptEnd, Session};
use backstitch_store::{ErrorKind as StoreErrorKind, RunInfo, RunNo};
use tokio::sync::{mpsc, oneshot};

use self::called::{Answered, Called};
pub(crate) use self::leave::{Departure, leave};
use crate::code::RunningCode;
use crate::engine::Shared;
use crate::error::{Error, ErrorKind};
use crate::live::{AttemptEnded, Attempted, LiveRun, Mail, Seat};
use crate::program::{Body, BoxFuture, CancelToken, ExecutionFacts, Handler};
use crate::recovery::Turn;
use crate::workers::{Entry, Grant};

pub(crate) struct Driver {
    shared: Arc<Shared>,
    run: RunNo,
    execution: Arc<ExecutionFacts>,
    /// The run of the same id that has to be closed first.
    after: Option<RunNo>,
    session: Session,
    code: Option<RunningCode>,
    bodies: BTreeMap<Ordinal, Body>,
    handlers: BTreeMap<Ordinal, Handler>,
    steps_running: BTreeMap<Ordinal, CancelToken>,
    undos_running: BTreeMap<Ordinal, CancelToken>,
    /// How long bodies that nobody wants any more may take to yield: steady time, whatever becomes
    /// of the wall clock.
    graces: BTreeMap<Ordinal, BoxFuture<()>>,
    /// Those whose time is over, until it is durable that they are left behind: a session that is
    /// rebuilt has to hear of them again.
    overdue: BTreeSet<Ordinal>,
    /// Ends of attempts that are not durable yet: they outlive a session that is voided.
    ends: Vec<AttemptEnded>,
    mail: mpsc::UnboundedReceiver<Mail>,
    live: LiveRun,
    /// The run is called, and that is not answered yet.
    called: Option<Called>,
    /// The run is not ours any more.
    is_lost: bool,
    /// Why the run cannot be driven on.
    broken: Option<Error>,
    /// Since when nothing has happened.
    idle_since_us: Option<i64>,
    alarm_at_us: Option<i64>,
    stopping: Stopping,
    origin: Origin,
    /// Held while a run that was in flight at two crashes in a row is tried, one at a time.
    suspect: Option<Turn>,
    /// What is known of the run besides its journal, for whoever has it next.
    info: RunInfo,
    /// The first row, if it is the only one.
    first: Option<Row>,
    /// The slot of a worker elsewhere, which has the run next.
    grant: Option<(Grant, Entry)>,
    /// Told when a worker comes back with the run, and until when it may.
    claimed: Option<(oneshot::Receiver<Grant>, BoxFuture<()>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopping {
    No,
    /// Outcomes are still recorded until this instant of the clock.
    Until(i64),
}

/// How the driver came to its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was started a moment ago.
    Started,
    /// An earlier owner left it open.
    Recovered,
}

/// What came of composing a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// It is durable, and its commands are carried out (or it was refused and the session rebuilt).
    Row,
    /// There was nothing to write.
    Nothing,
    /// The run is no longer ours, or the engine is being stopped.
    Lost,
}

/// What a driver waits for.
enum Next {
    Mail(Mail),
    Overdue(Ordinal),
}

/// In which state a driver leaves its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Durably closed.
    Closed,
    /// For the next owner.
    Open,
    /// Until something happens.
    Parked,
    /// With a worker elsewhere.
    Lodged,
}

impl Driver {
    /// Begins to drive a run with the journal `rows`. In a box, because a future that is given a
    /// driver by value has room for it twice.
    pub fn new(
        shared: Arc<Shared>,
        info: RunInfo,
        seat: Seat,
        origin: Origin,
        rows: &[Row],
    ) -> Result<Box<Driver>, Error> {
        let session = load(&shared, &info, rows)?;
        let new = info.new.clone();
        let execution = Arc::new(ExecutionFacts {
            namespace: new.namespace,
            id: new.id,
            run_id: new.run_id,
            workflow: new.workflow,
            version: session.run().version.clone(),
        });
        Ok(Box::new(Driver {
            shared,
            run: info.run,
            execution,
            after: info.new.after,
            session,
            code: None,
            bodies: BTreeMap::new(),
            handlers: BTreeMap::new(),
            steps_running: BTreeMap::new(),
            undos_running: BTreeMap::new(),
            graces: BTreeMap::new(),
            overdue: BTreeSet::new(),
            ends: Vec::new(),
            mail: seat.mail,
            live: seat.live,
            called: None,
            is_lost: false,
            broken: None,
            idle_since_us: None,
            alarm_at_us: None,
            stopping: Stopping::No,
            origin,
            suspect: None,
            info,
            first: rows.first().filter(|_| origin == Origin::Started).cloned(),
            grant: None,
            claimed: None,
        }))
    }

    /// The execution that it drives.
    pub fn execution(&self) -> &Arc<ExecutionFacts> {
        &self.execution
    }

    /// Whether the run had an attempt in flight at the last crash and at the one before. That of the last one may
    /// be written down as lost already, by the server that leases the run.
    pub fn is_suspect(&self) -> bool {
        let run = self.session.run();
        let has_code = self.shared.program(&run.started.workflow, &run.version).is_some();
        has_code && run.lost_streak + u32::from(run.something_runs()) > 1
    }

    /// It is the turn of this run; none is needed to be killed.
    pub fn hold(&mut self, turn: Option<Turn>) {
        self.suspect = turn;
    }

    /// Completes when a kill stands in the inbox: it needs no code, and waits for no turn.
    pub async fn until_killed(&mut self) {
        self.read_inbox().await;
        while !self.session.is_to_be_killed() {
            match self.mail.recv().await.expect("the driver itself holds a sender") {
                Mail::Inbox(_) => self.read_inbox().await,
                Mail::Called => {
                    self.called = Some(Called::Told);
                    self.read_inbox().await;
                }
                // When it begins, it looks at everything.
                _ => {}
            }
        }
    }

    /// Drives the run until it is closed, the engine stops, or the ownership is lost.
    pub async fn drive(mut self: Box<Driver>) {
        let (shared, run) = (self.shared.clone(), self.run);
        // Of the time when it was parked.
        shared.alarm.clear(run);
        self.live.gist.execution.get_or_init(|| self.execution.clone());
        self.live.tell_gist(self.session.run());
        let driven = {
            let mut driving = std::pin::pin!(self.drive_inner());
            poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| driving.as_mut().poll(cx))) {
                Ok(polled) => polled.map(Ok),
                Err(panic) => Poll::Ready(Err(panic)),
            })
            .await
        };
        let left = driven.unwrap_or_else(|panic| {
            // Our bug: the row was never offered, the journal is whole. Others go on.
            let why = crate::code::panicked("the driver", panic).to_string();
            tracing::error!(id = %self.execution.id, run_id = %self.execution.run_id, why, "run left alone");
            shared.leave_alone(run, Error::new(ErrorKind::Unreadable, why));
            Left::Open
        });
        for token in self.steps_running.values().chain(self.undos_running.values()) {
            token.cancel();
        }
        shared.alarm.clear(run);
        // What the session says is not enough: its last row may never have become durable (P1).
        let leaving = match left {
            Left::Closed => {
                shared.pending.forget(run);
                if let Some(workers) = shared.workers.as_ref().filter(|_| !self.session.has_code())
                {
                    let code = (self.execution.workflow.clone(), self.execution.version.clone());
                    workers.forget_closed(&code, run);
                    workers.offer_again(&shared);
                }
                let status = self.session.run().status(true).name();
                tracing::info!(
                    id = %self.execution.id, run_id = %self.execution.run_id,
                    workflow = %self.execution.workflow, status, "execution closed"
                );
                Departure::Closed(Arc::new(self.session.into_run()))
            }
            Left::Open => Departure::ForGood,
            Left::Parked => Departure::Parked { wake_at_us: self.wake_at_us() },
            Left::Lodged => return self.lodge().await,
        };
        leave(&shared, run, leaving, &mut self.mail);
    }

    async fn drive_inner(&mut self) -> Left {
        if let Some(left) = self.left_to_its_worker().await {
            return left;
        }
        self.begin().await;
        self.tell_waiters();
        loop {
            while let Ok(mail) = self.mail.try_recv() {
                self.handle(mail).await;
            }
            if self.is_lost {
                return Left::Open;
            }
            if let Some(error) = self.broken.take() {
                self.lose(error);
                return Left::Open;
            }
            match self.write_row().await {
                Written::Lost => return Left::Open,
                Written::Row | Written::Nothing if self.session.is_closed() => {
                    match self.answer_call().await {
                        Answered::Yes => return Left::Closed,
                        Answered::NotYet => continue,
                    }
                }
                Written::Row => {
                    // A closed run that was called is open again, and wants its code.
                    self.attach_if_it_is_time().await;
                    continue;
                }
                Written::Nothing if self.has_stopped() => return Left::Open,
                Written::Nothing => {}
            }
            if self.grant.is_some() {
                return Left::Lodged;
            }
            if self.answer_call().await == Answered::NotYet {
                continue;
            }
            if self.nothing_runs() {
                // Held, or waiting for something: it cannot bring the process down.
                self.suspect = None;
            }
            if self.may_be_parked() {
                return Left::Parked;
            }
            self.set_alarm();
            match self.next().await {
                Next::Mail(mail) => self.handle(mail).await,
                Next::Overdue(ord) => {
                    self.graces.remove(&ord);
                    self.overdue.insert(ord);
                    self.session.overdue(ord);
                }
            }
        }
    }

    /// The next mail; or a body whose time to yield is over.
    async fn next(&mut self) -> Next {
        let (mail, graces) = (&mut self.mail, &mut self.graces);
        poll_fn(|cx| {
            if let Poll::Ready(mail) = mail.poll_recv(cx) {
                return Poll::Ready(Next::Mail(mail.expect("the driver itself holds a sender")));
            }
            let mut over = graces
                .iter_mut()
                .filter_map(|(ord, grace)| grace.as_mut().poll(cx).is_ready().then_some(*ord));
            over.next().map_or(Poll::Pending, |ord| Poll::Ready(Next::Overdue(ord)))
        })
        .await
    }

    fn has_stopped(&self) -> bool {
        match self.stopping {
            Stopping::No => false,
            Stopping::Until(at_us) => self.nothing_runs() || self.shared.clock.now_us() >= at_us,
        }
    }

    fn nothing_runs(&self) -> bool {
        self.steps_running.is_empty() && self.undos_running.is_empty()
    }

    fn set_alarm(&mut self) {
        let wake_at_us = match self.stopping {
            Stopping::No => self.wake_at_us().into_iter().chain(self.park_at_us()).min(),
            Stopping::Until(at_us) => Some(at_us),
        };
        if wake_at_us == self.alarm_at_us {
            return;
        }
        self.alarm_at_us = wake_at_us;
        match wake_at_us {
            Some(at_us) => self.shared.alarm.set(at_us, self.run),
            None => self.shared.alarm.clear(self.run),
        }
    }

    async fn handle(&mut self, mail: Mail) {
        if !matches!(mail, Mail::Look) {
            self.idle_since_us = None;
        }
        match mail {
            Mail::Ended(ended) => {
                match ended.what {
                    Attempted::Step => {
                        self.steps_running.remove(&ended.ord);
                        self.graces.remove(&ended.ord);
                        self.overdue.remove(&ended.ord);
                    }
                    Attempted::Undo => {
                        self.undos_running.remove(&ended.ord);
                    }
                }
                let end = self.as_recorded(ended.end);
                let ended = AttemptEnded { end, ..*ended };
                self.hand_in(&ended);
                self.ends.push(ended);
            }
            Mail::Inbox(Some(row)) if row.number == self.session.inbox_seen() + 1 => {
                self.session.inbox(*row);
            }
            Mail::Inbox(Some(row)) if row.number <= self.session.inbox_seen() => {}
            Mail::Inbox(_) => self.read_inbox().await,
            Mail::Called => self.called = Some(Called::Told),
            Mail::Look => {
                self.alarm_at_us = None;
                self.attach_if_it_is_time().await;
            }
            Mail::Foreign => self.poll_for_foreign_progress(),
            Mail::Stop => self.stop(),
            Mail::Lost => self.is_lost = true,
        }
    }

    /// Hands the end of an attempt to the session.
    fn hand_in(&mut self, ended: &AttemptEnded) {
        let AttemptEnded { what, ord, attempt, end, at_us } = ended;
        match what {
            Attempted::Step => self.session.step_ended(*ord, *attempt, end.clone(), *at_us),
            Attempted::Undo => self.session.undo_ended(*ord, *attempt, end.clone(), *at_us),
        }
    }

    /// Whether the journal still has the attempt in flight.
    fn is_in_flight(&self, ended: &AttemptEnded) -> bool {
        self.session.run().step(ended.ord).is_some_and(|step| match ended.what {
            Attempted::Step => step.is_in_flight(ended.attempt),
            Attempted::Undo => step.undo.is_in_flight(ended.attempt),
        })
    }

    /// Forgets the ends that are durable now.
    fn forget_durable_ends(&mut self) {
        let ends = std::mem::take(&mut self.ends);
        self.ends = ends.into_iter().filter(|ended| self.is_in_flight(ended)).collect();
    }

    /// A body that is dropped because the process is being stopped was interrupted, not cancelled.
    fn as_recorded(&self, end: AttemptEnd) -> AttemptEnd {
        match (end, self.stopping) {
            (AttemptEnd::Dropped, Stopping::Until(_)) => {
                let (class, origin) = (Class::Transient, failure::Origin::Interrupted);
                let message = "the process was stopped in good order during the attempt";
                let failure = Failure::new(class, origin, "Interrupted", message);
                AttemptEnd::Failed { failure, delay_us: None }
            }
            (end, _) => end,
        }
    }

    fn stop(&mut self) {
        let grace_us =
            i64::try_from(self.shared.options.stop_grace.as_micros()).unwrap_or(i64::MAX);
        self.stopping = Stopping::Until(self.shared.clock.now_us().saturating_add(grace_us));
        self.session.stop();
        for token in self.steps_running.values().chain(self.undos_running.values()) {
            token.cancel();
        }
    }

    async fn read_inbox(&mut self) {
        loop {
            let seen = self.session.inbox_seen();
            match self.shared.store.inbox(self.run, seen, INBOX_PAGE).await {
                Ok(rows) if rows.is_empty() => return,
                Ok(rows) => rows.into_iter().for_each(|row| self.session.inbox(row)),
                Err(_) if self.shared.is_stopping() => return,
                Err(error) if error.kind() == StoreErrorKind::Corrupt => {
                    self.broken = Some(error.into());
                    return;
                }
                Err(error) => {
                    tracing::warn!(id = %self.execution.id, %error, "inbox not read; trying again");
                    self.shared.clock.sleep(self.shared.options.unavailable_retry).await;
                }
            }
        }
    }

    /// What callers know of the run without reading its journal.
    fn tell_waiters(&mut self) {
        self.live.tell_waiters(self.session.run(), self.session.inbox_seen());
    }
}

/// Inbox rows read at a time.
pub(crate) const INBOX_PAGE: usize = 256;

/// Folds a journal for the owner.
fn load(shared: &Shared, info: &RunInfo, rows: &[Row]) -> Result<Session, Error> {
    let update = &info.update;
    let fence = shared.store.fence();
    let mut session =
        Session::load(rows, fence, &shared.options.worker, update.status, update.wake_at_us)
            .map_err(|illegal| unreadable(info, &illegal.to_string()))?;
    session.limit(shared.options.limits);
    Ok(session)
}

/// The error for a journal that cannot be read.
pub(crate) fn unreadable(info: &RunInfo, why: &str) -> Error {
    let message = format!(
        "the journal of execution {:?} (run {}) cannot be read: {why}. Restore the store from a \
         backup; all other executions go on",
        info.new.id, info.new.run_id
    );
    Error::new(ErrorKind::Unreadable, message)
}
