//! What pictures of hand-made journals look like.

use backstitch_core::event::*;
use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::id::{Key, KeyKind, Ordinal, RunId};
use backstitch_core::payload::Payload;
use backstitch_core::retry::{StepPolicy, UndoPolicy};
use backstitch_core::row::{Header, Row, RowKind};
use backstitch_core::run::WaitsFor;
use backstitch_core::status::Status;
use uuid::Uuid;

use super::{COLUMNS_MAX, Style, draw, draw_as_it_stands};

/// A row that was committed `at_ms` after the start.
fn row(seq: u64, at_ms: i64, fence: u64, events: Vec<Event>) -> Row {
    let header =
        Header { seq, at_us: at(at_ms), fence, kind: RowKind::Turn as i32, ..Header::default() };
    Row { header, events }
}

fn at(ms: i64) -> i64 {
    1_767_225_600_000_000 + ms * 1_000
}

fn started() -> Event {
    ExecutionStarted {
        namespace: "default".into(),
        id: "order-7".into(),
        run_id: Uuid::nil().as_bytes().to_vec(),
        workflow: "order".into(),
        version: "2".into(),
        input: Payload::json(r#"{"item":3}"#),
        started_by: "shop".into(),
        ..ExecutionStarted::default()
    }
    .into()
}

fn key(name: &str, count: u32) -> Key {
    Key { name: name.into(), count, ..Key::default() }
}

/// Asked for, and its first attempt begun.
fn step(ord: Ordinal, name: &str, count: u32) -> [Event; 2] {
    let undo = Some(UndoSpec { policy: UndoPolicy::undo_default(), named: None });
    let (key, policy) = (key(name, count), StepPolicy::step_default());
    let scheduled = StepScheduled { ord, key, policy, undo, ..StepScheduled::default() };
    [scheduled.into(), StepStarted { ord, attempt: 1, policy: None }.into()]
}

fn succeeded(ord: Ordinal, attempt: u32, ms: i64, output: &str) -> Event {
    let output = Payload::json(output.to_owned());
    StepSucceeded { ord, attempt, output, finished_us: at(ms) }.into()
}

fn failed(
    ord: Ordinal,
    attempt: u32,
    ms: i64,
    failure: Failure,
    retry_at_ms: Option<i64>,
) -> Event {
    let (retry_at_us, finished_us) = (retry_at_ms.map(at), at(ms));
    StepAttemptFailed { ord, attempt, failure, retry_at_us, finished_us }.into()
}

fn refusal() -> Failure {
    Failure::new(Class::Permanent, Origin::Body, "CardDeclined", "the bank said no")
}

fn outage() -> Failure {
    Failure::new(Class::Transient, Origin::Body, "Timeout", "no answer within 2 s")
}

fn lost() -> Failure {
    Failure::new(Class::Transient, Origin::Lost, "Lost", "the process ended during the attempt")
}

fn ends_in(kind: EndKind, failure: Option<Failure>) -> EndsIn {
    EndsIn { kind: kind as i32, failure, output: None }
}

/// A rollback with a retry, a crash in the middle, and a person who waives the last debt.
fn rolled_back() -> Vec<Row> {
    let [s1, b1] = step(1, "reserve", 1);
    let [s2, b2] = step(2, "charge", 1);
    let decision = RollbackStarted {
        no: 1,
        causes: vec![RollbackCause::failed(refusal())],
        plan: vec![2, 1],
        ends_in: ends_in(EndKind::Failed, Some(refusal())),
        ..RollbackStarted::default()
    };
    let undo_failed = UndoAttemptFailed {
        ord: 1,
        attempt: 1,
        failure: refusal(),
        retry_at_us: None,
        finished_us: at(70),
    };
    let undo_lost = UndoAttemptFailed {
        ord: 2,
        attempt: 1,
        failure: lost(),
        retry_at_us: Some(at(60)),
        finished_us: at(60),
    };
    vec![
        row(1, 0, 1, vec![started()]),
        row(2, 1, 1, vec![s1, b1]),
        row(3, 6, 1, vec![succeeded(1, 1, 5, r#"{"shelf":12}"#), s2, b2]),
        row(
            4,
            9,
            1,
            vec![
                failed(2, 1, 8, refusal(), None),
                StepFailed { ord: 2, failure: refusal() }.into(),
                decision.into(),
                UndoStarted { ord: 2, attempt: 1, policy: None }.into(),
            ],
        ),
        row(
            5,
            60,
            2,
            vec![undo_lost.into(), UndoStarted { ord: 2, attempt: 2, policy: None }.into()],
        ),
        row(
            6,
            64,
            2,
            vec![
                UndoSucceeded { ord: 2, attempt: 2, finished_us: at(63) }.into(),
                UndoStarted { ord: 1, attempt: 1, policy: None }.into(),
            ],
        ),
        row(
            7,
            70,
            2,
            vec![
                undo_failed.into(),
                UndoFailed { ord: 1, failure: refusal(), holds: false }.into(),
            ],
        ),
        row(
            8,
            90_000,
            2,
            vec![
                UndoWaived { ord: 1, by: "ann".into(), reason: "paid by hand".into(), inbox: 1 }
                    .into(),
                RollbackFinished { no: 1, outcome: RollbackOutcome::Incomplete as i32 }.into(),
                ExecutionFailed { failure: refusal() }.into(),
            ],
        ),
    ]
}

#[test]
fn r12_a_rollback_is_drawn_like_the_way_forward() {
    let wanted = r#"
      0 ms  ●    order-7  workflow order, version 2
            │    started by shop with {"item":3}
            │
      1 ms  ├─▶  reserve
      5 ms  │    ✔ reserve  {"shelf":12}
            │
      6 ms  ├─▶  charge
      8 ms  │    ✘ charge: CardDeclined: the bank said no
            │      permanent: it is not tried again
            │
      9 ms  ╘══╗ ROLLBACK
               ║ because the workflow failed: CardDeclined: the bank said no
               ║ to undo, newest start first: charge, reserve
               ▲
      9 ms  ◀══╣ undo charge
               ▲
  ╌╌╌╌╌╌╌╌╌╌╌╌╌✖ the process died here; another one took over (fence 1 → 2) ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
               ▲
     60 ms     ║ ✘ undo charge: Lost: the process ended during the attempt
               ║   ◷ next attempt at once
     60 ms  ◀══╣ undo charge, attempt 2
     63 ms     ║ ↺ charge is undone
               ▲
     64 ms  ◀══╣ undo reserve
     70 ms     ║ ✘ undo reserve: CardDeclined: the bank said no
               ║   permanent: reserve stays owed until a person retries or waives it
               ▲
  90000 ms     ║ » ann waives the undo of reserve: paid by hand
               ▲
  90000 ms  ╒══╝ rollback incomplete
            │
  90000 ms  ■    failed: CardDeclined: the bank said no
"#;
    assert_eq!(draw(&rolled_back(), Style::Plain), wanted[1..]);
}

#[test]
fn attempts_sleeps_and_people_are_drawn() {
    let [s1, b1] = step(1, "quote", 1);
    let [s2, b2] = step(2, "quote", 2);
    let sleep = TimerStarted {
        ord: 3,
        key: Key { kind: KeyKind::Timer as i32, ..key("sleep", 1) },
        fire_at_us: at(7_200_010),
        place: String::new(),
    };
    let attention =
        Failure::new(Class::Attention, Origin::Body, "NoKey", "the API key has expired");
    let block = Blocked { what: BlockKind::Step as i32, ord: Some(2), failure: attention.clone() };
    let retry =
        StepRetryRequested { ord: 2, by: "ann".into(), reason: "a new key".into(), inbox: 1 };
    let rows = [
        row(1, 0, 1, vec![started(), s1, b1, s2, b2]),
        row(2, 10, 1, vec![failed(1, 1, 9, outage(), Some(1_009)), sleep.into()]),
        row(3, 20, 1, vec![failed(2, 1, 19, attention, None), block.into()]),
        row(4, 1_010, 1, vec![StepStarted { ord: 1, attempt: 2, policy: None }.into()]),
        row(5, 1_020, 1, vec![succeeded(1, 2, 1_019, "5")]),
        row(6, 8_000, 1, vec![retry.into()]),
        row(7, 8_001, 1, vec![StepStarted { ord: 2, attempt: 2, policy: None }.into()]),
    ];
    let wanted = r#"
      0 ms  ●    order-7  workflow order, version 2
            │    started by shop with {"item":3}
            │
      0 ms  ├─▶  quote
            │
      0 ms  ├─▶  quote#2
      9 ms  │    ✘ quote: Timeout: no answer within 2 s
            │      ◷ next attempt at 1009 ms, in 999 ms
            │
     10 ms  ├─▶  sleep  ◷ until 120.0 min, for 120.0 min
     19 ms  │    ✘ quote#2: NoKey: the API key has expired
            │      ‼ quote#2 is blocked until a person has it tried again
   1010 ms  ├─▶  quote, attempt 2
   1019 ms  │    ✔ quote  5
            │
   8000 ms  │    » ann has quote#2 tried again: a new key
   8001 ms  ├─▶  quote#2, attempt 2
            │
   8001 ms  ◌    not closed: running, goes on at 120.0 min
"#;
    assert_eq!(draw(&rows, Style::Plain), wanted[1..]);
}

#[test]
fn an_open_run_ends_with_how_it_stands_and_whom_it_waits_for() {
    let key = Key { kind: KeyKind::Timer as i32, ..key("sleep", 1) };
    let sleep = TimerStarted { ord: 1, key, fire_at_us: at(60_000), place: String::new() };
    let rows = [row(1, 0, 1, vec![started()]), row(2, 5, 1, vec![sleep.into()])];
    let worker = [WaitsFor::Worker { workflow: "order".into(), version: "2".into() }];
    let earlier = [WaitsFor::EarlierRun { run_id: RunId(Uuid::max()) }];
    let end = |status, waits_for: &[WaitsFor]| {
        let picture = draw_as_it_stands(&rows, status, waits_for, Style::Plain);
        picture.lines().last().expect("it has one").trim_start().to_owned()
    };
    let pending = "5 ms  ◌    not closed: pending, waiting for ";
    assert_eq!(end(Status::Pending, &worker), format!("{pending}a worker that knows order 2"));
    assert_eq!(end(Status::Pending, &earlier), format!("{pending}run {}", Uuid::max()), "not cut");
    let asleep = "5 ms  ◌    not closed: suspended, goes on at 60000 ms";
    assert_eq!(end(Status::Suspended, &[]), asleep);
    let nobody = format!("{asleep}, waiting for a worker that knows order 2");
    assert_eq!(end(Status::Suspended, &worker), nobody);
}

/// One event of every kind, with nothing in it.
fn every_kind() -> Vec<Event> {
    macro_rules! empty {
        ($($kind:ident)*) => { vec![$(Event::from($kind::default()),)*] };
    }
    empty! {
        ExecutionStarted StepScheduled StepStarted StepSucceeded StepAttemptFailed StepFailed
        StepCancelRequested StepAbandoned StepRetryRequested TimerStarted TimerFired TimerCancelled
        WaitStarted EventReceived WaitSatisfied WaitTimedOut WaitCancelled MarkerRecorded
        ValuePublished AttributesSet
        Shown CancelRequested PauseRequested Resumed Blocked Unblocked VerbRefused RollbackStarted
        UndoStarted UndoAttemptFailed UndoSucceeded UndoFailed UndoNotNeeded UndoRetryRequested
        UndoWaived RollbackFinished ExecutionSucceeded ExecutionFailed ExecutionCancelled
        ExecutionTerminated ExecutionKilled
    }
}

#[test]
fn every_kind_of_event_has_a_line() {
    let events = every_kind();
    assert_eq!(events.len(), Event::KINDS.len(), "a kind is missing in this test");
    for event in events {
        let name = event.name();
        let alone = draw(&[row(1, 0, 1, vec![event])], Style::Plain);
        let nothing = draw(&[row(1, 0, 1, Vec::new())], Style::Plain);
        assert_ne!(alone, nothing, "{name} leaves no trace");
    }
}

#[test]
fn colours_are_all_that_the_styles_differ_in() {
    let coloured = draw(&rolled_back(), Style::Colour);
    let mut bare = String::new();
    for (i, part) in coloured.split("\x1b[").enumerate() {
        bare.push_str(if i == 0 { part } else { part.split_once('m').expect("a colour").1 });
    }
    // A blank that is not painted may stand at the end of a line.
    let bare: Vec<&str> = bare.lines().map(str::trim_end).collect();
    let plain = draw(&rolled_back(), Style::Plain);
    assert_eq!(bare, plain.lines().collect::<Vec<_>>());
}

#[test]
fn whatever_the_journal_holds_lines_keep_their_width_and_the_terminal_its_state() {
    let nasty = "\x1b[2J\u{202E}\r\n\t界".repeat(300);
    let failure = Failure::new(Class::Transient, Origin::Body, nasty.clone(), nasty.clone());
    let [s1, b1] = step(1, &nasty, 1);
    let rows = [
        row(1, 0, 1, vec![started(), s1, b1]),
        row(2, 1, 1, vec![succeeded(1, 1, 1, &nasty)]),
        row(3, i64::from(u32::MAX), 1, vec![failed(1, 1, -50, failure.clone(), Some(99))]),
        row(4, -1, 2, vec![ExecutionFailed { failure }.into()]),
    ];
    let picture = draw(&rows, Style::Plain);
    for line in picture.lines() {
        let wide = line.chars().filter(|c| *c == '界').count();
        let columns = line.chars().count() + wide;
        assert!(columns <= COLUMNS_MAX, "{columns} columns: {line}");
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202E}'), "{line:?}");
    }
    assert!(picture.contains('…'), "{picture}");
}

#[test]
fn a_journal_of_no_rows_is_drawn_as_one_that_is_open() {
    assert_eq!(draw(&[], Style::Plain).lines().last(), Some("      0 ms  ◌    not closed"));
}
