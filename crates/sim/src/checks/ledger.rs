//! What is durable, as a checker reads it along the way.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use backstitch::core::event::{AbandonWhy, CauseKind, Event, UndoSpec};
use backstitch::core::id::Ordinal;
use backstitch::core::retry::StepPolicy;
use backstitch::store::RunNo;
use backstitch::{Origin, Row, RunId};

use crate::history::{Entry, Gone, Moment};

/// All that is durable, and who owns it.
#[derive(Default)]
pub(super) struct Ledger {
    pub runs: BTreeMap<RunNo, Book>,
    /// Which step carries an idempotency key.
    steps: HashMap<String, (RunNo, Ordinal)>,
    pub fence: u64,
    fences: BTreeMap<u32, u64>,
    superseded: BTreeSet<u32>,
}

/// One run.
#[derive(Default)]
pub(super) struct Book {
    pub id: String,
    pub run_id: Option<RunId>,
    pub steps: BTreeMap<Ordinal, Step>,
    /// The kinds of the first causes of its rollbacks.
    pub decisions: Vec<CauseKind>,
    pub rolling_back: bool,
    /// The error that the last decision names as the end.
    pub error: Option<String>,
    /// What the last rollback has settled: undone or not needed, and waived.
    pub paid: u32,
    pub waived: u32,
    /// Whether the last rollback had anything to settle.
    pub planned: bool,
    pub closed: bool,
    /// What a kill left, if there was one.
    pub killed: Option<Vec<Ordinal>>,
}

/// One step.
pub(super) struct Step {
    pub name: String,
    pub key: String,
    pub policy: StepPolicy,
    pub undo: Option<UndoSpec>,
    /// Attempts and the fences under which they were to begin.
    pub started: BTreeSet<(u32, u64)>,
    pub undo_started: BTreeSet<(u32, u64)>,
    /// Attempts of the present budget that have failed, and count.
    pub spent: u32,
    pub undo_spent: u32,
    pub output: Option<String>,
    /// Whether its last attempt is known to have failed.
    pub has_failed: bool,
    pub has_outcome: bool,
    pub dropped: bool,
    pub left_behind: bool,
    pub undo_settled: bool,
    pub waived: bool,
}

impl Ledger {
    /// Whether the process was superseded: it stood still, and others have gone on.
    pub(super) fn is_superseded(&self, process: u32) -> bool {
        self.superseded.contains(&process)
    }

    pub(super) fn fence_of(&self, process: u32) -> Option<u64> {
        self.fences.get(&process).copied()
    }

    /// The step that carries this idempotency key.
    pub(super) fn step(&self, key: &str) -> Option<(RunNo, Ordinal, &Book, &Step)> {
        let (run, ord) = *self.steps.get(key)?;
        let book = self.runs.get(&run)?;
        Some((run, ord, book, book.steps.get(&ord)?))
    }

    pub(super) fn take(&mut self, moment: &Moment) {
        match &moment.entry {
            Entry::Opened { process, fence } => {
                self.fence = *fence;
                self.fences.insert(*process, *fence);
            }
            Entry::Gone { process, how: Gone::StoodStill } => {
                self.superseded.insert(*process);
            }
            Entry::Durable { run, row } => self.read(*run, row),
            Entry::Gone { .. }
            | Entry::WokeUp { .. }
            | Entry::ClockSet { .. }
            | Entry::Answered { .. }
            | Entry::Listed(_)
            | Entry::Accepted { .. }
            | Entry::Began(_)
            | Entry::Ended { .. }
            | Entry::Found { .. } => {}
        }
    }

    fn read(&mut self, run: RunNo, row: &Row) {
        let book = self.runs.entry(run).or_default();
        for event in &row.events {
            if let Event::ExecutionStarted(started) = event {
                book.id.clone_from(&started.id);
                book.run_id = RunId::from_slice(&started.run_id);
            }
            if let Event::StepScheduled(scheduled) = event {
                let key = book.run_id.map(|id| id.step_key(scheduled.ord)).unwrap_or_default();
                self.steps.insert(key.clone(), (run, scheduled.ord));
                book.steps.insert(
                    scheduled.ord,
                    Step {
                        name: scheduled.key.name.clone(),
                        key,
                        policy: scheduled.policy.clone(),
                        undo: scheduled.undo.clone(),
                        started: BTreeSet::new(),
                        undo_started: BTreeSet::new(),
                        spent: 0,
                        undo_spent: 0,
                        output: None,
                        has_failed: false,
                        has_outcome: false,
                        dropped: false,
                        left_behind: false,
                        undo_settled: false,
                        waived: false,
                    },
                );
            }
            book.read(event, row.header.fence);
        }
    }
}

