//! The runs that are leased to this worker: what is known of each, and what becomes of it.
//!
//! **Invariant:** a run that was lost under a driver stays *gone* until the driver has left it: nothing of it is
//! offered any more, and a newer lease of it waits so long.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use backstitch_api::worker::from_worker::Message;
use backstitch_api::worker::{self as api, FromWorker};
use backstitch_core::inbox::InboxRow;
use backstitch_store::{
    Answer, Append, Call, ErrorKind, Refusal, RunInfo, RunNo, StoreError, StoreFuture,
};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};

use crate::remote::clock::Tick;
use crate::remote::wire;

/// What the engine is to be told of a run that it drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// It is lost: drop everything at once.
    Lost(RunNo),
    /// It is to be handed back in good order.
    HandBack(RunNo),
}

/// What is sent to whom, as long as somebody listens.
pub(crate) struct Leases {
    places: BTreeMap<RunNo, Place>,
    /// Runs that this worker can never drive, and why.
    troubles: HashMap<RunNo, String>,
    /// To the server, while there is a connection.
    out: Option<mpsc::UnboundedSender<FromWorker>>,
    /// Since when, and for how long, the runs are held.
    term: Option<(Tick, Duration)>,
    draining: bool,
    notices: mpsc::UnboundedSender<Notice>,
    /// Grows with what the engine has to look at.
    news: watch::Sender<u64>,
}

enum Place {
    Held(Box<Held>),
    Gone(Gone),
}

struct Held {
    info: RunInfo,
    fence: u64,
    /// The beginning of the journal, until it is read.
    rows: Vec<Bytes>,
    /// The last row of the journal.
    seq: u64,
    /// What came for the run and is not durably read.
    inbox: Vec<InboxRow>,
    /// The last row of the inbox that was sent here.
    inbox_sent: u64,
    /// How often something came that the engine has not heard of.
    calls: u64,
    /// Whether the engine has taken the run up, and will say when it leaves it.
    is_driven: bool,
    pending: Option<Pending>,
    /// Dropped with this.
    lost: watch::Sender<()>,
}

/// A row that is not answered yet.
struct Pending {
    append: Arc<Append>,
    answer: oneshot::Sender<Result<Answer, StoreError>>,
}

/// A run that was lost, and that its driver has not left yet.
#[derive(Default)]
struct Gone {
    /// Where the server still takes it for leased, it is given back: the fence, and the last row of the inbox.
    owed: Option<(u64, u64)>,
    /// It was leased again in the meantime.
    next: Option<Box<api::Lease>>,
}

/// What reading a journal begins with.
pub(crate) struct Reading {
    pub fence: u64,
    pub rows: Vec<Bytes>,
    /// The last row there is.
    pub seq: u64,
    /// Tells when the run is lost.
    pub lost: watch::Receiver<()>,
}

impl Leases {
    pub fn new(notices: mpsc::UnboundedSender<Notice>) -> Leases {
        Leases {
            places: BTreeMap::new(),
            troubles: HashMap::new(),
            out: None,
            term: None,
            draining: false,
            notices,
            news: watch::Sender::new(0),
        }
    }

    pub fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    fn send(&self, message: Message) {
        if let Some(out) = &self.out {
            // A connection that has just broken is told by its own end.
            let _ = out.send(wire::from_worker(message));
        }
    }

    fn release(&self, run: RunNo, (fence, inbox): (u64, u64)) {
        let trouble = self.troubles.get(&run).cloned().unwrap_or_default();
        self.send(Message::Release(api::Release { run: run.0, fence, inbox, trouble }));
    }

    fn tell(&mut self, run: RunNo) {
        if let Some(held) = self.held(run) {
            held.calls += 1;
            self.news.send_modify(|news| *news += 1);
        }
    }

    fn held(&mut self, run: RunNo) -> Option<&mut Held> {
        match self.places.get_mut(&run) {
            Some(Place::Held(held)) => Some(held),
            Some(Place::Gone(_)) | None => None,
        }
    }

