//! Measures Backstitch: closed loop, every change synced to disk, through the public API.
//!
//! Each workload runs in a process of its own, so that its figures of memory, processor time and
//! bytes are its own. Two references are measured just before it on the same disk; ratios to them
//! say more than figures, which belong to one machine.

mod args;
mod workload;

mod receipt;

mod growth;
mod idle_workers;
mod killed;
mod parallel;
mod parked;
mod ping_pong;
mod replay;
mod sleepers;
mod three_steps;
mod undone;

mod closed_loop;
mod store_dir;

mod process;
mod references;
mod report;

use std::process::ExitCode;

use args::{Args, Invocation};
use workload::Workload;

/// What goes wrong here is printed and ends the program; nobody has to tell one from another.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let done = args::parse(std::env::args().skip(1)).and_then(|invocation| match invocation {
        Invocation::Help => {
            println!("{}", args::usage());
            Ok(())
        }
        Invocation::One(workload, args) => run(workload, &args),
        Invocation::All(args) => {
            let all = Workload::ALL.iter().filter(|it| it.is_for(args.server.as_deref()));
            all.copied().try_for_each(|it| run_apart(it, &args))
        }
        Invocation::WriteJournal(path, steps) => replay::write_and_die(&path, steps),
        Invocation::RunUntilKilled(path, n) => killed::run_until_killed(&path, n),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(workload: Workload, args: &Args) -> Result<()> {
    let dir = store_dir::StoreDir::new(args.dir.as_deref())?;
    let references = references::measure(dir.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let n = args.n.unwrap_or(workload.n());
    let in_flight = args.in_flight.unwrap_or(workload.in_flight());
    let (server, server_pid) = (args.server.as_deref(), args.server_pid);
    let place = store_dir::Place { dir: dir.path(), server, server_pid };
    for measured in workload.measure(&runtime, place, n, in_flight)? {
        report::print(&measured, &references, args.output)?;
    }
    Ok(())
}

fn run_apart(workload: Workload, args: &Args) -> Result<()> {
    let program = std::env::current_exe()?;
    let status = std::process::Command::new(program)
        .arg(workload.name())
        .args(args.to_arguments())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} ended with {status}", workload.name()).into())
    }
}
