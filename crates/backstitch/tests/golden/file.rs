//! A golden journal as a file: its sealed rows in hexadecimal digits, each below a line for people
//! that names its events, and at the end how the run came out.
//!
//! ```text
//! # Three steps, one after the other.
//! 1 engine: ExecutionStarted
//!   01280801…
//! 2 turn: StepScheduled StepStarted
//!   012c0802…
//! = succeeded, rollback none: "…"
//! ```

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use backstitch::Row;
use backstitch::core::row::RowKind;
use backstitch::core::run::{Ending, Phase, Run};
use bytes::Bytes;

/// Where they are.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/journals")
}

/// One journal that was written by some version.
pub struct Golden {
    /// The name of its file, without the ending.
    pub file: String,
    /// What stands in the file.
    pub text: String,
    /// Its sealed rows.
    pub sealed: Vec<Bytes>,
}

impl Golden {
    fn read(file: String) -> Golden {
        let path = folder().join(format!("{file}.journal"));
        let text = fs::read_to_string(path).expect("it can be read");
        let sealed = text.lines().filter_map(|line| line.strip_prefix("  ")).map(unhex).collect();
        Golden { file, text, sealed }
    }

    /// All of a scene, in the order in which they were added.
    pub fn of(scene: &str) -> Vec<Golden> {
        let numbered = (1..).map(|number| format!("{scene}_{number}"));
        let there = |file: &String| folder().join(format!("{file}.journal")).exists();
        numbered.take_while(there).map(Golden::read).collect()
    }

    pub fn rows(&self) -> Vec<Row> {
        decoded(&self.sealed)
    }

    /// The first line, which says what it is about.
    pub fn about(&self) -> &str {
        self.text.lines().next().and_then(|line| line.strip_prefix("# ")).expect("a title")
    }
}

pub fn decoded(sealed: &[Bytes]) -> Vec<Row> {
    let read = sealed.iter().map(|bytes| Row::decode(bytes.clone()));
    read.collect::<Result<_, _>>().expect("every row ever written is read")
}

/// The text of the file of a journal.
pub fn written(about: &str, sealed: &[Bytes]) -> String {
    let rows = decoded(sealed);
    let mut text = format!("# {about}\n");
    for (row, bytes) in rows.iter().zip(sealed) {
        let kind = match row.header.kind() {
            RowKind::Engine => "engine",
            RowKind::Turn => "turn",
        };
        let names = row.events.iter().map(|event| event.name()).collect::<Vec<_>>().join(" ");
        writeln!(text, "{} {kind}: {names}", row.header.seq).expect("memory is enough");
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "  {digits}").expect("memory is enough");
    }
    let run = Run::fold(&rows).expect("every journal folds");
    text + "= " + &outcome(&run) + "\n"
}

/// How a run came out, in one line.
pub fn outcome(run: &Run) -> String {
    let end = match &run.phase {
        Phase::Forward => "goes forward".to_owned(),
        Phase::RollingBack => "rolls back".to_owned(),
        Phase::Closed(Ending::Succeeded(output)) => String::from_utf8_lossy(&output.data).into(),
        Phase::Closed(Ending::Failed(failure)) => format!("{failure} ({})", failure.code),
        Phase::Closed(Ending::Cancelled | Ending::Terminated) => {
            let by = run.ended_by().expect("somebody asked for it");
            format!("by {} because {}", by.by, by.reason)
        }
        Phase::Closed(Ending::Killed { by, reason, left }) => {
            format!("killed by {by} because {reason}, with {left:?} left")
        }
    };
    let (status, rollback) = (run.status(true).name(), run.rollback_outcome().name());
    format!("{status}, rollback {rollback}: {end}")
}

fn unhex(digits: &str) -> Bytes {
    let pairs = digits.as_bytes().chunks(2);
    let texts = pairs.map(|pair| std::str::from_utf8(pair).expect("golden files are text"));
    texts.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal digits")).collect()
}
