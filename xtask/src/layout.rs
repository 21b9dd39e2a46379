//! How long files may be and what they may be called.

use crate::paths;
use crate::repo::{Finding, Repo};

/// More than that is not read in one sitting. The aim is 300.
const FILE_LINES_MAX: usize = 500;

/// Names that say nothing of what is inside, and so attract everything.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helpers", "misc", "types"];

pub fn file_length(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in &repo.sources {
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            let rule = format!("{lines} lines, more than {FILE_LINES_MAX}");
            let way_out = "split it where the nouns part";
            findings.push(Finding::new(path, FILE_LINES_MAX + 1, rule, way_out));
        }
    }
    findings
}

/// Files, folders and modules in a file.
pub fn names(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    let finding = |path: &str, line: usize, name: &str| {
        let rule = format!("the name `{name}` says nothing of what is inside");
        Finding::new(
            path,
            line,
            rule,
            "name it after the noun it is about, or move its parts to theirs",
        )
    };
    for (path, source) in &repo.sources {
        let parts = path.trim_end_matches(".rs").split('/');
        findings
            .extend(parts.filter(|p| EMPTY_NAMES.contains(p)).map(|name| finding(path, 0, name)));
        for name in EMPTY_NAMES {
            for at in paths::occurrences(&source.code, &format!("mod {name}")) {
                findings.push(finding(path, source.line_of(at), name));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_too_many_is_found() {
        let long = "x\n".repeat(FILE_LINES_MAX + 1);
        let fits = "x\n".repeat(FILE_LINES_MAX);
        let findings = file_length(&Repo::of(&[("tests/long.rs", &long), ("fits.rs", &fits)]));
        assert_eq!((findings.len(), findings[0].path.as_str()), (1, "tests/long.rs"));
    }

    #[test]
    fn empty_names_of_files_folders_and_modules_are_found() {
        let repo = Repo::of(&[
            ("src/util.rs", ""),
            ("tests/common/mod.rs", ""),
            ("src/run.rs", "// mod misc\npub mod types {}\nmod types_of_events;"),
            ("docs/common.md", ""),
        ]);
        let found: Vec<(String, usize)> =
            names(&repo).into_iter().map(|f| (f.path, f.line)).collect();
        let expected = [("src/run.rs", 2), ("src/util.rs", 0), ("tests/common/mod.rs", 0)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
    }
}
