//! What has happened in a simulated world, in order: all that the checkers get to see.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use backstitch::core::event::Event;
use backstitch::core::inbox::InboxKind;
use backstitch::store::RunNo;
use backstitch::{ErrorKind, RollbackOutcome, Row, Status};

/// One thing that happened.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// A process has opened the store, and raised the fence.
    Opened {
        process: u32,
        fence: u64,
    },
    Gone {
        process: u32,
        how: Gone,
    },
    /// A process that stood still goes on; it is an owner no more.
    WokeUp {
        process: u32,
    },
    ClockSet {
        ms: i64,
    },
    Answered {
        deed: usize,
        process: u32,
        answer: Answer,
    },
    /// An inbox row is durable.
    Accepted {
        run: RunNo,
        number: u64,
        kind: InboxKind,
        topic: String,
        at_us: i64,
    },
    /// A journal row is durable.
    Durable {
        run: RunNo,
        row: Row,
    },
    Began(Attempt),
    Ended {
        token: u64,
        how: How,
    },
    /// Somebody looked at the list of open matters when nothing was on its way.
    Listed(Vec<Listed>),
    /// Everything is over, and this is how an execution is found.
    Found {
        execution: usize,
        run: RunNo,
        found: Box<Found>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Died,
    StoodStill,
    Stopped,
}

/// An attempt of a body or an undo, as the outside world sees it.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// Tells this attempt from all others.
    pub token: u64,
    pub process: u32,
    pub kind: Kind,
    /// The idempotency key that it carries.
    pub key: String,
    /// The idempotency key of the step that an undo is for.
    pub step_key: String,
    pub name: String,
    pub number: u32,
    pub fence: u64,
    /// What an undo was told of its step.
    pub told: Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Body,
    Undo,
}

/// What an undo is told of the outcome of its step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Nothing,
    Succeeded(String),
    Failed,
    Unknown,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Well(String),
    Failed {
        /// It asked for this delay.
        later_ms: Option<u64>,
    },
    /// The other side says no, for certain and for good: there was no effect.
    Refused,
    /// There was no effect, and a person has to see to it.
    CalledForHelp,
    Panicked,
    /// Dropped where it stood.
    Dropped,
}

/// What somebody outside was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Started { run_id: String },
    Verb { number: u64, changed: bool },
    Event { number: u64 },
    Result(Result<String, ErrorKind>),
    Settled,
    Refused,
}

/// An open matter on the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub run_id: String,
    pub ord: u32,
    pub kind: String,
}

/// An execution as it is found in the end.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub status: Status,
    pub run_id: String,
    pub rollback: RollbackOutcome,
    pub result: Result<String, (ErrorKind, String)>,
    /// Open matters: ordinal and kind.
    pub attention: Vec<(u32, String)>,
    /// What it still waits for, if it is not closed.
    pub waits_for: String,
}

/// The record of a world. Clones are the same record.
#[derive(Clone, Default)]
pub(crate) struct History(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    entries: Vec<Moment>,
    now_us: i64,
    tokens: u64,
}

/// An entry, and when it was made by the clock of the world.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub at_us: i64,
    pub entry: Entry,
}

impl History {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no code runs under this lock")
    }

    pub(crate) fn set_now(&self, now_us: i64) {
        self.lock().now_us = now_us;
    }

    pub(crate) fn push(&self, entry: Entry) {
        let mut inner = self.lock();
        let at_us = inner.now_us;
        inner.entries.push(Moment { at_us, entry });
    }

    pub(crate) fn token(&self) -> u64 {
        let mut inner = self.lock();
        inner.tokens += 1;
        inner.tokens
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    pub(crate) fn moments(&self) -> Vec<Moment> {
        self.lock().entries.clone()
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.at_us / 1_000 - crate::world::EPOCH_US / 1_000;
        write!(f, "{:>9}.{:03}  ", ms / 1_000, ms.rem_euclid(1_000))?;
        match &self.entry {
            Entry::Opened { process, fence } => write!(f, "process {process} opens, fence {fence}"),
            Entry::Gone { process, how } => write!(f, "process {process} {how:?}"),
            Entry::WokeUp { process } => write!(f, "process {process} wakes up"),
            Entry::ClockSet { ms } => write!(f, "the clock is set by {ms} ms"),
            Entry::Answered { deed, process, answer } => {
                write!(f, "deed {deed} answered by process {process}: {answer:?}")
            }
            Entry::Accepted { run, number, kind, topic, .. } => {
                write!(f, "run {} inbox {number}: {} {topic}", run.0, kind.name())
            }
            Entry::Durable { run, row } => {
                let (seq, fence) = (row.header.seq, row.header.fence);
                write!(f, "run {} row {seq} fence {fence}:", run.0)?;
                row.events.iter().try_for_each(|event| write!(f, " {}", short(event)))
            }
            Entry::Began(attempt) => {
                let Attempt { process, kind, name, number, fence, token, told, .. } = attempt;
                write!(
                    f,
                    "{kind:?} {name} attempt {number} begins (#{token}, process {process}, "
                )?;
                write!(f, "fence {fence}, key {}, {told:?})", attempt.key)
            }
            Entry::Ended { token, how } => write!(f, "#{token} ends: {how:?}"),
            Entry::Listed(listed) => {
                write!(f, "open matters:")?;
                let items = listed.iter().map(|item| (&item.run_id, item.ord, &item.kind));
                items
                    .into_iter()
                    .try_for_each(|(run, ord, kind)| write!(f, " {kind}({run}, {ord})"))
            }
            Entry::Found { execution, run, found } => {
                write!(f, "e{execution} (run {}) is found: {found:?}", run.0)
            }
        }
    }
}

