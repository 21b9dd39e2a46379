//! The folder with everything that outlives the process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The folder. One that was made for this run alone is removed at its end.
pub struct Files {
    dir: PathBuf,
    keep: Keep,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Yes,
    No,
}

impl Files {
    /// The folder of `--dir`, made if it is not there; or a new one.
    ///
    /// # Errors
    /// A sentence that names the folder.
    pub fn open(dir: Option<&Path>) -> Result<Files, String> {
        if let Some(dir) = dir {
            let made = fs::create_dir_all(dir);
            made.map_err(|error| format!("--dir {}: {error}", dir.display()))?;
            return Ok(Files { dir: dir.to_owned(), keep: Keep::Yes });
        }
        let dir = std::env::temp_dir().join(new_name());
        fs::create_dir(&dir)
            .map_err(|error| format!("no temporary folder ({error}); name one with --dir PATH"))?;
        Ok(Files { dir, keep: Keep::No })
    }

    /// A name that no other folder has.
    ///
    /// # Errors
    /// A file that cannot be read, or made.
    pub fn name(&self) -> io::Result<String> {
        let path = self.path("name.txt");
        if !path.exists() {
            fs::write(&path, new_name())?;
        }
        fs::read_to_string(path)
    }

    /// A file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

fn new_name() -> String {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("fulfilment-{}-{}", std::process::id(), since_1970.as_nanos())
}

impl Drop for Files {
    fn drop(&mut self) {
        if self.keep == Keep::No {
            // What is left in the temporary folder harms nobody.
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}
