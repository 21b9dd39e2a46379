//! Composing one row, and what is to be done once it is durable.

use crate::attention::AttentionEdit;
use crate::attribute::AttributeChange;
use crate::event::{Event, StepStarted};
use crate::id::Ordinal;
use crate::inbox::{InboxKind, InboxRow};
use crate::limits::{DURATION_US_MAX, ROW_PAYLOAD_BYTES_SOFT_MAX};
use crate::row::{Draft, Header, RowKind};
use crate::run::{Ask, Phase};
use crate::session::{Code, Command, OpenRow, Session, Stopping};
use crate::status::Status;

/// A row to append, with all that the store has to know about it.
#[derive(Clone, Debug)]
pub struct RowOut {
    /// The row.
    pub draft: Draft,
    /// It closes the run or starts a rollback: refused while a verb stands unread in the inbox.
    pub decides: bool,
    /// Waits for these types timed out in it: refused while an event of one of them stands unread.
    pub topics: Vec<String>,
    /// Whether the run was closed before this row.
    pub after_close: bool,
    /// The last inbox row that was read.
    pub inbox_read: u64,
    /// The status and the next instant, when one of them changed.
    pub update: Option<(Status, Option<i64>)>,
    /// Open matters that the row opens or settles.
    pub attention: Vec<AttentionEdit>,
    /// Search attributes that the row sets or takes away.
    pub attributes: Vec<AttributeChange>,
    /// What to do once the row is durable.
    pub commands: Vec<Command>,
}

impl Session {
    /// Opens a row at `now_us` and writes down what needs no code: verbs, retries, outcomes that
    /// are not shown, the next undo.
    pub fn open_row(&mut self, now_us: i64) {
        assert!(self.open.is_none(), "one row is composed at a time");
        assert!(!self.is_replaying(), "replay comes before the first row");
        let now_us = now_us.max(self.run.now_us);
        self.forget_stale_ends();
        let kind = if self.row_may_be_a_turn(now_us) { RowKind::Turn } else { RowKind::Engine };
        self.open = Some(OpenRow::new(kind, now_us, self.is_closed()));
        self.copy_what_fits();
        if !self.inbox.is_empty() {
            // The rest goes into the next row. Until then nothing is decided: a verb may be in it.
            return;
        }
        self.close_as_decided();
        self.decide_if_late(now_us);
        if self.is_closed() {
            // By kill, perhaps under bodies and undos: how they end is no longer of interest.
            return;
        }
        while let Some(event) = self.pending_blocks.pop_front() {
            if matches!(self.run.phase, Phase::Forward) {
                self.push(event);
            }
        }
        if self.can_turn()
            && let Some(output) = self.returned_in_replay.take()
        {
            self.code = Code::Ended;
            self.code_succeeded(output);
        }
        if kind == RowKind::Turn
            && self.can_turn()
            && let Some(report) = self.said_late.take()
        {
            self.take_down(report);
        }
        self.record_unshowable_ends();
        self.record_undo_ends();
        self.leave_behind();
    }

    /// Copies the inbox, as far as the row has room. Behind a decision all of it is copied: events are
    /// refused there, and that needs little room.
    fn copy_what_fits(&mut self) {
        while let Some(row) = self.inbox.pop_front() {
            let decided = self.closes_in.is_some() || !matches!(self.run.phase, Phase::Forward);
            if !decided && self.open.as_ref().is_some_and(OpenRow::is_full) {
                return self.inbox.push_front(row);
            }
            self.copy_inbox(row);
        }
    }

    /// Whether the inbox leaves room for what a turn shows. A turn that shows nothing would be taken
    /// for the first one.
    fn inbox_leaves_room(&self) -> bool {
        let bytes: usize = self.inbox.iter().map(|row| row.payload.len()).sum();
        bytes < ROW_PAYLOAD_BYTES_SOFT_MAX
    }

    /// A turn shows what stands in it, so what must not be shown needs a row of the engine.
    fn row_may_be_a_turn(&self, now_us: i64) -> bool {
        let only_news = self.inbox.iter().all(|row| match row.kind {
            InboxKind::Event | InboxKind::SetAttributes => true,
            InboxKind::Cancel
            | InboxKind::Terminate
            | InboxKind::Rollback
            | InboxKind::Kill
            | InboxKind::Pause
            | InboxKind::Resume
            | InboxKind::RetryStep
            | InboxKind::RetryUndo
            | InboxKind::WaiveUndo => false,
        });
        let nothing_unshowable =
            only_news && self.step_ends.iter().all(|end| self.is_wanted(end.ord));
        let something_to_show = self.groups == 0
            || self.said_late.is_some()
            || !self.run.unshown.is_empty()
            || !self.step_ends.is_empty()
            || self.inbox_may_satisfy()
            || self.next_by_itself(now_us).is_some();
        self.can_turn()
            && !self.is_late(now_us)
            && self.inbox_leaves_room()
            && self.returned_in_replay.is_none()
            && nothing_unshowable
            && something_to_show
    }

    /// Whether an event that is to be copied is one that a wait is open for.
    fn inbox_may_satisfy(&self) -> bool {
        let wanted = |row: &InboxRow| {
            let waits = self.run.waits.iter().filter_map(|ord| self.run.wait(*ord));
            row.kind == InboxKind::Event && waits.into_iter().any(|w| w.types.contains(&row.topic))
        };
        self.inbox.iter().any(wanted)
    }

