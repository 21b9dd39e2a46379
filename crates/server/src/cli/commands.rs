//! The commands that ask something.

use std::time::{Duration, Instant};

use backstitch::IntoDuration;
use backstitch_api::http::{
    Asked, Listing, Outcome, Restart, Resume, SendEvent, SetAttributes, StartExecution, Status,
    StepAsked, StepName, Value,
};

use super::arguments::{self, Ask, OfStep, One, Sure, Talk};
use super::ask::Asker;
use super::confirm::confirm;
use super::fault::{Fault, NO_SUCCESS, NOT_OVER, USAGE};
use super::looking::of_run;
use super::paper::{Paper, clean, instant, status};
use crate::http::limits::WAIT_MAX;
use crate::service::{Filter, Verb};

/// Does what is asked.
pub async fn run(talk: &Talk, asked: Ask) -> Result<(), Fault> {
    let paper = Paper::new(talk.json);
    let by = Some(talk.by());
    match asked {
        Ask::Openapi => return Ok(paper.text(&crate::http::document())?),
        Ask::Backup { path } => return super::backup::backup(talk, &path).await,
        _ => {}
    }
    let asker = Asker::new(talk).await?;
    let ask = Asking { asker, paper, by };
    match asked {
        Ask::Start(start) => ask.start(start).await,
        Ask::List(list) => ask.list(list).await,
        Ask::Show { one, follow: false } => ask.show(&one).await,
        Ask::Show { one, follow: true } => ask.show_live(&one).await,
        Ask::Journal { one, after, follow } => ask.journal(&one, after, follow).await,
        Ask::Result { one, wait } => ask.result(&one, wait.as_deref()).await,
        Ask::Event { one, event_type, payload, request } => {
            let payload = payload.map(|text| json("what the event says", &text)).transpose()?;
            let event = SendEvent { event_type, payload, by: ask.by.clone() };
            let accepted = ask.asker.event(&one, event, request.request_id).await?;
            let what = if accepted.first { "accepted" } else { "was accepted before" };
            Ok(ask.paper.say(&accepted, &format!("{what}, as number {}", accepted.number))?)
        }
        Ask::Restart { one, version, request } => {
            let restart = Restart { version, by: ask.by.clone() };
            let started = ask.asker.restart(&one, restart, request.request_id).await?;
            let said = format!("{} is done over as run {}", clean(&started.id), started.run_id);
            Ok(ask.paper.say(&started, &said)?)
        }
        Ask::Delete { one, reason, sure } => ask.delete(one, reason, &sure).await,
        Ask::Attention { cursor, limit } => ask.attention(cursor.as_deref(), limit).await,
        Ask::Workers => ask.workers().await,
        verb => ask.verb(verb).await,
    }
}

/// Whom to ask, where the answers go, and who asks.
pub struct Asking {
    pub(super) asker: Asker,
    pub(super) paper: Paper,
    pub(super) by: Option<String>,
}

impl Asking {
    async fn start(&self, start: arguments::Start) -> Result<(), Fault> {
        use backstitch_api::http::{Conflict, Reuse};
        let input = match start.input.as_deref() {
            None => None,
            Some("-") => {
                let text = std::io::read_to_string(std::io::stdin()).map_err(|error| {
                    Fault::new(USAGE, format!("the standard input cannot be read: {error}"))
                })?;
                Some(json("the input", &text)?)
            }
            Some(text) => Some(json("the input", text)?),
        };
        let attributes = start.attributes.into_iter();
        let request = StartExecution {
            id: start.id,
            workflow: start.workflow,
            version: start.version,
            input,
            namespace: None,
            conflict: start.conflict.map(|conflict| match conflict {
                arguments::Conflict::UseExisting => Conflict::UseExisting,
                arguments::Conflict::Fail => Conflict::Fail,
                arguments::Conflict::Terminate => Conflict::Terminate,
            }),
            reuse: start.reuse.map(|reuse| match reuse {
                arguments::Reuse::Reject => Reuse::Reject,
                arguments::Reuse::AllowIfFailed => Reuse::AllowIfFailed,
                arguments::Reuse::Allow => Reuse::Allow,
            }),
            deadline: start.deadline,
            retention: start.retention,
            attributes: attributes.filter_map(|(name, value)| Some((name, value?))).collect(),
            by: self.by.clone(),
        };
        let started = self.asker.start(request, start.request.request_id).await?;
        let what = if started.created { "started" } else { "was started before" };
        let said = format!("{} {what}, as run {}", clean(&started.id), started.run_id);
        Ok(self.paper.say(&started, &said)?)
    }

