//! Asking: a server over HTTP, or a file as its guest. Both give the same answers.

use std::time::Duration;

use backstitch::Backstitch;
use backstitch::timeline::Style;
use backstitch_api::http::{
    Asked, EventAccepted, Execution, JournalPage, JournalRow, Listing, Matters, Outcome, Problem,
    Restart, SendEvent, Sent, StartExecution, Started, Workers,
};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Method, Response};

use super::arguments::Talk;
use super::fault::{Fault, UNREACHABLE, USAGE};
use super::remote::{Asking, Remote};
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
    Sent { response: Response<Incoming>, rest: Vec<u8> },
    /// What stands in a file.
    Read(Box<Followed>),
}

/// The URL of a store, of which the path alone may be given.
pub fn store_url(given: &str) -> String {
    match given.contains(':') {
        true => given.to_owned(),
        false => format!("sqlite:{given}"),
    }
}

impl Asker {
    /// Finds out whom to ask.
    pub async fn new(talk: &Talk) -> Result<Asker, Fault> {
        let whom = match &talk.store {
            None => Whom::Server(Remote::new(&talk.server)?),
            Some(store) => {
                let client = Backstitch::connect(&store_url(store)).await;
                Whom::File(Service::new(client.map_err(crate::service::told)?))
            }
        };
        Ok(Asker { whom, namespace: talk.namespace.clone() })
    }

    /// Whether nobody but a file is asked.
    pub fn is_guest(&self) -> bool {
        matches!(self.whom, Whom::File(_))
    }

    fn target(&self, id: &str) -> Target {
        Target { namespace: self.namespace.clone(), id: id.to_owned() }
    }

