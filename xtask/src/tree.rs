//! How many crates a program takes in with Backstitch.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::repo::{Finding, Repo};

const PACKAGE: &str = "backstitch";

/// Crates that an embedding program compiles, ours and those of build scripts included. Each one is build time and trust
/// that we ask of every user, so a new one has to be worth an old one.
const TREE_CRATES_MAX: usize = 60;

/// Counts by asking cargo, for the host's platform and the default features.
pub fn within_budget(repo: &Repo) -> Vec<Finding> {
    let Some(root) = &repo.root else {
        return Vec::new();
    };
    match tree(root) {
        Ok(tree) => finding(&tree).into_iter().collect(),
        Err(problem) => Vec::from([Finding::new(
            "Cargo.toml",
            0,
            format!("`cargo tree` failed: {problem}"),
            "repair the manifests, then try again",
        )]),
    }
}

fn tree(root: &Path) -> Result<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "-p", PACKAGE, "-e", "normal", "--prefix", "none", "--format", "{p}"])
        .current_dir(root)
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

fn finding(tree: &str) -> Option<Finding> {
    let crates = distinct_crates(tree);
    (crates.len() > TREE_CRATES_MAX).then(|| {
        let rule =
            format!("`{PACKAGE}` compiles {} crates, more than {TREE_CRATES_MAX}", crates.len());
        let way_out = format!(
            "do without one (`cargo tree -p {PACKAGE} -e normal,build` shows who brings what)"
        );
        Finding::new("crates/backstitch/Cargo.toml", 0, rule, way_out)
    })
}

/// Each crate once per version: two versions are compiled twice.
fn distinct_crates(tree: &str) -> BTreeSet<(&str, &str)> {
    let name_and_version = |line| {
        let mut words = str::split_whitespace(line);
        Some((words.next()?, words.next()?))
    };
    tree.lines().filter_map(name_and_version).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_counted_once_per_version() {
        let tree =
            "backstitch v0.1.0 (/x)\nsyn v2.0.1\nsyn v3.0.1 (proc-macro)\nsyn v2.0.1 (*)\n\n";
        assert_eq!(distinct_crates(tree).len(), 3);
    }

    #[test]
    fn one_crate_too_many_is_found() {
        let tree = |count: usize| (0..count).map(|n| format!("c{n} v1.0.0\n")).collect::<String>();
        assert!(finding(&tree(TREE_CRATES_MAX)).is_none());
        let finding = finding(&tree(TREE_CRATES_MAX + 1)).expect("that is too many");
        assert!(finding.rule.contains("61 crates"));
    }
}