    async fn list(&self, list: arguments::List) -> Result<(), Fault> {
        let (attribute, value) = match list.attribute {
            None => (None, None),
            Some((name, value)) => {
                let attribute = crate::http::attribute_of(&value);
                let attribute = attribute.map_err(|why| Fault::new(USAGE, why))?;
                (Some((name, attribute)), Some(value))
            }
        };
        let filter = Filter {
            namespace: String::new(),
            status: list.status,
            workflow: list.workflow,
            started_after: list.started_after,
            started_before: list.started_before,
            attribute,
            cursor: list.cursor,
            limit: None,
        };
        let listing = self.found(filter, value, list.limit).await?;
        if self.paper.json {
            return Ok(self.paper.json(&listing)?);
        }
        let row = |run: &backstitch_api::http::Summary| {
            let closed = run.closed_at.map(instant).unwrap_or_default();
            vec![
                run.id.clone(),
                run.workflow.clone(),
                status(run.status),
                instant(run.created_at),
                closed,
            ]
        };
        let rows = listing.executions.iter().map(row).collect();
        let head = ["id", "workflow", "status", "started", "closed"];
        self.paper.table(&head, rows, "no executions")?;
        self.more(listing.next_cursor)
    }

    /// Asks page by page, as a server looks through no more than so many executions at a time.
    async fn found(
        &self,
        mut filter: Filter,
        value: Option<String>,
        limit: usize,
    ) -> Result<Listing, Fault> {
        let mut found = Vec::new();
        loop {
            filter.limit = Some(limit - found.len());
            let page = self.asker.list(filter.clone(), value.clone()).await?;
            found.extend(page.executions);
            if page.next_cursor.is_none() || found.len() >= limit {
                return Ok(Listing { executions: found, next_cursor: page.next_cursor });
            }
            filter.cursor = page.next_cursor;
        }
    }

    fn more(&self, next_cursor: Option<String>) -> Result<(), Fault> {
        if let Some(cursor) = next_cursor {
            self.paper.line(&format!("\nmore: --cursor {cursor}"))?;
        }
        Ok(())
    }

    async fn result(&self, one: &One, wait: Option<&str>) -> Result<(), Fault> {
        let patience = match wait {
            None => Duration::MAX,
            Some(text) => {
                let us =
                    text.into_us().map_err(|why| Fault::new(USAGE, format!("--wait: {why}")))?;
                Duration::from_micros(us)
            }
        };
        let began = Instant::now();
        let outcome = loop {
            let left = patience.saturating_sub(began.elapsed());
            let outcome = self.asker.result(one, left.min(WAIT_MAX)).await?;
            if outcome.settled || began.elapsed() >= patience {
                break outcome;
            }
        };
        self.came_out(&outcome)
    }

    /// The output goes to the standard output, and everything else to where errors go.
    fn came_out(&self, outcome: &Outcome) -> Result<(), Fault> {
        if self.paper.json {
            self.paper.json(outcome)?;
        } else if let Some(output) = &outcome.output {
            self.paper.line(output.get())?;
        }
        match (outcome.status, outcome.settled) {
            (Status::Succeeded, _) => Ok(()),
            (_, true) => Err(Fault::new(NO_SUCCESS, clean(&outcome.message))),
            (_, false) => Err(Fault::new(NOT_OVER, clean(&outcome.message))),
        }
    }

    async fn attention(&self, cursor: Option<&str>, limit: usize) -> Result<(), Fault> {
        let matters = self.asker.attention(cursor, limit).await?;
        if self.paper.json {
            return Ok(self.paper.json(&matters)?);
        }
        let row = |matter: &backstitch_api::http::Matter| {
            let step = matter.step.map(|ord| ord.to_string()).unwrap_or_default();
            let opened = matter.opened_at.map(instant).unwrap_or_default();
            vec![
                matter.id.clone(),
                matter.run_id.clone(),
                step,
                matter.kind.replace('_', " "),
                opened,
                matter.message.clone(),
            ]
        };
        let rows = matters.attention.iter().map(row).collect();
        let head = ["id", "run", "step", "what", "since", "why"];
        self.paper.table(&head, rows, "nothing waits for a person")?;
        self.more(matters.next_cursor)
    }

    async fn workers(&self) -> Result<(), Fault> {
        let workers = self.asker.workers().await?;
        if self.paper.json {
            return Ok(self.paper.json(&workers)?);
        }
        let row = |worker: &backstitch_api::http::Worker| {
            let place = match (worker.built_in, worker.connected, worker.draining) {
                (true, _, _) => "built in",
                (false, false, _) => "not heard of",
                (false, true, true) => "leaving",
                (false, true, false) => "connected",
            };
            let runs_now = match (worker.leased, worker.slots) {
                (Some(leased), Some(slots)) => format!("{leased} of {slots}"),
                _ => String::new(),
            };
            let runs =
                worker.workflows.iter().map(|known| format!("{} {}", known.name, known.version));
            let workflows = runs.collect::<Vec<_>>().join(", ");
            vec![worker.name.clone(), place.to_owned(), runs_now, workflows]
        };
        let nothing = match self.asker.is_guest() {
            true => "a file does not say who works on it; ask the server",
            false => "no workers: what is started waits",
        };
        let rows = workers.workers.iter().map(row).collect();
        Ok(self.paper.table(&["worker", "place", "runs", "workflows"], rows, nothing)?)
    }

