//! One event at a time. Every legal transition is spelled out in [`Run::apply`].

use crate::attention::AttentionKind;
use crate::event::{
    AbandonWhy, BlockKind, Blocked, CancelRequested, CancelVerb, Event, ExecutionKilled, Resumed,
    RollbackCause, RollbackFinished, RollbackStarted, StepAbandoned, StepScheduled, TimerStarted,
    UndoFailed, UndoWaived,
};
use crate::failure::Origin;
use crate::id::Ordinal;
use crate::rollback::Rollback;
use crate::row::RowKind;
use crate::run::{Ask, Block, Ending, IllegalEvent, Pause, Phase, Run};
use crate::step::{Step, StepPhase};
use crate::timer::{Timer, TimerPhase};
use crate::undo::UndoPhase;

type Applied = Result<(), String>;

impl Run {
    /// Folds one event of the row that is open.
    ///
    /// # Errors
    /// When the event does not follow from those before it. The run is then no longer to be used.
    pub fn apply(&mut self, event: &Event) -> Result<(), IllegalEvent> {
        let applied = match event {
            Event::ExecutionStarted(_) => Err("the run has begun already".into()),
            Event::ExecutionSucceeded(e) => self.close(Ending::Succeeded(e.output.clone())),
            Event::ExecutionFailed(e) => self.close(Ending::Failed(e.failure.clone())),
            Event::ExecutionCancelled(_) => self.close(Ending::Cancelled),
            Event::ExecutionTerminated(_) => self.close(Ending::Terminated),
            Event::ExecutionKilled(e) => self.killed(e),

            Event::StepScheduled(e) => self.step_scheduled(e),
            Event::StepStarted(e) => self.forward().and_then(|()| {
                let at_us = self.at_us;
                self.leave_due(e.ord);
                self.step_mut(e.ord)?.started(e, at_us)?;
                self.in_flight.insert(e.ord);
                Ok(())
            }),
            Event::StepSucceeded(e) => {
                self.step_mut(e.ord).and_then(|step| step.succeeded(e)).map(|()| {
                    self.lost_streak = 0;
                    self.recorded(e.ord);
                })
            }
            Event::StepAttemptFailed(e) => {
                let lost = e.failure.origin() == Origin::Lost;
                self.step_mut(e.ord).and_then(|step| step.attempt_failed(e)).map(|()| {
                    self.lost_streak = if lost { self.lost_streak.saturating_add(1) } else { 0 };
                    self.in_flight.remove(&e.ord);
                    if let Some(at_us) = e.retry_at_us {
                        self.due.insert((at_us, e.ord));
                    }
                })
            }
            Event::StepFailed(e) => {
                self.step_mut(e.ord).and_then(|step| step.failed(e)).map(|()| {
                    self.leave_due(e.ord);
                    self.recorded(e.ord);
                })
            }
            Event::StepCancelRequested(e) => self.forward().and_then(|()| {
                self.leave_due(e.ord);
                self.step_mut(e.ord)?.dropped = true;
                self.unblock_step(e.ord);
                Ok(())
            }),
            Event::StepAbandoned(e) => self.step_abandoned(e),
            Event::StepRetryRequested(e) => self.forward().and_then(|()| {
                self.copied(e.inbox)?;
                let at_us = self.at_us;
                self.step_mut(e.ord)?.retry_requested(at_us)?;
                self.due.insert((at_us, e.ord));
                self.unblock_step(e.ord);
                Ok(())
            }),

            Event::TimerStarted(e) => self.timer_started(e),
            Event::TimerFired(e) => self.forward().and_then(|()| {
                self.leave_due(e.ord);
                self.timer_mut(e.ord)?.fired()?;
                self.recorded(e.ord);
                Ok(())
            }),
            Event::TimerCancelled(e) => self.forward().and_then(|()| {
                self.leave_due(e.ord);
                self.timer_mut(e.ord)?.cancelled()
            }),

            Event::Shown(e) => self.shown(e.ord),
            Event::CancelRequested(e) => self.cancel_requested(e),
            Event::PauseRequested(e) => self.copied(e.inbox).and_then(|()| self.open()).map(|()| {
                self.pause = Some(Pause {
                    by: e.by.clone(),
                    reason: e.reason.clone(),
                    since_us: self.at_us,
                });
            }),
            Event::Resumed(e) => self.resumed(e),
            Event::Blocked(e) => self.blocked(e),
            Event::Unblocked(e) => {
                let (what, ord) = (e.what(), e.ord);
                let before = self.blocks.len();
                self.blocks.retain(|block| (block.what, block.ord) != (what, ord));
                let kind = block_attention(what);
                self.close_attention(|item| item.kind == kind && item.ord == ord.unwrap_or(0));
                if before == self.blocks.len() {
                    Err("there is no such block".into())
                } else {
                    Ok(())
                }
            }
            Event::VerbRefused(e) => self.copied(e.inbox),

            Event::RollbackStarted(e) => self.rollback_started(e),
            Event::UndoStarted(e) => self.undo_may_start().and_then(|()| {
                self.step_mut(e.ord)?.undo.started(e)?;
                let rollback = self.rollback_mut()?;
                rollback.due.remove(&e.ord);
                rollback.current = Some(e.ord);
                Ok(())
            }),
            Event::UndoAttemptFailed(e) => {
                self.step_mut(e.ord).and_then(|step| step.undo.attempt_failed(e)).and_then(|()| {
                    if e.retry_at_us.is_none() {
                        let rollback = self.rollback_mut()?;
                        rollback.current = None;
                        rollback.due.insert(e.ord);
                    }
                    Ok(())
                })
            }
            Event::UndoSucceeded(e) => {
                self.step_mut(e.ord).and_then(|step| step.undo.succeeded(e)).and_then(|()| {
                    let rollback = self.rollback_mut()?;
                    rollback.current = None;
                    rollback.done += 1;
                    Ok(())
                })
            }
            Event::UndoFailed(e) => self.undo_failed(e),
            Event::UndoNotNeeded(e) => {
                self.step_mut(e.ord).and_then(|step| step.undo.not_needed()).and_then(|()| {
                    let rollback = self.rollback_mut()?;
                    rollback.due.remove(&e.ord);
                    rollback.done += 1;
                    Ok(())
                })
            }
            Event::UndoRetryRequested(e) => self.copied(e.inbox).and_then(|()| {
                self.rolling_back()?;
                self.step_mut(e.ord)?.undo.retry_requested()?;
                self.settle_failed_undo(e.ord)?;
                self.rollback_mut()?.due.insert(e.ord);
                Ok(())
            }),
            Event::UndoWaived(e) => self.undo_waived(e),
            Event::RollbackFinished(e) => self.rollback_finished(e),
        };
        applied.map_err(|why| IllegalEvent { seq: self.seq, event: event.name(), why })
    }

