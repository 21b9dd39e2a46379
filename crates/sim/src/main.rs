//! `cargo run --release -p sim -- --seeds 1000`: simulates the worlds of many seeds.
//!
//! A seed that breaks a promise is printed with the shortest trace that breaks it too, and the
//! program ends with exit code 1.

mod options;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use self::options::{HELP, Options, Request};

/// So many failing seeds are lived through again and told of. An engine that is broken all over fails
/// most of them, and one tells as much as a thousand.
const TOLD_MAX: usize = 20;

fn main() -> ExitCode {
    let options = match options::request(std::env::args().skip(1)) {
        Ok(Request::Run(options)) => options,
        Ok(Request::Help) => {
            say(format_args!("{HELP}"));
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            tell_aside(format_args!("sim: {why}\nsim --help says what there is\n"));
            return ExitCode::from(2);
        }
    };
    if options.trace {
        say(format_args!("{}", sim::run(options.from).trace));
    }
    let failed = run_all(&options);
    for seed in failed.iter().take(TOLD_MAX) {
        tell(*seed, &options);
    }
    if failed.len() > TOLD_MAX {
        say(format_args!("and {} seeds more\n", failed.len() - TOLD_MAX));
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints. A reader who has gone away has read enough: what was found is in the exit code.
fn say(text: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_fmt(text).and_then(|()| out.flush());
}

/// The same beside the output.
fn tell_aside(text: std::fmt::Arguments<'_>) {
    let _ = std::io::stderr().lock().write_fmt(text);
}

/// Gives the seeds that broke a promise.
fn run_all(options: &Options) -> Vec<u64> {
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let failed = Mutex::new(Vec::new());
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= options.seeds {
                        return;
                    }
                    let report = sim::run(options.from + n);
                    let parts = options.twice.then(|| parts(&report)).flatten();
                    if let Some(place) = &parts {
                        let seed = report.seed;
                        tell_aside(format_args!(
                            "\rseed {seed} goes another way the second time:\n{place}\n"
                        ));
                    }
                    if parts.is_some() || !report.violations.is_empty() {
                        let mut failed = failed.lock().expect("nobody panics with it");
                        // At once: whoever ends a long run early has been told all the same.
                        if let Some(first) = report.violations.first()
                            && failed.len() < TOLD_MAX
                        {
                            tell_aside(format_args!(
                                "\rseed {} breaks a promise: {first}\n",
                                report.seed
                            ));
                        }
                        failed.push(report.seed);
                    }
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    if done % 256 == 0 {
                        progress(done, options.seeds, began.elapsed());
                    }
                }
            });
        }
    });
    progress(options.seeds, options.seeds, began.elapsed());
    tell_aside(format_args!("\n"));
    let mut failed = failed.into_inner().expect("nobody panics with it");
    failed.sort_unstable();
    if !failed.is_empty() {
        tell_aside(format_args!("{} seeds break promises: {failed:?}\n", failed.len()));
    }
    failed
}

/// Where the second run of a seed parts from the first, if it does.
fn parts(first: &sim::Report) -> Option<String> {
    let again = sim::run(first.seed);
    let mut lines = first.trace.lines().zip(again.trace.lines());
    match lines.find(|(line, other)| line != other) {
        Some((line, other)) => Some(format!("  {line}\n  {other}")),
        None => (first.trace != again.trace).then(|| "  one is longer".to_owned()),
    }
}

fn progress(done: u64, of: u64, after: Duration) {
    let per_s = done as f64 / after.as_secs_f64();
    tell_aside(format_args!("\r{done} of {of} seeds, {per_s:.0} seeds/s "));
}

fn tell(seed: u64, options: &Options) {
    let whole = sim::run(seed);
    say(format_args!("seed {seed} breaks {} promises:\n", whole.violations.len()));
    for violation in &whole.violations {
        say(format_args!("  {violation}\n"));
    }
    if options.shrink {
        let smallest = sim::shrink(seed);
        say(format_args!("the smallest world that breaks the same:\n{}\n", smallest.trace));
        for violation in &smallest.violations {
            say(format_args!("  {violation}\n"));
        }
    }
}
