//! The events of the way back, and of the end.

use std::collections::BTreeSet;

use crate::attention::{AttentionItem, AttentionKind};
use crate::event::{
    CauseKind, EndKind, ExecutionKilled, RollbackFinished, RollbackStarted, UndoAttemptFailed,
    UndoFailed, UndoNotNeeded, UndoRetryRequested, UndoStarted, UndoSucceeded, UndoWaived,
};
use crate::id::Ordinal;
use crate::rollback::Rollback;
use crate::run::apply::Applied;
use crate::run::{Ending, Phase, Run};
use crate::undo::UndoPhase;

impl Run {
    fn rollback_mut(&mut self) -> Result<&mut Rollback, String> {
        self.rollback.as_mut().ok_or_else(|| "there is no rollback".to_owned())
    }

    pub(super) fn undo_started(&mut self, event: &UndoStarted) -> Applied {
        self.undo_may_start()?;
        self.step_mut(event.ord)?.undo.started(event)?;
        let rollback = self.rollback_mut()?;
        if rollback.current.is_some_and(|current| current != event.ord) {
            return Err("another undo is under way".into());
        }
        rollback.due.remove(&event.ord);
        rollback.current = Some(event.ord);
        Ok(())
    }

    pub(super) fn undo_attempt_failed(&mut self, event: &UndoAttemptFailed) -> Applied {
        self.rolling_back()?;
        self.step_mut(event.ord)?.undo.attempt_failed(event)?;
        self.attempt_has_failed(&event.failure);
        if event.retry_at_us.is_none() {
            let rollback = self.rollback_mut()?;
            rollback.current = None;
            rollback.due.insert(event.ord);
        }
        Ok(())
    }

    pub(super) fn undo_succeeded(&mut self, event: &UndoSucceeded) -> Applied {
        self.rolling_back()?;
        self.step_mut(event.ord)?.undo.succeeded(event)?;
        self.lost_streak = 0;
        let rollback = self.rollback_mut()?;
        rollback.current = None;
        rollback.done += 1;
        Ok(())
    }

    pub(super) fn undo_not_needed(&mut self, event: &UndoNotNeeded) -> Applied {
        self.rolling_back()?;
        self.step_mut(event.ord)?.undo.not_needed()?;
        let rollback = self.rollback_mut()?;
        rollback.due.remove(&event.ord);
        rollback.done += 1;
        Ok(())
    }

    pub(super) fn undo_retry_requested(&mut self, event: &UndoRetryRequested) -> Applied {
        self.copied(event.inbox)?;
        self.rolling_back()?;
        self.step_mut(event.ord)?.undo.retry_requested()?;
        self.settle_failed_undo(event.ord)?;
        self.rollback_mut()?.due.insert(event.ord);
        Ok(())
    }

    pub(super) fn rollback_started(&mut self, event: &RollbackStarted) -> Applied {
        match &self.phase {
            Phase::Forward => {}
            Phase::Closed(Ending::Succeeded(_)) if is_requested(event) => {}
            Phase::RollingBack => return Err("the run is rolling back".into()),
            Phase::Closed(_) => return Err("the run is closed".into()),
        }
        let no = self.rollback.as_ref().map_or(0, |rollback| rollback.no);
        if no.checked_add(1) != Some(event.no) {
            return Err(format!("rollback {} follows rollback {no}", event.no));
        }
        if event.ends_in.kind() == EndKind::Failed && event.ends_in.failure.is_none() {
            return Err("it is to end as failed, with no failure".into());
        }
        let mut newer = Ordinal::MAX;
        for ord in &event.plan {
            if *ord >= newer {
                return Err(format!("the plan has {ord} after {newer}"));
            }
            newer = *ord;
            self.step_mut(*ord)?.undo.planned()?;
        }
        self.leaves_nothing_out(event)?;
        // The decision ends an earlier pause and all blocks (R10).
        self.pause = None;
        self.blocks.clear();
        self.close_attention(is_about_a_block);
        self.due.clear();
        self.waits.clear();
        self.unshown.clear();
        self.phase = Phase::RollingBack;
        self.rollback = Some(Rollback::started(event));
        Ok(())
    }

    /// What is owed is in the plan (P6): nothing else would ever undo it.
    fn leaves_nothing_out(&self, event: &RollbackStarted) -> Applied {
        let owed = match event.ends_in.kind() {
            EndKind::Succeeded => self.dropped_and_owed(),
            EndKind::Failed | EndKind::Cancelled | EndKind::Terminated => self.plan(),
        };
        let planned: BTreeSet<&Ordinal> = event.plan.iter().collect();
        match owed.iter().find(|ord| !planned.contains(ord)) {
            Some(ord) => Err(format!("the plan leaves out step {ord}, which is owed")),
            None => Ok(()),
        }
    }

    fn undo_may_start(&self) -> Applied {
        self.rolling_back()?;
        match self.in_flight.first() {
            None => Ok(()),
            Some(ord) => Err(format!("step {ord} is still in flight")),
        }
    }

    pub(super) fn undo_failed(&mut self, event: &UndoFailed) -> Applied {
        self.rolling_back()?;
        let step = self.step_mut(event.ord)?;
        step.undo.failed(event)?;
        let message = format!("the undo of step {} failed: {}", step.key, event.failure);
        let rollback = self.rollback_mut()?;
        rollback.due.remove(&event.ord);
        rollback.current.take_if(|current| *current == event.ord);
        rollback.failed.insert(event.ord);
        if event.holds {
            rollback.holding.insert(event.ord);
        }
        self.open_attention(event.ord, AttentionKind::UndoFailed, message);
        Ok(())
    }