    /// Drops everything if its time is over. Says whether it is not.
    pub fn in_time(&mut self) -> bool {
        match self.term {
            Some((since, term)) if since.until(Tick::now()) < term => true,
            Some(_) => {
                tracing::warn!("no answer from the server in time: every run is dropped");
                self.term = None;
                let runs: Vec<RunNo> = self.places.keys().copied().collect();
                runs.into_iter().for_each(|run| self.lose(run, Server::HasItLeased));
                false
            }
            None => false,
        }
    }

    /// How long the runs are held if nothing is heard. Absent when that is over.
    pub fn time_left(&self) -> Option<Duration> {
        self.term.map(|(since, term)| term.saturating_sub(since.until(Tick::now())))
    }

    /// The server has answered what was sent at `since`.
    pub fn prolong(&mut self, since: Tick, term: Duration) {
        self.term = Some((since, term));
    }

    // What the engine does.

    pub fn holds(&mut self, run: RunNo) -> bool {
        let holds = self.in_time() && self.held(run).is_some();
        if !holds {
            // Whoever is told so gives the run up.
            self.lose(run, Server::HasItLeased);
        }
        holds
    }

    pub fn fence(&mut self, run: RunNo) -> u64 {
        self.held(run).map_or(0, |held| held.fence)
    }

    /// The engine takes a run up.
    pub fn take_up(&mut self, run: RunNo) -> Option<RunInfo> {
        self.in_time();
        let held = self.held(run)?;
        held.is_driven = true;
        Some(held.info.clone())
    }

    pub fn calls(&self, after: RunNo, limit: usize) -> Vec<Call> {
        let after = (std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded);
        let called = self.places.range(after).filter_map(|(run, place)| match place {
            Place::Held(held) if held.calls > 0 => Some(Call { run: *run, times: held.calls }),
            Place::Held(_) | Place::Gone(_) => None,
        });
        called.take(limit).collect()
    }

    pub fn heard(&mut self, calls: &[Call]) {
        for call in calls {
            if let Some(held) = self.held(call.run).filter(|held| held.calls == call.times) {
                held.calls = 0;
            }
        }
    }

    pub fn inbox(&mut self, run: RunNo, after: u64, limit: usize) -> Vec<InboxRow> {
        let Some(held) = self.held(run) else { return Vec::new() };
        held.inbox.iter().filter(|row| row.number > after).take(limit).cloned().collect()
    }

    /// The journal of a run that is held, from its beginning (`after_seq` is 0) or from there on.
    pub fn read(&mut self, run: RunNo, after_seq: u64) -> Option<Reading> {
        let held = self.held(run)?;
        let rows = if after_seq == 0 { std::mem::take(&mut held.rows) } else { Vec::new() };
        let (fence, seq, lost) = (held.fence, held.seq, held.lost.subscribe());
        Some(Reading { fence, rows, seq, lost })
    }

    /// Offers a row to the server.
    pub fn offer(&mut self, append: Arc<Append>) -> StoreFuture<Answer> {
        self.in_time();
        let (answer, answered) = oneshot::channel();
        let run = append.run;
        if let Some(held) = self.held(run) {
            let message = wire::append(&append, held.fence);
            held.pending = Some(Pending { append, answer });
            self.send(message);
        }
        // Without an answer the run is lost.
        Box::pin(async move { answered.await.unwrap_or_else(|_| Ok(not_ours())) })
    }

    /// A driver has left a run.
    pub fn left_by_driver(&mut self, run: RunNo, trouble: Option<&str>) {
        if let Some(trouble) = trouble {
            self.troubles.insert(run, trouble.to_owned());
        }
        match self.places.remove(&run) {
            Some(Place::Held(held)) => self.release(run, held.leased()),
            Some(Place::Gone(gone)) => {
                if let Some(leased) = gone.owed {
                    self.release(run, leased);
                }
                if let Some(lease) = gone.next {
                    self.leased(*lease);
                }
            }
            None => {}
        }
    }

    // What the server says.

