//! `backstitch backup`.

use std::path::{Path, PathBuf};

use backstitch::store::sqlite;

use super::arguments::Talk;
use super::ask::file_of;
use super::fault::{Fault, UNREACHABLE, USAGE};
use super::paper::Paper;
use super::serve::Stop;
use crate::service::told;

/// Copies the store to a file, which may be written as a store is.
pub async fn backup(talk: &Talk, copy: &Path) -> Result<(), Fault> {
    let from = file_of(talk)?;
    let path = copy.to_str().and_then(|copy| copy.strip_prefix("sqlite:"));
    let to = path.map_or_else(|| copy.to_owned(), PathBuf::from);
    if to.as_os_str().is_empty() {
        return Err(Fault::new(USAGE, format!("{copy:?} names no file; write PATH")));
    }
    let mut stop = Stop::listen()?;
    let copying = {
        let (from, to) = (from.clone(), to.clone());
        tokio::task::spawn_blocking(move || sqlite::backup(from, to))
    };
    let bytes = tokio::select! {
        copied = copying => copied.expect("copying does not panic").map_err(told)?,
        signal = stop.wait() => {
            sqlite::give_up_backup(&to);
            let message = format!("stopped by {signal}; nothing is left of the copy {}", to.display());
            return Err(Fault::new(UNREACHABLE, message));
        }
    };
    let said = format!("{} holds what is in {from} ({bytes} bytes)", to.display());
    Ok(Paper::new(talk.json).say(&serde_json::json!({ "path": to, "bytes": bytes }), &said)?)
}
