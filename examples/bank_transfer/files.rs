//! The folder with everything that outlives the process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The folder. One that was made for this run alone is removed at its end.
pub struct Files {
    dir: PathBuf,
    keep: Keep,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Yes,
    No,
}

impl Files {
    /// The folder of `--dir`, made if it is not there.
    pub fn in_dir(dir: &Path) -> io::Result<Files> {
        fs::create_dir_all(dir)?;
        Ok(Files { dir: dir.to_owned(), keep: Keep::Yes })
    }

    /// A new folder.
    pub fn in_new_dir(keep: Keep) -> io::Result<Files> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("bank_transfer-{}-{}", std::process::id(), since_1970.as_nanos());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir)?;
        Ok(Files { dir, keep })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the banks have.
    pub fn banks(&self) -> PathBuf {
        self.dir.join("banks.db")
    }

    /// The journals.
    pub fn journals(&self) -> PathBuf {
        self.dir.join("transfers.db")
    }

    /// Notes that a process begins to work on a transfer.
    pub fn process_begins(&self, transfer: &str) -> io::Result<()> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (process, at) = (std::process::id(), since_1970.as_nanos());
        writeln!(self.processes()?, "{transfer} begin {process} {at}")
    }

    /// What the first of these processes noted: no other folder has the same.
    pub fn first_begin(&self, transfer: &str) -> io::Result<String> {
        let log = fs::read_to_string(self.dir.join("processes.log"))?;
        let begin = format!("{transfer} begin ");
        let first = log.lines().find(|line| line.starts_with(&begin));
        Ok(first.unwrap_or_default().to_owned())
    }

    /// Notes that it ends in good order.
    pub fn process_ends(&self, transfer: &str) -> io::Result<()> {
        writeln!(self.processes()?, "{transfer} end {}", std::process::id())
    }

    fn processes(&self) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).open(self.dir.join("processes.log"))
    }

    /// How many processes worked on a transfer and did not end in good order.
    pub fn crashes(&self, transfer: &str) -> io::Result<u32> {
        let log = fs::read_to_string(self.dir.join("processes.log"))?;
        let count = |what: &str| {
            let begin = format!("{transfer} {what} ");
            log.lines().filter(|line| line.starts_with(&begin)).count() as u32
        };
        Ok(count("begin").saturating_sub(count("end")))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if self.keep == Keep::No {
            // What is left in the temporary folder harms nobody.
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}
