//! What is done to bytes of any origin, and has to hold: nothing here may panic but the assertions.

use std::collections::VecDeque;

use backstitch_core::event::{BlockKind, Event};
use backstitch_core::id::KeyKind;
use backstitch_core::retry::{StepPolicy, UndoPolicy};
use backstitch_core::row::{Draft, Header, Row, RowKind};
use backstitch_core::run::{Ending, IllegalEvent, Phase, Run};
use backstitch_core::session::{Asked, AskedKind, Note, Report, Session};
use backstitch_core::status::Status;

/// Later than everything that a journal names, but not so late that sums overflow.
const NOW_US: i64 = 4_000_000_000_000_000;

/// The row as it would be written.
pub fn sealed(row: &Row) -> Vec<u8> {
    let header = Header { at_us: 0, ..row.header.clone() };
    Draft::new(header, &row.events).seal(row.header.at_us)
}

/// Puts the right checksum under whatever stands before it.
pub fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(length) = bytes.len().checked_sub(4) {
        let crc = crc32c::crc32c(&bytes[..length]);
        bytes[length..].copy_from_slice(&crc.to_be_bytes());
    }
    bytes
}

/// Bytes are a row or they are not; what is one is written as what reads the same.
pub fn read_row(bytes: Vec<u8>) -> Option<Row> {
    let row = match Row::decode(bytes) {
        Ok(row) => row,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    for event in &row.events {
        let mut bytes = Vec::new();
        event.encode(&mut bytes);
        assert_eq!(bytes.len(), event.encoded_len());
    }
    let written = sealed(&row);
    let again = Row::decode(written.clone()).expect("what is written is read");
    assert_eq!(said(&again), said(&row));
    assert_eq!(sealed(&again), written);
    Some(row)
}

/// What a row says. No number is equal to itself if it is none, and the two zeros are equal.
fn said(row: &Row) -> String {
    format!("{row:?}").replace("-0.0", "0.0")
}

/// Rows are a journal or they are not; one that is can be looked at, and replayed by code that fits
/// it and by code that does not.
pub fn read_journal(rows: &[Row]) -> Option<Run> {
    let run = match Run::fold(rows) {
        Ok(run) => run,
        Err(illegal) => {
            assert!(!illegal.to_string().is_empty());
            assert_eq!(load(rows).err(), Some(illegal));
            return None;
        }
    };
    look_at(&run);
    for code in [Code::Fits, Code::DoesNothing] {
        replay(rows, code);
    }
    Some(run)
}

fn load(rows: &[Row]) -> Result<Session, IllegalEvent> {
    Session::load(rows, 7, "worker", Status::Running, None)
}

fn look_at(run: &Run) {
    for has_worker in [false, true] {
        run.status(has_worker);
        run.waits_for(has_worker);
    }
    run.rollback_progress();
    run.next_due_us();
    run.deadline_at_us();
    run.ended_by();
    run.plan();
    run.dropped_and_owed();
    run.deliverable();
    run.debts_of_kill();
    for (ord, step) in run.steps() {
        assert!(run.step(ord).is_some());
        step.outcome();
        step.is_owed();
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Code {
    Fits,
    DoesNothing,
}

fn replay(rows: &[Row], code: Code) {
    let mut session = load(rows).expect("it folds");
    session.attach();
    let mut reports = reports(rows, code);
    while session.is_replaying() {
        session.next_group().expect("replay has groups left");
        let report = reports.pop_front().unwrap_or_default();
        if let Err(mismatch) = session.end_group(report) {
            assert!(!mismatch.to_string().is_empty());
            session.block(BlockKind::Mismatch, mismatch.to_failure());
        }
    }
    session.recover(NOW_US, |_| false, |_| false);
    session.wake_at_us();
    for append in 0..3 {
        session.open_row(NOW_US);
        while session.next_group().is_some() {
            if session.end_group(Report::default()).is_err() {
                break;
            }
        }
        session.close_row([append; 16]);
    }
}

/// What the code has to do in each group, for this journal.
fn reports(rows: &[Row], code: Code) -> VecDeque<Report> {
    let mut reports: VecDeque<Report> = VecDeque::new();
    if code == Code::DoesNothing {
        return reports;
    }
    for row in rows.iter().filter(|row| row.header.kind() == RowKind::Turn) {
        if reports.is_empty() {
            reports.push_back(Report::default());
        }
        for event in &row.events {
            if begins_a_group(event) {
                reports.push_back(Report::default());
            }
            takes_down(reports.back_mut().expect("there is one"), event);
        }
    }
    if let (Ok(Run { phase: Phase::Closed(Ending::Succeeded(output)), .. }), Some(last)) =
        (Run::fold(rows), reports.back_mut())
    {
        last.ended = Some(Ok(output));
    }
    reports
}

fn begins_a_group(event: &Event) -> bool {
    matches!(
        event,
        Event::StepSucceeded(_)
            | Event::StepFailed(_)
            | Event::TimerFired(_)
            | Event::WaitSatisfied(_)
            | Event::WaitTimedOut(_)
            | Event::Shown(_)
    )
}

fn takes_down(report: &mut Report, event: &Event) {
    let key = match event {
        Event::StepScheduled(e) => &e.key,
        Event::TimerStarted(e) => &e.key,
        Event::WaitStarted(e) => &e.key,
        Event::StepCancelRequested(e) => return report.drops.push(e.ord),
        Event::TimerCancelled(e) => return report.drops.push(e.ord),
        Event::WaitCancelled(e) => return report.drops.push(e.ord),
        Event::MarkerRecorded(e) => return report.patched.push(e.name.clone()),
        Event::ValuePublished(e) => {
            let (key, value) = (e.key.clone(), e.value.clone());
            return report.notes.push(Note::Published { key, value });
        }
        _ => return,
    };
    // Code that asks under this key asks for that kind, whatever the journal made of it.
    let what = match key.kind() {
        KeyKind::Step => AskedKind::Step {
            policy: StepPolicy::step_default(),
            undo: Some(UndoPolicy::undo_default()),
        },
        KeyKind::Timer => AskedKind::Timer { fire_at_us: NOW_US },
        KeyKind::Wait => AskedKind::Wait { types: vec!["word".into()], until_us: None },
    };
    report.asks.push(Asked { key: key.clone(), place: "src/a.rs:1:1".into(), what });
}
