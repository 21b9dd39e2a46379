//! Waits of a run, and the events that no wait has taken yet.
//!
//! ```text
//! Open ─▶ Satisfied ─▶ Returned (the code never took the event)
//!   └───▶ TimedOut
//!   └───▶ Cancelled
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{EventReceived, WaitStarted};
use crate::id::Key;

/// Where a wait stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPhase {
    /// No event came yet.
    Open,
    /// It took an event.
    Satisfied,
    /// It took an event, and the code dropped it without looking: the event is there again.
    Returned,
    /// No event came in time.
    TimedOut,
    /// Dropped by the code.
    Cancelled,
}

/// One wait.
#[derive(Clone, Debug)]
pub struct Wait {
    /// Its identity.
    pub key: Key,
    /// Where in the source it was built.
    pub place: String,
    /// An event of any of these types satisfies it.
    pub types: Vec<String>,
    /// Events that are accepted later do not satisfy it.
    pub until_us: Option<i64>,
    /// Where it stands.
    pub phase: WaitPhase,
    /// The event that the code was shown.
    pub event: Option<Box<EventReceived>>,
}

impl Wait {
    pub(crate) fn started(event: &WaitStarted) -> Wait {
        Wait {
            key: event.key.clone(),
            place: event.place.clone(),
            types: event.types.clone(),
            until_us: event.until_us,
            phase: WaitPhase::Open,
            event: None,
        }
    }

    /// Takes `event`.
    pub(crate) fn satisfied(&mut self, event: Box<EventReceived>) -> Result<(), String> {
        self.leave(WaitPhase::Satisfied)?;
        if !self.types.contains(&event.event_type) {
            return Err(format!("it does not wait for {:?}", event.event_type));
        }
        if self.until_us.is_some_and(|until_us| event.accepted_at_us > until_us) {
            return Err("the event was accepted after its deadline".into());
        }
        self.event = Some(event);
        Ok(())
    }

    pub(crate) fn timed_out(&mut self, now_us: i64) -> Result<(), String> {
        if self.until_us.is_none_or(|until_us| now_us < until_us) {
            return Err("its deadline has not come".into());
        }
        self.leave(WaitPhase::TimedOut)
    }

    /// Gives back the event that the code never took.
    pub(crate) fn cancelled(&mut self) -> Result<Option<Box<EventReceived>>, String> {
        match self.phase {
            WaitPhase::Open => {
                self.phase = WaitPhase::Cancelled;
                Ok(None)
            }
            WaitPhase::Satisfied => {
                self.phase = WaitPhase::Returned;
                // Kept also here: replay shows it once more.
                Ok(self.event.clone())
            }
            WaitPhase::Returned | WaitPhase::TimedOut | WaitPhase::Cancelled => {
                Err(format!("the wait is {:?}", self.phase))
            }
        }
    }

    fn leave(&mut self, phase: WaitPhase) -> Result<(), String> {
        if self.phase != WaitPhase::Open {
            return Err(format!("the wait is {:?}, not open", self.phase));
        }
        self.phase = phase;
        Ok(())
    }
}

/// Events that were received and that no wait has taken, in order of acceptance.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    events: BTreeMap<u64, Box<EventReceived>>,
    by_type: BTreeMap<String, BTreeSet<u64>>,
    bytes: u64,
}

impl Kept {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// What they say, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &EventReceived> {
        self.events.values().map(Box::as_ref)
    }

    pub(crate) fn put(&mut self, event: Box<EventReceived>) {
        self.bytes += event.payload.data.len() as u64;
        self.by_type.entry(event.event_type.clone()).or_default().insert(event.inbox);
        self.events.insert(event.inbox, event);
    }

    pub(crate) fn take(&mut self, inbox: u64) -> Option<Box<EventReceived>> {
        let event = self.events.remove(&inbox)?;
        self.bytes -= event.payload.data.len() as u64;
        if let Some(numbers) = self.by_type.get_mut(&event.event_type) {
            numbers.remove(&inbox);
            if numbers.is_empty() {
                self.by_type.remove(&event.event_type);
            }
        }
        Some(event)
    }

    /// The oldest event that satisfies `wait`: of one of its types, and accepted in time. Acceptance
    /// never runs backwards, so if the oldest one of a type came too late, they all did.
    pub fn first_for(&self, wait: &Wait) -> Option<&EventReceived> {
        let oldest = |event_type| self.by_type.get(event_type)?.first().copied();
        let first = wait.types.iter().filter_map(oldest).min()?;
        let event = self.events[&first].as_ref();
        let in_time = wait.until_us.is_none_or(|until_us| event.accepted_at_us <= until_us);
        in_time.then_some(event)
    }
}