fn short(event: &Event) -> String {
    let name = event.name();
    match event {
        Event::StepScheduled(e) => format!("{name}({}, {})", e.ord, e.key),
        Event::StepStarted(e) => format!("{name}({}, {})", e.ord, e.attempt),
        Event::StepSucceeded(e) => format!("{name}({}, {})", e.ord, e.attempt),
        Event::StepAttemptFailed(e) => {
            format!("{name}({}, {}, {})", e.ord, e.attempt, e.failure.type_name)
        }
        Event::StepFailed(e) => format!("{name}({}, {})", e.ord, e.failure.type_name),
        Event::StepCancelRequested(e) => format!("{name}({})", e.ord),
        Event::StepAbandoned(e) => format!("{name}({}, {:?})", e.ord, e.why()),
        Event::StepRetryRequested(e) => format!("{name}({})", e.ord),
        Event::TimerStarted(e) => format!("{name}({}, {})", e.ord, e.fire_at_us),
        Event::TimerFired(e) => format!("{name}({})", e.ord),
        Event::TimerCancelled(e) => format!("{name}({})", e.ord),
        Event::WaitStarted(e) => format!("{name}({}, {:?}, {:?})", e.ord, e.types, e.until_us),
        Event::EventReceived(e) => format!("{name}({}, {})", e.inbox, e.event_type),
        Event::WaitSatisfied(e) => format!("{name}({}, {})", e.ord, e.inbox),
        Event::WaitTimedOut(e) => format!("{name}({})", e.ord),
        Event::WaitCancelled(e) => format!("{name}({})", e.ord),
        Event::Shown(e) => format!("{name}({})", e.ord),
        Event::Blocked(e) => {
            format!("{name}({:?}, {:?}, {})", e.what(), e.ord, e.failure.type_name)
        }
        Event::Unblocked(e) => format!("{name}({:?}, {:?})", e.what(), e.ord),
        Event::RollbackStarted(e) => {
            let kinds: Vec<_> = e.causes.iter().map(|cause| cause.kind()).collect();
            format!("{name}({kinds:?}, {:?}, {:?})", e.plan, e.ends_in.kind())
        }
        Event::UndoStarted(e) => format!("{name}({}, {})", e.ord, e.attempt),
        Event::UndoAttemptFailed(e) => {
            format!("{name}({}, {}, {})", e.ord, e.attempt, e.failure.type_name)
        }
        Event::UndoSucceeded(e) => format!("{name}({})", e.ord),
        Event::UndoFailed(e) => format!("{name}({}, {})", e.ord, e.failure.type_name),
        Event::UndoNotNeeded(e) => format!("{name}({})", e.ord),
        Event::UndoRetryRequested(e) => format!("{name}({})", e.ord),
        Event::UndoWaived(e) => format!("{name}({})", e.ord),
        Event::CancelRequested(e) => format!("{name}({:?}, {})", e.verb(), e.inbox),
        Event::VerbRefused(e) => format!("{name}({}, {})", e.verb, e.inbox),
        Event::PauseRequested(e) => format!("{name}({})", e.inbox),
        Event::Resumed(e) => format!("{name}({}, {})", e.shift_us, e.inbox),
        Event::ExecutionKilled(e) => format!("{name}({:?})", e.left),
        Event::ExecutionFailed(e) => format!("{name}({})", e.failure.type_name),
        Event::ExecutionStarted(_)
        | Event::MarkerRecorded(_)
        | Event::ValuePublished(_)
        | Event::AttributesSet(_)
        | Event::RollbackFinished(_)
        | Event::ExecutionSucceeded(_)
        | Event::ExecutionCancelled(_)
        | Event::ExecutionTerminated(_) => name.to_owned(),
    }
}
