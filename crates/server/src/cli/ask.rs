//! Asking: a server over HTTP, or a file as its guest. Both give the same answers.

use std::time::Duration;

use backstitch::Backstitch;
use backstitch::timeline::Style;
use backstitch_api::http::{
    Asked, Deleted, EventAccepted, Execution, JournalPage, JournalRow, Listing, Matters, Outcome,
    Problem, Restart, SendEvent, Sent, StartExecution, Started, Workers,
};
use hyper::Method;

use super::arguments::{One, Talk};
use super::fault::{Fault, UNREACHABLE, USAGE};
use super::remote::{Asking, Coming, Remote};
use crate::config::store_path;
use crate::http::limits::WAIT_MAX;
use crate::service::{Filter, Followed, Service, Target, Verb};

/// Whom to ask, and about which namespace.
pub struct Asker {
    whom: Whom,
    namespace: String,
}

enum Whom {
    Server(Remote),
    File(Service),
}

/// A journal that is followed.
pub enum Rows {
    /// What a server sends, and what of it is not read yet.
    Sent { coming: Coming, rest: Vec<u8> },
    /// What stands in a file.
    Read(Box<Followed>),
}

impl Asker {
    /// Finds out whom to ask.
    pub async fn new(talk: &Talk) -> Result<Asker, Fault> {
        let whom = match &talk.store {
            None => Whom::Server(Remote::new(&talk.server())?),
            Some(store) => {
                let url = format!("sqlite:{}", path_of(store)?);
                let client = Backstitch::connect(&url).await;
                Whom::File(Service::new(client.map_err(crate::service::told)?))
            }
        };
        Ok(Asker { whom, namespace: talk.namespace.clone() })
    }

    /// Whether nobody but a file is asked.
    pub fn is_guest(&self) -> bool {
        matches!(self.whom, Whom::File(_))
    }

    fn target(&self, one: &One) -> Target {
        Target { namespace: self.namespace.clone(), id: one.id.clone(), run_id: one.run_id }
    }

