//! What is mutated: every golden row and journal there is, and some made by hand.

use std::fs;
use std::path::Path;

use backstitch_core::row::{Draft, Header, Row};

use crate::examples::{AT_US, engine_header, events, turn_header};

/// Journals, as sealed rows.
pub fn journals() -> Vec<Vec<Vec<u8>>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../backstitch/tests/golden/journals");
    let paths = fs::read_dir(folder).expect("the golden journals are there");
    let mut paths: Vec<_> = paths.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "journal"));
    paths.sort();
    let read = |path| fs::read_to_string(path).expect("it can be read");
    paths.iter().map(read).map(|text| text.lines().filter_map(row_of).collect()).collect()
}

/// A line of a golden journal that holds a row.
fn row_of(line: &str) -> Option<Vec<u8>> {
    line.strip_prefix("  ").map(unhex)
}

fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    let texts = pairs.map(|pair| std::str::from_utf8(pair).expect("golden files are text"));
    texts.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal digits")).collect()
}

/// Rows: those of the journals, one for each golden event, and all events at once.
pub fn rows() -> Vec<Vec<u8>> {
    let mut rows: Vec<Vec<u8>> = journals().into_iter().flatten().collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let paths = fs::read_dir(folder).expect("the golden files are there");
    let mut paths: Vec<_> = paths.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "hex"));
    paths.sort();
    for path in paths {
        let text = fs::read_to_string(&path).expect("it can be read");
        let bytes = unhex(&text.split_whitespace().collect::<String>());
        let is_row = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("row"));
        rows.push(if is_row { bytes } else { row_around(bytes) });
    }
    rows.push(Draft::new(turn_header(), &events()).seal(AT_US));
    rows.push(Draft::new(engine_header(), &[]).seal(i64::MIN));
    rows.push(Draft::new(Header::default(), &events()[..1]).seal(i64::MAX));
    rows
}

/// A row that holds this one event.
fn row_around(event: Vec<u8>) -> Vec<u8> {
    let mut draft = Draft::new(engine_header(), &[]);
    draft.events = event.into();
    draft.seal(AT_US)
}

/// A journal, decoded.
pub fn decoded(journal: &[Vec<u8>]) -> Vec<Row> {
    let rows = journal.iter().map(|row| Row::decode(row.clone()));
    rows.collect::<Result<_, _>>().expect("the corpus is read")
}
