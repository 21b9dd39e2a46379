//! What the code says without waiting for it: published values and search attributes, which others
//! may set as well.

mod owner;
mod story;

use backstitch_core::attribute::{AttributeChange, AttributeValue};
use backstitch_core::event::{AttributeOrigin, AttributesSet, Event};
use backstitch_core::inbox::{InboxKind, Verb};
use backstitch_core::limits::ATTRIBUTES_MAX;
use backstitch_core::row::{Draft, Header, Row, RowKind};
use backstitch_core::run::Run;
use backstitch_core::session::{Report, attributes_refusal};
use owner::{Owner, asks, publishes, says, sets, step, wait};
use story::{attribute, attributes_set, begun, published, row, run, then, turn_at};

#[test]
fn p13_what_the_code_said_is_neither_compared_nor_said_again_in_replay() {
    let mut owner = Owner::begin();
    let said = vec![publishes("k"), sets(attribute("A", Some(1))), publishes("l")];
    owner.row(|_| Report { notes: said.clone(), ..asks(vec![step("s")]) }).expect("a turn");
    for notes in
        [vec![], vec![publishes("other")], vec![sets(attribute("A", None)), publishes("k")]]
    {
        owner.crash_without_code();
        let report = Report { notes, ..asks(vec![step("s")]) };
        assert_eq!(owner.attach_to(|_| report.clone()), Ok(()));
        let run = owner.session.run();
        assert_eq!(run.published.keys().collect::<Vec<_>>(), ["k", "l"]);
        assert_eq!(run.attributes.get("A"), Some(&AttributeValue::Integer(1)));
    }
}

#[test]
fn p13_a_group_that_only_says_something_is_a_row_and_replays() {
    let mut owner = Owner::begin();
    owner.row(|_| asks(vec![wait("w", "a", None), step("s")])).expect("a turn");
    owner.send("a");
    let out = owner.row(|_| says(vec![publishes("k"), sets(attribute("A", None))]));
    let out = out.expect("a turn");
    assert_eq!((out.attributes, out.decides), (vec![attribute("A", None)], false));
    owner.crash();
    assert_eq!(owner.played.len(), 2);
}

#[test]
fn published_values_replace_one_another_and_say_which_row_published_them() {
    let mut run = run();
    let first = vec![published("k", "1"), published("l", "2"), published("k", "3")];
    then(&mut run, RowKind::Turn, first).unwrap();
    then(&mut run, RowKind::Turn, vec![published("l", "4")]).unwrap();
    let values =
        run.published.iter().map(|(key, it)| (key.as_str(), it.value.data.as_ref(), it.seq));
    let wanted: [(&str, &[u8], u64); 2] = [("k", b"3", 2), ("l", b"4", 3)];
    assert!(values.eq(wanted));
}

#[test]
fn attributes_are_set_and_taken_away_by_code_verb_and_start() {
    let of_start = attributes_set(AttributeOrigin::Start, attribute("A", Some(1)), 0);
    let mut run = Run::fold(&[row(1, RowKind::Engine, vec![begun(), of_start])]).unwrap();
    let by_code = vec![
        attributes_set(AttributeOrigin::Code, attribute("B", Some(2)), 0),
        attributes_set(AttributeOrigin::Code, attribute("A", Some(3)), 0),
    ];
    run.apply_row(&turn_at(2, 0, by_code)).unwrap();
    let by_verb = attributes_set(AttributeOrigin::Verb, attribute("B", None), 1);
    then(&mut run, RowKind::Engine, vec![by_verb.clone()]).unwrap();
    assert_eq!(run.attributes.keys().collect::<Vec<_>>(), ["A"]);
    assert_eq!(run.attributes["A"], AttributeValue::Integer(3));
    then(&mut run, RowKind::Engine, vec![by_verb]).expect_err("P8: it was copied before");
}

#[test]
fn p11_nothing_false_and_empty_are_values_and_not_taken_away() {
    let values = [
        AttributeValue::Text(String::new()),
        AttributeValue::Integer(0),
        AttributeValue::Real(0.0),
        AttributeValue::Flag(false),
        AttributeValue::Instant(0),
    ];
    let change = |(i, value): (usize, AttributeValue)| AttributeChange {
        name: format!("A{i}"),
        value: Some(value),
    };
    let changes: Vec<_> = values.into_iter().enumerate().map(change).collect();
    let event = Event::from(AttributesSet { changes, ..AttributesSet::default() });
    let draft = Draft::new(Header { seq: 2, ..Header::default() }, std::slice::from_ref(&event));
    let read = Row::decode(draft.seal(0)).expect("it is read");
    assert_eq!(read.events, [event]);
    let mut run = run();
    run.apply_row(&read).unwrap();
    assert_eq!(run.attributes.len(), 5);
}

#[test]
fn p12_a_verb_that_would_set_too_many_attributes_is_refused_when_its_turn_comes() {
    let many = |range: std::ops::Range<usize>| {
        range.map(|i| attribute(&i.to_string(), Some(1))).collect::<Vec<_>>()
    };
    let mut owner = Owner::begin();
    owner.row(|_| asks(vec![step("s")])).expect("a turn");
    let fits = many(0..ATTRIBUTES_MAX);
    assert_eq!(attributes_refusal(owner.session.run(), &fits), None);
    // Two verbs of the same moment: each alone would fit.
    for attributes in [fits, many(1..ATTRIBUTES_MAX + 1)] {
        owner.verb(InboxKind::SetAttributes, Verb { attributes, ..Verb::default() });
    }
    let out = owner.idle().expect("they are copied");
    assert_eq!(owner.last(), ["AttributesSet", "VerbRefused"]);
    assert_eq!(out.attributes.len(), ATTRIBUTES_MAX);
    let refusal = attributes_refusal(owner.session.run(), &many(1..ATTRIBUTES_MAX + 1));
    assert!(refusal.is_some_and(|why| why.contains("take some away first")));
    let mut swap = many(ATTRIBUTES_MAX..ATTRIBUTES_MAX + 1);
    swap.push(attribute("0", None));
    assert_eq!(attributes_refusal(owner.session.run(), &swap), None);
}

#[test]
fn p5_a_run_that_goes_back_says_nothing_and_may_be_described() {
    let mut owner = Owner::begin();
    owner.row(|_| asks(vec![step("s")])).expect("a turn");
    owner.returned(1);
    owner.ask(InboxKind::Cancel);
    owner.idle().expect("it is cancelled");
    let attributes = vec![attribute("Looked", Some(1))];
    owner.verb(InboxKind::SetAttributes, Verb { attributes, ..Verb::default() });
    owner.idle().expect("it is copied");
    assert_eq!(owner.last(), ["AttributesSet"]);
    let by_code = attributes_set(AttributeOrigin::Code, attribute("A", Some(1)), 0);
    let mut run = owner.session.run().clone();
    then(&mut run, RowKind::Turn, vec![by_code]).expect_err("it is rolling back");
}
