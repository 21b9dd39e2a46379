//! Where the runs end that were written lately.

use std::collections::HashMap;

use crate::RunNo;
use crate::rules::Tail;

/// Most runs that are remembered: more than are active at a time, at about 8 MiB. What is not
/// remembered costs three look-ups at its next change.
const TAILS_MAX: usize = 128 * 1024;

/// A bounded map. When the young half is full, the old half is forgotten.
#[derive(Default)]
pub(super) struct Tails {
    young: HashMap<RunNo, Tail>,
    old: HashMap<RunNo, Tail>,
}

impl Tails {
    pub(super) fn get(&mut self, run: RunNo) -> Option<Tail> {
        if let Some(tail) = self.young.get(&run) {
            return Some(*tail);
        }
        let tail = self.old.remove(&run)?;
        self.set(run, tail);
        Some(tail)
    }

    pub(super) fn set(&mut self, run: RunNo, tail: Tail) {
        if self.young.len() >= TAILS_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(run, tail);
    }

    /// Forgets a run that was deleted.
    pub(super) fn forget(&mut self, run: RunNo) {
        self.young.remove(&run);
        self.old.remove(&run);
    }

    /// Forgets everything: a failed transaction may have noted it, or others have written.
    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_bounded_and_keeps_what_is_in_use() {
        let mut tails = Tails::default();
        let in_use = Tail { last: 7, closed: false, accepted: 2 };
        tails.set(RunNo(0), in_use);
        for run in 1..4 * TAILS_MAX as i64 {
            tails.set(RunNo(run), Tail { last: 1, closed: false, accepted: 2 });
            assert_eq!(tails.get(RunNo(0)), Some(in_use));
        }
        assert!(tails.young.len() + tails.old.len() <= TAILS_MAX);
        assert_eq!(tails.get(RunNo(1)), None);
    }
}
