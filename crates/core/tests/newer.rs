//! A value that a newer engine added to an enumeration is not read as another one (P11).

mod examples;

use std::collections::BTreeSet;

use backstitch_core::attribute::AttributeValue;
use backstitch_core::event::{Event, EventError, ExecutionStarted, SEMANTICS};
use backstitch_core::id::{Key, KeyKind};
use backstitch_core::row::{Draft, Row, RowError};
use bytes::{Buf, Bytes};
use examples::{AT_US, engine_header, events};
use prost::encoding::{decode_varint, encode_varint};

/// No enumeration has so many values.
const UNKNOWN: u64 = 1_000;

/// The bytes of `message`, once for each number in it, with [`UNKNOWN`] in its place. What may be a
/// message within is gone through as well.
fn with_each_number_unknown(message: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut variants = Vec::new();
    let mut rest = message;
    while rest.has_remaining() {
        let field = message.len() - rest.len();
        let tag = decode_varint(&mut rest).ok()?;
        let value = message.len() - rest.len();
        let replaced = |front: &[u8], new: &[u8], rest: &[u8]| [front, new, rest].concat();
        match tag & 7 {
            0 => {
                decode_varint(&mut rest).ok()?;
                let mut unknown = Vec::new();
                encode_varint(UNKNOWN, &mut unknown);
                variants.push(replaced(&message[..value], &unknown, rest));
            }
            1 => rest = rest.get(8..)?,
            2 => {
                let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
                let within = rest.get(..length)?;
                rest = &rest[length..];
                for within in with_each_number_unknown(within).unwrap_or_default() {
                    let mut front = message[field..value].to_vec();
                    encode_varint(within.len() as u64, &mut front);
                    variants.push(replaced(&message[..field], &[front, within].concat(), rest));
                }
            }
            5 => rest = rest.get(4..)?,
            _ => return None,
        }
    }
    Some(variants)
}

fn decoded(kind: u16, version: u8, body: &[u8]) -> Result<Event, EventError> {
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.push(version);
    encode_varint(body.len() as u64, &mut bytes);
    bytes.extend(body);
    Event::decode(&mut Bytes::from(bytes))
}

fn body(event: &Event) -> Vec<u8> {
    let mut bytes = Vec::new();
    event.encode(&mut bytes);
    let mut rest = &bytes[3..];
    decode_varint(&mut rest).expect("its length");
    rest.to_vec()
}

/// The words of what is printed of an event. A value of an enumeration that has a name is printed
/// by it, one that has none as a number.
fn words(event: &Event) -> Vec<String> {
    let text = format!("{event:?}");
    let words = text.split(|c: char| !c.is_alphanumeric() && !"_-.".contains(c));
    words.map(str::to_owned).collect()
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_uppercase())
}

#[test]
fn p11_an_unknown_value_of_an_enumeration_is_left_to_a_newer_engine() {
    let mut refused = Vec::new();
    for event in events() {
        let before = words(&event);
        let variants = with_each_number_unknown(&body(&event)).expect("it is a message");
        for variant in variants {
            match decoded(event.kind(), event.version(), &variant) {
                Err(EventError::NewValue { kind, field, value }) => {
                    assert_eq!((kind, value), (event.kind(), UNKNOWN as i64));
                    refused.push(field);
                }
                Err(EventError::Malformed { .. }) => {}
                Err(other) => panic!("{}: {other}", event.name()),
                Ok(read) => {
                    let after = words(&read);
                    let became = before.iter().zip(&after).find(|(was, is)| was != is);
                    if let Some((was, is)) = became {
                        assert!(!is_name(was), "{}: {was} was read as {is}", event.name());
                    }
                }
            }
        }
    }
    refused.sort_unstable();
    refused.dedup();
    let all = [
        "AttributesSet.origin",
        "Blocked.what",
        "CancelRequested.verb",
        "EndsIn.kind",
        "ExecutionStarted.semantics",
        "FailureData.class",
        "FailureData.effect",
        "FailureData.origin",
        "Key.kind",
        "Retry.backoff",
        "Retry.jitter",
        "RollbackCause.kind",
        "RollbackFinished.outcome",
        "StepAbandoned.why",
        "StepPolicy.on_abandon",
        "StepPolicy.on_exhausted",
        "StepPolicy.undo_on",
        "Unblocked.what",
        "UndoPolicy.on_failure",
    ];
    assert_eq!(refused, all, "an example of each has a value that is not the first");
}

#[test]
fn p11_an_error_about_a_newer_value_names_it_and_the_way_out() {
    let key = Key { kind: 77, name: "charge".into(), count: 1, ..Key::default() };
    assert_eq!(key.kind(), KeyKind::Step, "this is what it would be read as");
    let mut timer = events().into_iter().find(|event| event.name() == "TimerStarted");
    let Some(Event::TimerStarted(started)) = &mut timer else { panic!("there is an example") };
    started.key = key;
    let sealed = Draft::new(engine_header(), &[timer.expect("it is there")]).seal(AT_US);
    let error = Row::decode(sealed).expect_err("it is not read");
    assert!(error.is_too_new(), "{error}");
    let text = error.to_string();
    assert!(text.contains("77 in Key.kind") && text.contains("newer Backstitch"), "{text}");
}

#[test]
fn p11_newer_rules_of_delivery_are_left_to_a_newer_engine() {
    let event = Event::from(ExecutionStarted { semantics: SEMANTICS + 1, ..Default::default() });
    let error = decoded(1, 1, &body(&event)).expect_err("it is not read");
    assert!(error.is_too_new(), "{error}");
}

#[test]
fn p11_an_unknown_kind_of_row_is_left_to_a_newer_engine() {
    let mut header = engine_header();
    header.kind = 5;
    let error = Row::decode(Draft::new(header, &[]).seal(AT_US)).expect_err("it is not read");
    assert_eq!(error, RowError::NewKind { kind: 5 });
    assert!(error.is_too_new(), "{error}");
}

/// A reader takes a type of attribute that it does not know for an attribute that is taken away. So
/// a sixth one needs a new version of `AttributesSet`, and another kind of inbox row to ask for it.
#[test]
fn p11_version_1_of_attributes_has_these_five_types() {
    let set = events().into_iter().find_map(|event| match event {
        Event::AttributesSet(set) => Some(set),
        _ => None,
    });
    let changes = set.expect("there is an example").changes;
    let types: BTreeSet<u8> = changes
        .iter()
        .filter_map(|change| change.value.as_ref())
        .map(|value| match value {
            AttributeValue::Text(_) => 2,
            AttributeValue::Integer(_) => 3,
            AttributeValue::Real(_) => 4,
            AttributeValue::Flag(_) => 5,
            AttributeValue::Instant(_) => 6,
        })
        .collect();
    assert_eq!(types, BTreeSet::from([2, 3, 4, 5, 6]));
    let version = Event::KINDS.iter().find(|(_, _, name)| *name == "AttributesSet");
    assert_eq!(version.map(|(_, version, _)| *version), Some(1));
}
