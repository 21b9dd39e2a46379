//! What was answered is true, whatever happens afterwards: P1, R10.

use std::collections::{BTreeMap, BTreeSet};

use backstitch::core::event::{CauseKind, Event};
use backstitch::core::inbox::InboxKind;
use backstitch::store::RunNo;
use backstitch::{ErrorKind, Status};

use super::Violations;
use super::ledger::{Book, Ledger};
use crate::history::{Answer, Entry, Found, Moment};
use crate::plan::Plan;

/// The inbox of a run.
#[derive(Default)]
struct Inbox {
    rows: BTreeMap<u64, InboxKind>,
    /// The last row that the journal speaks of.
    read: BTreeSet<u64>,
}

pub(super) fn check(plan: &Plan, moments: &[Moment]) -> Violations {
    let (mut ledger, mut violations) = (Ledger::default(), Violations::new());
    let mut inboxes: BTreeMap<RunNo, Inbox> = BTreeMap::new();
    let mut answers: BTreeMap<usize, Answer> = BTreeMap::new();
    for moment in moments {
        match &moment.entry {
            Entry::Answered { deed, answer, .. } => {
                let id = format!("e{}", plan.deeds[*deed].execution);
                let run = ledger.runs.iter().find(|(_, book)| book.id == id);
                let inbox = run.and_then(|(run, _)| inboxes.get(run));
                violations.extend(is_durable(*deed, answer, run.is_some(), inbox));
                if let Some(first) = answers.insert(*deed, answer.clone())
                    && !is_repeated(&first, answer)
                {
                    let why =
                        format!("P1: deed {deed} was answered {first:?}, and then {answer:?}");
                    violations.push(why);
                }
            }
            Entry::Accepted { run, number, kind, .. } => {
                inboxes.entry(*run).or_default().rows.insert(*number, *kind);
            }
            Entry::Durable { run, row } => {
                let inbox = inboxes.entry(*run).or_default();
                inbox.read.extend(row.events.iter().filter_map(inbox_row_of));
                violations.extend(inbox.passed_over(*run));
                // A kill waits for nothing, and its row says so at its end.
                let kills = |event: &Event| matches!(event, Event::ExecutionKilled(_));
                if !row.events.iter().any(kills) {
                    let overtaken = row.events.iter().filter_map(|e| inbox.overtaken(*run, e));
                    violations.extend(overtaken);
                }
            }
            Entry::Found { execution, run, found } => {
                let of_it = |deed: &usize| plan.deeds[*deed].execution == *execution;
                let answers = answers.iter().filter(|(deed, _)| of_it(deed));
                for (deed, answer) in answers {
                    violations.extend(came_true(*deed, answer, found));
                }
                if let Some(book) = ledger.runs.get(run) {
                    violations.extend(ends_as_decided(*run, &book.decisions, found));
                    violations.extend(ends_with_its_error(*run, book, found));
                }
            }
            Entry::Opened { .. }
            | Entry::Gone { .. }
            | Entry::WokeUp { .. }
            | Entry::ClockSet { .. }
            | Entry::Listed(_)
            | Entry::Began(_)
            | Entry::Ended { .. } => {}
        }
        ledger.take(moment);
    }
    violations
}

fn is_durable(
    deed: usize,
    answer: &Answer,
    started: bool,
    inbox: Option<&Inbox>,
) -> Option<String> {
    let durable = match answer {
        Answer::Started { .. } => started,
        Answer::Verb { number, .. } | Answer::Event { number } => {
            inbox.is_some_and(|inbox| inbox.rows.contains_key(number))
        }
        Answer::Result(_) | Answer::Settled | Answer::Refused => true,
    };
    (!durable).then(|| format!("P1: deed {deed} was answered {answer:?}, and is not durable"))
}

/// The same request gets its first answer again.
fn is_repeated(first: &Answer, again: &Answer) -> bool {
    match (first, again) {
        (Answer::Started { .. } | Answer::Verb { .. } | Answer::Event { .. }, again) => {
            first == again
        }
        // Each time it is another request, or another moment.
        (Answer::Result(_) | Answer::Settled | Answer::Refused, _) => true,
    }
}

