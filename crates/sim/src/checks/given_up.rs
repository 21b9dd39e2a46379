//! How long an attempt may go on: until its timeout, and when nobody wants it any more as its policy
//! says. P9, R5.

use std::collections::BTreeMap;

use backstitch::core::event::{AbandonWhy, CauseKind, Event};
use backstitch::core::id::Ordinal;
use backstitch::core::retry::OnAbandon;
use backstitch::store::RunNo;

use super::Violations;
use super::ledger::{Ledger, Step};
use crate::history::{Entry, How, Kind, Moment};

/// A clock that moves in steps may pass the end of a timeout by this much.
const SLACK_US: i64 = 1_000_000;

struct AtWork {
    process: u32,
    kind: Kind,
    run: RunNo,
    ord: Ordinal,
    name: String,
    since_us: i64,
    timeout_us: i64,
    wanted: Wanted,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Yes,
    /// It may come to its end.
    NoAndSettles,
    /// It is to be dropped where it stands; by the next row of its run the owner has done so.
    NoAndStops,
    /// That next row has been durable since this instant of steady time. A body whose await is over at the same
    /// instant may still come to its end: what it has done is better known than not.
    StoppedSince(i64),
}

#[derive(Default)]
struct GivenUp {
    ledger: Ledger,
    at_work: BTreeMap<u64, AtWork>,
    /// Bodies that might have come to their ends, and were dropped: by a timeout, or wrongly.
    dropped: BTreeMap<(RunNo, Ordinal), String>,
    set_by_us: i64,
    violations: Violations,
}

pub(super) fn check(moments: &[Moment]) -> Violations {
    let mut given_up = GivenUp::default();
    for moment in moments {
        given_up.take(moment);
        given_up.ledger.take(moment);
    }
    given_up.violations
}

impl GivenUp {
    fn take(&mut self, moment: &Moment) {
        // Setting the clock moves no timeout.
        let steady_us = moment.at_us - self.set_by_us;
        match &moment.entry {
            Entry::ClockSet { ms } => self.set_by_us += ms * 1_000,
            Entry::Began(attempt) if !self.ledger.is_superseded(attempt.process) => {
                let Some((run, ord, _, step)) = self.ledger.step(&attempt.step_key) else { return };
                let timeout_us = match attempt.kind {
                    Kind::Body => step.policy.timeout_us,
                    Kind::Undo => step.undo.as_ref().map_or(0, |undo| undo.policy.timeout_us),
                };
                let at_work = AtWork {
                    process: attempt.process,
                    kind: attempt.kind,
                    run,
                    ord,
                    name: attempt.name.clone(),
                    since_us: steady_us,
                    timeout_us: i64::try_from(timeout_us).unwrap_or(i64::MAX),
                    wanted: Wanted::Yes,
                };
                self.at_work.insert(attempt.token, at_work);
            }
            Entry::Ended { token, how } => {
                let Some(ended) = self.at_work.remove(token) else { return };
                let AtWork { kind, name, since_us, timeout_us, wanted, .. } = ended;
                if *how == How::Dropped {
                    if wanted == Wanted::NoAndSettles {
                        self.dropped.insert((ended.run, ended.ord), name);
                    }
                    return;
                }
                if steady_us - since_us > timeout_us.saturating_add(SLACK_US) {
                    self.violations.push(format!("P9: {kind:?} {name} outlives its timeout"));
                }
                if let Wanted::StoppedSince(at_us) = wanted
                    && steady_us > at_us
                {
                    self.violations.push(format!("R5: {name} is to be dropped, and goes on"));
                }
            }
            Entry::Gone { process, .. } => {
                self.at_work.retain(|_, at_work| at_work.process != *process);
            }
            Entry::Durable { run, row } => {
                for at_work in self.at_work.values_mut().filter(|a| a.run == *run) {
                    if at_work.wanted == Wanted::NoAndStops {
                        at_work.wanted = Wanted::StoppedSince(steady_us);
                    }
                }
                row.events.iter().for_each(|event| self.read(*run, event));
            }
            Entry::Began(_)
            | Entry::Opened { .. }
            | Entry::WokeUp { .. }
            | Entry::Answered { .. }
            | Entry::Accepted { .. }
            | Entry::Listed(_)
            | Entry::Found { .. } => {}
        }
    }

    fn read(&mut self, run: RunNo, event: &Event) {
        let Some(book) = self.ledger.runs.get(&run) else { return };
        let bodies = self.at_work.values_mut().filter(|a| a.run == run && a.kind == Kind::Body);
        match event {
            Event::StepCancelRequested(e) => {
                let dropped = bodies.filter(|body| body.ord == e.ord);
                dropped.for_each(|body| body.wanted = wanted(book.steps.get(&e.ord)));
            }
            Event::RollbackStarted(e) => {
                let first = e.causes.first().map(|cause| cause.kind());
                bodies
                    .filter(|body| {
                        body.wanted == Wanted::Yes || first == Some(CauseKind::Terminated)
                    })
                    .for_each(|body| {
                        body.wanted = match first {
                            Some(CauseKind::Terminated) => Wanted::NoAndStops,
                            _ => wanted(book.steps.get(&body.ord)),
                        };
                    });
            }
            Event::StepAbandoned(e) if e.why() == AbandonWhy::Cancelled => {
                let dropped = self.dropped.remove(&(run, e.ord));
                self.violations.extend(
                    dropped.map(|name| format!("R5: {name} may come to its end, and is dropped")),
                );
            }
            _ => {}
        }
    }
}

/// What the policy of a step says of a body that nobody wants.
fn wanted(step: Option<&Step>) -> Wanted {
    let Some(step) = step else { return Wanted::NoAndStops };
    match (step.policy.on_abandon(), &step.undo) {
        (OnAbandon::Settle, _) | (OnAbandon::Auto, Some(_)) => Wanted::NoAndSettles,
        (OnAbandon::Cancel, _) | (OnAbandon::Auto, None) => Wanted::NoAndStops,
    }
}