    fn forward(&self) -> Applied {
        match &self.phase {
            Phase::Forward => Ok(()),
            Phase::RollingBack => Err("the run is rolling back".into()),
            Phase::Closed(_) => Err("the run is closed".into()),
        }
    }

    fn rolling_back(&self) -> Applied {
        match &self.phase {
            Phase::RollingBack => Ok(()),
            Phase::Forward => Err("the run is not rolling back".into()),
            Phase::Closed(_) => Err("the run is closed".into()),
        }
    }

    fn open(&self) -> Applied {
        match &self.phase {
            Phase::Forward | Phase::RollingBack => Ok(()),
            Phase::Closed(_) => Err("the run is closed".into()),
        }
    }

    /// Inbox rows are copied in order, each once.
    fn copied(&mut self, number: u64) -> Applied {
        if number <= self.inbox_read {
            return Err(format!("inbox row {number} was copied before"));
        }
        self.inbox_read = number;
        Ok(())
    }

    fn step_mut(&mut self, ord: Ordinal) -> Result<&mut Step, String> {
        match (ord as usize).checked_sub(1).and_then(|i| self.asks.get_mut(i)) {
            Some(Ask::Step(step)) => Ok(step),
            Some(Ask::Timer(_)) => Err(format!("{ord} is a timer, not a step")),
            None => Err(format!("there is no step {ord}")),
        }
    }

    fn timer_mut(&mut self, ord: Ordinal) -> Result<&mut Timer, String> {
        match (ord as usize).checked_sub(1).and_then(|i| self.asks.get_mut(i)) {
            Some(Ask::Timer(timer)) => Ok(timer),
            Some(Ask::Step(_)) => Err(format!("{ord} is a step, not a timer")),
            None => Err(format!("there is no timer {ord}")),
        }
    }

    fn rollback_mut(&mut self) -> Result<&mut Rollback, String> {
        self.rollback.as_mut().ok_or_else(|| "there is no rollback".to_owned())
    }

    fn next_ordinal(&self, ord: Ordinal) -> Applied {
        let next = self.asks.len() as Ordinal + 1;
        if ord == next { Ok(()) } else { Err(format!("ordinal {ord} where {next} is next")) }
    }

    fn step_scheduled(&mut self, event: &StepScheduled) -> Applied {
        self.forward()?;
        self.next_ordinal(event.ord)?;
        self.asks.push(Ask::Step(Box::new(Step::scheduled(event))));
        Ok(())
    }

