//! `crates/core` is pure: no I/O, no clock, no randomness, no threads, no async runtime.
//! Replay gives the same answer every time only because of that.

use crate::manifest::Kind;
use crate::paths;
use crate::repo::{Finding, Repo};

const CORE_PACKAGE: &str = "backstitch-core";
const CORE_SOURCE: &str = "crates/core/src/";

const IMPURE_DEPENDENCIES: &[&str] =
    &["tokio", "rusqlite", "tracing", "futures", "rand", "getrandom", "fastrand"];

/// Paths that reach out of the process or ask the system for something.
const IMPURE_PATHS: &[&str] = &[
    "std::fs",
    "std::net",
    "std::thread",
    "std::process",
    "std::env",
    "rand",
    "getrandom",
    "fastrand",
];

/// Words that do so wherever they stand.
const IMPURE_WORDS: &[&str] = &["SystemTime", "Instant::now", "now_v7", "new_v7", "new_v4"];

const WAY_OUT: &str =
    "let the caller pass the value in: the engine has the clock, the seed and the disk";

/// Core depends on nothing impure. Its tests may.
pub fn of_dependencies(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in repo.members().iter().filter(|member| member.package == CORE_PACKAGE) {
        for dependency in &member.dependencies {
            let impure = |name: &&str| {
                let rest = dependency.name.strip_prefix(*name);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
            };
            let shipped = match dependency.kind {
                Kind::Normal | Kind::Build => true,
                Kind::Dev => false,
            };
            if shipped && IMPURE_DEPENDENCIES.iter().any(impure) {
                let rule = format!("core is pure and must not depend on `{}`", dependency.name);
                findings.push(Finding::new(&member.path, dependency.line, rule, WAY_OUT));
            }
        }
    }
    findings
}

/// Core's code asks the system for nothing. Its tests may.
pub fn of_code(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in &repo.sources {
        if !path.starts_with(CORE_SOURCE) {
            continue;
        }
        let mut places: Vec<(usize, &str)> = Vec::new();
        for name in IMPURE_WORDS {
            places.extend(paths::occurrences(&source.code, name).into_iter().map(|at| (at, *name)));
        }
        for name in IMPURE_PATHS {
            let used = paths::uses_of_path(&source.code, name).into_iter();
            places.extend(used.filter(|at| is_path(&source.code, *at, name)).map(|at| (at, *name)));
        }
        places.retain(|(at, _)| !source.in_test(*at));
        let mut lines: Vec<_> =
            places.into_iter().map(|(at, name)| (source.line_of(at), name)).collect();
        lines.sort_unstable();
        lines.dedup();
        for (line, name) in lines {
            findings.push(Finding::new(path, line, format!("core is pure: no `{name}`"), WAY_OUT));
        }
    }
    findings
}

/// A single word is a crate only where a path goes on behind it; elsewhere it may be a variable.
fn is_path(code: &str, at: usize, name: &str) -> bool {
    name.contains("::") || code[at..].strip_prefix(name).is_none_or(|rest| rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of_code(text: &str) -> Vec<usize> {
        let repo = Repo::of(&[("crates/core/src/run.rs", text), ("crates/engine/src/a.rs", text)]);
        of_code(&repo).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn impure_code_is_found_however_it_is_imported() {
        assert_eq!(lines_of_code("fn f() {\n    std::fs::read(\"x\");\n}"), [2]);
        assert_eq!(lines_of_code("use std::{\n    fmt,\n    thread,\n};"), [3]);
        assert_eq!(lines_of_code("use std::time::SystemTime;"), [1]);
        assert_eq!(lines_of_code("let a = Instant::now();\nlet b = Uuid::now_v7();"), [1, 2]);
        assert_eq!(lines_of_code("let a = rand::random();"), [1]);
    }

    #[test]
    fn words_in_comments_tests_and_variables_are_not() {
        assert!(lines_of_code("// std::fs is not used\nlet rand = 1;\nuse std::fmt;").is_empty());
        assert!(lines_of_code("#[cfg(test)]\nmod tests { use std::fs; }").is_empty());
    }

    #[test]
    fn impure_dependencies_are_found() {
        let core = "[package]\nname = \"backstitch-core\"\n[dependencies]\nserde = \"1\"\n\
                    futures-util = \"0.3\"\n[dev-dependencies]\ntokio = \"1\"\n";
        let root = "[workspace]\nmembers = [\"crates/core\"]\n";
        let findings =
            of_dependencies(&Repo::of(&[("Cargo.toml", root), ("crates/core/Cargo.toml", core)]));
        assert_eq!((findings.len(), findings[0].line), (1, 5));
    }
}