    pub fn leased(&mut self, lease: api::Lease) {
        let run = RunNo(lease.run);
        if self.places.contains_key(&run) {
            // The server knows better than we what became of the lease before.
            self.lose(run, Server::HasItNot);
        }
        if let Some(Place::Gone(gone)) = self.places.get_mut(&run) {
            *gone = Gone { owed: None, next: Some(Box::new(lease)) };
            return;
        }
        let inbox_sent = lease.inbox.last().map_or(0, |row| row.number);
        let leased = (lease.fence, inbox_sent);
        if self.draining {
            return self.release(run, leased);
        }
        let trouble = self.troubles.get(&run).cloned();
        match trouble.map_or_else(|| Held::new(lease), Err) {
            Ok(held) => {
                self.places.insert(run, Place::Held(Box::new(held)));
                self.tell(run);
            }
            Err(trouble) => {
                tracing::error!(
                    run = run.0,
                    trouble,
                    "a run that cannot be driven here is given back"
                );
                self.troubles.insert(run, trouble);
                self.release(run, leased);
            }
        }
    }

    pub fn put(&mut self, put: api::Inbox) {
        let run = RunNo(put.run);
        if let Some(Place::Gone(Gone { next: Some(lease), .. })) = self.places.get_mut(&run)
            && lease.fence == put.fence
        {
            return lease.inbox.extend(put.rows);
        }
        let Some(held) = self.held(run).filter(|held| held.fence == put.fence) else { return };
        let sent = held.inbox_sent;
        for row in put.rows.into_iter().filter(|row| row.number > sent) {
            let number = row.number;
            match wire::inbox_row(row) {
                Ok(row) => held.inbox.push(row),
                Err(trouble) => {
                    tracing::error!(
                        run = run.0,
                        trouble,
                        "a run that cannot be driven here is given up"
                    );
                    self.troubles.insert(run, trouble);
                    return self.lose(run, Server::HasItLeased);
                }
            }
            held.inbox_sent = number;
        }
        self.tell(run);
    }

    pub fn answered(&mut self, answer: api::Answer) {
        let run = RunNo(answer.run);
        let Some(held) = self.held(run) else { return };
        let pending = held.pending.take_if(|pending| {
            pending.append.draft.header.append_id.as_slice() == answer.append_id.as_slice()
        });
        let (Some(Pending { append, answer: waits }), Some(said)) = (pending, answer.answer) else {
            return;
        };
        let answer = match said {
            api::answer::Answer::DurableAtUs(at_us) => {
                held.seq = append.draft.header.seq;
                held.inbox.retain(|row| row.number > append.read);
                Ok(Answer::Appended { at_us })
            }
            api::answer::Answer::Refused(refused) => match refused.why() {
                api::refused::Why::Unread => Ok(Answer::Refused(Refusal::Unread(Vec::new()))),
                api::refused::Why::Lost => {
                    tracing::warn!(run = run.0, why = refused.message, "run lost");
                    self.places.insert(run, Place::Gone(Gone::default()));
                    Ok(not_ours())
                }
                api::refused::Why::Illegal
                | api::refused::Why::Rejected
                | api::refused::Why::Unspecified => {
                    Err(StoreError::new(ErrorKind::Rejected, refused.message))
                }
            },
        };
        // A driver that is gone has no use for it.
        let _ = waits.send(answer);
    }

    pub fn revoked(&mut self, revoke: api::Revoke) {
        let run = RunNo(revoke.run);
        if let Some(Place::Gone(gone)) = self.places.get_mut(&run) {
            gone.next.take_if(|next| next.fence == revoke.fence);
            return;
        }
        let Some(held) = self.held(run).filter(|held| held.fence == revoke.fence) else { return };
        tracing::info!(run = run.0, why = revoke.why, "the server takes a run back");
        let (is_driven, leased) = (held.is_driven, held.leased());
        match (revoke.in_good_order, is_driven) {
            (true, true) => drop(self.notices.send(Notice::HandBack(run))),
            (true, false) => {
                self.places.remove(&run);
                self.release(run, leased);
            }
            (false, _) => self.lose(run, Server::HasItNot),
        }
    }

