//! One sleep of a run, as the fold sees it.

use crate::event::TimerStarted;
use crate::id::Key;

/// Where a timer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerPhase {
    /// Not yet over.
    Open,
    /// Over.
    Fired,
    /// Dropped by the code, or overtaken by the end of the run.
    Cancelled,
}

/// One timer.
#[derive(Clone, Debug)]
pub struct Timer {
    /// Its identity.
    pub key: Key,
    /// Where in the source it was built.
    pub place: String,
    /// Never fires before.
    pub fire_at_us: i64,
    /// Where it stands.
    pub phase: TimerPhase,
}

impl Timer {
    pub(crate) fn started(event: &TimerStarted) -> Timer {
        Timer {
            key: event.key.clone(),
            place: event.place.clone(),
            fire_at_us: event.fire_at_us,
            phase: TimerPhase::Open,
        }
    }

    pub(crate) fn fired(&mut self) -> Result<(), String> {
        self.leave(TimerPhase::Fired)
    }

    pub(crate) fn cancelled(&mut self) -> Result<(), String> {
        self.leave(TimerPhase::Cancelled)
    }

    fn leave(&mut self, phase: TimerPhase) -> Result<(), String> {
        if self.phase != TimerPhase::Open {
            return Err(format!("the timer is {:?}, not open", self.phase));
        }
        self.phase = phase;
        Ok(())
    }
}
