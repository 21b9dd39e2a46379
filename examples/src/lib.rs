//! Runnable examples of Backstitch, in the folders beside this one:
//!
//! - `bank_transfer` moves money between two banks, fails half way, and dies on the way back.
//! - `fulfilment` reserves stock, charges a card over HTTP and ships; each time something else goes
//!   wrong.
//! - `short/`: one idea each, below 80 lines.
//!
//! All but `explore_fulfilment` also work for a server: `--server http://127.0.0.1:7070`.

/// A URL that can be that of a server.
///
/// # Errors
/// Something else, with the way out.
pub fn server_url(url: &str) -> Result<String, String> {
    match url.strip_prefix("http://") {
        Some(host) if !host.is_empty() => Ok(url.to_owned()),
        _ => Err(format!("--server {url:?}: write a URL, for example http://127.0.0.1:7070")),
    }
}

/// Where executions are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// In the memory of this process, until it ends.
    Memory,
    /// At the server with this URL.
    Server(String),
}

impl Store {
    /// What [`Backstitch::open`](backstitch::Backstitch::open) takes.
    pub fn url(&self) -> &str {
        match self {
            Store::Memory => "memory:",
            Store::Server(url) => url,
        }
    }

    fn of(arguments: impl IntoIterator<Item = String>) -> Result<Store, String> {
        let arguments: Vec<String> = arguments.into_iter().skip(1).collect();
        match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => Ok(Store::Memory),
            ["--server", url] => Ok(Store::Server(server_url(url)?)),
            _ => Err(format!("{arguments:?}: write nothing, or --server http://127.0.0.1:7070")),
        }
    }
}

/// The store that the arguments of this program name: that of `--server URL`, or memory. If they say something else,
/// it says what is wrong, and ends.
pub fn store() -> Store {
    Store::of(std::env::args()).unwrap_or_else(|why| {
        eprintln!("error: {why}");
        std::process::exit(2)
    })
}

#[cfg(test)]
mod tests {
    use super::Store;

    #[test]
    fn a_server_is_named_by_its_url_and_nothing_else_is_taken() {
        let of = |words: &str| Store::of(words.split(' ').map(str::to_owned));
        assert_eq!(of("program"), Ok(Store::Memory));
        assert_eq!(of("program --server http://a:1").unwrap().url(), "http://a:1");
        for wrong in
            ["program --server", "program http://a:1", "program --help", "program --server a:1"]
        {
            assert!(of(wrong).unwrap_err().contains("http://127.0.0.1"), "{wrong}");
        }
    }
}
