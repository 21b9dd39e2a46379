//! How a server is set: by a file, by the environment, by flags; what comes later counts.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use backstitch::IntoDuration;
use backstitch::engine::workers::{LEASE_MAX, LEASE_MIN};
use tracing_subscriber::filter::LevelFilter;

/// What the names of settings begin with in the environment.
const ENV_PREFIX: &str = "BACKSTITCH_";

/// Names in the environment that are not settings of a server.
const ENV_OF_OTHERS: &[&str] = &["SERVER", "EXPLORE", "BUSY_SECONDS", "SOAK_SECONDS"];

/// The settings, each with what it is if nobody says so, and what it means.
pub const KEYS: &[(&str, &str, &str)] = &[
    ("store", "sqlite:backstitch.db", "where executions are kept: sqlite:PATH, or PATH"),
    ("listen", "127.0.0.1:7070", "the address of the API"),
    ("insecure", "false", "listen on an address that others can reach, without any protection"),
    ("stop_grace", "10s", "how long requests, and bodies of steps, may take to end at a stop"),
    ("lease", "15s", "a worker that is not heard of for so long loses its runs: 500ms to 1h"),
    (
        "ready_pending_max",
        "5m",
        "not ready when something waits longer for a worker; off for never",
    ),
    ("retention", "30 days", "how long closed executions are kept; forever"),
    ("log", "info", "off, error, warn, info, debug or trace"),
];

/// How a server is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where executions are kept.
    pub store: String,
    /// The address of the API.
    pub listen: SocketAddr,
    /// How long requests, and bodies of steps, may take to end at a stop.
    pub stop_grace: Duration,
    /// How long a run is left with a worker that is not heard of.
    pub lease: Duration,
    /// Not ready when something waits longer for a worker.
    pub ready_pending_max: Option<Duration>,
    /// How long closed executions are kept; for ever, if absent.
    pub retention: Option<Duration>,
    /// What is logged.
    pub log: LevelFilter,
}

/// Why a server cannot be set so. Names the place and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// A value as it was written, and where.
#[derive(Clone, Debug)]
struct Said {
    value: String,
    place: String,
}

/// Settings as they were written, before anybody has looked at their values.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    said: BTreeMap<&'static str, Said>,
    /// What is to be told to whoever starts the server.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Adds those of a file.
    ///
    /// # Errors
    /// A file that cannot be read, that is not TOML, or that has a name that is not known.
    pub fn file(mut self, path: &Path) -> Result<Settings, ConfigError> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError(format!("{shown} cannot be read: {error}")))?;
        let table: toml::Table =
            text.parse().map_err(|error| ConfigError(format!("{shown} is not TOML: {error}")))?;
        for (name, value) in table {
            let Some(key) = known(&name) else {
                return Err(ConfigError(format!("{shown}: {}", unknown(&name))));
            };
            let value = match value {
                toml::Value::String(text) => text,
                toml::Value::Boolean(flag) => flag.to_string(),
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Float(_)
                | toml::Value::Datetime(_)
                | toml::Value::Array(_)
                | toml::Value::Table(_) => {
                    let detail = format!("{shown}: {name} is a text, for example {name} = \"…\"");
                    return Err(ConfigError(detail));
                }
            };
            self.said.insert(key, Said { value, place: format!("{shown}: {name}") });
        }
        Ok(self)
    }

    /// Adds those of the environment. A name that is not known is no error there: others may put names
    /// into it that begin alike.
    pub fn environment(mut self, variables: impl Iterator<Item = (String, String)>) -> Settings {
        for (variable, value) in variables {
            let Some(name) = variable.strip_prefix(ENV_PREFIX) else { continue };
            let name = name.to_ascii_lowercase();
            match known(&name) {
                Some(key) => drop(self.said.insert(key, Said { value, place: variable })),
                None if ENV_OF_OTHERS.iter().any(|other| other.eq_ignore_ascii_case(&name)) => {}
                None => {
                    let told = unknown(&name);
                    self.warnings.push(format!("{variable} in the environment is ignored: {told}"));
                }
            }
        }
        self
    }

    /// Adds a flag, if it was given.
    ///
    /// # Panics
    /// If there is no such setting.
    pub fn flag(mut self, name: &str, value: Option<String>) -> Settings {
        if let Some(value) = value {
            let key = known(name).expect("flags are settings");
            let place = format!("--{}", name.replace('_', "-"));
            self.said.insert(key, Said { value, place });
        }
        self
    }

    /// What it comes to.
    ///
    /// # Errors
    /// A value that means nothing, naming its place; an address that others can reach, without
    /// `insecure`.
    pub fn read(&self) -> Result<Config, ConfigError> {
        let insecure = self.value("insecure", |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("it is true or false".to_owned()),
        })?;
        let duration = |text: &str| text.into_us().map(Duration::from_micros);
        let config = Config {
            store: self.value("store", |text| Ok(format!("sqlite:{}", store_path(text)?)))?,
            listen: self.value("listen", |text| {
                text.parse().map_err(|_| {
                    "write an IP address and a port, for example 127.0.0.1:7070".to_owned()
                })
            })?,
            stop_grace: self.value("stop_grace", duration)?,
            lease: self.value("lease", |text| {
                let lease = duration(text)?;
                match (LEASE_MIN..=LEASE_MAX).contains(&lease) {
                    true => Ok(lease),
                    false => Err("a lease is 500ms to 1h".to_owned()),
                }
            })?,
            ready_pending_max: self.value("ready_pending_max", |text| match text {
                "off" => Ok(None),
                text => duration(text).map(Some),
            })?,
            retention: self.value("retention", |text| match text {
                "forever" => Ok(None),
                text => duration(text).map(Some),
            })?,
            log: self.value("log", |text| {
                text.parse().map_err(|_| "it is off, error, warn, info, debug or trace".to_owned())
            })?,
        };
        if !config.listen.ip().is_loopback() && !insecure {
            return Err(ConfigError(format!(
                "{} is an address that others can reach, and the API has neither passwords nor \
                 encryption yet: whoever reaches it can start, read and kill executions. Listen on \
                 127.0.0.1 and put a proxy with TLS and a login before it, or say `backstitch server \
                 --insecure` if the network is closed",
                config.listen
            )));
        }
        Ok(config)
    }

    fn value<T>(
        &self,
        key: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        let default = KEYS.iter().find(|(name, ..)| *name == key).map_or("", |(_, value, _)| value);
        let (value, place) = match self.said.get(key) {
            Some(said) => (said.value.as_str(), said.place.as_str()),
            None => (default, key),
        };
        read(value).map_err(|why| ConfigError(format!("{place} is {value:?}: {why}")))
    }
}