/// The inbox row that an event of the journal speaks of.
fn inbox_row_of(event: &Event) -> Option<u64> {
    match event {
        Event::EventReceived(e) => Some(e.inbox),
        Event::CancelRequested(e) => Some(e.inbox),
        Event::PauseRequested(e) => Some(e.inbox),
        Event::Resumed(e) => Some(e.inbox),
        Event::VerbRefused(e) => Some(e.inbox),
        Event::StepRetryRequested(e) => Some(e.inbox),
        Event::UndoRetryRequested(e) => Some(e.inbox),
        Event::UndoWaived(e) => Some(e.inbox),
        Event::AttributesSet(e) => Some(e.inbox),
        Event::ExecutionKilled(e) => Some(e.inbox),
        _ => None,
    }
}

impl Inbox {
    /// What is copied is copied in order, and all of it.
    fn passed_over(&self, run: RunNo) -> Option<String> {
        let last = self.read.last()?;
        let number = self.rows.range(..last).find(|(number, _)| !self.read.contains(number))?.0;
        Some(format!("P1: inbox row {number} of run {} is passed over", run.0))
    }

    /// What is decisive and was accepted before goes before an end or a decision.
    fn overtaken(&self, run: RunNo, event: &Event) -> Option<String> {
        let decides = matches!(
            event,
            Event::RollbackStarted(_)
                | Event::ExecutionSucceeded(_)
                | Event::ExecutionFailed(_)
                | Event::ExecutionCancelled(_)
                | Event::ExecutionTerminated(_)
        );
        if !decides {
            return None;
        }
        let mut unread = self.rows.iter().filter(|(number, kind)| {
            InboxKind::DECISIVE.contains(kind) && !self.read.contains(number)
        });
        let (number, kind) = unread.next()?;
        let (what, verb) = (event.name(), kind.name());
        Some(format!("P1: {what} of run {} overtakes {verb} (inbox row {number})", run.0))
    }
}

/// Who was told how it ended was told the truth.
fn came_true(deed: usize, answer: &Answer, found: &Found) -> Option<String> {
    let truth = match answer {
        Answer::Started { run_id } => *run_id == found.run_id,
        Answer::Result(Ok(_)) => match found.status {
            Status::Succeeded => true,
            // Undone on request since.
            Status::Cancelled => matches!(&found.result, Err((ErrorKind::RolledBack, _))),
            // Killed while it was being undone on request.
            Status::Terminated => true,
            _ => false,
        },
        Answer::Result(Err(ErrorKind::Stuck)) => true,
        Answer::Result(Err(kind)) => {
            matches!(&found.result, Err((found, _)) if found == kind)
        }
        Answer::Verb { .. } | Answer::Event { .. } | Answer::Settled | Answer::Refused => true,
    };
    (!truth).then(|| format!("P1: deed {deed} was answered {answer:?}, and found is {found:?}"))
}

fn ends_as_decided(run: RunNo, decisions: &[CauseKind], found: &Found) -> Option<String> {
    let decided = match decisions.last()? {
        CauseKind::Failed | CauseKind::Deadline => Status::Failed,
        CauseKind::Cancelled | CauseKind::Requested => Status::Cancelled,
        CauseKind::Terminated => Status::Terminated,
        CauseKind::Dropped => Status::Succeeded,
    };
    let killed = matches!(found.status, Status::Terminated);
    let as_decided = found.status == decided || killed || !found.status.is_closed();
    (!as_decided).then(|| {
        let (run, status) = (run.0, found.status);
        format!("R10: run {run} was decided to end as {decided}, and is {status}")
    })
}

/// What went wrong on the way back is not what the run failed of.
fn ends_with_its_error(run: RunNo, book: &Book, found: &Found) -> Option<String> {
    let (Some(error), Status::Failed, Err((_, told))) = (&book.error, found.status, &found.result)
    else {
        return None;
    };
    (error != told).then(|| format!("R8: run {} failed of {error:?}, and {told:?} is told", run.0))
}
