//! From rows to lines: the walk through the journal, and its begin and end.

use std::collections::HashMap;

use backstitch_core::event::{AbandonWhy, Event, ExecutionStarted};
use backstitch_core::failure::{Failure, Origin};
use backstitch_core::id::{Key, Ordinal};
use backstitch_core::row::Row;
use backstitch_core::run::{Run, WaitsFor};
use backstitch_core::status::Status;

use super::rail::{Line, Rail, Tone, WORDS_COLUMNS, Way, wrap};
use super::words;

/// Lines that a failure may take.
const FAILURE_LINES_MAX: usize = 3;

/// Writes the lines of one journal.
pub(super) struct Scribe {
    pub lines: Vec<Line>,
    pub way: Way,
    /// The time of the row that is being written.
    pub now_us: i64,
    start_us: i64,
    names: HashMap<Ordinal, String>,
    /// The types of the events that were received, by their inbox rows.
    pub received: HashMap<u64, String>,
}

impl Scribe {
    pub fn new(rows: &[Row]) -> Scribe {
        let start_us = rows.first().map_or(0, |row| row.header.at_us);
        Scribe {
            lines: Vec::new(),
            way: Way::Forward,
            now_us: start_us,
            start_us,
            names: HashMap::new(),
            received: HashMap::new(),
        }
    }

    pub fn write(&mut self, rows: &[Row], stands: Option<(Status, &[WaitsFor])>) {
        for (i, row) in rows.iter().enumerate() {
            self.now_us = row.header.at_us;
            // A guest has started it; that was no owner.
            let begun_by_guest = i == 1 && rows[0].header.fence == 0;
            if i > 0 && rows[i - 1].header.fence != row.header.fence && !begun_by_guest {
                self.torn(&rows[i - 1], &rows[i..]);
            }
            for (j, event) in row.events.iter().enumerate() {
                self.event(event, &row.events[j + 1..]);
            }
        }
        if self.way != Way::Over {
            self.open(rows, stands);
        }
    }

    /// One event; `rest` is what follows it in its row.
    fn event(&mut self, event: &Event, rest: &[Event]) {
        match event {
            Event::ExecutionStarted(e) => self.started(e),
            Event::ExecutionSucceeded(e) => {
                self.end("succeeded", Tone::Good, &words::payload(&e.output));
            }
            Event::ExecutionFailed(e) => self.end("failed", Tone::Bad, &words::failure(&e.failure)),
            Event::ExecutionCancelled(_) => self.end("cancelled", Tone::Wait, ""),
            Event::ExecutionTerminated(_) => self.end("terminated", Tone::Wait, ""),
            Event::ExecutionKilled(e) => self.killed(e),

            Event::StepScheduled(e) => self.step_scheduled(e, rest),
            Event::StepStarted(e) => self.step_started(e),
            Event::StepSucceeded(e) => self.step_succeeded(e),
            Event::StepAttemptFailed(e) => self.step_attempt_failed(e),
            Event::StepFailed(e) => self.step_failed(e),
            Event::StepCancelRequested(e) => self.step_dropped(e),
            Event::StepAbandoned(e) => self.step_abandoned(e),
            Event::StepRetryRequested(e) => self.step_retry_requested(e),

            Event::TimerStarted(e) => self.timer_started(e),
            Event::TimerFired(e) => self.timer_fired(e.ord),
            Event::TimerCancelled(e) => self.timer_cancelled(e.ord),

            Event::WaitStarted(e) => self.wait_started(e),
            Event::EventReceived(e) => self.event_received(e),
            Event::WaitSatisfied(e) => self.wait_satisfied(e),
            Event::WaitTimedOut(e) => self.wait_timed_out(e.ord),
            Event::WaitCancelled(e) => self.wait_cancelled(e.ord),

            Event::Shown(e) => self.shown(e.ord),
            Event::CancelRequested(e) => self.cancel_requested(e),
            Event::PauseRequested(e) => self.pause_requested(e),
            Event::Resumed(e) => self.resumed(e),
            Event::Blocked(e) => self.blocked(e),
            Event::Unblocked(e) => self.unblocked(e),
            Event::VerbRefused(e) => self.verb_refused(e),
            Event::MarkerRecorded(e) => self.marker_recorded(e),
            Event::ValuePublished(e) => self.value_published(e),
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
        }
    }