/// The file of a store, which is written as sqlite:PATH or as the path alone.
///
/// # Errors
/// What it should be.
pub fn store_path(text: &str) -> Result<&str, String> {
    match text.split_once(':').unwrap_or(("sqlite", text)) {
        ("sqlite", path) if !path.is_empty() => Ok(path),
        ("http" | "https", _) => {
            Err("that is a server, which is asked with --server; a store is a file, sqlite:PATH"
                .into())
        }
        _ => Err("write sqlite:PATH, for example sqlite:backstitch.db".into()),
    }
}

fn known(name: &str) -> Option<&'static str> {
    KEYS.iter().map(|(key, ..)| *key).find(|key| *key == name)
}

/// Says that a name is not known, and which one may be meant.
fn unknown(name: &str) -> String {
    let names = KEYS.iter().map(|(key, ..)| *key);
    let nearest = names.clone().min_by_key(|key| distance(name, key)).unwrap_or_default();
    let all: Vec<&str> = names.collect();
    let all = all.join(", ");
    format!("there is no setting {name:?}; perhaps {nearest:?} is meant (there are: {all})")
}

/// How many letters have to be changed, put in or left out to get from one to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = corner + usize::from(from != *to);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_file(name: &str, text: &str) -> Result<Settings, ConfigError> {
        let name = format!("backstitch-config-{}-{name}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("the folder takes files");
        let settings = Settings::default().file(&path);
        std::fs::remove_file(&path).expect("it is there");
        settings
    }

    fn environment(pairs: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn a_flag_counts_more_than_the_environment_and_that_more_than_the_file() {
        let file = "store = \"sqlite:file.db\"\nstop_grace = \"1s\"\nlog = \"error\"\n";
        let env = [("BACKSTITCH_STORE", "sqlite:env.db"), ("BACKSTITCH_STOP_GRACE", "2s")];
        let settings = with_file("order", file).expect("it is good").environment(environment(&env));
        let config =
            settings.flag("store", Some("sqlite:flag.db".into())).flag("listen", None).read();
        let config = config.expect("it is good");
        assert_eq!(config.store, "sqlite:flag.db");
        assert_eq!(config.stop_grace, Duration::from_secs(2));
        assert_eq!(config.log, LevelFilter::ERROR);
        assert_eq!(config.listen.to_string(), "127.0.0.1:7070");
    }

    #[test]
    fn a_name_in_the_file_that_is_not_known_is_refused_with_the_nearest_one() {
        let refused = with_file("stor", "stor = \"sqlite:x.db\"").unwrap_err().to_string();
        assert!(refused.contains("no setting \"stor\"; perhaps \"store\" is meant"), "{refused}");
        let refused = with_file("redy", "redy_pending = \"1m\"").unwrap_err().to_string();
        assert!(refused.contains("perhaps \"ready_pending_max\" is meant"), "{refused}");
    }

    #[test]
    fn a_name_in_the_environment_that_is_not_known_is_told() {
        let env = [("BACKSTITCH_LISTN", "x"), ("BACKSTITCH_SERVER", "y"), ("HOME", "z")];
        let warnings = Settings::default().environment(environment(&env)).warnings;
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("perhaps \"listen\" is meant"), "{warnings:?}");
    }

    #[test]
    fn a_value_that_means_nothing_is_refused_with_its_place() {
        let bad = [
            ("store", "mysql:x", "--store is \"mysql:x\": write sqlite:PATH"),
            ("listen", "localhost", "--listen is \"localhost\": write an IP address"),
            ("insecure", "yes", "--insecure is \"yes\": it is true or false"),
            ("stop_grace", "5 parsecs", "\"5 parsecs\" is not a duration"),
            ("ready_pending_max", "-1s", "negative"),
            ("retention", "soon", "not a duration"),
            ("log", "loud", "off, error, warn"),
        ];
        for (key, value, says) in bad {
            let refused = Settings::default().flag(key, Some(value.into())).read().unwrap_err();
            assert!(refused.to_string().contains(says), "{refused}");
        }
        let refused = with_file("list", "listen = [1]").unwrap_err().to_string();
        assert!(refused.contains("listen is a text"), "{refused}");
        assert!(with_file("toml", "listen").unwrap_err().to_string().contains("is not TOML"));
    }

    #[test]
    fn an_address_that_others_reach_needs_a_word() {
        let open = Settings::default().flag("listen", Some("0.0.0.0:7070".into()));
        let refused = open.read().unwrap_err().to_string();
        assert!(refused.contains("--insecure") && refused.contains("proxy"), "{refused}");
        assert!(open.flag("insecure", Some("true".into())).read().is_ok());
        assert!(Settings::default().flag("listen", Some("[::1]:0".into())).read().is_ok());
    }
}
