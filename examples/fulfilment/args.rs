//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::provider::Keys;
use crate::scenario::{SCENARIOS, Scenario};

pub const USAGE: &str = "\
An online shop fulfils orders (reserve stock, charge a card, book a shipment), and each time
something else goes wrong at the payment provider, a real HTTP server on this machine.

Usage: fulfilment [--scenario NAME] [--json] [--dir PATH] [--server URL]

Without flags: all scenarios, each with its journal drawn as a timeline, and what warehouse, provider
and the shop's own books have in the end. Exits with 0 only if they agree.

  --scenario NAME  only this one
  --list           the names of the scenarios
  --json           one object per scenario, one per line, and nothing else; charged_cents is what
                   the customer has paid in the end
  --dir PATH       where the files are (default: a new folder, removed at the end)
  --server URL     the orders are kept by the Backstitch server there, and the shop is its worker;
                   the files are those of provider, warehouse and books
  --help           this text
";

/// What was asked for.
pub struct Args {
    pub mode: Mode,
    pub output: Output,
    pub dir: Option<PathBuf>,
    /// The URL of the server that keeps the orders; they are in a file, if absent.
    pub server: Option<String>,
    /// For tests: whether the provider does what it promises.
    pub keys: Keys,
}

#[derive(Clone, Copy)]
pub enum Mode {
    Help,
    List,
    All,
    One(&'static Scenario),
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
            mode: Mode::All,
            output: Output::Text,
            dir: None,
            server: None,
            keys: Keys::default(),
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
                "--list" => args.mode = Mode::List,
                "--scenario" => args.mode = Mode::One(scenario(&wanted("a NAME")?)?),
                "--json" => args.output = Output::Json,
                "--dir" => args.dir = Some(PathBuf::from(wanted("a PATH")?)),
                "--server" => args.server = Some(examples::server_url(&wanted("a URL")?)?),
                "--provider-forgets" => args.keys = Keys::Forgotten,
                _ => return Err(format!("unknown argument {argument:?}")),
            }
            if value.is_some() {
                return Err(format!("{flag} takes no value"));
            }
            if matches!(args.mode, Mode::Help | Mode::List) {
                return Ok(args);
            }
        }
        Ok(args)
    }
}

fn scenario(name: &str) -> Result<&'static Scenario, String> {
    SCENARIOS.iter().find(|scenario| scenario.name == name).ok_or_else(|| {
        let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        format!("there is no scenario {name:?}; there are {}", names.join(", "))
    })
}