    fn get<'a>(&self, path: Vec<&'a str>) -> Asking<'a> {
        Asking::get(path).with("namespace", Some(self.namespace.clone()))
    }

    /// Asks about `one`, at the path behind its id.
    fn get_of<'a>(&self, one: &'a One, what: &[&'a str]) -> Asking<'a> {
        let path = ["v1", "executions", &one.id].into_iter().chain(what.iter().copied());
        self.get(path.collect()).with("run_id", one.run_id.map(|run_id| run_id.to_string()))
    }

    /// Sends something to `one`.
    fn post_to<'a, T: serde::Serialize>(
        &self,
        one: &'a One,
        what: &'a str,
        body: &T,
        request_id: Option<String>,
    ) -> Asking<'a> {
        let asking = self.post(vec!["v1", "executions", &one.id, what], body, request_id);
        asking.with("run_id", one.run_id.map(|run_id| run_id.to_string()))
    }

    fn post<'a, T: serde::Serialize>(
        &self,
        path: Vec<&'a str>,
        body: &T,
        request_id: Option<String>,
    ) -> Asking<'a> {
        Asking::post(path, body, request_id).with("namespace", Some(self.namespace.clone()))
    }

    pub async fn start(
        &self,
        start: StartExecution,
        request_id: Option<String>,
    ) -> Result<Started, Fault> {
        match &self.whom {
            Whom::Server(server) => {
                server.ask(self.post(vec!["v1", "executions"], &start, request_id)).await
            }
            Whom::File(service) => {
                let namespace = Some(self.namespace.clone());
                Ok(service.start(StartExecution { namespace, ..start }, request_id).await?)
            }
        }
    }

    /// `value` is how the attribute of the filter was written.
    pub async fn list(&self, filter: Filter, value: Option<String>) -> Result<Listing, Fault> {
        let filter = Filter { namespace: self.namespace.clone(), ..filter };
        match &self.whom {
            Whom::File(service) => Ok(service.list(&filter).await?),
            Whom::Server(server) => {
                let status =
                    filter.status.map(|status| backstitch::Status::from(status).name().to_owned());
                let asking = self
                    .get(vec!["v1", "executions"])
                    .with("status", status)
                    .with("workflow", filter.workflow)
                    .with("started_after", filter.started_after.map(|at| at.to_string()))
                    .with("started_before", filter.started_before.map(|at| at.to_string()))
                    .with("attribute", filter.attribute.map(|(name, _)| name))
                    .with("value", value)
                    .with("cursor", filter.cursor)
                    .with("limit", filter.limit.map(|limit| limit.to_string()));
                server.ask(asking).await
            }
        }
    }

    pub async fn show(&self, one: &One) -> Result<Execution, Fault> {
        match &self.whom {
            Whom::Server(server) => server.ask(self.get_of(one, &[])).await,
            Whom::File(service) => Ok(service.get(&self.target(one)).await?),
        }
    }

    pub async fn timeline(&self, one: &One, style: Style) -> Result<String, Fault> {
        match &self.whom {
            Whom::Server(server) => {
                let colour = (style == Style::Colour).to_string();
                let asking = self.get_of(one, &["timeline"]);
                let bytes = server.bytes(asking.with("colour", Some(colour))).await?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Whom::File(service) => Ok(service.timeline(&self.target(one), style).await?),
        }
    }

    pub async fn journal(&self, one: &One, after: u64) -> Result<JournalPage, Fault> {
        match &self.whom {
            Whom::Server(server) => {
                let asking = self.get_of(one, &["journal"]);
                server.ask(asking.with("after", Some(after.to_string()))).await
            }
            Whom::File(service) => Ok(service.journal(&self.target(one), after, None).await?),
        }
    }

    pub async fn follow(&self, one: &One, after: u64) -> Result<Rows, Fault> {
        match &self.whom {
            Whom::Server(server) => {
                let asking = self.get_of(one, &["journal"]);
                let asking = asking.with("after", Some(after.to_string()));
                let asking = Asking { accept: "text/event-stream", ..asking };
                Ok(Rows::Sent { coming: server.send(asking).await?, rest: Vec::new() })
            }
            Whom::File(service) => {
                Ok(Rows::Read(Box::new(service.follow(&self.target(one), after).await?)))
            }
        }
    }

    /// The result, for which at most so long is waited.
    pub async fn result(&self, one: &One, wait: Duration) -> Result<Outcome, Fault> {
        let wait = wait.min(WAIT_MAX);
        match &self.whom {
            Whom::Server(server) => {
                let asking = self.get_of(one, &["result"]);
                server.ask(asking.with("wait_ms", Some(wait.as_millis().to_string()))).await
            }
            Whom::File(service) => Ok(service.result(&self.target(one), wait).await?),
        }
    }

    pub async fn event(
        &self,
        one: &One,
        event: SendEvent,
        event_id: Option<String>,
    ) -> Result<EventAccepted, Fault> {
        match &self.whom {
            Whom::Server(server) => server.ask(self.post_to(one, "events", &event, event_id)).await,
            Whom::File(service) => Ok(service.event(&self.target(one), event, event_id).await?),
        }
    }

    pub async fn verb(
        &self,
        one: &One,
        verb: Verb,
        request_id: Option<String>,
    ) -> Result<Sent, Fault> {
        let server = match &self.whom {
            Whom::Server(server) => server,
            Whom::File(service) => {
                return Ok(service.verb(&self.target(one), verb, request_id).await?);
            }
        };
        let asking = match &verb {
            Verb::Cancel(asked) => self.post_to(one, "cancel", asked, request_id),
            Verb::Terminate(asked) => self.post_to(one, "terminate", asked, request_id),
            Verb::Rollback(asked) => self.post_to(one, "rollback", asked, request_id),
            Verb::Kill(asked) => self.post_to(one, "kill", asked, request_id),
            Verb::Pause(asked) => self.post_to(one, "pause", asked, request_id),
            Verb::Resume(resume) => self.post_to(one, "resume", resume, request_id),
            Verb::RetryStep(asked) => self.post_to(one, "retry-step", asked, request_id),
            Verb::RetryUndo(asked) => self.post_to(one, "retry-undo", asked, request_id),
            Verb::WaiveUndo(asked) => self.post_to(one, "waive-undo", asked, request_id),
            Verb::SetAttributes(set) => self.post_to(one, "set-attributes", set, request_id),
        };
        server.ask(asking).await
    }

    pub async fn restart(
        &self,
        one: &One,
        restart: Restart,
        request_id: Option<String>,
    ) -> Result<Started, Fault> {
        match &self.whom {
            Whom::Server(server) => {
                server.ask(self.post_to(one, "restart", &restart, request_id)).await
            }
            Whom::File(service) => {
                Ok(service.restart(&self.target(one), restart, request_id).await?)
            }
        }
    }

    pub async fn delete(&self, one: &One, asked: Asked) -> Result<Deleted, Fault> {
        match &self.whom {
            Whom::Server(server) => {
                let asking = self.get_of(one, &[]);
                let asking = asking.with("by", asked.by).with("reason", asked.reason);
                server.ask(Asking { method: Method::DELETE, ..asking }).await
            }
            Whom::File(service) => Ok(service.delete(&self.target(one), asked).await?),
        }
    }

    pub async fn attention(&self, cursor: Option<&str>, limit: usize) -> Result<Matters, Fault> {
        match &self.whom {
            Whom::Server(server) => {
                let asking = Asking::get(vec!["v1", "attention"]);
                let asking = asking.with("cursor", cursor.map(str::to_owned));
                server.ask(asking.with("limit", Some(limit.to_string()))).await
            }
            Whom::File(service) => Ok(service.attention(cursor, Some(limit)).await?),
        }
    }

    pub async fn workers(&self) -> Result<Workers, Fault> {
        match &self.whom {
            Whom::Server(server) => server.ask(Asking::get(vec!["v1", "workers"])).await,
            Whom::File(service) => Ok(service.workers()),
        }
    }
}

