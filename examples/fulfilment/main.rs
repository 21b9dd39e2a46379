//! An online shop fulfils orders: it reserves stock, charges a card, books a shipment. Each of its
//! scenarios has something go wrong at the payment provider, a real HTTP server.
//!
//! ```text
//! cargo run --release --example fulfilment
//! ```
//!
//! Read `workflow.rs` first: it is all that one writes to use Backstitch. `payments.rs` is how it
//! calls the provider over HTTP, `books.rs` its own table of charges. `provider.rs` and
//! `warehouse.rs` are the world outside, `scenario.rs` says what happens and what has to come out,
//! `run.rs` runs it, and `report.rs` compares what stands where in the end.

mod args;
mod books;
mod database;
mod files;
mod http;
mod payments;
mod provider;
mod report;
mod run;
mod scenario;
mod show;
mod warehouse;
mod workflow;

use std::process::ExitCode;

use crate::args::{Args, Mode, USAGE};
use crate::files::Files;
use crate::scenario::SCENARIOS;

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args_os().skip(1)) {
        Ok(args) => args,
        Err(why) => return usage(&why),
    };
    let scenarios = match args.mode {
        Mode::Help => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Mode::List => {
            SCENARIOS.iter().for_each(|s| println!("{:<15} {}", s.name, s.heading));
            return ExitCode::SUCCESS;
        }
        Mode::All => SCENARIOS.iter().collect(),
        Mode::One(scenario) => vec![scenario],
    };
    let files = match Files::open(args.dir.as_deref()) {
        Ok(files) => files,
        Err(why) => return usage(&why),
    };
    let runtime = tokio::runtime::Runtime::new().expect("the machine has threads");
    match runtime.block_on(run::run(&args, &files, &scenarios)) {
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

fn usage(why: &str) -> ExitCode {
    eprint!("error: {why}\n\n{USAGE}");
    ExitCode::from(2)
}
