//! Tests do not sleep: a sleep is too short on a slow machine and wasted on a fast one.

use crate::paths;
use crate::repo::{Finding, Repo};
use crate::source::Source;

/// The engine's own durable sleep, `ctx.sleep(…)`, is none of these.
const SLEEPS: &[&str] = &[
    "thread::sleep",
    "time::sleep",
    "time::sleep_until",
    "std::thread::sleep",
    "tokio::time::sleep",
    "tokio::time::sleep_until",
];

/// Excuses a sleep on its own or the next line. What follows is the reason.
const EXCUSE: &str = "// tidy: allow-sleep ";

pub fn none_in_tests(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in &repo.sources {
        let places = SLEEPS.iter().flat_map(|sleep| paths::uses_of_path(&source.code, sleep));
        let in_tests = places.filter(|at| source.in_test(*at));
        let mut lines: Vec<usize> = in_tests.map(|at| source.line_of(at)).collect();
        lines.sort_unstable();
        lines.dedup();
        for line in lines.into_iter().filter(|line| !is_excused(source, *line)) {
            let way_out = "inject a clock or wait for a signal; if it has to be: `// tidy: allow-sleep <reason>`";
            findings.push(Finding::new(path, line, "a test sleeps", way_out));
        }
    }
    findings
}

fn is_excused(source: &Source, line: usize) -> bool {
    let before = line.saturating_sub(2);
    let lines = source.comments.lines().skip(before).take(line - before);
    let mut reasons =
        lines.filter_map(|line| line.split_once(EXCUSE)).map(|(_, reason)| reason.trim());
    reasons.any(|reason| !reason.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(path: &str, text: &str) -> Vec<usize> {
        none_in_tests(&Repo::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn sleeps_in_tests_are_found_in_every_spelling() {
        let path = "crates/engine/tests/a.rs";
        assert_eq!(lines_of(path, "fn f() {\n    std::thread::sleep(d);\n}"), [2]);
        assert_eq!(lines_of(path, "use std::thread;\nthread::sleep(d);"), [2]);
        assert_eq!(lines_of(path, "use tokio::time::{advance, sleep};"), [1]);
        assert_eq!(lines_of(path, "tokio::time::sleep_until(i).await;"), [1]);
        let module = "fn f() {}\n#[cfg(test)]\nmod tests {\n    fn t() { thread::sleep(d); }\n}";
        assert_eq!(lines_of("src/a.rs", module), [4]);
    }

    #[test]
    fn other_code_and_other_sleeps_are_not() {
        assert!(lines_of("src/a.rs", "tokio::time::sleep(d).await;").is_empty());
        assert!(lines_of("tests/a.rs", "ctx.sleep(d).await; // thread::sleep").is_empty());
    }

    #[test]
    fn an_excuse_needs_a_reason_and_reaches_one_line() {
        let excuse = "// tidy: allow-sleep the other process has no signal";
        assert!(lines_of("tests/a.rs", &format!("{excuse}\nthread::sleep(d);")).is_empty());
        assert!(lines_of("tests/a.rs", &format!("thread::sleep(d); {excuse}")).is_empty());
        assert_eq!(lines_of("tests/a.rs", &format!("{excuse}\n\nthread::sleep(d);")), [3]);
        assert_eq!(lines_of("tests/a.rs", "// tidy: allow-sleep \nthread::sleep(d);"), [2]);
    }
}
