//! Money moves between two banks, fails half way, goes back, is killed in the middle of going back,
//! and comes out with every cent where it belongs.
//!
//! ```text
//! cargo run --release --example bank_transfer
//! ```
//!
//! Read `workflow.rs` first: it is all that one writes to use Backstitch. `banks.rs` is the world
//! outside, `scenario.rs` says what happens and what has to come out, `run.rs` runs it, `report.rs`
//! checks it against the banks' own books, and `crash.rs` is how it dies on purpose.

mod args;
mod banks;
mod crash;
mod files;
mod report;
mod run;
mod scenario;
mod show;
mod workflow;

use std::process::ExitCode;

use crate::args::{Args, Mode, USAGE};
use crate::files::{Files, Keep};

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args_os().skip(1)) {
        Ok(args) if args.mode == Mode::Help => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Ok(args) => args,
        Err(why) => return usage(&why),
    };
    let files = match folder(&args) {
        Ok(files) => files,
        Err(why) => return usage(&why),
    };
    let runtime = tokio::runtime::Runtime::new().expect("the machine has threads");
    match runtime.block_on(run::run(&args, &files)) {
        Ok(complaints) if complaints.is_empty() => ExitCode::SUCCESS,
        Ok(complaints) => {
            complaints.iter().for_each(|complaint| eprintln!("wrong: {complaint}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The folder that the flags ask for.
fn folder(args: &Args) -> Result<Files, String> {
    let Some(dir) = &args.dir else {
        // What a crash leaves is what one wants to go on with.
        let keep = if matches!(args.mode, Mode::CrashAfterEvent(_)) { Keep::Yes } else { Keep::No };
        return Files::in_new_dir(keep).map_err(|error| format!("no temporary folder: {error}"));
    };
    // A server keeps the journals, and the banks keep their books.
    let wanted = if args.server.is_some() { "banks.db" } else { "transfers.db" };
    if args.mode == Mode::Resume && !dir.join(wanted).exists() {
        return Err(format!(
            "--resume: there is no {wanted} in {}; begin with --crash-after-event N --dir {0}",
            dir.display()
        ));
    }
    Files::in_dir(dir).map_err(|error| format!("--dir {}: {error}", dir.display()))
}

fn usage(why: &str) -> ExitCode {
    eprint!("error: {why}\n\n{USAGE}");
    ExitCode::from(2)
}