    fn settle_failed_undo(&mut self, ord: Ordinal) -> Applied {
        let rollback = self.rollback_mut()?;
        rollback.failed.remove(&ord);
        rollback.holding.remove(&ord);
        self.close_attention(|item| item.kind == AttentionKind::UndoFailed && item.ord == ord);
        Ok(())
    }

    /// Takes one debt, or one open matter of the step, off the run.
    pub(super) fn undo_waived(&mut self, event: &UndoWaived) -> Applied {
        self.copied(event.inbox)?;
        let ord = event.ord;
        let left = self.is_left_by_kill(ord);
        let step = self.step_mut(ord)?;
        let waivable = step.undo.may_be_waived() || left;
        if waivable {
            step.undo.phase = UndoPhase::Waived;
            if let Some(rollback) = &mut self.rollback {
                rollback.due.remove(&ord);
                rollback.current.take_if(|current| *current == ord);
                rollback.waived += 1;
                self.settle_failed_undo(ord)?;
            }
        }
        let before = self.attention.len();
        self.close_attention(|item| item.kind == AttentionKind::DidNotYield && item.ord == ord);
        if self.debts_of_kill().is_empty() {
            self.close_attention(|item| item.kind == AttentionKind::Killed);
        }
        if waivable || before != self.attention.len() {
            return Ok(());
        }
        Err("the undo of the step neither failed nor waits, and no open matter is about it".into())
    }

    /// The steps whose undo was left by a kill and not waived since.
    pub fn debts_of_kill(&self) -> Vec<Ordinal> {
        let Phase::Closed(Ending::Killed { left, .. }) = &self.phase else { return Vec::new() };
        let owed = |ord: &&Ordinal| {
            self.step(**ord).is_some_and(|step| step.undo.phase != UndoPhase::Waived)
        };
        left.iter().filter(owed).copied().collect()
    }

    /// Whether a kill left the undo of this step, and nobody has waived it.
    pub fn is_left_by_kill(&self, ord: Ordinal) -> bool {
        self.debts_of_kill().contains(&ord)
    }

    pub(super) fn rollback_finished(&mut self, event: &RollbackFinished) -> Applied {
        self.undo_may_start()?;
        let rollback = self.rollback_mut()?;
        if rollback.no != event.no {
            return Err(format!("rollback {} ends in rollback {}", event.no, rollback.no));
        }
        if !rollback.is_paid() {
            return Err("undos are still owed".into());
        }
        rollback.outcome = Some(event.outcome());
        Ok(())
    }

    pub(super) fn close(&mut self, ending: Ending) -> Applied {
        self.open()?;
        if let Some(ord) = self.in_flight.first() {
            return Err(format!("step {ord} is still in flight"));
        }
        if let (Phase::RollingBack, Some(rollback)) = (&self.phase, &self.rollback) {
            if rollback.outcome.is_none() {
                return Err("the rollback is not finished".into());
            }
            if end_kind(&ending) != Some(rollback.ends_in.kind()) {
                return Err(format!("it was decided to end as {:?}", rollback.ends_in.kind()));
            }
        }
        let owed = match &ending {
            Ending::Succeeded(_) => self.dropped_and_owed(),
            Ending::Failed(_) | Ending::Cancelled | Ending::Terminated | Ending::Killed { .. } => {
                self.plan()
            }
        };
        if let Some(ord) = owed.first() {
            return Err(format!("the undo of step {ord} is owed"));
        }
        let by_request = matches!(ending, Ending::Cancelled | Ending::Terminated);
        if by_request && matches!(self.phase, Phase::Forward) && self.cancel.is_none() {
            return Err("nobody has asked for that".into());
        }
        self.end(ending);
        Ok(())
    }

    pub(super) fn killed(&mut self, event: &ExecutionKilled) -> Applied {
        self.open()?;
        self.copied(event.inbox)?;
        if !event.left.is_empty() {
            let name = |ord: &Ordinal| match self.step(*ord) {
                Some(step) => step.key.to_string(),
                None => ord.to_string(),
            };
            let left: Vec<String> = event.left.iter().map(name).collect();
            let reason = match event.reason.as_str() {
                "" => String::new(),
                reason => format!(" ({reason})"),
            };
            let message =
                format!("killed by {}{reason} with undos left: {}", event.by, left.join(", "));
            self.open_attention(0, AttentionKind::Killed, message);
        }
        self.in_flight.clear();
        self.end(Ending::Killed {
            by: event.by.clone(),
            reason: event.reason.clone(),
            left: event.left.clone(),
        });
        Ok(())
    }

    fn end(&mut self, ending: Ending) {
        self.pause = None;
        self.blocks.clear();
        self.due.clear();
        self.waits.clear();
        self.unshown.clear();
        self.close_attention(is_about_a_block);
        if let Ending::Succeeded(output) = &ending {
            self.output = Some(output.clone());
        }
        self.phase = Phase::Closed(ending);
    }
}

/// Whether a person asked for it.
fn is_requested(event: &RollbackStarted) -> bool {
    event.causes.first().is_some_and(|cause| cause.kind() == CauseKind::Requested)
}

fn end_kind(ending: &Ending) -> Option<EndKind> {
    match ending {
        Ending::Succeeded(_) => Some(EndKind::Succeeded),
        Ending::Failed(_) => Some(EndKind::Failed),
        Ending::Cancelled => Some(EndKind::Cancelled),
        Ending::Terminated => Some(EndKind::Terminated),
        Ending::Killed { .. } => None,
    }
}

fn is_about_a_block(item: &AttentionItem) -> bool {
    match item.kind {
        AttentionKind::StepBlocked
        | AttentionKind::Mismatch
        | AttentionKind::ForeignWait
        | AttentionKind::Unreadable => true,
        AttentionKind::UndoFailed | AttentionKind::DidNotYield | AttentionKind::Killed => false,
    }
}
