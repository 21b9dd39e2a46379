//! One world: an execution under a few faults, up to its end, and what the check says of it.

mod person;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use backstitch_core::id::Ordinal;
use backstitch_core::row::Row;
use backstitch_core::run::WaitsFor;
use backstitch_core::status::Status;
use serde_json::Value;

use self::person::Person;
use super::super::kit::{Execution, MOVES_MAX, Rest, TestKit, awaited, panic_text, waits_in_words};
use super::super::script::{Known, Target};
use super::asked::{Asked, asked, before_cancel, place};
use super::fault::{Fault, Place};
use super::outcome::Outcome;
use crate::error::Error;
use crate::handle::{ExecutionStatus, Handle};
use crate::workflow::Workflow;

/// Under which id the execution is started.
const ID: &str = "explored";

/// Makes the kit of a world ready.
type Setup<S> = Arc<dyn Fn(TestKit, &S) -> TestKit>;

/// Looks at a world when all is over.
type Check<S> = Arc<dyn Fn(&S, &Outcome) -> Result<(), String>>;

/// What an exploration is told.
pub(super) struct Plan<W: Workflow, S> {
    pub workflow: W,
    /// Encoded, because it is needed more than once.
    pub input: Value,
    pub world: Arc<dyn Fn() -> S>,
    pub kit: Setup<S>,
    pub events: Vec<(String, Value)>,
    pub check: Check<S>,
}

/// What was seen in one world.
pub(super) struct Seen {
    pub outcome: Outcome,
    /// Why the check does not hold.
    pub complaint: Option<String>,
    /// Those of its faults that never took effect.
    pub unfired: Vec<String>,
    /// The steps that were attempted, and the steps whose undos were.
    pub steps: Vec<Known>,
    pub undos: Vec<Known>,
    pub writes: u64,
    /// How often it waited for an instant or an event.
    pub waits: u64,
    /// Its waits for events that could be answered.
    pub answers: Vec<Answer>,
    /// It was stuck, and an attention item said so.
    pub was_stuck: bool,
    /// Why nobody could bring it to the end that the workflow gives it, so that it was cancelled.
    pub gave_up: Option<String>,
    /// Undos that nobody could bring about, each with its last failure, in words.
    pub owed: Vec<String>,
    /// How the code does not fit its journal.
    pub misfit: Option<String>,
    /// What the code asked for, and how much of it before anything went wrong.
    pub asked: Vec<Asked>,
    pub asked_before: usize,
    /// The types of the events that it was sent when it waited for them.
    pub taken: BTreeSet<String>,
    /// The types of the events that it waited for.
    pub awaited: BTreeSet<String>,
}

/// A wait for an event that could be answered.
#[derive(Clone)]
pub(super) struct Answer {
    ord: Ordinal,
    /// Which of the events it takes.
    pub choice: Vec<usize>,
    pub given: usize,
    /// It has a deadline.
    pub ends: bool,
}

/// Whether the process dies when nobody would notice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replays {
    Never,
    AtEachWait,
}

struct Course<'a, W: Workflow, S> {
    plan: &'a Plan<W, S>,
    faults: &'a [Fault],
    replays: Replays,
    kit: TestKit,
    execution: Execution<W::Output>,
    waits: u64,
    hangs: u64,
    answers: Vec<Answer>,
    /// How many events of each type were sent.
    sent: BTreeMap<String, usize>,
    awaited: BTreeSet<String>,
    person: Person,
    undone: bool,
    cancelled: bool,
    /// What the engine itself got wrong.
    complaint: Option<String>,
}

impl<W: Workflow, S> Plan<W, S> {
    /// Runs one world.
    ///
    /// # Errors
    /// It cannot be begun, or does not come to its end.
    pub fn run(&self, faults: &[Fault]) -> Result<Seen, Error> {
        self.run_and(faults, Replays::Never, |_| {})
    }

    /// Runs the world in which nothing goes wrong but that the process dies whenever the execution
    /// waits: the code is run again from the journal, and nobody else notices.
    ///
    /// # Errors
    /// As [`Plan::run`].
    pub fn run_replayed(&self) -> Result<Seen, Error> {
        self.run_and(&[], Replays::AtEachWait, |_| {})
    }

    /// Runs one world, and hands over its timeline, also if it does not come to its end.
    ///
    /// # Errors
    /// As [`Plan::run`].
    pub fn run_and_draw(&self, faults: &[Fault]) -> (Result<Seen, Error>, String) {
        let mut timeline = String::new();
        let seen = self.run_and(faults, Replays::Never, |course| {
            timeline = course.kit.timeline(&course.execution).unwrap_or_default();
        });
        (seen, timeline)
    }

