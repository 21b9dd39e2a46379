//! Words that must not stand in Rust files: leftovers of unfinished work, and words we do not use.

use crate::paths;
use crate::repo::{Finding, Repo};

/// Looked for in code and comments, but not inside literals.
const LEFTOVERS: &[(&str, &str)] = &[
    ("todo!(", "write what is missing"),
    ("unimplemented!(", "write what is missing"),
    ("dbg!(", "delete it"),
    ("FIXME", "fix it"),
    ("XXX", "settle it, then say in the comment what holds"),
    ("#[ignore", "make the test fit for every run, or delete it"),
];

/// The beginning of a word that other engines have for what we call undo and rollback. Looked for
/// everywhere in Rust files, also in literals; prose that compares engines may need it.
/// (In two pieces, so that this file may stand under its own rule.)
const OTHER_WORD: &str = concat!("compen", "sat");

pub fn leftovers(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in &repo.sources {
        for (word, way_out) in LEFTOVERS {
            let mut places = paths::occurrences(&source.code, word);
            places.extend(paths::occurrences(&source.comments, word));
            let rule = format!("`{word}` is left over from unfinished work");
            let finding = |at| Finding::new(path, source.line_of(at), rule.as_str(), *way_out);
            findings.extend(places.into_iter().map(finding));
        }
    }
    findings
}

pub fn vocabulary(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in &repo.sources {
        for (at, line) in source.text.lines().enumerate() {
            if line.to_ascii_lowercase().contains(OTHER_WORD) {
                let rule = format!("we do not say `{OTHER_WORD}…`");
                let way_out = "say `undo` (the handler) or `rollback` (the phase)";
                findings.push(Finding::new(path, at + 1, rule, way_out));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(check: fn(&Repo) -> Vec<Finding>, text: &str) -> Vec<usize> {
        check(&Repo::of(&[("a.rs", text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn each_leftover_is_found() {
        assert_eq!(lines_of(leftovers, "fn f() {\n    todo!()\n}"), [2]);
        assert_eq!(lines_of(leftovers, "unimplemented!(\"x\")\n"), [1]);
        assert_eq!(lines_of(leftovers, "let a = dbg!(b);"), [1]);
        assert_eq!(lines_of(leftovers, "// FIXME: later"), [1]);
        assert_eq!(lines_of(leftovers, "/* XXX */"), [1]);
        assert_eq!(lines_of(leftovers, "#[ignore = \"slow\"]\n#[test]\nfn t() {}"), [1]);
    }

    #[test]
    fn literals_and_longer_words_are_not() {
        assert!(lines_of(leftovers, "let a = \"/tmp/XXX todo!()\"; my_todo!();").is_empty());
        assert!(lines_of(leftovers, "// XXXX\nlet ignore = 1;").is_empty());
    }

    #[test]
    fn the_other_word_is_found_in_code_comments_and_literals() {
        for text in ["fn {}e() {}", "// {}ion", "let a = \"{}ED\";"] {
            assert_eq!(lines_of(vocabulary, &text.replace("{}", OTHER_WORD)), [1], "{text}");
        }
        let shouted = format!("// {}ION", OTHER_WORD.to_uppercase());
        assert_eq!(lines_of(vocabulary, &shouted), [1]);
        let prose = format!("{OTHER_WORD}ion");
        assert!(vocabulary(&Repo::of(&[("docs/peers.md", &prose)])).is_empty());
    }
}
