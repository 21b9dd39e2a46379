//! What can be typed.

use std::path::PathBuf;

use backstitch::RunId;
use backstitch_api::http::{Attribute, Status};
use clap::{Args, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;

const AFTER_HELP: &str = "Exit codes: 0 done; 1 the execution did not succeed; 2 bad arguments; \
3 refused, or not found; 4 the server or the store cannot be reached, or is in trouble; 5 not over in \
time; 6 not confirmed. Colours are used on a terminal, unless NO_COLOR is set.";

/// Where a server listens that was told nothing else.
pub const SERVER_DEFAULT: &str = "http://127.0.0.1:7070";

/// Durable workflows that know how to undo themselves.
#[derive(Debug, Parser)]
#[command(name = "backstitch", version, after_help = AFTER_HELP, disable_help_subcommand = true)]
pub struct Arguments {
    #[command(flatten)]
    pub talk: Talk,
    #[command(subcommand)]
    pub command: Command,
}

/// Whom to talk to, and how.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Whom to ask, and how")]
pub struct Talk {
    /// The server to ask (default: BACKSTITCH_SERVER, or http://127.0.0.1:7070).
    #[arg(long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// A file, sqlite:PATH: to serve, or to ask instead of a server.
    #[arg(long, global = true, value_name = "URL")]
    pub store: Option<String>,
    /// The namespace of ids.
    #[arg(long, global = true, default_value = "default")]
    pub namespace: String,
    /// Print JSON, for programs.
    #[arg(long, global = true)]
    pub json: bool,
    /// Who asks; stands in the journal (default: the name of the user).
    #[arg(long, global = true)]
    pub by: Option<String>,
}

impl Talk {
    /// The server to ask, if no file is.
    pub fn server(&self) -> String {
        let server = self.server.clone().or_else(|| environment("BACKSTITCH_SERVER"));
        server.unwrap_or_else(|| SERVER_DEFAULT.to_owned())
    }

    /// Who asks.
    pub fn by(&self) -> String {
        let by = self.by.clone().filter(|text| is_said(text)).or_else(|| environment("USER"));
        by.unwrap_or_else(|| "the command line".to_owned())
    }
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| is_said(text))
}

/// Whether it is more than nothing.
fn is_said(text: &str) -> bool {
    !text.trim().is_empty()
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// A server on a file in this folder, with two workflows to try.
    Dev(Dev),
    /// Starts a few executions at `backstitch dev`; some of them roll back.
    Demo,
    /// A server.
    Server(Server),
    #[command(flatten)]
    Ask(Ask),
}

#[derive(Debug, Args)]
pub struct Dev {
    /// The address of the API (default: 127.0.0.1:7070).
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// What is logged: off, error, warn, info, debug or trace.
    #[arg(long, default_value = "warn")]
    pub log: String,
}