    fn run_and(
        &self,
        faults: &[Fault],
        replays: Replays,
        then: impl FnOnce(&mut Course<'_, W, S>),
    ) -> Result<Seen, Error> {
        let world = (self.world)();
        let kit = TestKit::new().register(self.workflow.clone()).skip_time();
        let mut kit = (self.kit)(kit, &world);
        faults.iter().for_each(|fault| fault.put_into(&mut kit));
        let input = serde_json::from_value(self.input.clone()).expect("it was encoded from one");
        let started = kit.start(self.workflow.clone(), ID, input);
        let mut course = Course {
            plan: self,
            faults,
            replays,
            execution: kit.execution(ID),
            kit,
            waits: 0,
            hangs: 0,
            answers: Vec::new(),
            sent: BTreeMap::new(),
            awaited: BTreeSet::new(),
            person: Person::default(),
            undone: false,
            cancelled: false,
            complaint: None,
        };
        let ended = started.and_then(|_| course.run());
        let seen = ended.and_then(|()| course.look(&world));
        then(&mut course);
        course.kit.forgive();
        seen
    }

    /// What the check says of a world in which nothing was done, if it is told this outcome.
    pub fn of_nothing(&self, outcome: &Outcome) -> Option<String> {
        self.complaint(&(self.world)(), outcome)
    }

    fn complaint(&self, world: &S, outcome: &Outcome) -> Option<String> {
        let check = AssertUnwindSafe(|| (self.check)(world, outcome));
        catch_unwind(check).unwrap_or_else(|panic| Err(panic_text(&*panic))).err()
    }
}

impl<W: Workflow, S> Course<'_, W, S> {
    /// Up to the end, with a person at hand who repairs what is blocked or stuck.
    fn run(&mut self) -> Result<(), Error> {
        loop {
            let (status, rest) = self.kit.rest(&self.execution)?;
            if status.status.is_closed() {
                let undo = self.faults.iter().any(Fault::undoes) && !self.undone;
                if !undo || status.status != Status::Succeeded {
                    return self.kit.land_late();
                }
                self.undone = true;
                self.ask(|handle| handle.rollback())?;
                continue;
            }
            match (status.status, rest) {
                (_, Rest::Held) => {
                    self.cancel()?;
                    self.kit.script().release();
                    self.kit.settle()?;
                }
                (Status::Stuck, _) => self.settle_debts(&status)?,
                (Status::Blocked, _) => self.repair(&status)?,
                (_, Rest::Waits) => self.wait(&status)?,
                (_, Rest::Works) => self.skip_over_work(&status)?,
            }
        }
    }

    /// Code of the user hangs: its timeout ends it.
    fn skip_over_work(&mut self, status: &ExecutionStatus) -> Result<(), Error> {
        self.hangs += 1;
        if self.hangs > MOVES_MAX || !self.kit.skip_over_work()? {
            return Err(self.kit.hangs(&self.execution, status));
        }
        Ok(())
    }

    /// It waits: for something that comes, for an instant, or for what never comes.
    fn wait(&mut self, status: &ExecutionStatus) -> Result<(), Error> {
        self.waits += 1;
        self.awaited.extend(awaited(status));
        if self.waits > MOVES_MAX {
            return Err(self.kit.endless(&self.execution, status));
        }
        if self.replays == Replays::AtEachWait {
            self.kit.kill()?;
            if self.kit.status(&self.execution)?.status == Status::Blocked {
                return Ok(());
            }
        }
        if self.faults.contains(&Fault::CancelledAt(self.waits)) {
            return self.cancel();
        }
        if let Some((ord, given)) = self.answer(status) {
            let (event, payload) = &self.plan.events[given];
            *self.sent.entry(event.clone()).or_default() += 1;
            let id = format!("explored-{ord}");
            let send = |handle: &Handle<W::Output>| handle.send_event(event, payload).id(&id);
            return self.kit.ask(&self.execution, send).map(drop);
        }
        if self.kit.skip()? {
            return Ok(());
        }
        let waits = waits_in_words(status).join(", ");
        self.person.gives_up(format!("nobody answered what it waits for: {waits}"));
        self.cancel()
    }

