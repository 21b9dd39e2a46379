//! How many files the process may open, of which each connection is one.

use crate::http::limits::{CONNECTIONS_MAX, REFUSALS_MAX};

/// Files besides connections: those that are refused, and the store with its readers, a backup, what the runtime has,
/// three times over.
const OTHER_FILES: usize = REFUSALS_MAX + 64;

/// As many connections as there may be without taking the store its files.
pub fn connections_max() -> usize {
    // Other systems do not tell it in a file.
    let Ok(limits) = std::fs::read_to_string("/proc/self/limits") else { return CONNECTIONS_MAX };
    let Some(files) = files_max(&limits) else { return CONNECTIONS_MAX };
    let connections = connections_of(files);
    if connections < CONNECTIONS_MAX {
        tracing::warn!(
            files,
            connections,
            "this process may open few files, so it takes fewer connections than {CONNECTIONS_MAX}; raise the limit \
             (ulimit -n) for more"
        );
    }
    connections
}

fn connections_of(files: usize) -> usize {
    files.saturating_sub(OTHER_FILES).clamp(1, CONNECTIONS_MAX)
}

/// The soft limit, of a text as in `/proc/PID/limits`; none if there is none.
fn files_max(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_store() {
        let told = "Limit   Soft Limit  Hard Limit  Units\nMax open files   256   4096   files\n";
        assert_eq!(files_max(told), Some(256));
        assert_eq!(files_max("Max open files   unlimited   unlimited   files\n"), None);
        assert_eq!(connections_of(256), 128);
        assert_eq!(connections_of(20), 1);
        assert_eq!(connections_of(1_000_000), CONNECTIONS_MAX);
    }
}
