//! What was ever written stays readable (P11): the bytes of every kind of event and of rows.
//!
//! A golden file holds hexadecimal bytes. When a kind or a version is added, the test prints the
//! file that is missing; files are added, never edited, and listed in `golden/frozen.txt`.

mod examples;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use backstitch_core::event::{Event, EventError, StepStarted, StepSucceeded};
use backstitch_core::retry::StepPolicy;
use backstitch_core::row::{Draft, Row, RowError};
use bytes::Bytes;
use examples::{AT_US, engine_header, events, payload, retry_with_lists, step_policy, turn_header};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn hex(bytes: &[u8]) -> String {
    let line =
        |line: &[u8]| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    bytes.chunks(32).map(line).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pairs =
        digits.chunks(2).map(|pair| std::str::from_utf8(pair).expect("golden files are text"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("golden files hold hex digits")).collect()
}

/// The bytes of the golden file `name`, or a panic that says what to put there.
fn golden(name: &str, now: &[u8]) -> Vec<u8> {
    let path = folder().join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|_| {
        panic!(
            "there is no {}; if what is written now is right, add it with:\n{}",
            path.display(),
            hex(now)
        )
    });
    unhex(&text)
}

fn encoded(event: &Event) -> Vec<u8> {
    let mut bytes = Vec::new();
    event.encode(&mut bytes);
    bytes
}

fn decoded(bytes: Vec<u8>) -> Result<Event, EventError> {
    let mut bytes = Bytes::from(bytes);
    let event = Event::decode(&mut bytes)?;
    assert!(bytes.is_empty(), "an event takes all of its bytes");
    Ok(event)
}

/// Kinds that say more than they did at first, within their version, and what they say since then.
/// The file without it is of before.
const GROWN: [(&str, &str); 3] =
    [("StepAbandoned", "with_attempt"), ("Resumed", "with_reason"), ("VerbRefused", "with_reason")];

/// The file that shows how an event is written now.
fn newest_file(event: &Event) -> String {
    let (kind, version, name) = (event.kind(), event.version(), event.name());
    match GROWN.iter().find(|(grown, _)| *grown == name) {
        Some((_, with)) => format!("{kind:03}_v{version}_{with}_{name}.hex"),
        None => format!("{kind:03}_v{version}_{name}.hex"),
    }
}

#[test]
fn p11_every_kind_and_version_is_written_as_its_golden_file_says() {
    let examples = events();
    let kinds: Vec<&str> = Event::KINDS.iter().map(|(_, _, name)| *name).collect();
    let shown: Vec<&str> = examples.iter().map(Event::name).collect();
    assert_eq!(shown, kinds, "there is one example of every kind, in the order of KINDS");
    for event in &examples {
        let now = encoded(event);
        let name = newest_file(event);
        let frozen = golden(&name, &now);
        assert_eq!(hex(&now), hex(&frozen), "{name}: what is written has changed");
        assert_eq!(decoded(frozen).as_ref(), Ok(event), "{name}: it reads as something else");
    }
}

#[test]
fn p11_policies_with_lists_of_failures_are_written_as_their_golden_file_says() {
    let policy = StepPolicy { retry: retry_with_lists(), ..step_policy() };
    let event = Event::from(StepStarted { ord: 7, attempt: 2, policy: Some(policy) });
    let now = encoded(&event);
    let frozen = golden("017_v1_with_lists_StepStarted.hex", &now);
    assert_eq!(hex(&now), hex(&frozen), "what is written has changed");
    assert_eq!(decoded(frozen), Ok(event));
}

#[test]
fn p11_events_of_before_they_said_more_say_nothing_of_it() {
    let old = |name: &str| decoded(golden(name, &[])).expect("it is read");
    let reason_of_resume = match old("051_v1_Resumed.hex") {
        Event::Resumed(e) => (e.reason, e.inbox),
        other => panic!("it is {}", other.name()),
    };
    assert_eq!(reason_of_resume, (String::new(), 9));
    let Event::StepAbandoned(given_up) = old("022_v1_StepAbandoned.hex") else {
        panic!("it is no attempt that was given up")
    };
    assert_eq!((given_up.ord, given_up.attempt, given_up.finished_us), (7, 0, None));
    let Event::VerbRefused(refused) = old("054_v1_VerbRefused.hex") else {
        panic!("it is no refusal")
    };
    assert_eq!((refused.why.as_str(), refused.ord), ("it runs", None));
    assert_eq!((refused.reason + &refused.event_type + &refused.event_id).as_str(), "");
}

