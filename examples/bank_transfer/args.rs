//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::banks::{Faults, Keys};

pub const USAGE: &str = "\
Money moves between two banks, fails half way, goes back, is killed on the way back, and every cent
comes out where it belongs.

Usage: bank_transfer [--json] [--dir PATH] [--server URL] [--crash-after-event N | --resume]

Without flags: three transfers, each with its journal drawn as a timeline, and what the banks have
in the end. Exits with 0 only if no money was lost or made and each effect was applied exactly once.

  --json                 one object per transfer, one per line, and nothing else; money in cents
  --dir PATH             where the files are (default: a new folder, removed at the end)
  --server URL           the journals are kept by the Backstitch server there, and this program is
                         its worker; the files are those of the banks. After a death the server
                         waits for the end of the lease (15 s, if it is not told otherwise)
  --crash-after-event N  only the transfer that is refused; the process aborts as soon as the
                         journal row with its N-th event is on disk, before anybody is told.
                         If there are fewer events, it finishes as usual
  --resume               only the transfer that is refused: goes on with what is in --dir
  --help                 this text
";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Args {
    pub mode: Mode,
    pub output: Output,
    pub dir: Option<PathBuf>,
    /// The URL of the server that keeps the journals; they are in a file, if absent.
    pub server: Option<String>,
    /// For tests: what goes wrong at the banks.
    pub faults: Faults,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Help,
    /// All three transfers.
    Tour,
    /// The refused transfer, up to a crash.
    CrashAfterEvent(u64),
    /// The refused transfer, to its end.
    Resume,
    /// For tests: as `Resume`, on new files too, with a line for each event that is on disk.
    PrintEvents,
    /// The transfer that is killed, to its end. The tour starts a process to see it die.
    Victim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Text,
    Json,
}

impl Args {
    /// Reads the arguments, without the name of the program.
    ///
    /// # Errors
    /// A sentence that names the flag.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Args, String> {
        let mut args = Args {
            mode: Mode::Tour,
            output: Output::Text,
            dir: None,
            server: None,
            faults: Faults::default(),
        };
        let mut arguments = arguments.into_iter().map(|argument| {
            let not_text = |raw: OsString| format!("the argument {raw:?} is not UTF-8");
            argument.into_string().map_err(not_text)
        });
        while let Some(argument) = arguments.next().transpose()? {
            let (flag, mut value) = match argument.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
                _ => (argument.as_str(), None),
            };
            let mut wanted = |what: &str| {
                let value = match value.take() {
                    Some(value) => Some(value),
                    None => arguments.next().transpose()?,
                };
                let value = value.filter(|value| !value.is_empty());
                value.ok_or_else(|| format!("{flag} needs {what}"))
            };
            match flag {
                "--help" | "-h" => args.mode = Mode::Help,
                "--json" => args.output = Output::Json,
                "--dir" => args.dir = Some(PathBuf::from(wanted("a PATH")?)),
                "--server" => args.server = Some(examples::server_url(&wanted("a URL")?)?),
                "--crash-after-event" => {
                    let n = wanted("a number N")?;
                    args.set_mode(flag, Mode::CrashAfterEvent(event_number(flag, &n)?))?;
                }
                "--resume" => args.set_mode(flag, Mode::Resume)?,
                "--print-events" => args.set_mode(flag, Mode::PrintEvents)?,
                "--victim" => args.set_mode(flag, Mode::Victim)?,
                "--banks-forget" => args.faults.keys = Keys::Forgotten,
                "--die-after" => args.faults.die_after = Some(wanted("an effect")?),
                _ => return Err(format!("unknown argument {argument:?}")),
            }
            if value.is_some() {
                return Err(format!("{flag} takes no value"));
            }
            if args.mode == Mode::Help {
                return Ok(args);
            }
        }
        match args.mode {
            Mode::Resume if args.dir.is_none() => {
                Err("--resume needs --dir PATH: where are the files to go on with?".into())
            }
            _ => Ok(args),
        }
    }

    fn set_mode(&mut self, flag: &str, mode: Mode) -> Result<(), String> {
        if self.mode != Mode::Tour {
            return Err(format!(
                "{flag}: give one of --crash-after-event and --resume, once; both go on with what \
                 is in --dir"
            ));
        }
        self.mode = mode;
        Ok(())
    }
}

fn event_number(flag: &str, value: &str) -> Result<u64, String> {
    match value.parse() {
        Ok(0) => Err(format!("{flag} counts from 1; 0 is no event")),
        Ok(n) => Ok(n),
        Err(_) => Err(format!("{flag} needs a number, for example 7; {value:?} is none")),
    }
}