    /// What a new connection begins with.
    pub fn hello(&mut self) -> Vec<api::Held> {
        self.in_time();
        let held = self.places.iter().filter_map(|(run, place)| match place {
            Place::Held(held) => Some(api::Held {
                run: run.0,
                fence: held.fence,
                seq: held.seq,
                inbox: held.inbox_sent,
            }),
            Place::Gone(_) => None,
        });
        held.collect()
    }

    /// There is a connection: `said` of these runs was said in its Hello.
    pub fn connected(
        &mut self,
        kept: &[api::Kept],
        said: &[api::Held],
        out: mpsc::UnboundedSender<FromWorker>,
    ) {
        self.out = Some(out);
        if self.draining {
            self.send(Message::Drain(api::Drain {}));
        }
        let kept: HashMap<i64, u64> = kept.iter().map(|kept| (kept.run, kept.fence)).collect();
        for said in said {
            let run = RunNo(said.run);
            match (kept.get(&said.run), self.places.get_mut(&run)) {
                (Some(fence), Some(Place::Held(held))) => {
                    held.fence = *fence;
                    if let Some(pending) = &held.pending {
                        let message = wire::append(&pending.append, *fence);
                        self.send(message);
                    }
                }
                (Some(fence), Some(Place::Gone(gone))) => gone.owed = Some((*fence, said.inbox)),
                // Its driver has left it while nobody could be told.
                (Some(fence), None) => self.release(run, (*fence, said.inbox)),
                (None, _) => self.lose(run, Server::HasItNot),
            }
        }
    }

    /// The connection is broken.
    pub fn disconnected(&mut self) {
        self.out = None;
        for place in self.places.values_mut() {
            if let Place::Gone(gone) = place {
                // What was not said in the next Hello is not leased any more.
                *gone = Gone::default();
            }
        }
    }

    /// No further leases are wanted.
    pub fn drain(&mut self) {
        self.draining = true;
        self.send(Message::Drain(api::Drain {}));
    }

    /// Gives back what nobody drives, and drops the rest.
    pub fn close(&mut self) {
        self.draining = true;
        let runs: Vec<RunNo> = self.places.keys().copied().collect();
        runs.into_iter().for_each(|run| self.lose(run, Server::HasItLeased));
        self.out = None;
    }

    pub fn is_gone(&self, run: RunNo) -> bool {
        matches!(self.places.get(&run), Some(Place::Gone(_)))
    }

    fn lose(&mut self, run: RunNo, server: Server) {
        let Some(held) = self.held(run) else { return };
        let (is_driven, leased) = (held.is_driven, held.leased());
        let owed = match server {
            Server::HasItLeased => Some(leased),
            Server::HasItNot => None,
        };
        // With it goes what is not answered, and whoever reads the journal.
        self.places.remove(&run);
        if is_driven {
            tracing::warn!(run = run.0, "run lost");
            self.places.insert(run, Place::Gone(Gone { owed, next: None }));
            let _ = self.notices.send(Notice::Lost(run));
        } else if let Some(leased) = owed {
            self.release(run, leased);
        }
    }
}

/// What the server takes a run for that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    /// Leased to us: it wants to hear that it is not.
    HasItLeased,
    /// Not ours any more.
    HasItNot,
}

impl Held {
    fn new(lease: api::Lease) -> Result<Held, String> {
        let info = wire::info(&lease)?;
        let inbox = lease.inbox.into_iter().map(wire::inbox_row).collect::<Result<Vec<_>, _>>()?;
        Ok(Held {
            info,
            fence: lease.fence,
            rows: lease.rows.into_iter().map(Bytes::from).collect(),
            seq: lease.seq,
            inbox_sent: inbox.last().map_or(0, |row| row.number),
            inbox,
            calls: 0,
            is_driven: false,
            pending: None,
            lost: watch::Sender::new(()),
        })
    }

    fn leased(&self) -> (u64, u64) {
        (self.fence, self.inbox_sent)
    }
}

/// The answer to whoever offers a row of a run that is lost.
fn not_ours() -> Answer {
    Answer::Refused(Refusal::UnknownRun)
}

#[cfg(test)]
mod tests;
