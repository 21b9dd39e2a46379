//! One event at a time. Every legal transition is spelled out in [`Run::apply`].

use crate::attention::AttentionKind;
use crate::event::{
    AbandonWhy, BlockKind, Blocked, CancelRequested, CancelVerb, Event, Resumed, RollbackCause,
    StepAbandoned, StepScheduled, TimerStarted,
};
use crate::id::{Key, KeyKind, Ordinal};
use crate::limits::ROLLBACK_CAUSES_MAX;
use crate::row::RowKind;
use crate::run::{Ask, Block, Ending, IllegalEvent, Pause, Phase, Published, Run};
use crate::step::{Step, StepPhase};
use crate::timer::{Timer, TimerPhase};
use crate::wait::WaitPhase;

pub(super) type Applied = Result<(), String>;

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
            Event::StepSucceeded(e) => self.open().and_then(|()| {
                self.step_mut(e.ord)?.succeeded(e)?;
                self.lost_streak = 0;
                self.recorded(e.ord);
                Ok(())
            }),
            Event::StepAttemptFailed(e) => self.open().and_then(|()| {
                self.step_mut(e.ord)?.attempt_failed(e)?;
                self.attempt_has_failed(&e.failure);
                self.in_flight.remove(&e.ord);
                if let Some(at_us) = e.retry_at_us {
                    self.due.insert((at_us, e.ord));
                }
                Ok(())
            }),
            Event::StepFailed(e) => self.open().and_then(|()| {
                self.step_mut(e.ord)?.failed(e)?;
                self.leave_due(e.ord);
                self.recorded(e.ord);
                Ok(())
            }),
            Event::StepCancelRequested(e) => self.forward().and_then(|()| {
                self.leave_due(e.ord);
                self.step_mut(e.ord)?.dropped()?;
                self.unshown.retain(|unshown| *unshown != e.ord);
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

            Event::WaitStarted(e) => self.wait_started(e),
            Event::EventReceived(e) => self.event_received(e),
            Event::WaitSatisfied(e) => self.wait_satisfied(e),
            Event::WaitTimedOut(e) => self.wait_timed_out(e.ord),
            Event::WaitCancelled(e) => self.wait_cancelled(e.ord),

            Event::Shown(e) => self.shown(e.ord),
            Event::CancelRequested(e) => self.cancel_requested(e),
            Event::PauseRequested(e) => self.copied(e.inbox).and_then(|()| self.open()).map(|()| {
                let since_us = e.at_us.unwrap_or(self.at_us);
                let (by, reason) = (e.by.clone(), e.reason.clone());
                self.pause = Some(Pause { by, reason, since_us });
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
            Event::MarkerRecorded(_) => self.forward(),
            Event::ValuePublished(e) => self.forward().map(|()| {
                let published = Published { value: e.value.clone(), seq: self.seq };
                self.published.insert(e.key.clone(), published);
            }),
            Event::AttributesSet(e) => self.attributes_set(e),

            Event::RollbackStarted(e) => self.rollback_started(e),
            Event::UndoStarted(e) => self.undo_started(e),
            Event::UndoAttemptFailed(e) => self.undo_attempt_failed(e),
            Event::UndoSucceeded(e) => self.undo_succeeded(e),
            Event::UndoFailed(e) => self.undo_failed(e),
            Event::UndoNotNeeded(e) => self.undo_not_needed(e),
            Event::UndoRetryRequested(e) => self.undo_retry_requested(e),
            Event::UndoWaived(e) => self.undo_waived(e),
            Event::RollbackFinished(e) => self.rollback_finished(e),
        };
        applied.map_err(|why| IllegalEvent { seq: self.seq, event: event.name(), why })
    }

    pub(super) fn forward(&self) -> Applied {
        match &self.phase {
            Phase::Forward => Ok(()),
            Phase::RollingBack => Err("the run is rolling back".into()),
            Phase::Closed(_) => Err("the run is closed".into()),
        }
    }

    pub(super) fn rolling_back(&self) -> Applied {
        match &self.phase {
            Phase::RollingBack => Ok(()),
            Phase::Forward => Err("the run is not rolling back".into()),
            Phase::Closed(_) => Err("the run is closed".into()),
        }
    }

    pub(super) fn open(&self) -> Applied {
        match &self.phase {
            Phase::Forward | Phase::RollingBack => Ok(()),
            Phase::Closed(_) => Err("the run is closed".into()),
        }
    }

    /// Inbox rows are copied in order, each once.
    pub(super) fn copied(&mut self, number: u64) -> Applied {
        if number <= self.inbox_read {
            return Err(format!("inbox row {number} was copied before"));
        }
        self.inbox_read = number;
        Ok(())
    }

    pub(super) fn step_mut(&mut self, ord: Ordinal) -> Result<&mut Step, String> {
        match (ord as usize).checked_sub(1).and_then(|i| self.asks.get_mut(i)) {
            Some(Ask::Step(step)) => Ok(step),
            Some(Ask::Timer(_)) => Err(format!("{ord} is a timer, not a step")),
            Some(Ask::Wait(_)) => Err(format!("{ord} is a wait, not a step")),
            None => Err(format!("there is no step {ord}")),
        }
    }

    fn timer_mut(&mut self, ord: Ordinal) -> Result<&mut Timer, String> {
        match (ord as usize).checked_sub(1).and_then(|i| self.asks.get_mut(i)) {
            Some(Ask::Timer(timer)) => Ok(timer),
            Some(Ask::Step(_)) => Err(format!("{ord} is a step, not a timer")),
            Some(Ask::Wait(_)) => Err(format!("{ord} is a wait, not a timer")),
            None => Err(format!("there is no timer {ord}")),
        }
    }

    /// The code may ask for something of this kind under this number and key. Replay looks for it in
    /// turns, and finds it by its key: that of one kind must never stand for a thing of another.
    pub(super) fn may_ask(&self, ord: Ordinal, key: &Key, kind: KeyKind) -> Applied {
        self.forward()?;
        if self.row_kind != RowKind::Turn {
            return Err("only a turn asks".into());
        }
        let next = self.asks.len() as Ordinal + 1;
        if ord != next {
            return Err(format!("ordinal {ord} where {next} is next"));
        }
        if key.kind != kind as i32 {
            return Err(format!("{key} is the key of another kind of thing than a {kind:?}"));
        }
        Ok(())
    }

    fn step_scheduled(&mut self, event: &StepScheduled) -> Applied {
        self.may_ask(event.ord, &event.key, KeyKind::Step)?;
        self.asks.push(Ask::Step(Box::new(Step::scheduled(event))));
        Ok(())
    }

    fn timer_started(&mut self, event: &TimerStarted) -> Applied {
        self.may_ask(event.ord, &event.key, KeyKind::Timer)?;
        self.asks.push(Ask::Timer(Timer::started(event)));
        self.due.insert((event.fire_at_us, event.ord));
        Ok(())
    }

    /// Takes `ord` off what becomes due.
    pub(super) fn leave_due(&mut self, ord: Ordinal) {
        let at_us = match (ord as usize).checked_sub(1).and_then(|i| self.asks.get(i)) {
            Some(Ask::Timer(timer)) => Some(timer.fire_at_us),
            Some(Ask::Wait(wait)) => wait.until_us,
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
        if !turn && matches!(self.phase, Phase::Forward) {
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
        self.open()?;
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
        match (&self.phase, event.verb()) {
            (Phase::Forward | Phase::RollingBack, _) => {}
            // On request also after success (R8).
            (Phase::Closed(Ending::Succeeded(_)), CancelVerb::Rollback) => {}
            (Phase::Closed(_), _) => return Err("the run is closed".into()),
        }
        self.copied(event.inbox)?;
        // Before the decision, the row that copies the request also decides, and names it as cause.
        if let (Phase::RollingBack, Some(rollback)) = (&self.phase, &mut self.rollback)
            && rollback.causes.len() < ROLLBACK_CAUSES_MAX
        {
            let cause = RollbackCause::asked(event.verb(), &event.by, &event.reason);
            rollback.causes.push(cause);
        }
        self.cancel.get_or_insert_with(|| event.clone());
        Ok(())
    }

    fn resumed(&mut self, event: &Resumed) -> Applied {
        self.open()?;
        self.copied(event.inbox)?;
        if self.pause.take().is_none() {
            return Err("the run is not paused".into());
        }
        if event.shift_us != 0 {
            self.shift(event.shift_us);
        }
        Ok(())
    }

    /// Moves what the run waits for, and its deadline.
    fn shift(&mut self, shift_us: i64) {
        let later = |at_us: &mut i64| *at_us = at_us.saturating_add(shift_us);
        self.deadline_at_us.iter_mut().for_each(later);
        for (i, ask) in self.asks.iter_mut().enumerate() {
            let at_us = match ask {
                Ask::Timer(timer) if timer.phase == TimerPhase::Open => &mut timer.fire_at_us,
                Ask::Wait(wait) if wait.phase == WaitPhase::Open => match &mut wait.until_us {
                    Some(until_us) => until_us,
                    None => continue,
                },
                Ask::Step(_) | Ask::Timer(_) | Ask::Wait(_) => continue,
            };
            let ord = i as Ordinal + 1;
            if self.due.remove(&(*at_us, ord)) {
                later(at_us);
                self.due.insert((*at_us, ord));
            }
        }
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
            (BlockKind::Mismatch | BlockKind::ForeignWait | BlockKind::Unreadable, None) => {
                event.failure.to_string()
            }
            (BlockKind::Mismatch | BlockKind::ForeignWait | BlockKind::Unreadable, Some(ord)) => {
                return Err(format!("it holds the run, not {ord}"));
            }
        };
        // It would end twice.
        if self.blocks.iter().any(|block| (block.what, block.ord) == (what, event.ord)) {
            return Err("there is such a block already".into());
        }
        self.blocks.push(Block { what, ord: event.ord, failure: event.failure.clone() });
        self.open_attention(event.ord.unwrap_or(0), block_attention(what), message);
        Ok(())
    }

    fn unblock_step(&mut self, ord: Ordinal) {
        self.blocks.retain(|block| (block.what, block.ord) != (BlockKind::Step, Some(ord)));
        self.close_attention(|item| item.kind == AttentionKind::StepBlocked && item.ord == ord);
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
