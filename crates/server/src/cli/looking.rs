//! Looking at one execution: its picture and its journal.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use backstitch_api::http::{Event, Execution, JournalRow, Status, WaitsFor};
use serde_json::value::RawValue;

use super::arguments::One;
use super::ask::Rows;
use super::commands::Asking;
use super::fault::{Fault, UNREACHABLE};
use super::paper::clean;

/// So long no row comes before it is asked what the run is doing.
const QUIET_MIN: Duration = Duration::from_millis(500);

/// And so long, if it goes on: a worker can come and go without a row.
const QUIET_MAX: Duration = Duration::from_secs(8);

/// What was said of a run that is shown live, besides its picture.
#[derive(Default)]
struct Said {
    line: String,
    matters: BTreeSet<String>,
}

impl Asking {
    pub(super) async fn show(&self, one: &One) -> Result<(), Fault> {
        let execution = self.asker.show(one).await?;
        if self.paper.json {
            return Ok(self.paper.json(&execution)?);
        }
        let one = of_run(one, &execution)?;
        self.paper.text(&self.asker.timeline(&one, self.paper.style).await?)?;
        for line in asides(&execution) {
            self.paper.line(&clean(&line))?;
        }
        Ok(())
    }

    /// Prints of the picture what cannot change any more, and the rest at the end; meanwhile, for whom it waits.
    pub(super) async fn show_live(&self, one: &One) -> Result<(), Fault> {
        if self.paper.json {
            return self.journal(one, 0, true).await;
        }
        // Rows and pictures are of one run, also when a newer one begins meanwhile.
        let one = &of_run(one, &self.asker.show(one).await?)?;
        let mut rows = self.asker.follow(one, 0).await?;
        let (mut shown, mut said) = (0, Said::default());
        loop {
            let over = self.next(one, &mut rows, &mut said).await?;
            let picture = self.asker.timeline(one, self.paper.style).await?;
            let lines: Vec<&str> = picture.lines().collect();
            // A picture of an open run ends with a line of rail and what the run is doing.
            let settled = if over { lines.len() } else { lines.len().saturating_sub(2) };
            for line in lines.iter().take(settled).skip(shown) {
                self.paper.line(line)?;
            }
            shown = shown.max(settled);
            if over {
                return Ok(());
            }
        }
    }

    /// Waits for rows, and says for whom the run waits when none come. Whether it is closed.
    async fn next(&self, one: &One, rows: &mut Rows, said: &mut Said) -> Result<bool, Fault> {
        let mut next = pin!(rows.next());
        let mut quiet = QUIET_MIN;
        loop {
            if let Ok(rows) = tokio::time::timeout(quiet, &mut next).await {
                return Ok(rows?.is_none());
            }
            self.say_for_whom(one, said).await?;
            quiet = (2 * quiet).min(QUIET_MAX);
        }
    }

    async fn say_for_whom(&self, one: &One, said: &mut Said) -> Result<(), Fault> {
        let execution = self.asker.show(one).await?;
        let waits = matches!(
            execution.status,
            Status::Pending | Status::Paused | Status::Blocked | Status::Stuck
        );
        if !waits {
            said.line.clear();
            return Ok(());
        }
        let picture = self.asker.timeline(one, self.paper.style).await?;
        let line = picture.lines().last().unwrap_or_default();
        if said.line != line {
            line.clone_into(&mut said.line);
            self.paper.line(line)?;
        }
        for matter in matters(&execution) {
            if said.matters.insert(matter.clone()) {
                self.paper.line(&clean(&matter))?;
            }
        }
        Ok(())
    }

    pub(super) async fn journal(&self, one: &One, after: u64, follow: bool) -> Result<(), Fault> {
        if follow {
            let mut rows = self.asker.follow(one, after).await?;
            while let Some(rows) = rows.next().await? {
                rows.iter().try_for_each(|row| self.row(row))?;
            }
            return Ok(());
        }
        let mut after = after;
        loop {
            let page = self.asker.journal(one, after).await?;
            page.rows.iter().try_for_each(|row| self.row(row))?;
            match page.next_after {
                Some(next) => after = next,
                None => return Ok(()),
            }
        }
    }

    fn row(&self, row: &JournalRow) -> Result<(), Fault> {
        if self.paper.json {
            return Ok(self.paper.json(row)?);
        }
        let at = row.at.strftime("%H:%M:%S%.3f");
        for (i, event) in row.events.iter().enumerate() {
            let (seq, at) = match i {
                0 => (row.seq.to_string(), at.to_string()),
                _ => (String::new(), String::new()),
            };
            let kind = event.kind.replace('_', " ");
            let said = fields(event);
            let line = format!("{seq:>5}  {at:<12}  {kind:<22}  {}", clean(&said));
            self.paper.line(line.trim_end())?;
        }
        Ok(())
    }
}

/// What an event says besides its kind, with values as they were written.
fn fields(event: &Event) -> String {
    let json = serde_json::to_string(event).expect("events are JSON by their types");
    let mut fields: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(&json).expect("events are objects by their type");
    fields.remove("kind");
    fields.remove("place");
    match fields.is_empty() {
        true => String::new(),
        false => serde_json::to_string(&fields).expect("it was JSON before"),
    }
}

/// The run that was found, whichever is the newest by now.
pub(super) fn of_run(one: &One, found: &Execution) -> Result<One, Fault> {
    let run_id = found.run_id.parse();
    Ok(one.of_run(run_id.map_err(|why: String| Fault::new(UNREACHABLE, why))?))
}

/// What is to be known of an execution and is not in its picture.
fn asides(execution: &Execution) -> Vec<String> {
    let mut lines: Vec<String> = execution.waits_for.iter().filter_map(waits_for).collect();
    for block in &execution.blocks {
        let step = block.step.as_ref().map(|step| format!(" {step:?}")).unwrap_or_default();
        let what = block.what.replace('_', " ");
        lines.push(format!("blocked: {what}{step}: {}", block.failure.message));
    }
    lines.extend(matters(execution));
    for (name, value) in &execution.attributes {
        let value = serde_json::to_string(value).unwrap_or_default();
        lines.push(format!("{name} = {value}"));
    }
    if !lines.is_empty() {
        lines.insert(0, String::new());
    }
    lines
}

fn matters(execution: &Execution) -> impl Iterator<Item = String> {
    let matters = execution.attention.iter();
    matters.map(|matter| format!("a person is needed: {}", matter.message))
}

/// What a run waits for, where its picture does not show it.
fn waits_for(waits: &WaitsFor) -> Option<String> {
    match waits {
        WaitsFor::Event { name, types, .. } => {
            let types = types.join(" or ");
            Some(format!("waits at {name} for an event: {types}"))
        }
        WaitsFor::Worker { .. }
        | WaitsFor::EarlierRun { .. }
        | WaitsFor::Instant { .. }
        | WaitsFor::Step { .. }
        | WaitsFor::Person => None,
    }
}
