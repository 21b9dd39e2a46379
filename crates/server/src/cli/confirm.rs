//! Asking before something is destroyed.

use std::io::{IsTerminal, Write, stderr, stdin};

use super::arguments::Sure;
use super::fault::{Fault, NOT_CONFIRMED};

/// Goes on if the person says yes, or has said so before.
pub fn confirm(sure: &Sure, what: &str) -> Result<(), Fault> {
    if sure.yes {
        return Ok(());
    }
    if !stdin().is_terminal() {
        let message = format!("{what} Nobody is there to be asked, so say --yes");
        return Err(Fault::new(NOT_CONFIRMED, message));
    }
    write!(stderr(), "{what} Go on? [y/N] ")?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Fault::new(NOT_CONFIRMED, "nothing was done")),
    }
}
