//! Which of our crates may use which: the arrows point one way.

use crate::manifest::{Kind, Manifest};
use crate::repo::{Finding, Repo};

/// Each member and what it may use of ours. An example sees what a user sees, so it has one arrow.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "backstitch",
        &[
            "backstitch-engine",
            "backstitch-store",
            "backstitch-core",
            "backstitch-macros",
            "backstitch-api",
        ],
    ),
    ("backstitch-api", &["backstitch-core"]),
    (
        "backstitch-server",
        &[
            "backstitch-api",
            "backstitch",
            "backstitch-engine",
            "backstitch-store",
            "backstitch-core",
        ],
    ),
    ("backstitch-engine", &["backstitch-store", "backstitch-core"]),
    ("backstitch-store", &["backstitch-core"]),
    ("backstitch-core", &[]),
    ("backstitch-macros", &[]),
    ("backstitch-api", &["backstitch-core"]),
    ("backstitch-server", &["backstitch-api", "backstitch", "backstitch-engine"]),
    ("sim", &["backstitch"]),
    ("examples", &["backstitch"]),
    ("xtask", &[]),
];

/// Members that nothing may use, not even in tests.
const LEAVES: &[&str] = &["backstitch-server", "sim", "examples", "xtask"];

/// The arrows hold for what is compiled into users' programs; a test may look the other way,
/// but not at a leaf.
pub fn between_crates(repo: &Repo) -> Vec<Finding> {
    let members = repo.members();
    let mut findings = Vec::new();
    for member in &members {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == member.package) else {
            findings.push(Finding::new(
                &member.path,
                0,
                format!("the crate `{}` has no place among the arrows", member.package),
                "say what it may use in ARROWS, xtask/src/arrows.rs",
            ));
            continue;
        };
        findings.extend(forbidden(member, allowed, &members));
    }
    findings
}

fn forbidden(member: &Manifest, allowed: &[&str], members: &[Manifest]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for dependency in &member.dependencies {
        let name = dependency.name.as_str();
        let ours = members.iter().any(|other| other.package == name);
        let judged = match dependency.kind {
            Kind::Normal | Kind::Build => ours,
            Kind::Dev => LEAVES.contains(&name),
        };
        if judged && !allowed.contains(&name) {
            let way_out = match allowed {
                [] => {
                    format!("`{}` uses none of our crates; move what it needs down", member.package)
                }
                _ => format!("move what it needs into one of: {}", allowed.join(", ")),
            };
            let rule = format!("`{}` must not use `{name}`", member.package);
            findings.push(Finding::new(&member.path, dependency.line, rule, way_out));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: (&str, &str) = ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\", \"xtask\"]\n");
    const STORE: (&str, &str) =
        ("crates/store/Cargo.toml", "[package]\nname = \"backstitch-store\"\n");
    const XTASK: (&str, &str) = ("xtask/Cargo.toml", "[package]\nname = \"xtask\"\n");

    fn findings_with_core(core: &str) -> Vec<Finding> {
        let core = format!("[package]\nname = \"backstitch-core\"\n{core}");
        between_crates(&Repo::of(&[ROOT, STORE, XTASK, ("crates/core/Cargo.toml", &core)]))
    }

    #[test]
    fn an_arrow_that_points_back_is_found() {
        let findings = findings_with_core("[dependencies]\nbackstitch-store.workspace = true\n");
        assert_eq!((findings.len(), findings[0].line), (1, 4));
        assert!(findings[0].rule.contains("`backstitch-core` must not use `backstitch-store`"));
    }

    #[test]
    fn tests_may_look_back_but_not_at_a_leaf() {
        let findings = findings_with_core(
            "[dev-dependencies]\nbackstitch-store.workspace = true\nxtask = { path = \"x\" }\n",
        );
        assert_eq!((findings.len(), findings[0].line), (1, 5));
    }

    #[test]
    fn a_new_crate_must_say_what_it_may_use() {
        let new = ("crates/new/Cargo.toml", "[package]\nname = \"new\"\n");
        assert_eq!(between_crates(&Repo::of(&[ROOT, new])).len(), 1);
    }

    #[test]
    fn other_peoples_crates_are_not_judged() {
        assert!(findings_with_core("[dependencies]\nserde = \"1\"\n").is_empty());
    }
}
