//! The command line.

use std::path::PathBuf;

use crate::Result;
use crate::report::Output;
use crate::workload::Workload;

/// What is asked for.
pub enum Invocation {
    Help,
    One(Workload, Args),
    /// Every workload, one after another.
    All(Args),
    /// Not for people: the process of the workload `w7` that dies behind a journal.
    WriteJournal(PathBuf, u64),
    /// Not for people: the process that the workload `w5` kills.
    RunUntilKilled(PathBuf, u64),
}

/// Options of a run.
#[derive(Default)]
pub struct Args {
    pub output: Output,
    pub n: Option<u64>,
    pub in_flight: Option<usize>,
    pub dir: Option<PathBuf>,
    pub server: Option<String>,
    pub server_pid: Option<u32>,
}

impl Args {
    /// As they were given.
    pub fn to_arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        match self.output {
            Output::Table => {}
            Output::Json => arguments.push("--json".to_owned()),
        }
        let mut option = |name: &str, value: Option<String>| {
            arguments.extend(value.map(|value| [name.to_owned(), value]).into_iter().flatten());
        };
        option("--n", self.n.map(|n| n.to_string()));
        option("--in-flight", self.in_flight.map(|m| m.to_string()));
        option("--server", self.server.clone());
        option("--server-pid", self.server_pid.map(|pid| pid.to_string()));
        option("--dir", self.dir.as_ref().map(|dir| dir.display().to_string()));
        arguments
    }
}

/// How the program is called, with every workload.
pub fn usage() -> String {
    let mut usage = format!("{COMMAND} WORKLOAD [OPTIONS]\n\nWORKLOAD is one of:\n");
    for workload in Workload::ALL {
        usage.push_str(&format!("  {:8} {}\n", workload.name(), workload.what()));
    }
    usage.push_str(&format!("  {:8} all of these, one after another\n\n{OPTIONS}", "all"));
    usage
}

const COMMAND: &str = "cargo run --release --manifest-path bench/Cargo.toml --";

const OPTIONS: &str = "OPTIONS:
  --json         one JSON object per line instead of a table
  --n N          how many workflows (w7: how many recoveries; growth: of the largest size)
  --in-flight M  how many at a time (w4 and w6: how many starts; not for w5, w7 and growth)
  --server URL   this process works for the server there, and asks it (w1a, w1b, w4, w6, idle)
  --server-pid P the server's process, on this machine: its memory is measured (w6 and idle)
  --dir PATH     where the files are written; its disk is what is measured";

/// Reads the arguments after the name of the program.
///
/// # Errors
/// What is wrong with them, and what there is to choose from.
pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Invocation> {
    let mut name = None;
    let mut args = Args::default();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--help" | "-h" => return Ok(Invocation::Help),
            "--json" => args.output = Output::Json,
            "--n" => args.n = Some(positive(&argument, &value()?)?),
            "--in-flight" => args.in_flight = Some(positive(&argument, &value()?)? as usize),
            "--server" => args.server = Some(value()?),
            "--server-pid" => args.server_pid = Some(positive(&argument, &value()?)? as u32),
            "--dir" => args.dir = Some(value()?.into()),
            option if option.starts_with('-') => {
                return Err(format!("there is no option {option}\n\n{}", usage()).into());
            }
            _ if name.is_none() => name = Some(argument),
            _ => return Err(format!("one workload at a time, or all\n\n{}", usage()).into()),
        }
    }
    let name = name.ok_or_else(|| format!("name a workload\n\n{}", usage()))?;
    match name.as_str() {
        "all" => Ok(Invocation::All(args)),
        "write-journal" => {
            let (path, n) = child(&name, args)?;
            Ok(Invocation::WriteJournal(path, n))
        }
        "run-until-killed" => {
            let (path, n) = child(&name, args)?;
            Ok(Invocation::RunUntilKilled(path, n))
        }
        name => match Workload::named(name) {
            Some(workload) => Ok(Invocation::One(workload, args)),
            None => Err(format!("there is no workload {name:?}\n\n{}", usage()).into()),
        },
    }
}

/// What a child process of a workload is told.
fn child(name: &str, args: Args) -> Result<(PathBuf, u64)> {
    let path = args.dir.ok_or_else(|| format!("{name} needs --dir"))?;
    Ok((path, args.n.ok_or_else(|| format!("{name} needs --n"))?))
}

fn positive(option: &str, value: &str) -> Result<u64> {
    match value.parse() {
        Ok(0) | Err(_) => {
            Err(format!("{option} takes a number of at least 1, not {value:?}").into())
        }
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Invocation> {
        parse(line.split_ascii_whitespace().map(str::to_owned))
    }

    #[test]
    fn an_unknown_workload_is_an_error_that_lists_them() {
        let error = parsed("w9 --json").err().expect("there is no w9").to_string();
        assert!(error.contains("there is no workload \"w9\""), "{error}");
        assert!(Workload::ALL.iter().all(|known| error.contains(known.name())), "{error}");
    }

    #[test]
    fn a_number_that_is_none_is_named_with_its_option() {
        for line in ["w1a --n 0", "w1a --n many", "w1a --n"] {
            let error = parsed(line).err().expect("it is no number").to_string();
            assert!(error.contains("--n "), "{error}");
        }
    }

    #[test]
    fn options_are_handed_on_to_each_workload_of_all() {
        let Invocation::All(args) = parsed("all --dir /d --n 3 --json --in-flight 7").unwrap()
        else {
            panic!("it was all");
        };
        assert_eq!(args.to_arguments().join(" "), "--json --n 3 --in-flight 7 --dir /d");
    }
}
