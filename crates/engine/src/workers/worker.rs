//! One worker: what it has, and the connection by which it is reached.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use backstitch_store::RunNo;
use tokio::sync::{mpsc, watch};

use crate::workers::{Code, Introduction, OfferedRow, SessionId, ToWorker, WorkerView};

/// What waits to be sent to one worker at most; then those who send wait.
pub(super) const MAIL_MAX: usize = 256;

/// What a worker may have sent for one run that is not looked at yet. It has one row on its way, and may give the
/// run back or come back itself meanwhile.
const OFFERS_MAX: usize = 4;

/// What a worker sends for a run that it has.
#[derive(Debug)]
pub(crate) enum Offer {
    /// A row.
    Row(OfferedRow),
    /// It gives the run back; perhaps for a reason that it would have again.
    Release { trouble: Option<String> },
    /// It has come back with the run, and was sent the inbox up to this row.
    Resumed { inbox: u64 },
    /// It has come back without the run.
    Forgotten,
}

/// A program that has workflows.
pub(crate) struct Worker {
    /// Larger than that of every worker before.
    number: u64,
    session: SessionId,
    name: String,
    sdk: String,
    workflows: BTreeSet<Code>,
    event_types: BTreeMap<Code, Vec<String>>,
    slots: usize,
    state: Mutex<State>,
    /// Counts how often it was heard of.
    pub(super) heard: watch::Sender<u64>,
    /// The number of its connection.
    connection: watch::Sender<u64>,
    /// Whether its leases have ended.
    pub(super) gone: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    leases: BTreeMap<RunNo, Seat>,
    mail: Option<mpsc::Sender<ToWorker>>,
    draining: bool,
}

struct Seat {
    fence: u64,
    offers: mpsc::Sender<Offer>,
}

impl Worker {
    pub fn new(number: u64, introduction: &Introduction) -> Worker {
        Worker {
            number,
            session: introduction.session,
            name: introduction.name.clone(),
            sdk: introduction.sdk.clone(),
            workflows: introduction.workflows.iter().cloned().collect(),
            event_types: introduction.event_types.clone(),
            slots: introduction.slots,
            state: Mutex::default(),
            heard: watch::Sender::new(0),
            connection: watch::Sender::new(0),
            gone: watch::Sender::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code runs under this lock")
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn session(&self) -> &SessionId {
        &self.session
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn workflows(&self) -> impl Iterator<Item = &Code> {
        self.workflows.iter()
    }

    /// Whether it has this workflow, also if it takes no more runs.
    pub fn has_code(&self, code: &Code) -> bool {
        self.workflows.contains(code)
    }

    /// The types of the events that the workflow takes, if it has told.
    pub fn event_types(&self, code: &Code) -> Option<&Vec<String>> {
        self.event_types.get(code)
    }

    /// Whether it takes runs of this workflow.
    pub fn knows(&self, code: &Code) -> bool {
        self.workflows.contains(code) && !self.lock().draining
    }

    pub fn has(&self, run: RunNo) -> bool {
        self.lock().leases.contains_key(&run)
    }

    /// Slots that a run could have now; none while it has no connection.
    pub fn free_slots(&self) -> usize {
        let state = self.lock();
        let takes_runs = state.mail.is_some() && !state.draining;
        if takes_runs { self.slots.saturating_sub(state.leases.len()) } else { 0 }
    }

    pub fn has_room(&self) -> bool {
        self.free_slots() > 0
    }

    /// Gives the run one of its slots.
    pub(super) fn seat(&self, run: RunNo, fence: u64) -> Option<mpsc::Receiver<Offer>> {
        if self.free_slots() == 0 || self.is_gone() {
            return None;
        }
        Some(self.seat_anyway(run, fence))
    }

    /// Gives the run a slot that it had before.
    pub(super) fn seat_anyway(&self, run: RunNo, fence: u64) -> mpsc::Receiver<Offer> {
        let (offers, offered) = mpsc::channel(OFFERS_MAX);
        self.lock().leases.insert(run, Seat { fence, offers });
        offered
    }

    pub(super) fn unseat(&self, run: RunNo, fence: u64) {
        let leases = &mut self.lock().leases;
        if leases.get(&run).is_some_and(|seat| seat.fence == fence) {
            leases.remove(&run);
        }
    }

    /// Who is asked about a run under this fence, if it has it.
    pub(super) fn seat_of(&self, run: RunNo, fence: u64) -> Option<mpsc::Sender<Offer>> {
        let state = self.lock();
        let seat = state.leases.get(&run).filter(|seat| seat.fence == fence);
        seat.map(|seat| seat.offers.clone())
    }

    /// All its leases.
    pub(super) fn leases(&self) -> Vec<(RunNo, u64)> {
        self.lock().leases.iter().map(|(run, seat)| (*run, seat.fence)).collect()
    }

    /// It has a new connection, which takes the place of an older one.
    pub(super) fn connect(&self, mail: mpsc::Sender<ToWorker>) -> u64 {
        let mut state = self.lock();
        state.mail = Some(mail);
        state.draining = false;
        let number = *self.connection.borrow() + 1;
        self.connection.send_replace(number);
        number
    }

    /// Its connection is over, unless there is a newer one.
    pub(super) fn disconnect(&self, connection: u64) {
        let mut state = self.lock();
        if self.is_connected_by(connection) {
            state.mail = None;
        }
    }

    pub(super) fn is_connected_by(&self, connection: u64) -> bool {
        *self.connection.borrow() == connection
    }

    /// Completes when it has another connection than this one.
    pub(super) async fn until_connected_anew(&self, connection: u64) {
        let mut newest = self.connection.subscribe();
        // The sender lives as long as this.
        let _ = newest.wait_for(|newest| *newest != connection).await;
    }

    /// Whether it has said that it leaves, and has nothing that it could come back for.
    pub(super) fn has_left(&self) -> bool {
        let state = self.lock();
        state.draining && state.mail.is_none() && state.leases.is_empty()
    }

    pub(super) fn drain(&self) {
        self.lock().draining = true;
    }

    pub(super) fn renew(&self) {
        self.heard.send_modify(|times| *times += 1);
    }

    pub(super) fn is_gone(&self) -> bool {
        *self.gone.borrow()
    }

    /// Completes when its leases have ended.
    pub(super) async fn until_gone(&self) {
        let mut gone = self.gone.subscribe();
        // The sender lives as long as this.
        let _ = gone.wait_for(|gone| *gone).await;
    }

    /// Sends it something, unless it has no connection: when it comes back, what it has missed is found out.
    /// Waits while it reads too slowly, and no longer than its leases last.
    pub(super) async fn send(&self, message: ToWorker) {
        let Some(mail) = self.lock().mail.clone() else { return };
        tokio::select! {
            _ = mail.send(message) => {}
            () = self.until_gone() => {}
        }
    }

    pub fn view(&self) -> WorkerView {
        let state = self.lock();
        WorkerView {
            name: self.name.clone(),
            sdk: self.sdk.clone(),
            workflows: self.workflows.iter().cloned().collect(),
            slots: self.slots,
            leased: state.leases.len(),
            connected: state.mail.is_some(),
            draining: state.draining,
        }
    }
}
