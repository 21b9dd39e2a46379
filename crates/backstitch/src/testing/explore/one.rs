//! One world: an execution under a few faults, up to its end, and what the check says of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use backstitch_core::event::BlockKind;
use backstitch_core::run::WaitsFor;
use backstitch_core::status::Status;
use serde_json::Value;

use super::super::kit::{Execution, Rest, TestKit};
use super::super::script::Target;
use super::fault::Fault;
use super::outcome::Outcome;
use crate::error::Error;
use crate::handle::{ExecutionStatus, Handle};
use crate::workflow::Workflow;

/// Times that a person repairs the same execution; after that it is cancelled.
const REPAIRS_MAX: u32 = 20;

/// Times that it may wait for an instant or an event.
const WAITS_MAX: u64 = 400;

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
    /// The keys of the steps that were attempted.
    pub steps: Vec<String>,
    pub writes: u64,
    /// How often it waited for an instant or an event.
    pub waits: u64,
    /// It was stuck, and an attention item said so.
    pub was_stuck: bool,
    pub timeline: String,
}

struct Course<'a, W: Workflow, S> {
    plan: &'a Plan<W, S>,
    faults: &'a [Fault],
    kit: TestKit,
    execution: Execution<W::Output>,
    waits: u64,
    repairs: u32,
    undone: bool,
    cancelled: bool,
    was_stuck: bool,
    /// What the engine itself got wrong.
    complaint: Option<String>,
}

impl<W: Workflow, S> Plan<W, S> {
    /// Runs one world.
    ///
    /// # Errors
    /// The kit cannot do what it is asked to: a workflow without an end, for example.
    pub fn run(&self, faults: &[Fault]) -> Result<Seen, Error> {
        let world = (self.world)();
        let kit = TestKit::new().register(self.workflow.clone()).skip_time();
        let mut kit = (self.kit)(kit, &world);
        faults.iter().for_each(|fault| fault.put_into(&mut kit));
        let input = serde_json::from_value(self.input.clone()).expect("it was encoded from one");
        let execution = match kit.start(self.workflow.clone(), ID, input) {
            Ok(execution) => execution,
            Err(error) => {
                kit.forgive();
                return Err(error);
            }
        };
        let mut course = Course {
            plan: self,
            faults,
            kit,
            execution,
            waits: 0,
            repairs: 0,
            undone: false,
            cancelled: false,
            was_stuck: false,
            complaint: None,
        };
        let ended = course.run();
        let seen = ended.and_then(|()| course.look(&world));
        course.kit.forgive();
        seen
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
                (_, Rest::Works) => return Err(self.kit.endless(&self.execution, &status)),
            }
        }
    }

    /// It waits: for something that comes, for an instant, or for what never comes.
    fn wait(&mut self, status: &ExecutionStatus) -> Result<(), Error> {
        self.waits += 1;
        if self.waits > WAITS_MAX {
            return Err(self.kit.endless(&self.execution, status));
        }
        if self.faults.contains(&Fault::CancelledAt(self.waits)) {
            return self.cancel();
        }
        let awaited = status.waits_for.iter().find_map(|waits| match waits {
            WaitsFor::Event { types, ord, .. } => {
                let event = self.plan.events.iter().find(|(event, _)| types.contains(event))?;
                Some((*ord, event.clone()))
            }
            _ => None,
        });
        if let Some((ord, (event, payload))) = awaited {
            let id = format!("explored-{ord}");
            let send = |handle: &Handle<W::Output>| handle.send_event(&event, &payload).id(&id);
            return self.kit.ask(&self.execution, send).map(drop);
        }
        if self.kit.skip()? {
            return Ok(());
        }
        // Nobody sends what it waits for.
        self.cancel()
    }

    fn cancel(&mut self) -> Result<(), Error> {
        if self.cancelled {
            let status = self.kit.status(&self.execution)?;
            return Err(self.kit.endless(&self.execution, &status));
        }
        self.cancelled = true;
        self.ask(|handle| handle.cancel())
    }

    /// A person repairs what is behind a block, and has the step tried again.
    fn repair(&mut self, status: &ExecutionStatus) -> Result<(), Error> {
        self.repairs += 1;
        for (what, step, failure) in &status.blocks {
            match (what, step) {
                (BlockKind::Step, Some(step)) if self.repairs <= REPAIRS_MAX => {
                    let step = step.clone();
                    self.ask(move |handle| handle.retry_step(step.clone()))?;
                }
                (BlockKind::Step, _) => return self.cancel(),
                // The code goes another way each time, or awaits what the engine does not know.
                (BlockKind::Mismatch | BlockKind::ForeignWait | BlockKind::Unreadable, _) => {
                    let what = format!("the execution is blocked: {failure}");
                    self.complaint.get_or_insert(what);
                    return self.cancel();
                }
            }
        }
        Ok(())
    }

    /// A person has each undo tried again that failed.
    fn settle_debts(&mut self, status: &ExecutionStatus) -> Result<(), Error> {
        self.was_stuck = true;
        self.repairs += 1;
        let items = self.kit.attention()?;
        let failed = status.run.rollback.iter().flat_map(|rollback| rollback.failed.iter());
        for ord in failed.copied().collect::<Vec<_>>() {
            if !items.iter().any(|item| item.ord == ord) {
                let what = format!("the undo of step {ord} failed and no attention item says so");
                self.complaint.get_or_insert(what);
            }
            if self.repairs > REPAIRS_MAX {
                self.ask(move |handle| handle.waive_undo(ord))?;
            } else {
                self.ask(move |handle| handle.retry_undo(ord))?;
            }
        }
        Ok(())
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
        let check = AssertUnwindSafe(|| (self.plan.check)(world, &outcome));
        let checked = catch_unwind(check).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(text.unwrap_or_else(|| "the check panicked".to_owned()))
        });
        Ok(Seen {
            complaint: self.complaint.take().or(checked.err()),
            unfired: self.kit.verify().err().map(|error| error.to_string()).into_iter().collect(),
            steps: self.kit.script().seen(Target::Step),
            writes: self.kit.writes(),
            waits: self.waits,
            was_stuck: self.was_stuck,
            timeline: self.kit.timeline(&self.execution)?,
            outcome,
        })
    }
}
