//! Search attributes.

use backstitch_core::attribute::{AttributeChange, AttributeValue};
use backstitch_core::inbox::InboxKind;

use super::Subject;
use super::bench::{Bench, assert_appended, assert_refused};
use super::changes::guard;
use crate::{Answer, Append, Refusal, RunNo, Start};

fn set(name: &str, value: AttributeValue) -> AttributeChange {
    AttributeChange { name: name.into(), value: Some(value) }
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::Text(text.into())
}

impl Bench {
    async fn start_with(&self, number: u32, attributes: Vec<AttributeChange>) -> RunNo {
        let start = Start { attributes, ..self.new_start(number) };
        match self.commit(start).await {
            Answer::Started { run, .. } => run,
            other => panic!("not started: {other:?}"),
        }
    }

    async fn set(&self, run: RunNo, seq: u64, attributes: Vec<AttributeChange>) {
        assert_appended(self.commit(Append { attributes, ..self.new_append(run, seq) }).await);
    }

    async fn found(&self, name: &str, value: AttributeValue) -> Vec<RunNo> {
        let found = self.store.find(name, &value, RunNo(i64::MAX), 100).await;
        found.expect("the store works").iter().map(|info| info.run).collect()
    }
}

/// What was set last counts.
pub async fn runs_are_found_by_their_attributes(subject: impl Subject) {
    let bench = Bench::new(subject);
    let ada = || set("Customer", text("ada"));
    let first = bench.start_with(1, vec![ada(), set("Vip", AttributeValue::Flag(true))]).await;
    let second = bench.start_with(2, vec![set("Customer", text("bob"))]).await;
    let third = bench.start(3).await;
    bench.set(second, 2, vec![ada()]).await;
    assert_eq!(bench.found("Customer", text("ada")).await, [second, first]);
    assert_eq!(bench.found("Customer", text("bob")).await, []);
    assert_eq!(bench.found("Vip", AttributeValue::Flag(true)).await, [first]);
    assert_eq!(bench.found("Vip", AttributeValue::Flag(false)).await, []);
    assert_eq!(bench.found("customer", text("ada")).await, []);
    assert_eq!(bench.found("Customer", text("Ada")).await, []);

    let taken_away = AttributeChange { name: "Customer".into(), value: None };
    let unknown = AttributeChange { name: "Unknown".into(), value: None };
    bench.set(first, 2, vec![taken_away, unknown]).await;
    bench.set(third, 2, vec![set("Customer", text("bob")), ada()]).await;
    assert_appended(bench.commit(bench.new_closing(second, 3)).await);
    let bench = bench.reopen().await;
    assert_eq!(bench.found("Customer", text("ada")).await, [third, second]);
    assert_eq!(bench.found("Vip", AttributeValue::Flag(true)).await, [first]);
    let whole = bench.store.find("Customer", &text("ada"), RunNo(i64::MAX), 1).await.unwrap();
    assert_eq!(whole, [bench.store.run(third).await.unwrap().expect("was started")]);
}

/// One is neither true nor an instant.
pub async fn a_value_is_found_as_the_kind_that_it_is(subject: impl Subject) {
    use AttributeValue::{Flag, Instant, Integer, Real};
    let bench = Bench::new(subject);
    let values = [
        Integer(1),
        Real(1.0),
        Flag(true),
        Instant(1),
        text("1"),
        text(""),
        text("with \0 and ü"),
        Integer(i64::MIN),
        Integer(i64::MAX),
        Real(0.1),
        Real(f64::NEG_INFINITY),
        Instant(-1),
        Flag(false),
    ];
    let mut runs = Vec::new();
    for (number, value) in (0..).zip(&values) {
        runs.push(bench.start_with(number, vec![set("It", value.clone())]).await);
    }
    for (run, value) in runs.iter().zip(&values) {
        assert_eq!(bench.found("It", value.clone()).await, [*run], "{value:?}");
    }
    assert_eq!(bench.found("It", Real(-0.0)).await, []);
    assert_eq!(bench.found("It", Real(f64::INFINITY)).await, []);
}

/// Nothing is equal to it, itself included; and it stands where another value stood.
pub async fn what_is_not_a_number_is_not_found(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start_with(1, vec![set("It", AttributeValue::Real(1.0))]).await;
    bench.set(run, 2, vec![set("It", AttributeValue::Real(f64::NAN))]).await;
    assert_eq!(bench.found("It", AttributeValue::Real(f64::NAN)).await, []);
    assert_eq!(bench.found("It", AttributeValue::Real(1.0)).await, []);
    assert_eq!(bench.found("It", AttributeValue::Real(0.0)).await, []);
}

/// Newest first, in pages.
pub async fn found_runs_are_read_page_by_page_newest_first(subject: impl Subject) {
    let bench = Bench::new(subject);
    let mut expected = Vec::new();
    for number in 0..20 {
        let customer = if number % 2 == 0 { "ada" } else { "bob" };
        let run = bench.start_with(number, vec![set("Customer", text(customer))]).await;
        if customer == "ada" {
            expected.push(run);
        }
    }
    expected.reverse();
    let (mut read, mut before) = (Vec::new(), RunNo(i64::MAX));
    loop {
        let page = bench.store.find("Customer", &text("ada"), before, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 3);
        before = last.run;
        read.extend(page.iter().map(|info| info.run));
    }
    assert_eq!(read, expected);
    assert!(bench.store.find("Customer", &text("ada"), before, 0).await.unwrap().is_empty());
}

/// Attributes come with their row, and only with it.
pub async fn a_row_that_is_refused_or_repeated_sets_no_attribute(subject: impl Subject) {
    let bench = Bench::new(subject);
    let run = bench.start(1).await;
    bench.put(run, InboxKind::Cancel, "cancel").await;
    let attributes = vec![set("Customer", text("ada"))];
    let append = Append {
        guard: guard(&[InboxKind::Cancel]),
        attributes: attributes.clone(),
        ..bench.new_append(run, 2)
    };
    let unread = Refusal::Unread(vec![InboxKind::Cancel]);
    assert_refused(bench.commit(append.clone()).await, unread);
    assert_eq!(bench.found("Customer", text("ada")).await, []);
    let append = Append { read: 1, ..append };
    assert_appended(bench.commit(append.clone()).await);
    bench.set(run, 3, vec![set("Customer", text("bob"))]).await;
    assert_appended(bench.commit(append).await);
    assert_eq!(bench.found("Customer", text("bob")).await, [run]);
    assert_eq!(bench.found("Customer", text("ada")).await, []);
}