    fn started(&mut self, event: &ExecutionStarted) {
        let what = format!("  workflow {}, version {}", event.workflow, event.version);
        let id = match event.namespace.as_str() {
            "default" => event.id.clone(),
            namespace => format!("{namespace}/{}", event.id),
        };
        self.line(Rail::Start, self.now_us, [(Tone::Strong, id), (Tone::Plain, what)]);
        let input = match words::payload(&event.input).as_str() {
            "" => String::new(),
            input => format!(" with {input}"),
        };
        self.more([(Tone::Faint, format!("started by {}{input}", event.started_by))]);
    }

    fn end(&mut self, what: &str, tone: Tone, detail: &str) {
        self.blank();
        self.way = Way::Over;
        let lines = wrap(detail, WORDS_COLUMNS - what.len() - 2, WORDS_COLUMNS, FAILURE_LINES_MAX);
        let colon = if detail.is_empty() { "" } else { ": " };
        let mut head = vec![(tone, format!("{what}{colon}"))];
        head.push((Tone::Plain, lines[0].clone()));
        self.line(Rail::End, self.now_us, head);
        for line in &lines[1..] {
            self.more([(Tone::Plain, line.clone())]);
        }
    }

    fn killed(&mut self, event: &backstitch_core::event::ExecutionKilled) {
        let why = format!("by {}{}", event.by, words::reason(&event.reason));
        self.end("killed", Tone::Bad, &why);
        let left = match event.left.as_slice() {
            [] => "nothing was owed".into(),
            left => format!("left for a person, not undone: {}", self.list(left)),
        };
        self.more([(Tone::Bad, left)]);
    }

    /// The place where one process ended, after its `last` row.
    fn torn(&mut self, last: &Row, theirs: &[Row]) {
        let fences = format!("fence {} → {}", last.header.fence, theirs[0].header.fence);
        let said = format!("{}; another one took over ({fences})", how_it_ended(last, theirs));
        self.blank();
        let rail = Rail::Torn(self.way);
        self.lines.push(Line { at_us: None, rail, spans: vec![(Tone::Torn, said)] });
        self.blank();
    }

    /// The run is not closed: what it is doing, as far as it is known.
    fn open(&mut self, rows: &[Row], stands: Option<(Status, &[WaitsFor])>) {
        self.blank();
        let mut said = "not closed".to_owned();
        if let Ok(run) = Run::fold(rows) {
            let (status, waits_for) = stands.unwrap_or_else(|| (run.status(true), &[]));
            said += &format!(": {}", status.name().replace('_', " "));
            // What is pending could go on now.
            if let Some(at_us) = run.next_due_us().filter(|_| status != Status::Pending) {
                said += &format!(", goes on at {}", words::time(at_us - self.start_us));
            }
            // That a person is waited for is in the status.
            let others = waits_for.iter().filter(|waits| **waits != WaitsFor::Person);
            if let Some(whom) = others.filter_map(WaitsFor::whom).next() {
                said += &format!(", waiting for {whom}");
            }
        }
        self.line(Rail::Open, self.now_us, [(Tone::Wait, said)]);
    }

    /// A line with a time.
    pub fn line(
        &mut self,
        rail: Rail,
        at_us: i64,
        spans: impl IntoIterator<Item = (Tone, String)>,
    ) {
        let at_us = Some(at_us - self.start_us);
        self.lines.push(Line { at_us, rail, spans: spans.into_iter().collect() });
    }

    /// A line with a time, on the rail of the way that the run goes.
    pub fn note(&mut self, at_us: i64, spans: impl IntoIterator<Item = (Tone, String)>) {
        self.line(self.rail(), at_us, spans);
    }

    /// A line that belongs to the one before it.
    pub fn more(&mut self, spans: impl IntoIterator<Item = (Tone, String)>) {
        let spans = spans.into_iter().collect();
        self.lines.push(Line { at_us: None, rail: self.rail(), spans });
    }

