//! `cargo run --release -p sim -- --seeds 1000`: simulates the worlds of many seeds.
//!
//! A seed that breaks a promise is printed with the shortest trace that breaks it too, and the
//! program ends with exit code 1.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: sim [--seeds N] [--from N] [--jobs N] [--no-shrink] [--twice]
       sim --seed S [--trace]";

/// So many failing seeds are lived through again and told of. An engine that is broken all over fails
/// most of them, and one tells as much as a thousand.
const TOLD_MAX: usize = 20;

struct Options {
    from: u64,
    seeds: u64,
    jobs: usize,
    trace: bool,
    shrink: bool,
    /// Each seed is run again, and has to go the same way.
    twice: bool,
}

fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if options.trace {
        print!("{}", sim::run(options.from).trace);
    }
    let failed = run_all(&options);
    for seed in failed.iter().take(TOLD_MAX) {
        tell(*seed, &options);
    }
    if failed.len() > TOLD_MAX {
        println!("and {} seeds more", failed.len() - TOLD_MAX);
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options =
        Options { from: 0, seeds: 1_000, jobs, trace: false, shrink: true, twice: false };
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|text| text.parse::<u64>().ok());
        match arg.as_str() {
            "--seeds" => options.seeds = number()?,
            "--from" => options.from = number()?,
            "--seed" => (options.from, options.seeds) = (number()?, 1),
            "--jobs" => options.jobs = usize::try_from(number()?).ok()?.max(1),
            "--trace" => options.trace = true,
            "--twice" => options.twice = true,
            "--no-shrink" => options.shrink = false,
            _ => return None,
        }
    }
    Some(options)
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
                        eprintln!("\rseed {seed} goes another way the second time:\n{place}");
                    }
                    if parts.is_some() || !report.violations.is_empty() {
                        let mut failed = failed.lock().expect("nobody panics with it");
                        // At once: whoever ends a long run early has been told all the same.
                        if let Some(first) = report.violations.first()
                            && failed.len() < TOLD_MAX
                        {
                            eprintln!("\rseed {} breaks a promise: {first}", report.seed);
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
    eprintln!();
    let mut failed = failed.into_inner().expect("nobody panics with it");
    failed.sort_unstable();
    if !failed.is_empty() {
        eprintln!("{} seeds break promises: {failed:?}", failed.len());
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
    eprint!("\r{done} of {of} seeds, {per_s:.0} seeds/s ");
}

fn tell(seed: u64, options: &Options) {
    let whole = sim::run(seed);
    println!("seed {seed} breaks {} promises:", whole.violations.len());
    for violation in &whole.violations {
        println!("  {violation}");
    }
    if options.shrink {
        let smallest = sim::shrink(seed);
        println!("the smallest world that breaks the same:\n{}", smallest.trace);
        for violation in &smallest.violations {
            println!("  {violation}");
        }
    }
}
