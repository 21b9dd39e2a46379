//! Runnable examples of Backstitch, in the folders beside this one:
//!
//! - `bank_transfer` moves money between two banks, fails half way, and dies on the way back.
//! - `fulfilment` reserves stock, charges a card over HTTP and ships; each time something else goes
//!   wrong.
//! - `short/`: one idea each, below 80 lines.
//!
//! The short ones `fan_out` and `hedged` also work for a server: `--server http://127.0.0.1:7070`.

/// Where executions are kept: at the server of `--server URL`, or in memory.
///
/// # Errors
/// Other arguments, with the way out.
pub fn store_of(arguments: impl IntoIterator<Item = String>) -> Result<String, String> {
    let arguments: Vec<String> = arguments.into_iter().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Ok("memory:".to_owned()),
        ["--server", url] => Ok(url.to_owned()),
        _ => Err(format!("{arguments:?}: write nothing, or --server http://127.0.0.1:7070")),
    }
}

/// As [`store_of`], for this program: it says what is wrong, and ends.
pub fn store() -> String {
    store_of(std::env::args()).unwrap_or_else(|why| {
        eprintln!("error: {why}");
        std::process::exit(2)
    })
}

#[cfg(test)]
mod tests {
    use super::store_of;

    #[test]
    fn a_server_is_named_by_its_url_and_nothing_else_is_taken() {
        let of = |words: &str| store_of(words.split(' ').map(str::to_owned));
        assert_eq!(of("program"), Ok("memory:".to_owned()));
        assert_eq!(of("program --server http://a:1"), Ok("http://a:1".to_owned()));
        for wrong in ["program --server", "program http://a:1", "program --help"] {
            assert!(of(wrong).unwrap_err().contains("--server http://"), "{wrong}");
        }
    }
}