    /// The event that a wait gets: of its type the first that was not sent yet, or the last.
    fn answer(&mut self, status: &ExecutionStatus) -> Option<(Ordinal, usize)> {
        for waits in &status.waits_for {
            let WaitsFor::Event { types, ord, until_us } = waits else { continue };
            let events = self.plan.events.iter().enumerate();
            let choice: Vec<usize> =
                events.filter(|(_, (event, _))| types.contains(event)).map(|(n, _)| n).collect();
            let Some(first) = choice.first() else { continue };
            let nth = match self.answers.iter().position(|answer| answer.ord == *ord) {
                Some(before) => before + 1,
                None => {
                    let (event, _) = &self.plan.events[*first];
                    let sent = self.sent.get(event).copied().unwrap_or(0);
                    let mut same = choice.iter().filter(|n| self.plan.events[**n].0 == *event);
                    let given = same.clone().nth(sent).or(same.next_back()).unwrap_or(first);
                    let (given, ends) = (*given, until_us.is_some());
                    self.answers.push(Answer { ord: *ord, choice, given, ends });
                    self.answers.len()
                }
            };
            let other = self.faults.iter().find_map(|fault| match fault {
                Fault::Answered(n, event, _) if *n == nth => Some(Some(*event)),
                Fault::Unanswered(n) if *n == nth => Some(None),
                _ => None,
            });
            let given = match other {
                None => self.answers[nth - 1].given,
                Some(Some(event)) => event,
                Some(None) => continue,
            };
            return Some((*ord, given));
        }
        None
    }

    fn cancel(&mut self) -> Result<(), Error> {
        if self.cancelled {
            let status = self.kit.status(&self.execution)?;
            return Err(self.kit.endless(&self.execution, &status));
        }
        self.cancelled = true;
        self.ask(|handle| handle.cancel())
    }

    fn ask(
        &mut self,
        request: impl Fn(&Handle<W::Output>) -> crate::verb::VerbRequest,
    ) -> Result<(), Error> {
        let asked = self.kit.ask(&self.execution, |handle| {
            request(handle).by("a person").reason("the exploration")
        });
        match asked {
            // It was over a moment earlier, or the process died after it had heard.
            Err(error) if error.kind() == crate::ErrorKind::Refused => self.kit.settle(),
            asked => asked.map(drop),
        }
    }

    fn look(&mut self, world: &S) -> Result<Seen, Error> {
        let status = self.kit.status(&self.execution)?;
        let outcome = Outcome::new(&status, self.kit.attention()?);
        let complaint = self.plan.complaint(world, &outcome);
        let rows = self.kit.journal(&self.execution)?;
        let asked = asked(&rows);
        Ok(Seen {
            asked_before: self.asked_before(&asked, &rows),
            asked,
            complaint: self.complaint.take().or(complaint),
            unfired: self.unfired(),
            steps: self.kit.script().known(Target::Step),
            undos: self.kit.script().known(Target::Undo),
            writes: self.kit.writes(),
            waits: self.waits,
            answers: std::mem::take(&mut self.answers),
            was_stuck: self.person.was_stuck,
            gave_up: self.person.gave_up.take(),
            misfit: self.person.misfit.take(),
            owed: std::mem::take(&mut self.person.owed),
            taken: std::mem::take(&mut self.sent).into_keys().collect(),
            awaited: std::mem::take(&mut self.awaited),
            outcome,
        })
    }

    /// How much the code asked for before the first fault took effect.
    fn asked_before(&self, asked: &[Asked], rows: &[Row]) -> usize {
        let all = asked.len();
        match self.faults.first() {
            None => all,
            // The engine itself sees what does not fit the journal.
            Some(Fault::Dies(..)) => 0,
            Some(Fault::CancelledAt(_)) => before_cancel(rows),
            Some(Fault::Answered(n, ..) | Fault::Unanswered(n)) => {
                self.answers.get(n - 1).map_or(all, |answer| answer.ord as usize)
            }
            Some(fault) if fault.undoes() => all,
            Some(fault) => match fault.place() {
                Place::Cell(step, _) => place(asked, step).unwrap_or(all),
                Place::Whole(_) => 0,
            },
        }
    }

    /// What never took effect, in words.
    fn unfired(&mut self) -> Vec<String> {
        let kit = self.kit.verify().err().map(|error| error.to_string());
        let of_course = self.faults.iter().filter(|fault| match fault {
            Fault::CancelledAt(n) => self.waits < *n,
            Fault::Answered(n, ..) | Fault::Unanswered(n) => self.answers.len() < *n,
            Fault::Undone => !self.undone,
            _ => false,
        });
        kit.into_iter().chain(of_course.map(|fault| format!("{fault} never came"))).collect()
    }
}