    fn get<'a>(&self, path: Vec<&'a str>) -> Asking<'a> {
        Asking::get(path).with("namespace", Some(self.namespace.clone()))
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

    pub async fn show(&self, id: &str) -> Result<Execution, Fault> {
        match &self.whom {
            Whom::Server(server) => server.ask(self.get(vec!["v1", "executions", id])).await,
            Whom::File(service) => Ok(service.get(&self.target(id)).await?),
        }
    }

    pub async fn timeline(&self, id: &str, style: Style) -> Result<String, Fault> {
        match &self.whom {
            Whom::Server(server) => {
                let colour = (style == Style::Colour).to_string();
                let asking = self.get(vec!["v1", "executions", id, "timeline"]);
                let bytes = server.bytes(asking.with("colour", Some(colour))).await?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Whom::File(service) => Ok(service.timeline(&self.target(id), style).await?),
        }
    }

    pub async fn journal(&self, id: &str, after: u64) -> Result<JournalPage, Fault> {
        match &self.whom {
            Whom::Server(server) => {
                let asking = self.get(vec!["v1", "executions", id, "journal"]);
                server.ask(asking.with("after", Some(after.to_string()))).await
            }
            Whom::File(service) => Ok(service.journal(&self.target(id), after, None).await?),
        }
    }

    pub async fn follow(&self, id: &str, after: u64) -> Result<Rows, Fault> {
        match &self.whom {
            Whom::Server(server) => {
                let asking = self.get(vec!["v1", "executions", id, "journal"]);
                let asking = asking.with("after", Some(after.to_string()));
                let asking = Asking { accept: "text/event-stream", ..asking };
                Ok(Rows::Sent { response: server.send(asking).await?, rest: Vec::new() })
            }
            Whom::File(service) => {
                Ok(Rows::Read(Box::new(service.follow(&self.target(id), after).await?)))
            }
        }
    }

    /// The result, for which at most so long is waited.
    pub async fn result(&self, id: &str, wait: Duration) -> Result<Outcome, Fault> {
        let wait = wait.min(WAIT_MAX);
        match &self.whom {
            Whom::Server(server) => {
                let asking = self.get(vec!["v1", "executions", id, "result"]);
                server.ask(asking.with("wait_ms", Some(wait.as_millis().to_string()))).await
            }
            Whom::File(service) => Ok(service.result(&self.target(id), wait).await?),
        }
    }

    pub async fn event(
        &self,
        id: &str,
        event: SendEvent,
        event_id: Option<String>,
    ) -> Result<EventAccepted, Fault> {
        match &self.whom {
            Whom::Server(server) => {
                server
                    .ask(self.post(vec!["v1", "executions", id, "events"], &event, event_id))
                    .await
            }
            Whom::File(service) => Ok(service.event(&self.target(id), event, event_id).await?),
        }
    }

    pub async fn verb(
        &self,
        id: &str,
        verb: Verb,
        request_id: Option<String>,
    ) -> Result<Sent, Fault> {
        let server = match &self.whom {
            Whom::Server(server) => server,
            Whom::File(service) => {
                return Ok(service.verb(&self.target(id), verb, request_id).await?);
            }
        };
        let post = |name, body: &dyn erased::Body| {
            let path = vec!["v1", "executions", id, name];
            let asking = Asking { method: Method::POST, ..self.get(path) };
            Asking { body: Some(body.json()), request_id: request_id.clone(), ..asking }
        };
        let asking = match &verb {
            Verb::Cancel(asked) => post("cancel", asked),
            Verb::Terminate(asked) => post("terminate", asked),
            Verb::Rollback(asked) => post("rollback", asked),
            Verb::Kill(asked) => post("kill", asked),
            Verb::Pause(asked) => post("pause", asked),
            Verb::Resume(resume) => post("resume", resume),
            Verb::RetryStep(asked) => post("retry-step", asked),
            Verb::RetryUndo(asked) => post("retry-undo", asked),
            Verb::WaiveUndo(asked) => post("waive-undo", asked),
            Verb::SetAttributes(set) => post("set-attributes", set),
        };
        server.ask(asking).await
    }

    pub async fn restart(
        &self,
        id: &str,
        restart: Restart,
        request_id: Option<String>,
    ) -> Result<Started, Fault> {
        match &self.whom {
            Whom::Server(server) => {
                let path = vec!["v1", "executions", id, "restart"];
                server.ask(self.post(path, &restart, request_id)).await
            }
            Whom::File(service) => {
                Ok(service.restart(&self.target(id), restart, request_id).await?)
            }
        }
    }

    pub async fn delete(&self, id: &str, asked: Asked) -> Result<(), Fault> {
        match &self.whom {
            Whom::Server(server) => {
                let asking = self.get(vec!["v1", "executions", id]);
                let asking = asking.with("by", asked.by).with("reason", asked.reason);
                server.bytes(Asking { method: Method::DELETE, ..asking }).await.map(drop)
            }
            Whom::File(service) => Ok(service.delete(&self.target(id), asked).await?),
        }
    }

    pub async fn attention(&self, limit: usize) -> Result<Matters, Fault> {
        match &self.whom {
            Whom::Server(server) => {
                let asking = Asking::get(vec!["v1", "attention"]);
                server.ask(asking.with("limit", Some(limit.to_string()))).await
            }
            Whom::File(service) => Ok(service.attention(Some(limit)).await?),
        }
    }

    pub async fn workers(&self) -> Result<Workers, Fault> {
        match &self.whom {
            Whom::Server(server) => server.ask(Asking::get(vec!["v1", "workers"])).await,
            Whom::File(service) => Ok(service.workers()),
        }
    }
}

/// The body of a verb, whatever its type.
mod erased {
    pub trait Body {
        fn json(&self) -> String;
    }

    impl<T: serde::Serialize> Body for T {
        fn json(&self) -> String {
            serde_json::to_string(self).expect("requests are JSON by their types")
        }
    }
}

impl Rows {
    /// The next rows; waits for them. `None` when the run is closed, and there are no more.
    pub async fn next(&mut self) -> Result<Option<Vec<JournalRow>>, Fault> {
        let (response, rest) = match self {
            Rows::Read(followed) => return Ok(followed.next().await?),
            Rows::Sent { response, rest } => (response, rest),
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
            match response.body_mut().frame().await {
                Some(Ok(frame)) => {
                    rest.extend(frame.into_data().unwrap_or_default());
                }
                Some(Err(_)) | None => {
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
    match store_url(store).strip_prefix("sqlite:") {
        Some(path) => Ok(path.to_owned()),
        None => Err(Fault::new(USAGE, format!("{store:?} is no file; write sqlite:PATH"))),
    }
}
