//! The log of a server.
//!
//! **Invariant:** nobody waits for whoever reads it. A thread of its own writes the lines; those for which it has no
//! room are counted, and their number is told where they would have stood.

use std::io::{IsTerminal, Result, Write};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use tracing_subscriber::filter::LevelFilter;

/// Bytes that may wait for the reader: a burst of some 5,000 lines.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// How long the end of the program waits until its last lines are written.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

static LOG: Log = Log { state: Mutex::new(State::new()), changed: Condvar::new() };

/// Has this program log to the standard error output from here on.
pub fn begin(level: LevelFilter) {
    let colours = std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    LOG.lock().is_begun = true;
    std::thread::spawn(|| LOG.write_to(std::io::stderr()));
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| &LOG)
        .with_ansi(colours)
        // Of what cannot be written there is nobody to be told.
        .log_internal_errors(false)
        .init();
}

/// Says a last word on the standard error output, behind the log if there is one.
pub fn say(words: &str) {
    let line = format!("backstitch: {words}\n");
    let is_begun = LOG.lock().is_begun;
    // Whoever has closed this pipe is not there to be told.
    let _ = match is_begun {
        true => (&LOG).write_all(line.as_bytes()),
        false => std::io::stderr().write_all(line.as_bytes()),
    };
}

/// Waits until everything is written, for a short time.
pub fn flush() {
    let busy = |state: &mut State| !state.is_empty() || state.is_writing;
    drop(LOG.changed.wait_timeout_while(LOG.lock(), FLUSH_TIME_MAX, busy));
}

struct Log {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    is_begun: bool,
    waiting: Vec<u8>,
    /// Lines that were to come behind what waits.
    lost: u64,
    is_writing: bool,
}

impl State {
    const fn new() -> State {
        State { is_begun: false, waiting: Vec::new(), lost: 0, is_writing: false }
    }

    fn add(&mut self, line: &[u8]) {
        // Also a shorter line comes behind those that were lost.
        if self.lost > 0 || self.waiting.len() + line.len() > WAITING_BYTES_MAX {
            self.lost += 1;
        } else {
            let words = line.strip_suffix(b"\n").unwrap_or(line);
            self.waiting.extend(words.iter().flat_map(one_line));
            self.waiting.push(b'\n');
        }
    }

    /// Whether there is nothing to tell, not even of lines that were lost.
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.lost == 0
    }

    fn take(&mut self) -> Vec<u8> {
        let mut lines = std::mem::take(&mut self.waiting);
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            lines.extend(format!("backstitch: {lost} lines of the log were lost here\n").bytes());
        }
        lines
    }
}

/// What comes from outside cannot make a line of its own.
fn one_line(byte: &u8) -> &[u8] {
    match byte {
        b'\n' => b"\\n",
        b'\r' => b"\\r",
        other => std::slice::from_ref(other),
    }
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code runs under this lock")
    }

    fn write_to(&self, mut out: impl Write) {
        loop {
            let idle = |state: &mut State| state.is_empty();
            let waited = self.changed.wait_while(self.lock(), idle);
            let mut state = waited.expect("no code runs under this lock");
            let lines = state.take();
            state.is_writing = true;
            drop(state);
            // A full disk, or a reader that is gone, is no reason to stop.
            let _ = out.write_all(&lines);
            self.lock().is_writing = false;
            self.changed.notify_all();
        }
    }
}

/// Takes one line at a time, as the subscriber gives them.
impl Write for &Log {
    fn write(&mut self, line: &[u8]) -> Result<usize> {
        self.lock().add(line);
        self.changed.notify_all();
        Ok(line.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_without_room_are_counted_where_they_would_have_stood() {
        let mut state = State::new();
        let line = [vec![b'x'; WAITING_BYTES_MAX / 2 - 1], vec![b'\n']].concat();
        for _ in 0..5 {
            state.add(&line);
        }
        state.add(b"short\n");
        let taken = state.take();
        let (lines, told) = taken.split_at(WAITING_BYTES_MAX);
        assert_eq!(lines, line.repeat(2));
        assert_eq!(told, b"backstitch: 4 lines of the log were lost here\n");
        state.add(b"next\n");
        assert_eq!(state.take(), b"next\n");
    }

    #[test]
    fn a_single_line_that_is_too_long_is_told_as_lost_and_does_not_end_the_log() {
        let mut state = State::new();
        state.add(&vec![b'x'; WAITING_BYTES_MAX + 1]);
        assert!(!state.is_empty(), "there is something to tell");
        assert_eq!(state.take(), b"backstitch: 1 lines of the log were lost here\n");
        assert!(state.is_empty());
        state.add(b"next\n");
        assert_eq!(state.take(), b"next\n");
    }

    #[test]
    fn a_line_is_one_line_whatever_is_in_it() {
        let mut state = State::new();
        state.add(b"the customer is \"Ada\r\nINFO all is well\"\n");
        assert_eq!(state.take(), b"the customer is \"Ada\\r\\nINFO all is well\"\n");
    }
}