    fn timer_started(&mut self, event: &TimerStarted) -> Applied {
        self.forward()?;
        self.next_ordinal(event.ord)?;
        self.asks.push(Ask::Timer(Timer::started(event)));
        self.due.insert((event.fire_at_us, event.ord));
        Ok(())
    }

    /// Takes `ord` off what becomes due.
    fn leave_due(&mut self, ord: Ordinal) {
        let at_us = match (ord as usize).checked_sub(1).and_then(|i| self.asks.get(i)) {
            Some(Ask::Timer(timer)) => Some(timer.fire_at_us),
            Some(Ask::Step(step)) => match step.phase {
                StepPhase::Waiting { retry_at_us } => Some(retry_at_us),
                StepPhase::Scheduled
                | StepPhase::Running
                | StepPhase::Blocked
                | StepPhase::Succeeded
                | StepPhase::Failed
                | StepPhase::Abandoned(_) => None,
            },
            None => None,
        };
        if let Some(at_us) = at_us {
            self.due.remove(&(at_us, ord));
        }
    }

    /// An outcome stands in the journal: shown where it stands if the row is a turn, else later.
    fn recorded(&mut self, ord: Ordinal) {
        self.in_flight.remove(&ord);
        self.unblock_step(ord);
        let turn = self.row_kind == RowKind::Turn;
        if let Ok(step) = self.step_mut(ord) {
            if step.dropped {
                return;
            }
            step.shown = turn;
        }
        if !turn {
            self.unshown.push_back(ord);
        }
    }

    fn shown(&mut self, ord: Ordinal) -> Applied {
        self.forward()?;
        if self.row_kind != RowKind::Turn {
            return Err("only a turn shows".into());
        }
        let Some(at) = self.unshown.iter().position(|unshown| *unshown == ord) else {
            return Err(format!("{ord} has no outcome that waits to be shown"));
        };
        self.unshown.remove(at);
        if let Ok(step) = self.step_mut(ord) {
            step.shown = true;
        }
        Ok(())
    }

    fn step_abandoned(&mut self, event: &StepAbandoned) -> Applied {
        self.step_mut(event.ord)?.abandoned(event)?;
        self.in_flight.remove(&event.ord);
        if event.why() == AbandonWhy::DidNotYield {
            let step = &self.step_mut(event.ord)?.key;
            let message = format!(
                "the body of step {step} did not yield after its cancel; \
                 its effect may land later. Look, then waive the item"
            );
            self.open_attention(event.ord, AttentionKind::DidNotYield, message);
        }
        Ok(())
    }

    fn cancel_requested(&mut self, event: &CancelRequested) -> Applied {
        self.open()?;
        self.copied(event.inbox)?;
        // Before the decision, the row that copies the request also decides, and names it as cause.
        if let (Phase::RollingBack, Some(rollback)) = (&self.phase, &mut self.rollback) {
            let cause = RollbackCause::asked(event.verb(), &event.by, &event.reason);
            rollback.causes.push(cause);
        }
        match event.verb() {
            CancelVerb::Cancel | CancelVerb::Terminate | CancelVerb::Rollback => Ok(()),
        }
    }

    fn resumed(&mut self, event: &Resumed) -> Applied {
        self.open()?;
        self.copied(event.inbox)?;
        if self.pause.take().is_none() {
            return Err("the run is not paused".into());
        }
        if event.shift_us != 0 {
            for (i, ask) in self.asks.iter_mut().enumerate() {
                if let Ask::Timer(timer) = ask
                    && timer.phase == TimerPhase::Open
                {
                    let ord = i as Ordinal + 1;
                    self.due.remove(&(timer.fire_at_us, ord));
                    timer.fire_at_us = timer.fire_at_us.saturating_add(event.shift_us);
                    self.due.insert((timer.fire_at_us, ord));
                }
            }
        }
        Ok(())
    }

    fn blocked(&mut self, event: &Blocked) -> Applied {
        self.forward()?;
        let what = event.what();
        let message = match (what, event.ord) {
            (BlockKind::Step, Some(ord)) => {
                let step = self.step_mut(ord)?;
                if step.phase != StepPhase::Blocked {
                    return Err(format!("the step is {:?}, not blocked", step.phase));
                }
                format!("step {} is blocked: {}", step.key, event.failure)
            }
            (BlockKind::Step, None) => return Err("a blocked step has no ordinal".into()),
            (BlockKind::Mismatch | BlockKind::ForeignWait | BlockKind::Unreadable, _) => {
                event.failure.to_string()
            }
        };
        self.blocks.push(Block { what, ord: event.ord, failure: event.failure.clone() });
        self.open_attention(event.ord.unwrap_or(0), block_attention(what), message);
        Ok(())
    }