#[test]
fn p11_a_pause_of_before_it_said_since_when_says_nothing_of_it() {
    let frozen = golden("050_v1_without_at_us_PauseRequested.hex", &[]);
    let Ok(Event::PauseRequested(pause)) = decoded(frozen) else { panic!("it is no pause") };
    assert_eq!((pause.at_us, pause.inbox), (None, 9));
}

#[test]
fn p11_every_golden_event_is_still_read() {
    let mut kinds = BTreeSet::new();
    let files = fs::read_dir(folder()).expect("the golden files are there");
    for file in files {
        let path = file.expect("the folder can be listed").path();
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        if name.starts_with("row_") || !name.ends_with(".hex") {
            continue;
        }
        let bytes = unhex(&fs::read_to_string(&path).expect("it can be read"));
        let version = bytes[2];
        let event = decoded(bytes);
        let event = event.unwrap_or_else(|error| panic!("{name} is no longer read: {error}"));
        let front = format!("{:03}_v{version}_", event.kind());
        assert!(name.starts_with(&front), "{name} is {} version {version}", event.name());
        assert!(name.ends_with(&format!("_{}.hex", event.name())), "{name} is {}", event.name());
        kinds.insert(event.kind());
    }
    let known: BTreeSet<u16> = Event::KINDS.iter().map(|(kind, _, _)| *kind).collect();
    assert_eq!(kinds, known);
}

#[test]
fn p11_numbers_of_kinds_are_used_once() {
    let numbers: BTreeSet<u16> = Event::KINDS.iter().map(|(kind, _, _)| *kind).collect();
    let names: BTreeSet<&str> = Event::KINDS.iter().map(|(_, _, name)| *name).collect();
    assert_eq!((numbers.len(), names.len()), (Event::KINDS.len(), Event::KINDS.len()));
}

#[test]
fn p11_rows_are_written_as_their_golden_files_say() {
    let turn: Vec<Event> = events().into_iter().skip(6).take(3).collect();
    let engine: Vec<Event> = events().into_iter().skip(9).take(2).collect();
    for (name, header, events) in
        [("row_turn.hex", turn_header(), turn), ("row_engine.hex", engine_header(), engine)]
    {
        let draft = Draft::new(header.clone(), &events);
        let now = draft.seal(AT_US);
        let frozen = golden(name, &now);
        assert_eq!(hex(&now), hex(&frozen), "{name}: what is written has changed");
        let row = Row::decode(frozen).expect("it is read");
        assert_eq!(row.header.at_us, AT_US, "the store stamps the row");
        assert_eq!(row.header.kind(), header.kind());
        assert_eq!((row.header.append_id, row.events), (header.append_id, events));
    }
}

#[test]
fn p11_an_empty_row_is_read() {
    let row = Row::decode(Draft::new(engine_header(), &[]).seal(AT_US)).expect("it is read");
    assert_eq!((row.header.seq, row.events), (300, Vec::new()));
}

#[test]
fn p11_fields_of_a_newer_engine_are_skipped() {
    let event =
        Event::from(StepSucceeded { ord: 7, attempt: 1, output: payload("1"), finished_us: 5 });
    let known = encoded(&event);
    // Field 1000, three bytes long, at the end of the body: one byte of length grows by six.
    let mut newer = known.clone();
    newer.extend([0xc2, 0x3e, 0x03, 0x61, 0x62, 0x63]);
    newer[3] += 6;
    assert_eq!(decoded(newer), Ok(event));
}

#[test]
fn p11_an_unknown_kind_or_version_is_left_to_a_newer_engine() {
    let too_new = |bytes: &[u8]| {
        let mut row = Draft::new(engine_header(), &[]);
        row.events = Bytes::copy_from_slice(bytes);
        let error = Row::decode(row.seal(AT_US)).expect_err("it is not read");
        assert!(error.is_too_new(), "{error:?}");
        assert!(error.to_string().contains("newer Backstitch"), "{error}");
        error
    };
    let kind = too_new(&[0xff, 0xfe, 1, 2, 8, 7]);
    assert_eq!(kind, RowError::Event(EventError::TooNew { kind: 0xfffe, version: 1 }));
    let version = too_new(&[0, 18, 99, 2, 8, 7]);
    assert_eq!(version, RowError::Event(EventError::TooNew { kind: 18, version: 99 }));
}

#[test]
fn p11_an_unknown_format_is_left_to_a_newer_engine() {
    let mut row = Draft::new(engine_header(), &events()).seal(AT_US);
    row[0] = 2;
    let length = row.len();
    let crc = crc32c::crc32c(&row[..length - 4]);
    row[length - 4..].copy_from_slice(&crc.to_be_bytes());
    let error = Row::decode(row).expect_err("it is not read");
    assert_eq!(error, RowError::TooNew { format: 2 });
    assert!(error.is_too_new());
}
