//! Replay: what the code does in a recorded group has to be what the journal says.

use std::collections::BTreeMap;

use crate::event::BlockKind;
use crate::id::{Key, Ordinal};
use crate::run::{Ask, Block, Phase};
use crate::session::mismatch::{CUT_SHORT, Found, Mismatch, listed, said};
use crate::session::script::RecordedGroup;
use crate::session::{Asked, AskedKind, Code, Report, Session};

impl Session {
    pub(super) fn end_recorded_group(
        &mut self,
        mut report: Report,
    ) -> Result<Vec<Ordinal>, Mismatch> {
        let recorded = self.script.pop_front().expect("replay has groups left");
        let more = !self.script.is_empty();
        let at = |recorded_text: String, asked: String| Mismatch {
            seq: recorded.seq,
            recorded: recorded_text,
            asked,
            recorded_version: recorded.version.clone(),
            running_version: self.run.version.clone(),
            found: Found::InReplay,
        };
        if let Some(what) = report.undecodable {
            return Err(at("an outcome of another type".into(), what));
        }
        let marked = recorded.markers.iter().all(|name| report.patched.contains(name));
        if !more && marked && self.is_cut_short(&recorded) {
            // The code now has something to say in it, besides what it had said.
            self.code = Code::Live;
            report.patched.retain(|name| !recorded.markers.contains(name));
            report.notes.retain(|note| !recorded.notes.contains(note));
            let first = self.run.asks.len() as Ordinal + 1;
            let ords = (first..).take(report.asks.len()).collect();
            self.said_late = Some(report);
            return Ok(ords);
        }
        if !more && self.went_beyond(&recorded) {
            self.code = Code::Ended;
            return Ok(Vec::new());
        }
        let mut left: BTreeMap<&Key, Ordinal> =
            recorded.asks.iter().map(|(ord, key, _)| (key, *ord)).collect();
        let mut ords = Vec::with_capacity(report.asks.len());
        for asked in &report.asks {
            let Some(ord) = left.remove(&asked.key) else {
                return Err(at(listed(&recorded.asks), said(&report)));
            };
            ords.push(ord);
        }
        if !left.is_empty() {
            return Err(at(listed(&recorded.asks), said(&report)));
        }
        // Code that had failed here would have left a decision in the row. Code that had returned
        // may have waited for steps that it dropped.
        let went_on = match (&self.run.phase, &report.ended) {
            (_, None) => false,
            (_, Some(_)) if more => true,
            (Phase::Forward, Some(Err(_))) => true,
            (Phase::Forward, Some(Ok(_))) | (Phase::RollingBack | Phase::Closed(_), _) => false,
        };
        if went_on {
            return Err(at("that the workflow goes on here".into(), said(&report)));
        }
        let (mut was, mut is) = (recorded.drops.clone(), report.drops.clone());
        was.sort_unstable();
        is.sort_unstable();
        if was != is {
            return Err(at(self.drops_of(&was), self.drops_of(&is)));
        }
        if let Some(name) = recorded.markers.iter().find(|name| !report.patched.contains(name)) {
            let was = format!("that the code is patched by {name:?} here");
            return Err(at(was, "nothing of that patch".into()));
        }
        for (asked, ord) in report.asks.into_iter().zip(&ords) {
            self.note_replayed(asked, *ord);
        }
        if !more {
            self.code = match self.run.phase {
                Phase::Forward => {
                    self.returned_in_replay = report.ended.and_then(Result::ok);
                    Code::Live
                }
                Phase::RollingBack | Phase::Closed(_) => Code::Ended,
            };
        }
        Ok(ords)
    }

    /// Whether a block cut this group short, before the code could ask for anything in it. Code that
    /// was mended since may go on from there. A mismatch that came up in replay is another matter:
    /// there the journal is right and the code is not, however often it is started.
    pub(super) fn is_cut_short(&self, recorded: &RecordedGroup) -> bool {
        let cuts_short = |block: &Block| match block.what {
            BlockKind::ForeignWait => true,
            BlockKind::Mismatch => block.failure.code == CUT_SHORT,
            BlockKind::Step | BlockKind::Unreadable => false,
        };
        let mut held = self.run.blocks.iter().filter(|block| block.what != BlockKind::Step);
        matches!(self.run.phase, Phase::Forward)
            && self.run.is_held_by_block()
            && held.all(cuts_short)
            && recorded.asks.is_empty()
            && recorded.drops.is_empty()
    }

    /// Keeps what the code gives now for a step that was recorded before.
    fn note_replayed(&mut self, asked: Asked, ord: Ordinal) {
        let AskedKind::Step { policy, undo } = asked.what else { return };
        if undo.is_some() {
            self.handlers.insert(ord);
        }
        let step = self.run.step(ord).expect("the keys are equal, so it is a step");
        if step.policy != policy || step.undo.policy != undo {
            self.newer.insert(ord, (policy, undo));
        }
    }

    fn drops_of(&self, ords: &[Ordinal]) -> String {
        let name = |ord: &Ordinal| match &self.run.asks[*ord as usize - 1] {
            Ask::Step(step) => format!("step {}", step.key),
            Ask::Timer(timer) => format!("sleep {}", timer.key),
            Ask::Wait(wait) => format!("wait {}", wait.key),
        };
        if ords.is_empty() {
            return "that nothing is dropped".into();
        }
        format!("the drop of {}", ords.iter().map(name).collect::<Vec<_>>().join(", "))
    }
}
