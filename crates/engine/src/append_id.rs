//! Ids of appends: by its id a row that is offered again is known to be the same one.
//!
//! They are not drawn anew for each row: that is a system call per row, and takes more time than
//! composing the row does.

use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

/// Gives out ids that no other append has: random bits of this engine, then a count.
pub(crate) struct AppendIds {
    engine: u64,
    next: AtomicU64,
}

impl AppendIds {
    pub fn new() -> AppendIds {
        let (_, random) = Uuid::now_v7().as_u64_pair();
        AppendIds { engine: random, next: AtomicU64::new(1) }
    }

    pub fn next(&self) -> [u8; 16] {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        (u128::from(self.engine) << 64 | u128::from(count)).to_be_bytes()
    }
}
