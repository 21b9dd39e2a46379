//! The person of a world, who repairs what is blocked or stuck.

use std::collections::BTreeMap;

use backstitch_core::event::BlockKind;
use backstitch_core::id::Ordinal;

use super::super::super::kit::MOVES_MAX;
use super::Course;
use crate::error::Error;
use crate::handle::ExecutionStatus;
use crate::step_ref::StepRef;
use crate::workflow::Workflow;

/// Times that a person has the same step, or undo, tried again. What happens by a fault is over after
/// the first time; what is still there after this one stays.
const TRIES_BY_HAND_MAX: u32 = 3;

/// What the person has done.
#[derive(Default)]
pub(super) struct Person {
    /// By key, and by the step that is undone.
    steps: BTreeMap<String, u32>,
    undos: BTreeMap<Ordinal, u32>,
    repairs: u64,
    pub was_stuck: bool,
    pub misfit: Option<String>,
    pub gave_up: Option<String>,
    pub owed: Vec<String>,
}

impl Person {
    /// The first reason counts.
    pub fn gives_up(&mut self, why: String) {
        self.gave_up.get_or_insert(why);
    }
}

impl<W: Workflow, S> Course<'_, W, S> {
    /// A person repairs what is behind a block, and has the step tried again.
    pub(super) fn repair(&mut self, status: &ExecutionStatus) -> Result<(), Error> {
        self.person.repairs += 1;
        if self.person.repairs > MOVES_MAX {
            return Err(self.kit.endless(&self.execution, status));
        }
        for (what_is_blocked, step, failure) in &status.blocks {
            match (what_is_blocked, step) {
                (BlockKind::Step, Some(step)) => {
                    let key = match step {
                        StepRef::Key(key) => key.clone(),
                        StepRef::Ordinal(ord) => ord.to_string(),
                    };
                    let tries = self.person.steps.entry(key).or_default();
                    *tries += 1;
                    if *tries > TRIES_BY_HAND_MAX {
                        self.person.gives_up(format!(
                            "step {step} is blocked, also after it was tried again \
                             {TRIES_BY_HAND_MAX} times by hand: {failure}"
                        ));
                        return self.cancel();
                    }
                    let step = step.clone();
                    self.ask(move |handle| handle.retry_step(step.clone()))?;
                }
                (BlockKind::Step, None) => return self.cancel(),
                // The code goes another way each time, or awaits what the engine does not know.
                (BlockKind::Mismatch | BlockKind::ForeignWait | BlockKind::Unreadable, _) => {
                    let mut what = format!("the execution is blocked: {failure}");
                    if *what_is_blocked == BlockKind::Mismatch {
                        self.person.misfit.get_or_insert(what.clone());
                        what = format!("the code is not deterministic: {what}");
                    }
                    self.complaint.get_or_insert(what);
                    return self.cancel();
                }
            }
        }
        Ok(())
    }

    /// A person has each undo tried again that failed.
    pub(super) fn settle_debts(&mut self, status: &ExecutionStatus) -> Result<(), Error> {
        self.person.was_stuck = true;
        let items = self.kit.attention()?;
        let failed = status.run.rollback.iter().flat_map(|rollback| rollback.failed.iter());
        for ord in failed.copied().collect::<Vec<_>>() {
            if !items.iter().any(|item| item.ord == ord) {
                let what = format!("the undo of step {ord} failed and no attention item says so");
                self.complaint.get_or_insert(what);
            }
            let tries = self.person.undos.entry(ord).or_default();
            *tries += 1;
            if *tries <= TRIES_BY_HAND_MAX {
                self.ask(move |handle| handle.retry_undo(ord))?;
                continue;
            }
            let step = status.run.step(ord);
            let name = step.map_or(ord.to_string(), |step| step.key.to_string());
            let failure = step.and_then(|step| step.undo.failure.as_ref());
            let failure = failure.map(ToString::to_string).unwrap_or_default();
            self.person.owed.push(format!(
                "the undo of step {name:?} fails, also after it was tried again \
                 {TRIES_BY_HAND_MAX} times by hand, and was waived: {failure}"
            ));
            self.ask(move |handle| handle.waive_undo(ord))?;
        }
        Ok(())
    }
}
