//! What the program is asked for on its command line.

/// What `--help` says.
pub const HELP: &str = "\
Simulates whole lives of executions, each from a seed, with everything that can go wrong. A seed that
breaks a promise is printed with the shortest trace that breaks it too.

usage: sim [--seeds N] [--from S] [--jobs N] [--no-shrink] [--twice]
       sim --seed S [--trace] [--no-shrink] [--twice]

  --seeds N     how many seeds are simulated, 1 or more (default: 1000)
  --from S      the first of them (default: 0)
  --jobs N      how many are simulated at the same time, 1 to 1024 (default: one for each processor)
  --seed S      only this seed
  --trace       prints the trace of that seed, also if it breaks no promise (default: no)
  --no-shrink   does not look for the smallest world that breaks the same (default: it does)
  --twice       runs each seed again, which has to go the same way (default: no)
  --help        prints this

exit code: 0 if no promise is broken, 1 if one is, 2 for a request that cannot be meant
";

/// More threads than any machine has processors.
const JOBS_MAX: u64 = 1_024;

/// What is to be done.
#[derive(Debug)]
pub enum Request {
    /// Say how the program is called.
    Help,
    /// Simulate.
    Run(Options),
}

/// Which seeds are simulated, and how.
#[derive(Debug)]
pub struct Options {
    pub from: u64,
    pub seeds: u64,
    pub jobs: usize,
    pub trace: bool,
    pub shrink: bool,
    /// Each seed is run again, and has to go the same way.
    pub twice: bool,
}

/// What the arguments ask for.
///
/// # Errors
/// Which argument cannot be meant, and why.
pub fn request(args: impl Iterator<Item = String>) -> Result<Request, String> {
    let args: Vec<String> = args.collect();
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        return Ok(Request::Help);
    }
    let mut given: Vec<(&str, u64)> = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let value = match arg.as_str() {
            "--seeds" | "--from" | "--seed" | "--jobs" => number(arg, args.next())?,
            "--trace" | "--twice" | "--no-shrink" => 1,
            _ => return Err(format!("there is no option {arg:?}")),
        };
        if given.iter().any(|(name, _)| name == arg) {
            return Err(format!("{arg} is given twice"));
        }
        given.push((arg, value));
    }
    let value = |name: &str| given.iter().find(|(given, _)| *given == name).map(|(_, n)| *n);
    if value("--seed").is_some() {
        if let Some(other) = ["--seeds", "--from"].into_iter().find(|name| value(name).is_some()) {
            return Err(format!("--seed asks for one seed and {other} for others: leave one out"));
        }
    } else if value("--trace").is_some() {
        return Err("--trace prints the trace of one seed: say which one with --seed".to_owned());
    }
    let seeds = value("--seed").map_or_else(|| value("--seeds").unwrap_or(1_000), |_| 1);
    let from = value("--seed").or_else(|| value("--from")).unwrap_or(0);
    if seeds == 0 {
        return Err("--seeds 0 asks for nothing: give it 1 or more".to_owned());
    }
    if from.checked_add(seeds - 1).is_none() {
        return Err(format!(
            "--from {from} and --seeds {seeds} go beyond the last seed, {}",
            u64::MAX
        ));
    }
    let jobs = match value("--jobs") {
        None => std::thread::available_parallelism().map_or(1, usize::from),
        Some(jobs @ 1..=JOBS_MAX) => usize::try_from(jobs).map_err(|error| error.to_string())?,
        Some(jobs) => {
            return Err(format!("--jobs {jobs} is out of range: give it 1 to {JOBS_MAX}"));
        }
    };
    Ok(Request::Run(Options {
        from,
        seeds,
        jobs,
        trace: value("--trace").is_some(),
        shrink: value("--no-shrink").is_none(),
        twice: value("--twice").is_some(),
    }))
}

fn number(option: &str, value: Option<&String>) -> Result<u64, String> {
    let Some(value) = value else { return Err(format!("{option} needs a number behind it")) };
    let bounds = u64::MAX;
    let whole = format!("{option} takes a whole number from 0 to {bounds}, and {value:?} is none");
    value.parse().map_err(|_| whole)
}
