//! Every dependency is accounted for in `docs/dependencies.md`, and the table says nothing else.

use std::collections::BTreeMap;

use crate::manifest::Kind;
use crate::repo::{Finding, Repo};

const TABLE: &str = "docs/dependencies.md";

/// A row of the table.
struct Row {
    line: usize,
    dependency: String,
    /// The cells behind the first.
    cells: Vec<String>,
}

/// Each dependency of each member has a row that names the member; each row has a use and is complete.
pub fn documented(repo: &Repo) -> Vec<Finding> {
    let rows = rows(repo.files.get(TABLE).map_or("", String::as_str));
    let members = repo.members();
    let mut findings = Vec::new();
    let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for member in &members {
        for dependency in &member.dependencies {
            let name = dependency.name.as_str();
            if members.iter().any(|other| other.package == name) {
                continue;
            }
            let user = short(&member.package);
            users.entry(name).or_default().push(user);
            let row = rows.iter().find(|row| row.dependency == name);
            let rule = match row {
                None => format!("`{name}` has no line in {TABLE}"),
                Some(row) if !row.is_used_by(user) => {
                    format!("{TABLE}:{} does not say that `{user}` uses `{name}`", row.line)
                }
                Some(_) => continue,
            };
            let kind = match dependency.kind {
                Kind::Normal => "",
                Kind::Dev => " (for tests)",
                Kind::Build => " (for its build)",
            };
            let way_out = format!(
                "| `{name}` | {user}{kind} | what for | what else was considered |, or do without it"
            );
            findings.push(Finding::new(&member.path, dependency.line, rule, way_out));
        }
    }
    for row in &rows {
        findings.extend(row.finding(users.get(row.dependency.as_str()).map_or(&[], Vec::as_slice)));
    }
    findings
}

impl Row {
    /// The members named in the second cell, without what stands in parentheses.
    fn users(&self) -> impl Iterator<Item = &str> {
        let cell = self.cells.first().map_or("", String::as_str);
        cell.split(',')
            .map(|user| user.split('(').next().unwrap_or_default().trim_matches([' ', '`']))
    }

    fn is_used_by(&self, user: &str) -> bool {
        self.users().any(|named| named == user)
    }

    fn finding(&self, users: &[&str]) -> Option<Finding> {
        let name = &self.dependency;
        if users.is_empty() {
            let rule = format!("no member depends on `{name}`");
            return Some(Finding::new(TABLE, self.line, rule, "delete the line"));
        }
        if let Some(named) = self.users().find(|named| !users.contains(named)) {
            let rule = format!("`{named}` does not depend on `{name}`");
            return Some(Finding::new(TABLE, self.line, rule, "take it out of the second cell"));
        }
        let complete = self.cells.len() == 3 && self.cells.iter().all(|cell| !cell.is_empty());
        (!complete).then(|| {
            let rule = format!("the line about `{name}` is incomplete");
            Finding::new(
                TABLE,
                self.line,
                rule,
                "say who uses it, what for, and what else was considered",
            )
        })
    }
}

fn rows(table: &str) -> Vec<Row> {
    let row = |(at, line): (usize, &str)| {
        let mut cells = line.trim().strip_prefix('|')?.trim_end_matches('|').split('|');
        let dependency = cells.next()?.trim().strip_prefix('`')?.strip_suffix('`')?.to_owned();
        let cells = cells.map(|cell| cell.trim().to_owned()).collect();
        Some(Row { line: at + 1, dependency, cells })
    };
    table.lines().enumerate().filter_map(row).collect()
}

/// `core` of `backstitch-core`.
fn short(package: &str) -> &str {
    package.strip_prefix("backstitch-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_with(table: &str) -> Vec<Finding> {
        let core = "[package]\nname = \"backstitch-core\"\n[dependencies]\nbytes = \"1\"\n";
        documented(&Repo::of(&[
            ("Cargo.toml", "[workspace]\nmembers = [\"crates/core\"]\n"),
            ("crates/core/Cargo.toml", core),
            (TABLE, table),
        ]))
    }

    #[test]
    fn a_dependency_without_a_line_is_found() {
        let findings = findings_with("# Dependencies\n");
        assert_eq!((findings.len(), findings[0].line), (1, 4));
        assert!(findings[0].rule.contains("`bytes` has no line"));
    }

    #[test]
    fn a_line_that_says_something_else_is_found() {
        let rule = |table: &str| findings_with(table).remove(0).rule;
        assert!(rule("| `bytes` | store | x | y |").contains("does not say that `core`"));
        assert!(rule("| `bytes` | core, store | x | y |").contains("`store` does not depend"));
        assert!(rule("| `bytes` | core | x | |").contains("incomplete"));
        let stale = "| `bytes` | core | x | y |\n| `gone` | core | x | y |";
        assert!(rule(stale).contains("no member depends on `gone`"));
    }

    #[test]
    fn a_complete_table_is_fine() {
        assert!(
            findings_with("| Crate | Used by |\n|---|---|\n| `bytes` | core (tests) | x | y |")
                .is_empty()
        );
    }
}
