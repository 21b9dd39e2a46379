//! Ids that nothing else has: of runs, of appends, of requests without one.
//!
//! They come from random bits that an engine draws once, and a count. To draw anew for each of them
//! would be a system call per row, which takes more time than to compose the row does.

use std::sync::atomic::{AtomicU64, Ordering};

use backstitch_core::id::{RunId, draw};
use uuid::{Builder, Uuid};

/// Gives out ids that no other engine and no earlier call has given out.
pub(crate) struct Ids {
    engine: u64,
    next: AtomicU64,
}

impl Ids {
    /// With a seed of its own an engine gives out the same ids in each run of a test.
    pub fn new(seed: Option<u64>) -> Ids {
        let engine = seed.unwrap_or_else(|| Uuid::now_v7().as_u64_pair().1);
        Ids { engine, next: AtomicU64::new(1) }
    }

    fn count(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// By its id a row that is offered again is known to be the same one.
    pub fn append(&self) -> [u8; 16] {
        (u128::from(self.engine) << 64 | u128::from(self.count())).to_be_bytes()
    }

    /// The id of a request whose sender has none.
    pub fn request(&self) -> String {
        Uuid::from_bytes(self.append()).to_string()
    }

    /// A UUID of version 7: ids of runs sort by their start, to the millisecond.
    pub fn run(&self, now_us: i64) -> RunId {
        let count = self.count();
        let mut random = [0; 10];
        random[..8].copy_from_slice(&draw(self.engine, count, 0).to_be_bytes());
        random[8..].copy_from_slice(&draw(self.engine, count, 1).to_be_bytes()[..2]);
        let ms = u64::try_from(now_us / 1_000).unwrap_or(0);
        RunId(Builder::from_unix_timestamp_millis(ms, &random).into_uuid())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const NOW_US: i64 = 1_700_000_000_123_456;

    #[test]
    fn ids_of_runs_are_of_version_7_and_no_two_are_the_same() {
        let engines = [Ids::new(None), Ids::new(None)];
        let runs = (0..2_000).map(|n| engines[n % 2].run(NOW_US));
        let seen: HashSet<RunId> = runs.collect();
        assert_eq!(seen.len(), 2_000);
        for RunId(uuid) in seen {
            assert_eq!(uuid.get_version_num(), 7);
            let (seconds, nanos) = uuid.get_timestamp().expect("of version 7").to_unix();
            assert_eq!((seconds, nanos), (1_700_000_000, 123_000_000));
        }
    }

    #[test]
    fn a_seed_gives_the_same_ids_again() {
        let all = |ids: Ids| (ids.run(NOW_US), ids.append(), ids.request());
        assert_eq!(all(Ids::new(Some(7))), all(Ids::new(Some(7))));
        assert_ne!(all(Ids::new(Some(7))), all(Ids::new(Some(8))));
        assert_ne!(all(Ids::new(None)), all(Ids::new(None)));
    }
}
