//! The folder that a run writes into, and the store in it.

use std::path::{Path, PathBuf};

use backstitch::{Backstitch, Builder};

use crate::{Result, process};

/// A fresh folder, removed in the end.
pub struct StoreDir(PathBuf);

impl StoreDir {
    /// In `parent`, or beside the build output: on a disk, which a folder for temporary files
    /// need not be.
    pub fn new(parent: Option<&Path>) -> Result<StoreDir> {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
        let parent = parent.unwrap_or(&beside);
        let dir = parent.join(format!("backstitch-bench-{}", std::process::id()));
        std::fs::create_dir_all(&dir).map_err(|why| {
            format!("{} cannot be made: {why}; name another folder by --dir", dir.display())
        })?;
        Ok(StoreDir(dir))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for StoreDir {
    fn drop(&mut self) {
        if let Err(why) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{} was left behind: {why}", self.0.display());
        }
    }
}

/// Where a workload runs: on a file in a folder, or for a server.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub dir: &'a Path,
    /// Its address.
    pub server: Option<&'a str>,
    /// The number of its process, if its memory is to be measured.
    pub server_pid: Option<u32>,
}

impl Place<'_> {
    /// As a program would open it.
    pub fn open(&self) -> Result<Builder> {
        match self.server {
            None => open(self.dir),
            Some(url) => Ok(Backstitch::open(url)),
        }
    }

    /// The memory of the server now, in bytes, if it is to be measured.
    pub fn server_rss_bytes(&self) -> Result<Option<u64>> {
        self.server_pid.map(process::rss_bytes_of).transpose()
    }
}

/// The store in `dir`, as a program would open it.
pub fn open(dir: &Path) -> Result<Builder> {
    let path = dir.join("bench.db");
    let path = path.to_str().ok_or("the path of the folder has to be Unicode")?;
    Ok(Backstitch::open(format!("sqlite:{path}")))
}

/// The files in `dir`.
pub fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir)?.collect::<std::io::Result<Vec<_>>>()?;
    Ok(entries.into_iter().map(|entry| entry.path()).collect())
}