    async fn delete(&self, one: One, reason: Option<String>, sure: &Sure) -> Result<(), Fault> {
        // Who is asked about a run says yes to that one, also when a newer one begins meanwhile.
        let one = match sure.yes {
            true => one,
            false => of_run(&one, &self.asker.show(&one).await?)?,
        };
        confirm(sure, &format!("All that is known of {} will be gone.", named(&one)))?;
        let deleted = self.asker.delete(&one, Asked { by: self.by.clone(), reason }).await?;
        let (id, run_id) = (clean(&deleted.id), &deleted.run_id);
        let mut said = format!("run {run_id} of {id:?} is gone");
        if let Some(other) = &deleted.still_there {
            said += &format!("; run {other} is still there, delete it with --run-id {other}");
        }
        Ok(self.paper.say(&deleted, &said)?)
    }

    /// Nobody is asked about what does not exist.
    async fn make_sure(&self, sure: &Sure, one: &One, what: &str) -> Result<(), Fault> {
        if !sure.yes {
            self.asker.show(one).await?;
        }
        confirm(sure, what)
    }

    async fn verb(&self, asked: Ask) -> Result<(), Fault> {
        let who = |reason| Asked { by: self.by.clone(), reason };
        let about = |OfStep { one, step, reason, request }: OfStep| {
            let step = step.parse().map(StepName::Ord).unwrap_or(StepName::Key(step));
            (one, StepAsked { step, by: self.by.clone(), reason }, request.request_id)
        };
        let plain = |verb: arguments::Verb, make: fn(Asked) -> Verb| {
            (verb.one, make(who(verb.reason)), verb.request.request_id)
        };
        let (one, verb, request_id) = match asked {
            Ask::Cancel(verb) => plain(verb, Verb::Cancel),
            Ask::Terminate(verb) => plain(verb, Verb::Terminate),
            Ask::Rollback(verb) => plain(verb, Verb::Rollback),
            Ask::Pause(verb) => plain(verb, Verb::Pause),
            Ask::Kill { verb, sure } => {
                let one = named(&verb.one);
                let what = format!("{one} will end as it stands: nothing is undone.");
                self.make_sure(&sure, &verb.one, &what).await?;
                plain(verb, Verb::Kill)
            }
            Ask::Resume { verb, shift_timers } => {
                let resume = Resume { shift_timers, by: self.by.clone(), reason: verb.reason };
                (verb.one, Verb::Resume(resume), verb.request.request_id)
            }
            Ask::RetryStep(of_step) => {
                let (one, asked, request_id) = about(of_step);
                (one, Verb::RetryStep(asked), request_id)
            }
            Ask::RetryUndo(of_step) => {
                let (one, asked, request_id) = about(of_step);
                (one, Verb::RetryUndo(asked), request_id)
            }
            Ask::WaiveUndo { of_step, sure } => {
                let (step, one) = (&of_step.step, named(&of_step.one));
                let by = self.by.as_deref().unwrap_or_default();
                let what =
                    format!("The undo of {step:?} in {one} will not run; {by} vouches for it.");
                self.make_sure(&sure, &of_step.one, &what).await?;
                let (one, asked, request_id) = about(of_step);
                (one, Verb::WaiveUndo(asked), request_id)
            }
            Ask::SetAttributes { verb, attributes } => {
                let attributes = attributes.into_iter().collect();
                let (by, reason) = (self.by.clone(), verb.reason);
                let set = SetAttributes { attributes, by, reason };
                (verb.one, Verb::SetAttributes(set), verb.request.request_id)
            }
            Ask::Start(_)
            | Ask::List(_)
            | Ask::Show { .. }
            | Ask::Journal { .. }
            | Ask::Result { .. }
            | Ask::Event { .. }
            | Ask::Restart { .. }
            | Ask::Delete { .. }
            | Ask::Attention { .. }
            | Ask::Workers
            | Ask::Backup { .. }
            | Ask::Openapi => unreachable!("these are no verbs"),
        };
        let sent = self.asker.verb(&one, verb, request_id).await?;
        let said = match sent.changed {
            true => "accepted: it will be carried out",
            false => "noted: it changes nothing, the execution is already there",
        };
        Ok(self.paper.say(&sent, said)?)
    }
}

/// What a person is asked about.
fn named(one: &One) -> String {
    match one.run_id {
        None => format!("{:?}", one.id),
        Some(run_id) => format!("run {run_id} of {:?}", one.id),
    }
}

fn json(what: &str, text: &str) -> Result<Value, Fault> {
    Value::parse(text).map_err(|why| {
        let message =
            format!("{what} is not JSON: {why}; a text is written with quotes, '\"like this\"'");
        Fault::new(USAGE, message)
    })
}
