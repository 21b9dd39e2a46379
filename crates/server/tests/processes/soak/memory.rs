//! The memory of the server, as it goes on.

use std::time::{Duration, Instant};

/// How often it is measured.
const LOOK: Duration = Duration::from_millis(100);

/// What is resident of a process, in KiB, at many instants.
pub struct Memory {
    process: u32,
    began: Instant,
    seen: Vec<(Duration, u64)>,
}

impl Memory {
    pub fn of(process: u32) -> Memory {
        Memory { process, began: Instant::now(), seen: Vec::new() }
    }

    /// Measures until `end`.
    pub fn watch_until(&mut self, end: Instant) {
        while Instant::now() < end {
            self.seen.extend(resident_kib(self.process).map(|kib| (self.began.elapsed(), kib)));
            // tidy: allow-sleep the pace of the soak
            std::thread::sleep(LOOK);
        }
    }

    /// The medians of the second quarter of the time and of the last one. Nothing on a system that does not say.
    pub fn second_and_last_quarter_kib(&self) -> Option<(u64, u64)> {
        let quarter = self.seen.last()?.0 / 4;
        let median = |from: Duration, to: Duration| {
            let seen = self.seen.iter().filter(|(at, _)| (from..=to).contains(at));
            let mut kib: Vec<u64> = seen.map(|(_, kib)| *kib).collect();
            kib.sort_unstable();
            kib.get(kib.len() / 2).copied()
        };
        Some((median(quarter, quarter * 2)?, median(quarter * 3, quarter * 4)?))
    }
}

fn resident_kib(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