impl Rows {
    /// The next rows; waits for them. `None` when the run is closed, and there are no more.
    pub async fn next(&mut self) -> Result<Option<Vec<JournalRow>>, Fault> {
        let (coming, rest) = match self {
            Rows::Read(followed) => return Ok(followed.next().await?),
            Rows::Sent { coming, rest } => (coming, rest),
        };
        loop {
            if let Some(end) = rest.windows(2).position(|two| two == b"\n\n") {
                let frame: Vec<u8> = rest.drain(..end + 2).collect();
                match read(&String::from_utf8_lossy(&frame))? {
                    Frame::Nothing => continue,
                    Frame::Row(row) => return Ok(Some(vec![*row])),
                    Frame::End => return Ok(None),
                }
            }
            match coming.piece().await? {
                Some(piece) => rest.extend(piece),
                None => {
                    let message = "the connection broke while the journal was followed; ask again";
                    return Err(Fault::new(UNREACHABLE, message));
                }
            }
        }
    }
}

enum Frame {
    Nothing,
    Row(Box<JournalRow>),
    End,
}

/// Reads one server-sent event.
fn read(frame: &str) -> Result<Frame, Fault> {
    let of = |field: &str| -> Vec<&str> {
        let values = frame.lines().filter_map(|line| line.strip_prefix(field)?.strip_prefix(": "));
        values.collect()
    };
    let data = of("data").join("\n");
    let unreadable = |why: serde_json::Error| {
        Fault::new(UNREACHABLE, format!("the server sends what is no row of a journal: {why}"))
    };
    match of("event").first().copied() {
        Some("row") => Ok(Frame::Row(serde_json::from_str(&data).map_err(unreadable)?)),
        Some("end") => Ok(Frame::End),
        Some("problem") => {
            let problem: Problem = serde_json::from_str(&data).map_err(unreadable)?;
            Err(problem.into())
        }
        Some(_) | None => Ok(Frame::Nothing),
    }
}

/// The file that is asked, where only a file will do.
pub fn file_of(talk: &Talk) -> Result<String, Fault> {
    let Some(store) = &talk.store else {
        let message = "say which file, with --store sqlite:PATH: it is copied on this machine, and a \
                       server need not run for it";
        return Err(Fault::new(USAGE, message));
    };
    Ok(path_of(store)?.to_owned())
}

fn path_of(store: &str) -> Result<&str, Fault> {
    store_path(store).map_err(|why| Fault::new(USAGE, format!("--store is {store:?}: {why}")))
}