    fn unblock_step(&mut self, ord: Ordinal) {
        self.blocks.retain(|block| (block.what, block.ord) != (BlockKind::Step, Some(ord)));
        self.close_attention(|item| item.kind == AttentionKind::StepBlocked && item.ord == ord);
    }

    fn rollback_started(&mut self, event: &RollbackStarted) -> Applied {
        self.forward()?;
        let mut newer = Ordinal::MAX;
        for ord in &event.plan {
            if *ord >= newer {
                return Err(format!("the plan has {ord} after {newer}"));
            }
            newer = *ord;
            self.step_mut(*ord)?.undo.planned()?;
        }
        // The decision ends an earlier pause and all blocks (R10).
        self.pause = None;
        self.blocks.clear();
        self.close_attention(|item| match item.kind {
            AttentionKind::StepBlocked
            | AttentionKind::Mismatch
            | AttentionKind::ForeignWait
            | AttentionKind::Unreadable => true,
            AttentionKind::UndoFailed | AttentionKind::DidNotYield | AttentionKind::Killed => false,
        });
        self.due.clear();
        self.unshown.clear();
        self.phase = Phase::RollingBack;
        self.rollback = Some(Rollback::started(event));
        Ok(())
    }

    fn undo_may_start(&self) -> Applied {
        self.rolling_back()?;
        match self.in_flight.first() {
            None => Ok(()),
            Some(ord) => Err(format!("step {ord} is still in flight")),
        }
    }

    fn undo_failed(&mut self, event: &UndoFailed) -> Applied {
        self.rolling_back()?;
        let step = self.step_mut(event.ord)?;
        step.undo.failed(event)?;
        let message = format!("the undo of step {} failed: {}", step.key, event.failure);
        let rollback = self.rollback_mut()?;
        rollback.due.remove(&event.ord);
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
    fn undo_waived(&mut self, event: &UndoWaived) -> Applied {
        self.copied(event.inbox)?;
        let ord = event.ord;
        let step = self.step_mut(ord)?;
        let waivable = step.undo.may_be_waived();
        if waivable {
            step.undo.phase = UndoPhase::Waived;
            let rollback = self.rollback_mut()?;
            rollback.due.remove(&ord);
            rollback.waived += 1;
            self.settle_failed_undo(ord)?;
        }
        let before = self.attention.len();
        self.close_attention(|item| item.kind == AttentionKind::DidNotYield && item.ord == ord);
        if waivable || before != self.attention.len() {
            return Ok(());
        }
        Err("the undo of the step neither failed nor waits, and no open matter is about it".into())
    }

    fn rollback_finished(&mut self, event: &RollbackFinished) -> Applied {
        self.undo_may_start()?;
        let rollback = self.rollback_mut()?;
        if !rollback.is_paid() {
            return Err("undos are still owed".into());
        }
        rollback.outcome = Some(event.outcome());
        Ok(())
    }

    fn close(&mut self, ending: Ending) -> Applied {
        self.open()?;
        if let Some(ord) = self.in_flight.first() {
            return Err(format!("step {ord} is still in flight"));
        }
        if let (Phase::RollingBack, Some(rollback)) = (&self.phase, &self.rollback)
            && rollback.outcome.is_none()
        {
            return Err("the rollback is not finished".into());
        }
        self.end(ending);
        Ok(())
    }

    fn killed(&mut self, event: &ExecutionKilled) -> Applied {
        self.open()?;
        self.copied(event.inbox)?;
        if !event.left.is_empty() {
            let message = format!(
                "killed by {} ({}) with {} undos left: {:?}",
                event.by,
                event.reason,
                event.left.len(),
                event.left
            );
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
        self.unshown.clear();
        self.close_attention(|item| match item.kind {
            AttentionKind::StepBlocked
            | AttentionKind::Mismatch
            | AttentionKind::ForeignWait
            | AttentionKind::Unreadable => true,
            AttentionKind::UndoFailed | AttentionKind::DidNotYield | AttentionKind::Killed => false,
        });
        self.phase = Phase::Closed(ending);
    }
}

fn block_attention(what: BlockKind) -> AttentionKind {
    match what {
        BlockKind::Step => AttentionKind::StepBlocked,
        BlockKind::Mismatch => AttentionKind::Mismatch,
        BlockKind::ForeignWait => AttentionKind::ForeignWait,
        BlockKind::Unreadable => AttentionKind::Unreadable,
    }
}
