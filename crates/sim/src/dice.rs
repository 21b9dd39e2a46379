//! Numbers that depend on a seed alone.

use backstitch::core::id::draw;

/// A stream of numbers. Two streams of one seed are told apart by what they are for.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    seed: u64,
    purpose: u64,
    rolls: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64, purpose: u64) -> Dice {
        Dice { seed, purpose, rolls: 0 }
    }

    /// 0 to `sides` − 1.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.rolls += 1;
        draw(self.seed, self.purpose, self.rolls) % sides
    }

    /// From `low` to `high`, both included.
    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.roll(high - low + 1)
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }
}
