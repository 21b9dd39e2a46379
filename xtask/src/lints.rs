//! The workspace's lints reach every crate, and no file switches them off.

use crate::paths;
use crate::regions;
use crate::repo::{Finding, Repo};

pub fn inherited(repo: &Repo) -> Vec<Finding> {
    let members = repo.members();
    let without = members.iter().filter(|member| !member.inherits_lints);
    let finding = |path: &String| {
        let rule = "the workspace's lints do not reach this crate";
        Finding::new(path, 0, rule, "add `[lints]` with `workspace = true`")
    };
    without.map(|member| finding(&member.path)).collect()
}

/// A single item may be excused by an outer attribute with a reason; a whole file may not.
pub fn missing_docs_stays_on(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in &repo.sources {
        for attribute in regions::attributes(&source.code).iter().filter(|a| a.inner) {
            let content = attribute.content(&source.code);
            let level = content.split('(').next().unwrap_or_default().trim();
            let silences = matches!(level, "allow" | "expect");
            if silences && !paths::occurrences(content, "missing_docs").is_empty() {
                let line = source.line_of(attribute.span.start);
                let rule = "`missing_docs` is switched off for a whole file";
                findings.push(Finding::new(path, line, rule, "write the documentation"));
            }
        }
    }
    findings
}

/// `unsafe` needs a comment in its file that says why it is sound.
pub fn unsafe_is_explained(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in &repo.sources {
        if source.comments.contains("// SAFETY:") {
            continue;
        }
        for at in paths::occurrences(&source.code, "unsafe") {
            let rule = "`unsafe` without a `// SAFETY:` comment in its file";
            let way_out = "do without it, or say why it is sound";
            findings.push(Finding::new(path, source.line_of(at), rule, way_out));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_without_the_lints_is_found() {
        let with = "[package]\nname = \"a\"\n[lints]\nworkspace = true\n";
        let repo = Repo::of(&[
            ("Cargo.toml", "[workspace]\nmembers = [\"a\", \"b\"]\n"),
            ("a/Cargo.toml", with),
            ("b/Cargo.toml", "[package]\nname = \"b\"\n[lints.rust]\nmissing_docs = \"allow\"\n"),
        ]);
        let paths: Vec<String> = inherited(&repo).into_iter().map(|finding| finding.path).collect();
        assert_eq!(paths, ["b/Cargo.toml"]);
    }

    #[test]
    fn a_file_that_switches_missing_docs_off_is_found() {
        let lines = |text: &str| -> Vec<usize> {
            missing_docs_stays_on(&Repo::of(&[("a.rs", text)])).iter().map(|f| f.line).collect()
        };
        assert_eq!(lines("//! Doc.\n#![allow(unused, missing_docs)]"), [2]);
        assert_eq!(lines("#![expect(missing_docs, reason = \"later\")]"), [1]);
        assert!(lines("// #![allow(missing_docs)]\n#![deny(missing_docs)]").is_empty());
        assert!(lines("#[allow(missing_docs)]\nmod generated;").is_empty());
    }

    #[test]
    fn unexplained_unsafe_is_found() {
        let count = |text: &str| unsafe_is_explained(&Repo::of(&[("a.rs", text)])).len();
        assert_eq!(count("fn f() { unsafe { g() } }"), 1);
        assert_eq!(count("// SAFETY: g has no conditions.\nfn f() { unsafe { g() } }"), 0);
        assert_eq!(count("#![forbid(unsafe_code)] // unsafe"), 0);
    }
}
