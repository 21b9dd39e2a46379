//! Running the transfers.

use std::error::Error;
use std::process::{Command, ExitStatus, Stdio};

use backstitch::store::AfterSync;
use backstitch::{App, Backstitch, Client, Handle, Reuse, Row};
use rusqlite::Connection;

use crate::args::{Args, Mode};
use crate::banks::{Banks, Keys};
use crate::crash::{self, AtEvent, Progress};
use crate::files::Files;
use crate::report::{Books, Report, complaints};
use crate::scenario::{KILLED, REFUSED, SUCCESS, Scenario, TRANSFER_CENTS};
use crate::show::Screen;
use crate::workflow::{Receipt, Transfer, transfer};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The undo after which the victim dies.
const LAST_EFFECT_OF_THE_VICTIM: &str = "undo-debit-a";

/// A transfer that is over.
pub struct Finished {
    pub report: Report,
    pub journal: Vec<Row>,
    complaints: Vec<String>,
}

/// Runs what the flags ask for, and says what is wrong with the outcome.
pub async fn run(args: &Args, files: &Files) -> Outcome<Vec<String>> {
    let stage = Stage { args, files };
    match args.mode {
        Mode::Help => unreachable!("answered without running anything"),
        Mode::Tour => stage.tour().await,
        Mode::CrashAfterEvent(n) => stage.refused(Some(AtEvent::Abort(n))).await,
        Mode::PrintEvents => stage.refused(Some(AtEvent::Print)).await,
        Mode::Resume => stage.refused(None).await,
        Mode::Victim => {
            let app = stage.open(&[&KILLED], None).await?;
            stage.finish(&app, &KILLED).await?;
            app.shutdown().await?;
            Ok(Vec::new())
        }
    }
}

struct Stage<'a> {
    args: &'a Args,
    files: &'a Files,
}

