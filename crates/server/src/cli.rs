//! The command line.

mod arguments;
mod ask;
mod backup;
mod commands;
mod confirm;
mod demo;
mod fault;
mod files;
mod log;
mod looking;
mod panics;
mod paper;
mod remote;
mod serve;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command, Talk};
use fault::Fault;

/// Reads the arguments, does what they say, and gives the code to exit with (docs/cli.md).
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            log::say(&format!("no threads: {error}"));
            return ExitCode::from(fault::UNREACHABLE);
        }
    };
    let done = runtime.block_on(run(arguments));
    // A thread that still reads from a terminal must not hold up the end.
    runtime.shutdown_background();
    let exit = match done {
        Ok(()) | Err(Fault::PipeClosed) => ExitCode::SUCCESS,
        Err(Fault::Told { exit, message }) => {
            log::say(&message);
            ExitCode::from(exit)
        }
    };
    log::flush();
    exit
}

async fn run(Arguments { talk, command }: Arguments) -> Result<(), Fault> {
    let refused = |message: &str| Err(Fault::new(fault::USAGE, message));
    match (&talk, &command) {
        (Talk { server: Some(_), .. }, Command::Dev(_) | Command::Server(_)) => {
            return refused(
                "--server is for those who ask a server; say where this one listens, with --listen",
            );
        }
        (Talk { json: true, .. }, Command::Dev(_) | Command::Server(_)) => {
            return refused("--json is for answers, and a server gives none here; leave it out");
        }
        (Talk { server: Some(_), store: Some(_), .. }, _) => {
            return refused("--server asks a server and --store a file; say one of the two");
        }
        _ => {}
    }
    match command {
        Command::Dev(dev) => serve::dev(dev, &talk).await,
        Command::Server(server) => serve::server(server, &talk).await,
        Command::Demo => demo::demo(&talk).await,
        Command::Ask(asked) => commands::run(&talk, asked).await,
    }
}
