//! `cargo run -p xtask -- tidy`: the checks of this repository that no compiler makes.
//!
//! It prints one line when everything is in order. Otherwise it prints every finding with its place,
//! the rule and the way out, and ends with exit code 1. `cargo test -p xtask` runs the same checks.
//!
//! **Invariant:** a check is a pure function of a [`repo::Repo`], so that it can be tested on a few
//! planted lines. Only `tree` asks cargo, and only `repo` reads files.

mod repo;
mod source;

mod manifest;
mod paths;
mod regions;

mod arrows;
mod dependencies;
mod layout;
mod links;
mod lints;
mod pages;
mod purity;
mod sleep;
mod tree;
mod words;

use std::path::Path;
use std::process::ExitCode;

use repo::{Finding, Repo};

type Check = fn(&Repo) -> Vec<Finding>;

/// Every check, in the order in which its findings are printed.
const CHECKS: &[Check] = &[
    arrows::between_crates,
    purity::of_dependencies,
    purity::of_code,
    dependencies::documented,
    tree::within_budget,
    layout::file_length,
    layout::names,
    lints::inherited,
    lints::missing_docs_stays_on,
    lints::unsafe_is_explained,
    words::leftovers,
    words::vocabulary,
    sleep::none_in_tests,
    links::point_to_files,
    pages::rust_is_tested,
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(),
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy");
            ExitCode::from(2)
        }
    }
}

fn tidy() -> ExitCode {
    let repo = match Repo::read(root()) {
        Ok(repo) => repo,
        Err(error) => {
            eprintln!("tidy: cannot read {}: {error}", root().display());
            return ExitCode::FAILURE;
        }
    };
    let findings = findings_of(&repo);
    if findings.is_empty() {
        println!("tidy: {} checks passed", CHECKS.len());
        return ExitCode::SUCCESS;
    }
    for finding in &findings {
        eprintln!("{finding}");
    }
    eprintln!("tidy: {} to put right", findings.len());
    ExitCode::FAILURE
}

fn findings_of(repo: &Repo) -> Vec<Finding> {
    CHECKS.iter().flat_map(|check| check(repo)).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the repository's root")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        let repo = Repo::read(root()).expect("the repository can be read");
        let findings: Vec<String> = findings_of(&repo).iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "\n{}", findings.join("\n"));
    }
}