    /// Whether the code still wants the outcome of the step.
    pub(super) fn is_wanted(&self, ord: Ordinal) -> bool {
        self.run.step(ord).is_some_and(|step| !step.dropped)
    }

    fn record_unshowable_ends(&mut self) {
        let is_turn = self.open.as_ref().is_some_and(|row| row.kind == RowKind::Turn);
        if is_turn || self.step_ends.is_empty() {
            return;
        }
        for end in std::mem::take(&mut self.step_ends) {
            let showable = self.can_turn() && self.is_wanted(end.ord) && self.is_outcome(&end);
            if showable || self.open.as_ref().is_some_and(OpenRow::is_full) {
                self.step_ends.push_back(end);
            } else {
                self.record_step_end(end);
            }
        }
    }

    /// A body that was left behind may end later; nobody waits for it.
    fn forget_stale_ends(&mut self) {
        let run = &self.run;
        self.step_ends.retain(|end| {
            let step = run.step(end.ord);
            step.is_some_and(|step| step.is_in_flight(end.attempt))
        });
    }

    /// Retries that have become due. Nothing begins while the run is held or being stopped, nor
    /// in the row of a decision to roll back: that is why this comes after the groups.
    fn start_due_retries(&mut self, now_us: i64) {
        if !self.can_start() {
            return;
        }
        let due = self.run.due.iter().take_while(|(at_us, _)| *at_us <= now_us);
        let steps = due.map(|(_, ord)| *ord);
        let steps: Vec<Ordinal> =
            steps.filter(|ord| matches!(self.run.asks[*ord as usize - 1], Ask::Step(_))).collect();
        for ord in steps {
            let step = self.run.step(ord).expect("filtered");
            let attempt = step.attempts + 1;
            let newer = self.newer.get(&ord).map(|(policy, _)| policy.clone());
            let policy = newer.filter(|policy| *policy != step.policy);
            self.push(StepStarted { ord, attempt, policy });
        }
    }

    /// Whether attempts of steps may begin.
    fn can_start(&self) -> bool {
        let code_at_hand = matches!(self.code, Code::Live | Code::Ended);
        matches!(self.run.phase, Phase::Forward)
            && code_at_hand
            && self.run.pause.is_none()
            && !self.run.is_held_by_block()
            && self.closing_down == Stopping::No
    }

    /// Closes the row. `None` when there is nothing to write. `append_id` is one
    /// that no other append has.
    pub fn close_row(&mut self, append_id: [u8; 16]) -> Option<RowOut> {
        let now_us = self.open.as_ref().expect("a row is open").now_us;
        self.finish_return();
        self.start_due_retries(now_us);
        self.advance_rollback(now_us);
        self.block_in_a_row_of_its_own();
        let row = self.open.take().expect("a row is open");
        if row.events.is_empty() {
            return None;
        }
        let turn = row.kind == RowKind::Turn;
        let header = Header {
            seq: self.run.seq,
            kind: row.kind as i32,
            at_us: 0,
            fence: self.fence,
            append_id: append_id.to_vec(),
            now_us: turn.then_some(row.now_us),
            worker: turn.then(|| self.worker.clone()),
            version: turn.then(|| self.run.version.clone()),
        };
        let decides = row.events.iter().any(Event::decides);
        let draft = Draft::new(header, &row.events);
        self.journal_bytes += draft.events.len() as u64;
        Some(RowOut {
            draft,
            decides,
            topics: row.topics,
            after_close: row.after_close,
            inbox_read: self.run.inbox_read,
            update: self.told.changed(&self.run, self.code != Code::Absent),
            attention: self.run.take_attention_edits(),
            attributes: self.run.take_attribute_edits(),
            commands: row.commands,
        })
    }

    /// A block that came up in a group without a trace waits for no other row: none may come.
    fn block_in_a_row_of_its_own(&mut self) {
        let row = self.open.as_mut().expect("a row is open");
        if !row.events.is_empty() || !matches!(self.run.phase, Phase::Forward) {
            return;
        }
        row.kind = RowKind::Engine;
        while let Some(event) = self.pending_blocks.pop_front() {
            self.push(event);
        }
    }

    /// Begins the row in the fold when its first event is pushed.
    pub(super) fn begin_row(&mut self) {
        let row = self.open.as_mut().expect("a row is open");
        if !row.events.is_empty() {
            return;
        }
        let turn = row.kind == RowKind::Turn;
        let header = Header {
            seq: self.run.seq + 1,
            kind: row.kind as i32,
            at_us: row.now_us,
            now_us: turn.then_some(row.now_us),
            ..Header::default()
        };
        self.run.begin_row(&header).expect("the seq is the next one");
    }

    pub(super) fn command(&mut self, command: Command) {
        self.open.as_mut().expect("a row is open").commands.push(command);
    }

    /// The time that an attempt of the step may take: its timeout, or what is left of the
    /// deadline over all attempts.
    pub(super) fn attempt_timeout_us(&self, ord: Ordinal, now_us: i64) -> u64 {
        let step = self.run.step(ord).expect("it is a step");
        let timeout_us = step.policy.timeout_us.min(DURATION_US_MAX);
        match step.policy.deadline_us {
            None => timeout_us,
            Some(deadline_us) => {
                let spent_us =
                    u64::try_from(now_us.saturating_sub(step.budget_since_us)).unwrap_or(0);
                timeout_us.min(deadline_us.saturating_sub(spent_us))
            }
        }
    }
}
