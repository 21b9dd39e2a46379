//! Dying on purpose: a look at each journal row once it is on disk, before anybody is told.

use std::io::Write;
use std::sync::{Arc, Mutex};

use backstitch::core::event::Event;
use backstitch::engine::ErrorKind;
use backstitch::store::{AfterSync, CommittedRow, RunNo};
use backstitch::{Client, Row};

/// What is done when an event of the watched execution is on disk.
#[derive(Clone, Copy)]
pub enum AtEvent {
    /// The process aborts with the row that holds this event, counted from 1.
    Abort(u64),
    /// A line on stdout.
    Print,
}

/// How far the journal of an execution is.
#[derive(Clone, Copy, Default)]
pub struct Progress {
    run: Option<RunNo>,
    events: u64,
}

impl Progress {
    /// Reads how far the journal of `id` is. Nothing goes on by that: whoever only asks has no code.
    pub async fn of(client: &Client, id: &str) -> Result<Progress, backstitch::Error> {
        let info = match client.engine().newest("default", id).await {
            Ok(info) => info,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Progress::default()),
            Err(error) => return Err(error.into()),
        };
        let rows = client.engine().journal(info.run).await?;
        let events = rows.iter().map(|row| row.events.len() as u64).sum();
        Ok(Progress { run: Some(info.run), events })
    }

    /// Dies if the `n`th event was written since `before`.
    pub fn die_if_reached(self, before: Progress, at_event: AtEvent) {
        let seen = if self.run == before.run { before.events } else { 0 };
        match at_event {
            AtEvent::Abort(n) if seen < n && n <= self.events => std::process::abort(),
            AtEvent::Abort(_) | AtEvent::Print => {}
        }
    }
}

fn read(row: &[u8]) -> Row {
    Row::decode(row.to_vec()).expect("the engine reads what it wrote")
}

/// The hook that counts the events of `id`, on from `progress`.
pub fn watch(id: &'static str, progress: Progress, at_event: AtEvent) -> AfterSync {
    let progress = Mutex::new(progress);
    Arc::new(move |rows| {
        let mut progress = progress.lock().expect("no code panics under this lock");
        rows.iter().for_each(|row| look(row, id, &mut progress, at_event));
    })
}

fn look(committed: &CommittedRow, id: &str, progress: &mut Progress, at_event: AtEvent) {
    let row = read(&committed.row);
    if let Some(Event::ExecutionStarted(started)) = row.events.first()
        && started.id == id
    {
        *progress = Progress { run: Some(committed.run), events: 0 };
    }
    if progress.run != Some(committed.run) {
        return;
    }
    let before = progress.events;
    progress.events += row.events.len() as u64;
    match at_event {
        AtEvent::Abort(n) if before < n && n <= progress.events => std::process::abort(),
        AtEvent::Abort(_) => {}
        AtEvent::Print => {
            for (event, no) in row.events.iter().zip(before + 1..) {
                // Whoever reads may be gone; the transfer goes on.
                let _ = writeln!(std::io::stdout(), "event {no} {}", event.name());
            }
        }
    }
}