impl Book {
    fn read(&mut self, event: &Event, fence: u64) {
        let counts = |origin: Origin| u32::from(origin != Origin::Interrupted);
        match event {
            Event::StepStarted(e) => self.change(e.ord, |step| {
                if let Some(policy) = &e.policy {
                    step.policy = policy.clone();
                }
                step.has_failed = false;
                step.started.insert((e.attempt, fence));
            }),
            Event::StepSucceeded(e) => self.change(e.ord, |step| {
                step.has_outcome = true;
                let output = String::from_utf8_lossy(&e.output.data);
                step.output = Some(output.trim_matches('"').to_owned());
            }),
            Event::StepAttemptFailed(e) => {
                self.change(e.ord, |step| {
                    step.has_failed = true;
                    step.spent += counts(e.failure.origin());
                });
            }
            Event::StepFailed(e) => self.change(e.ord, |step| step.has_outcome = true),
            Event::StepRetryRequested(e) => self.change(e.ord, |step| step.spent = 0),
            Event::StepCancelRequested(e) => self.change(e.ord, |step| step.dropped = true),
            Event::StepAbandoned(e) => self.change(e.ord, |step| {
                step.left_behind |= e.why() == AbandonWhy::DidNotYield;
            }),
            Event::UndoStarted(e) => self.change(e.ord, |step| {
                if let (Some(policy), Some(undo)) = (&e.policy, &mut step.undo) {
                    undo.policy = policy.clone();
                }
                step.undo_started.insert((e.attempt, fence));
            }),
            Event::UndoAttemptFailed(e) => {
                self.change(e.ord, |step| step.undo_spent += counts(e.failure.origin()));
            }
            Event::UndoRetryRequested(e) => self.change(e.ord, |step| step.undo_spent = 0),
            Event::UndoSucceeded(e) => {
                self.paid += 1;
                self.change(e.ord, |step| step.undo_settled = true);
            }
            Event::UndoNotNeeded(e) => {
                self.paid += 1;
                self.change(e.ord, |step| step.undo_settled = true);
            }
            Event::UndoWaived(e) => {
                self.waived += 1;
                self.change(e.ord, |step| (step.undo_settled, step.waived) = (true, true));
            }
            Event::RollbackStarted(e) => {
                let first = e.causes.first();
                self.decisions.push(first.map_or(CauseKind::Failed, |cause| cause.kind()));
                (self.rolling_back, self.closed) = (true, false);
                self.error = e.ends_in.failure.as_ref().map(|failure| failure.message.clone());
                (self.paid, self.waived, self.planned) = (0, 0, !e.plan.is_empty());
            }
            Event::ExecutionKilled(e) => {
                (self.rolling_back, self.closed) = (false, true);
                self.killed = Some(e.left.clone());
            }
            Event::ExecutionSucceeded(_)
            | Event::ExecutionFailed(_)
            | Event::ExecutionCancelled(_)
            | Event::ExecutionTerminated(_) => (self.rolling_back, self.closed) = (false, true),
            Event::ExecutionStarted(_)
            | Event::StepScheduled(_)
            | Event::TimerStarted(_)
            | Event::TimerFired(_)
            | Event::TimerCancelled(_)
            | Event::WaitStarted(_)
            | Event::WaitSatisfied(_)
            | Event::WaitTimedOut(_)
            | Event::WaitCancelled(_)
            | Event::EventReceived(_)
            | Event::Shown(_)
            | Event::MarkerRecorded(_)
            | Event::ValuePublished(_)
            | Event::AttributesSet(_)
            | Event::CancelRequested(_)
            | Event::PauseRequested(_)
            | Event::Resumed(_)
            | Event::Blocked(_)
            | Event::Unblocked(_)
            | Event::VerbRefused(_)
            | Event::UndoFailed(_)
            | Event::RollbackFinished(_) => {}
        }
    }

    fn change(&mut self, ord: Ordinal, change: impl FnOnce(&mut Step)) {
        if let Some(step) = self.steps.get_mut(&ord) {
            change(step);
        }
    }
}
