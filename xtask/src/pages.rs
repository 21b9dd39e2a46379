//! What a page shows in Rust runs as a test: it is included where the crate `backstitch` says so.

use crate::repo::{Finding, Repo};

/// Where pages are included for rustdoc.
const INCLUDED_IN: &str = "crates/backstitch/src/lib.rs";

/// The README and the pages of docs/ whose Rust nobody compiles.
pub fn rust_is_tested(repo: &Repo) -> Vec<Finding> {
    let included = repo.files.get(INCLUDED_IN).map(String::as_str).unwrap_or_default();
    let pages = repo.files.iter().filter(|(path, _)| {
        *path == "README.md" || (path.starts_with("docs/") && path.ends_with(".md"))
    });
    let untested = pages.filter_map(|(path, text)| {
        let line = text.lines().position(|line| line.starts_with("```rust"))?;
        let tested = included.contains(&format!("include_str!(\"../../../{path}\")"));
        (!tested).then(|| {
            let way_out = format!("include the page in `mod pages` of {INCLUDED_IN}");
            Finding::new(path, line + 1, "the Rust on this page is never compiled", way_out)
        })
    });
    untested.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_with_rust_that_is_not_included_is_found() {
        let page = "# Title\n\n```rust\nfn f() {}\n```\n";
        let found =
            |lib: &str| rust_is_tested(&Repo::of(&[("docs/a.md", page), (INCLUDED_IN, lib)])).len();
        assert_eq!(found(""), 1);
        assert_eq!(found("#[doc = include_str!(\"../../../docs/b.md\")]"), 1);
        assert_eq!(found("#[doc = include_str!(\"../../../docs/a.md\")]"), 0);
    }

    #[test]
    fn pages_without_rust_need_nothing() {
        let pages = [("docs/a.md", "```text\nfn f() {}\n```"), ("bench/b.md", "```rust\n```")];
        assert!(rust_is_tested(&Repo::of(&pages)).is_empty());
    }
}