#[derive(Debug, Args)]
pub struct Server {
    /// A file with settings (docs/server.md).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The address of the API (default: 127.0.0.1:7070).
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Listen on an address that others can reach, without any protection.
    #[arg(long)]
    pub insecure: bool,
    /// How long requests, and bodies of steps, may take to end at a stop.
    #[arg(long, value_name = "DURATION")]
    pub stop_grace: Option<String>,
    /// A worker that is not heard of for so long loses its runs (default: 15s).
    #[arg(long, value_name = "TIME")]
    pub lease: Option<String>,
    /// Not ready when something waits longer for a worker; off for never.
    #[arg(long, value_name = "DURATION")]
    pub ready_pending_max: Option<String>,
    /// How long closed executions are kept; forever.
    #[arg(long, value_name = "DURATION")]
    pub retention: Option<String>,
    /// What is logged: off, error, warn, info, debug or trace.
    #[arg(long)]
    pub log: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Ask {
    /// Starts an execution; idempotent by its id.
    Start(Start),
    /// Lists executions, newest first.
    List(List),
    /// Shows an execution: its steps and undos in time.
    Show {
        #[command(flatten)]
        one: One,
        /// Go on as it goes on, until it is closed.
        #[arg(long, short)]
        follow: bool,
    },
    /// Prints the journal, row by row.
    Journal {
        #[command(flatten)]
        one: One,
        /// Only rows after this one.
        #[arg(long, default_value_t = 0)]
        after: u64,
        /// Go on as it grows, until the run is closed.
        #[arg(long, short)]
        follow: bool,
    },
    /// Waits for the result and prints it.
    Result {
        #[command(flatten)]
        one: One,
        /// How long to wait, for example 30s; without it, until it is over.
        #[arg(long, value_name = "DURATION")]
        wait: Option<String>,
    },
    /// Sends an event.
    Event {
        #[command(flatten)]
        one: One,
        /// Its type.
        #[arg(value_name = "TYPE")]
        event_type: String,
        /// What it says, in JSON; null if left out.
        #[arg(value_name = "JSON")]
        payload: Option<String>,
        #[command(flatten)]
        request: Request,
    },
    /// Rolls an execution back; it ends as cancelled.
    Cancel(Verb),
    /// Rolls an execution back without waiting for bodies.
    Terminate(Verb),
    /// Undoes what an execution did, also after it has succeeded.
    Rollback(Verb),
    /// Ends an execution without a rollback (asks first).
    Kill {
        #[command(flatten)]
        verb: Verb,
        #[command(flatten)]
        sure: Sure,
    },
    /// Begins nothing new; bodies in flight finish.
    Pause(Verb),
    /// Ends a pause.
    Resume {
        #[command(flatten)]
        verb: Verb,
        /// Sleeps, waits and the deadline move by the time of the pause.
        #[arg(long)]
        shift_timers: bool,
    },
    /// Has a blocked step tried again.
    RetryStep(OfStep),
    /// Has a failed undo tried again.
    RetryUndo(OfStep),
    /// Takes an undo off the debts, in your name (asks first).
    WaiveUndo {
        #[command(flatten)]
        of_step: OfStep,
        #[command(flatten)]
        sure: Sure,
    },
    /// Sets search attributes: NAME=VALUE, and NAME= takes one away.
    SetAttributes {
        #[command(flatten)]
        verb: Verb,
        /// What is set.
        #[arg(value_name = "NAME=VALUE", required = true, value_parser = attribute)]
        attributes: Vec<(String, Option<Attribute>)>,
    },
    /// Does a closed execution over, as a new run.
    Restart {
        #[command(flatten)]
        one: One,
        /// The version of the workflow; the one that ran it last, if left out.
        #[arg(long = "workflow-version", value_name = "VERSION")]
        version: Option<String>,
        #[command(flatten)]
        request: Request,
    },
    /// Deletes a closed run with all that is known of it; other runs of the id stay (asks first).
    Delete {
        #[command(flatten)]
        one: One,
        /// Why; stands in the log.
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        sure: Sure,
    },
    /// Lists what only a person can settle.
    Attention {
        /// Where the page before ended.
        #[arg(long)]
        cursor: Option<String>,
        /// At most so many.
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
    /// Lists who runs workflows.
    Workers,
    /// Copies a store (--store) while it is worked on, whole and durable.
    Backup {
        /// The copy, which must not be there.
        path: PathBuf,
    },
    /// Prints the OpenAPI document of the HTTP API.
    #[command(hide = true)]
    Openapi,
}

#[derive(Debug, Args)]
pub struct One {
    /// The id of the execution.
    pub id: String,
    /// One of its runs, as `list --json` and `attention` show their ids; the newest, if left out.
    #[arg(long, value_name = "UUID")]
    pub run_id: Option<RunId>,
}

impl One {
    /// One run of the execution, whichever is the newest by now.
    pub fn of_run(&self, run_id: RunId) -> One {
        One { id: self.id.clone(), run_id: Some(run_id) }
    }
}

#[derive(Debug, Args)]
pub struct Request {
    /// An id of the request: the same one twice is one request.
    #[arg(long)]
    pub request_id: Option<String>,
}

#[derive(Debug, Args)]
pub struct Sure {
    /// Do not ask.
    #[arg(long, short)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct Verb {
    #[command(flatten)]
    pub one: One,
    /// Why; stands in the journal.
    #[arg(long)]
    pub reason: Option<String>,
    #[command(flatten)]
    pub request: Request,
}

#[derive(Debug, Args)]
pub struct OfStep {
    #[command(flatten)]
    pub one: One,
    /// The step: its key, for example charge-card, or its number.
    pub step: String,
    /// Why; stands in the journal.
    #[arg(long)]
    pub reason: Option<String>,
    #[command(flatten)]
    pub request: Request,
}

#[derive(Debug, Args)]
pub struct Start {
    /// The workflow.
    pub workflow: String,
    /// The id of the execution.
    pub id: String,
    /// The input, in JSON; null if left out, read from the standard input if it is -.
    #[arg(value_name = "JSON")]
    pub input: Option<String>,
    /// The version of the workflow; may be left out when there is one.
    #[arg(long = "workflow-version", value_name = "VERSION")]
    pub version: Option<String>,
    /// When the id is in use by an open run.
    #[arg(long, value_enum)]
    pub conflict: Option<Conflict>,
    /// When the last run of the id is closed.
    #[arg(long, value_enum)]
    pub reuse: Option<Reuse>,
    /// Roll back if it is not over so long after its start.
    #[arg(long, value_name = "DURATION")]
    pub deadline: Option<String>,
    /// How long it is kept after it was closed; forever.
    #[arg(long, value_name = "DURATION")]
    pub retention: Option<String>,
    /// A search attribute.
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = attribute)]
    pub attributes: Vec<(String, Option<Attribute>)>,
    #[command(flatten)]
    pub request: Request,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Conflict {
    /// The open run is the answer, if workflow and input are the same.
    UseExisting,
    /// An error.
    Fail,
    /// It is terminated, and a new run begins when it has ended.
    Terminate,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Reuse {
    /// The closed run is the answer, if workflow and input are the same.
    Reject,
    /// A new run, if the last one did not succeed.
    AllowIfFailed,
    /// A new run.
    Allow,
}

#[derive(Debug, Args)]
pub struct List {
    /// With this status, for example rolling_back.
    #[arg(long, value_parser = status)]
    pub status: Option<Status>,
    /// Of this workflow.
    #[arg(long)]
    pub workflow: Option<String>,
    /// Started at this instant (RFC 3339) or later.
    #[arg(long, value_name = "INSTANT")]
    pub started_after: Option<Timestamp>,
    /// Started before this instant (RFC 3339).
    #[arg(long, value_name = "INSTANT")]
    pub started_before: Option<Timestamp>,
    /// With this search attribute.
    #[arg(long, value_name = "NAME=VALUE", value_parser = wanted)]
    pub attribute: Option<(String, String)>,
    /// Where the page before ended.
    #[arg(long)]
    pub cursor: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
}

fn attribute(text: &str) -> Result<(String, Option<Attribute>), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    let value = Some(value).filter(|value| !value.is_empty()).map(crate::http::attribute_of);
    Ok((name.to_owned(), value.transpose()?))
}

fn wanted(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn status(text: &str) -> Result<Status, String> {
    let json = serde_json::Value::String(text.to_owned());
    serde_json::from_value(json).map_err(|why| why.to_string())
}