impl Stage<'_> {
    /// All three transfers.
    async fn tour(&self) -> Outcome<Vec<String>> {
        let screen = Screen::of(self.args.output);
        screen.print(&screen.welcome())?;
        let mut finished = Vec::new();
        let app = self.open(&[&SUCCESS, &REFUSED], None).await?;
        for (no, scenario) in [(1, &SUCCESS), (2, &REFUSED)] {
            screen.print(&screen.heading(no, scenario))?;
            finished.push(self.finish(&app, scenario).await?);
            screen.print_transfer(finished.last().expect("just pushed"))?;
        }
        app.shutdown().await?;

        screen.print(&screen.heading(3, &KILLED))?;
        let died = self.start_victim()?;
        screen.print(&screen.victim(died))?;
        if self.args.server.is_some() {
            screen.print(&screen.lease())?;
        }
        let app = self.open(&[&KILLED], None).await?;
        finished.push(self.finish(&app, &KILLED).await?);
        app.shutdown().await?;
        screen.print_transfer(finished.last().expect("just pushed"))?;
        let wrong = conclude(&screen, &finished)?;
        if wrong.is_empty() {
            screen.print(&screen.hint())?;
        }
        Ok(wrong)
    }

    /// The refused transfer alone.
    async fn refused(&self, at_event: Option<AtEvent>) -> Outcome<Vec<String>> {
        let screen = Screen::of(self.args.output);
        if self.args.dir.is_none() && matches!(self.args.mode, Mode::CrashAfterEvent(_)) {
            let dir = self.files.dir().display();
            let server = self.args.server.iter().map(|url| format!(" --server {url}"));
            let server = server.collect::<String>();
            eprintln!(
                "the files are in {dir}; go on with: bank_transfer --resume --dir {dir}{server}"
            );
        }
        let app = self.open(&[&REFUSED], at_event).await?;
        let finished = self.finish(&app, &REFUSED).await?;
        app.shutdown().await?;
        screen.print_transfer(&finished)?;
        conclude(&screen, &[finished])
    }

    /// Opens the banks and the journals. What an earlier process left open goes on at once.
    async fn open(&self, scenarios: &[&Scenario], at_event: Option<AtEvent>) -> Outcome<App> {
        let path = self.files.banks();
        let banks = Banks::open(&path, self.args.faults.clone())
            .map_err(|error| format!("the banks' database {}: {error}", path.display()))?;
        for scenario in scenarios {
            scenario.open_accounts(&banks)?;
            self.files.process_begins(scenario.id)?;
        }
        let builder = Backstitch::open(self.journals()).state(banks).register(transfer);
        let builder = match at_event {
            Some(at_event) => builder.after_sync(self.watch(&REFUSED, at_event).await?),
            None => builder,
        };
        Ok(builder.run().await?)
    }

    fn journals(&self) -> String {
        let in_a_file = || format!("sqlite:{}", self.files.journals().display());
        self.args.server.clone().unwrap_or_else(in_a_file)
    }

    /// The hook that dies at an event of this transfer.
    async fn watch(&self, scenario: &Scenario, at_event: AtEvent) -> Outcome<AfterSync> {
        let mut progress = Progress::default();
        if self.args.server.is_some() || self.files.journals().exists() {
            let client = Backstitch::connect(&self.journals()).await?;
            progress = Progress::of(&client, scenario.id).await?;
            if self.args.server.is_some() {
                // The row of a start is written by the server, which calls no hook of ours.
                self.start(&client, scenario).await?;
                let started = Progress::of(&client, scenario.id).await?;
                started.die_if_reached(progress, at_event);
                progress = started;
            }
            client.close().await?;
        }
        Ok(crash::watch(scenario.id, progress, at_event))
    }

    /// Starts a transfer, or finds that it was started. A server may have seen another one with this id, between
    /// accounts that are gone; so the first of these banks is a new one.
    async fn start(&self, client: &Client, scenario: &Scenario) -> Outcome<Handle<Receipt>> {
        let input = Transfer { account: scenario.id.to_owned(), cents: TRANSFER_CENTS };
        let start = client.start(transfer, scenario.id, input).reuse(Reuse::Allow);
        Ok(start.request_id(self.files.first_begin(scenario.id)?).await?)
    }

    /// Starts a transfer and waits until it is over.
    async fn finish(&self, app: &App, scenario: &Scenario) -> Outcome<Finished> {
        let handle = self.start(app, scenario).await?;
        // Whatever came out, the status says it too; and a transfer that is stuck is over for us.
        let trouble = handle.result().await.err().filter(|error| !error.kind().is_outcome());
        if let Some(error) = trouble {
            return Err(error.into());
        }
        let journal = handle.journal().await?;
        let status = handle.status().await?;
        let rollback = status.rollback.outcome.name();
        self.files.process_ends(scenario.id)?;
        let books = Books::read(&Connection::open(self.files.banks())?, scenario.id)?;
        let report = Report {
            id: scenario.id.to_owned(),
            status: status.status.to_string(),
            rollback,
            balances: books.balances,
            effects: books.effects,
            crashes: self.files.crashes(scenario.id)?,
        };
        let complaints = complaints(scenario, &report, &books);
        Ok(Finished { report, journal, complaints })
    }

    /// Starts a process that begins `t-killed` and dies in the middle of its rollback.
    fn start_victim(&self) -> Outcome<ExitStatus> {
        let mut victim = Command::new(std::env::current_exe()?);
        victim.args(["--victim", "--die-after", LAST_EFFECT_OF_THE_VICTIM]);
        victim.arg("--dir").arg(self.files.dir()).stdout(Stdio::null());
        if let Some(url) = &self.args.server {
            victim.args(["--server", url]);
        }
        match self.args.faults.keys {
            Keys::Recognised => {}
            Keys::Forgotten => drop(victim.arg("--banks-forget")),
        }
        Ok(victim.status()?)
    }
}

/// Shows what came out, and collects what is wrong.
fn conclude(screen: &Screen, finished: &[Finished]) -> Outcome<Vec<String>> {
    let wrong: Vec<String> = finished.iter().flat_map(|f| f.complaints.clone()).collect();
    screen.print(&screen.conclusion(finished, &wrong))?;
    Ok(wrong)
}