    /// A line of nothing but rail, between two things.
    pub fn blank(&mut self) {
        let rail = match self.way {
            Way::Forward => Rail::Forward,
            Way::Back => Rail::BackArrow,
            Way::Over => Rail::Below,
        };
        let is_blank = |line: &Line| line.spans.is_empty() && line.at_us.is_none();
        if !self.lines.last().is_some_and(is_blank) {
            self.lines.push(Line { at_us: None, rail, spans: Vec::new() });
        }
    }

    /// `mark what: failure`, over several lines if need be.
    pub fn failed(&mut self, at_us: i64, what: &str, failure: &Failure) {
        let first = WORDS_COLUMNS.saturating_sub(what.chars().count() + 4);
        let said = words::failure(failure);
        let lines = wrap(&said, first, WORDS_COLUMNS - 2, FAILURE_LINES_MAX);
        self.note(
            at_us,
            [
                (Tone::Bad, "✘ ".into()),
                (Tone::Strong, format!("{what}: ")),
                (Tone::Plain, lines[0].clone()),
            ],
        );
        for line in &lines[1..] {
            self.more([(Tone::Plain, format!("  {line}"))]);
        }
    }

    /// When the next attempt is due.
    pub fn retry_at(&mut self, at_us: i64) {
        let delay_us = at_us - self.now_us;
        let when = match delay_us > 0 {
            true => format!(
                "next attempt at {}, in {}",
                words::time(at_us - self.start_us),
                words::time(delay_us)
            ),
            false => "next attempt at once".into(),
        };
        self.more([(Tone::Wait, format!("  ◷ {when}"))]);
    }

    /// When an attempt ended. A loss is noticed by the successor; nobody knows when it happened.
    pub fn ended_at(&self, failure: &Failure, finished_us: i64) -> i64 {
        match failure.origin() {
            Origin::Lost => self.now_us,
            Origin::Body
            | Origin::Timeout
            | Origin::Panic
            | Origin::Interrupted
            | Origin::Limit
            | Origin::Decode
            | Origin::Engine => finished_us,
        }
    }

    fn rail(&self) -> Rail {
        match self.way {
            Way::Forward => Rail::Forward,
            Way::Back => Rail::Back,
            Way::Over => Rail::Below,
        }
    }

    pub fn since_start(&self, at_us: i64) -> String {
        words::time(at_us - self.start_us)
    }

    /// Gives `ord` its name: the key, without the count of the first of its name.
    pub fn call(&mut self, ord: Ordinal, key: &Key) {
        let key = key.to_string();
        let name = key.strip_suffix("#1").map(str::to_owned).unwrap_or(key);
        self.names.insert(ord, name);
    }

    pub fn name(&self, ord: Ordinal) -> String {
        self.names.get(&ord).cloned().unwrap_or_else(|| format!("number {ord}"))
    }

    pub fn list(&self, ords: &[Ordinal]) -> String {
        let names: Vec<String> = ords.iter().map(|ord| self.name(*ord)).collect();
        names.join(", ")
    }
}

/// What the rows around a change of owner say of how the process before it ended. An attempt that
/// an orderly stop interrupted was recorded by the one that stopped; one that was lost is recorded
/// by the successor that finds it.
fn how_it_ended(last: &Row, theirs: &[Row]) -> &'static str {
    let fence = theirs[0].header.fence;
    let mut theirs = theirs.iter().take_while(|row| row.header.fence == fence);
    if theirs.any(|row| row.events.iter().any(|event| tells_of(event, Origin::Lost))) {
        "the process died here"
    } else if last.events.iter().any(|event| tells_of(event, Origin::Interrupted)) {
        "the process was stopped here"
    } else {
        "the process ended here"
    }
}

/// Whether the event says that an attempt ended in this way.
fn tells_of(event: &Event, origin: Origin) -> bool {
    if let Event::StepAttemptFailed(e) = event {
        e.failure.origin() == origin
    } else if let Event::UndoAttemptFailed(e) = event {
        e.failure.origin() == origin
    } else if let Event::StepAbandoned(e) = event {
        e.why() == AbandonWhy::Lost && origin == Origin::Lost
    } else {
        false
    }
}
