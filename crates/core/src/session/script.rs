//! The recorded groups of a journal: what replay has to show and to find asked.

use std::collections::VecDeque;

use crate::event::{AttributeOrigin, Event};
use crate::id::{Key, Ordinal};
use crate::row::{Row, RowKind};
use crate::session::Note;

/// One group as it was recorded.
#[derive(Debug)]
pub(super) struct RecordedGroup {
    pub seq: u64,
    pub now_us: i64,
    pub version: String,
    /// What was shown; nothing in the very first group.
    pub show: Option<Ordinal>,
    pub asks: Vec<(Ordinal, Key, String)>,
    pub drops: Vec<Ordinal>,
    /// Patches whose new way the code took.
    pub markers: Vec<String>,
    /// What it said.
    pub notes: Vec<Note>,
}

/// Cuts the turn rows of a journal into groups. A group begins with the outcome that is shown.
pub(super) fn recorded_groups(rows: &[Row]) -> VecDeque<RecordedGroup> {
    let mut groups: VecDeque<RecordedGroup> = VecDeque::new();
    for row in rows.iter().filter(|row| row.header.kind() == RowKind::Turn) {
        let begin = |show| RecordedGroup {
            seq: row.header.seq,
            now_us: row.header.now_us.unwrap_or(row.header.at_us),
            version: row.header.version.clone().unwrap_or_default(),
            show,
            asks: Vec::new(),
            drops: Vec::new(),
            markers: Vec::new(),
            notes: Vec::new(),
        };
        if groups.is_empty() {
            groups.push_back(begin(None));
        }
        for event in &row.events {
            match event {
                Event::StepSucceeded(e) => groups.push_back(begin(Some(e.ord))),
                Event::StepFailed(e) => groups.push_back(begin(Some(e.ord))),
                Event::TimerFired(e) => groups.push_back(begin(Some(e.ord))),
                Event::WaitSatisfied(e) => groups.push_back(begin(Some(e.ord))),
                Event::WaitTimedOut(e) => groups.push_back(begin(Some(e.ord))),
                Event::Shown(e) => groups.push_back(begin(Some(e.ord))),
                Event::StepScheduled(e) => {
                    ask(&mut groups, e.ord, &e.key, &e.place);
                }
                Event::TimerStarted(e) => {
                    ask(&mut groups, e.ord, &e.key, &e.place);
                }
                Event::WaitStarted(e) => {
                    ask(&mut groups, e.ord, &e.key, &e.place);
                }
                Event::MarkerRecorded(e) => {
                    let group = groups.back_mut().expect("a turn row begins a group");
                    group.markers.push(e.name.clone());
                }
                Event::ValuePublished(e) => {
                    let (key, value) = (e.key.clone(), e.value.clone());
                    say(&mut groups, Note::Published { key, value });
                }
                Event::AttributesSet(e) => match e.origin() {
                    AttributeOrigin::Code => {
                        let changes = e.changes.iter().cloned().map(Note::Attribute);
                        changes.for_each(|note| say(&mut groups, note));
                    }
                    AttributeOrigin::Start | AttributeOrigin::Verb => {}
                },
                Event::WaitCancelled(e) => drop_of(&mut groups, e.ord),
                Event::StepCancelRequested(e) => drop_of(&mut groups, e.ord),
                Event::TimerCancelled(e) => drop_of(&mut groups, e.ord),
                Event::ExecutionStarted(_)
                | Event::ExecutionSucceeded(_)
                | Event::ExecutionFailed(_)
                | Event::ExecutionCancelled(_)
                | Event::ExecutionTerminated(_)
                | Event::ExecutionKilled(_)
                | Event::StepStarted(_)
                | Event::StepAttemptFailed(_)
                | Event::StepAbandoned(_)
                | Event::StepRetryRequested(_)
                | Event::EventReceived(_)
                | Event::CancelRequested(_)
                | Event::PauseRequested(_)
                | Event::Resumed(_)
                | Event::Blocked(_)
                | Event::Unblocked(_)
                | Event::VerbRefused(_)
                | Event::RollbackStarted(_)
                | Event::UndoStarted(_)
                | Event::UndoAttemptFailed(_)
                | Event::UndoSucceeded(_)
                | Event::UndoFailed(_)
                | Event::UndoNotNeeded(_)
                | Event::UndoRetryRequested(_)
                | Event::UndoWaived(_)
                | Event::RollbackFinished(_) => {}
            }
        }
    }
    groups
}

fn ask(groups: &mut VecDeque<RecordedGroup>, ord: Ordinal, key: &Key, place: &str) {
    let group = groups.back_mut().expect("a turn row begins a group");
    group.asks.push((ord, key.clone(), place.to_owned()));
}

fn say(groups: &mut VecDeque<RecordedGroup>, note: Note) {
    groups.back_mut().expect("a turn row begins a group").notes.push(note);
}

fn drop_of(groups: &mut VecDeque<RecordedGroup>, ord: Ordinal) {
    groups.back_mut().expect("a turn row begins a group").drops.push(ord);
}
