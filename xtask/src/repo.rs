//! What the checks look at: the files of the repository, held in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::manifest::Manifest;
use crate::regions;
use crate::source::Source;

/// The files of the repository by their path from its root, with `/` between the parts.
pub struct Repo {
    /// Where it lies on disk; `None` for one that a test made up.
    pub root: Option<PathBuf>,
    /// Contents of `.rs`, `.md` and `.toml` files. The others are present and empty: links may point to them.
    pub files: BTreeMap<String, String>,
    /// The Rust files among them, taken apart into code and comments.
    pub sources: BTreeMap<String, Source>,
}

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub path: String,
    /// Counted from 1; 0 when the finding is about the file as a whole.
    pub line: usize,
    pub rule: String,
    pub way_out: String,
}

impl Repo {
    /// Reads everything below `root` except build output and hidden folders (`.ci` and `.github` are read).
    ///
    /// # Errors
    ///
    /// When a folder or file cannot be read.
    pub fn read(root: &Path) -> io::Result<Repo> {
        let mut files = BTreeMap::new();
        let mut folders = vec![root.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    let hidden = name.starts_with('.') && name != ".ci" && name != ".github";
                    if !hidden && name != "target" && name != "node_modules" {
                        folders.push(entry.path());
                    }
                } else if kind.is_file() {
                    let text = text_of(&entry.path())?;
                    files.insert(path_from(root, &entry.path()), text);
                }
            }
        }
        Ok(Repo::new(Some(root.to_path_buf()), files))
    }

    /// A repository that consists of these files only.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Repo {
        let files = files.iter().map(|(path, text)| (path.to_string(), text.to_string()));
        Repo::new(None, files.collect())
    }

    fn new(root: Option<PathBuf>, files: BTreeMap<String, String>) -> Repo {
        let mut sources: BTreeMap<String, Source> = files
            .iter()
            // What is made from something else is judged there.
            .filter(|(path, _)| path.ends_with(".rs") && !path.contains("/generated/"))
            .map(|(path, text)| (path.clone(), Source::new(text)))
            .collect();
        regions::mark_test_files(&mut sources);
        Repo { root, files, sources }
    }

    /// Whether a file or folder of this path exists. The root is the empty path.
    pub fn contains(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.keys().any(|file| file.starts_with(&folder))
    }

    /// The manifests of the workspace's members.
    pub fn members(&self) -> Vec<Manifest> {
        let Some(root) = self.files.get("Cargo.toml") else {
            return Vec::new();
        };
        let root = Manifest::parse("Cargo.toml", root);
        let paths = self.files.keys().filter(|path| {
            path.strip_suffix("/Cargo.toml").is_some_and(|folder| root.has_member(folder))
        });
        paths.map(|path| Manifest::parse(path, &self.files[path])).collect()
    }
}

impl Finding {
    pub fn new(
        path: &str,
        line: usize,
        rule: impl Into<String>,
        way_out: impl Into<String>,
    ) -> Finding {
        Finding { path: path.to_owned(), line, rule: rule.into(), way_out: way_out.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.path)?,
            line => write!(f, "{}:{line}", self.path)?,
        }
        write!(f, ": {}\n    way out: {}", self.rule, self.way_out)
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    let is_read = |extension| matches!(extension, "rs" | "md" | "toml");
    if path.extension().and_then(|extension| extension.to_str()).is_some_and(is_read) {
        let in_path =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        fs::read_to_string(path).map_err(in_path)
    } else {
        Ok(String::new())
    }
}

fn path_from(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).expect("it was found below the root");
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_place_rule_and_way_out() {
        let finding = Finding::new("a/b.rs", 7, "no x", "write y");
        assert_eq!(finding.to_string(), "a/b.rs:7: no x\n    way out: write y");
        assert!(Finding::new("a.rs", 0, "r", "w").to_string().starts_with("a.rs: r"));
    }

    #[test]
    fn folders_exist_through_their_files() {
        let repo = Repo::of(&[("docs/a.md", "")]);
        assert!(repo.contains("docs") && repo.contains("docs/a.md") && repo.contains(""));
        assert!(!repo.contains("doc") && !repo.contains("docs/b.md"));
    }

    #[test]
    fn members_are_those_the_root_lists() {
        let repo = Repo::of(&[
            ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\", \"xtask\"]\n"),
            ("crates/core/Cargo.toml", "[package]\nname = \"core\"\n"),
            ("xtask/Cargo.toml", "[package]\nname = \"xtask\"\n"),
            ("bench/Cargo.toml", "[package]\nname = \"bench\"\n"),
        ]);
        let names: Vec<String> = repo.members().into_iter().map(|m| m.package).collect();
        assert_eq!(names, ["core", "xtask"]);
    }
}
