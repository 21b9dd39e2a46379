//! Finds the test code of a Rust file: items under `#[cfg(test)]`, test functions, and the files
//! that a `#[cfg(test)] mod name;` brings in.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::source::{Source, is_word_byte};

/// The regions of masked code that are compiled for tests only, as offsets.
pub fn test_regions(code: &str) -> Vec<Range<usize>> {
    let mut regions = Vec::new();
    for attribute in attributes(code) {
        if !is_test(attribute.content(code)) {
            continue;
        }
        if attribute.inner {
            return Vec::from([Range { start: 0, end: code.len() }]);
        }
        regions.push(attribute.span.start..item_end(code, attribute.span.end));
    }
    regions
}

/// Marks files as test code: those under a folder `tests/`, and those that test modules bring in.
pub fn mark_test_files(sources: &mut BTreeMap<String, Source>) {
    let mut marked = Vec::new();
    for (path, source) in sources.iter() {
        for region in &source.test_regions {
            if let Some(name) = module_brought_in(&source.code[region.clone()]) {
                let folder = module_folder(path);
                marked.push((format!("{folder}{name}.rs"), format!("{folder}{name}/")));
            }
        }
    }
    for (path, source) in sources.iter_mut() {
        let brought_in = marked.iter().any(|(file, below)| path == file || path.starts_with(below));
        if brought_in || path.split('/').any(|part| part == "tests") {
            source.test_regions = Vec::from([Range { start: 0, end: source.code.len() }]);
        }
    }
}

/// An attribute in masked code.
pub struct Attribute {
    /// From `#` to behind `]`.
    pub span: Range<usize>,
    /// Written `#![…]`: it speaks of the file or module that encloses it.
    pub inner: bool,
}

impl Attribute {
    /// What stands between the brackets.
    pub fn content<'c>(&self, code: &'c str) -> &'c str {
        let text = &code[self.span.clone()];
        let open = text.find('[').map_or(0, |open| open + 1);
        text[open..].trim_end_matches(']').trim()
    }
}

/// All attributes, in order.
pub fn attributes(code: &str) -> Vec<Attribute> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = code[at..].find('#').map(|hash| at + hash) {
        at = start + 1;
        let inner = code[at..].starts_with('!');
        let open = if inner { at + 1 } else { at };
        if code[open..].starts_with('[') {
            at = closing(code, open);
            found.push(Attribute { span: start..at, inner });
        }
    }
    found
}

/// Whether an attribute says that what follows is compiled for tests only.
fn is_test(content: &str) -> bool {
    let content: String = content.split_whitespace().collect();
    let path = content.split('(').next().unwrap_or_default();
    content == "cfg(test)"
        || content.starts_with("cfg(all(test,")
        || path == "test"
        || path.ends_with("::test")
}

/// The end of the item that begins at `at`, which may be led by further attributes.
fn item_end(code: &str, at: usize) -> usize {
    let bytes = code.as_bytes();
    let mut at = at;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' => at = closing(code, at),
            b'{' => return closing(code, at),
            b';' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The offset behind the bracket that closes the one at `open`.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// The name in an item `mod name;`, for the code of the item with its attributes.
fn module_brought_in(item: &str) -> Option<&str> {
    let before = item.strip_suffix(';')?;
    let start = before.bytes().rposition(|b| !is_word_byte(b)).map_or(0, |at| at + 1);
    before[..start].trim_end().ends_with("mod").then(|| &before[start..])
}

/// The folder in which a file's modules lie, with a `/` at its end.
fn module_folder(path: &str) -> String {
    let (folder, file) = path.rsplit_once('/').map_or(("", path), |(folder, file)| (folder, file));
    let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => folder,
        _ => format!("{folder}{}/", file.trim_end_matches(".rs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::Repo;

    fn in_test(text: &str, needle: &str) -> bool {
        let source = Source::new(text);
        source.in_test(source.code.find(needle).expect("the needle is there"))
    }

    #[test]
    fn a_test_module_ends_at_its_brace() {
        let text = "fn a() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests { fn b() { '{'; } }\nfn c() {}";
        assert!(!in_test(text, "fn a"));
        assert!(in_test(text, "fn b"));
        assert!(!in_test(text, "fn c"));
    }

    #[test]
    fn test_functions_and_whole_files_count() {
        assert!(in_test("#[tokio::test(start_paused = true)]\nasync fn t() { x(); }", "x()"));
        assert!(in_test("#![cfg(test)]\nfn t() {}", "fn t"));
        assert!(in_test("#[cfg(all(test, unix))] fn t() {}", "fn t"));
        assert!(!in_test("#[cfg(any(test, feature = \"x\"))] fn t() {}", "fn t"));
        assert!(!in_test("#[cfg(not(test))] fn t() {}", "fn t"));
    }

    #[test]
    fn an_item_without_a_body_ends_at_its_semicolon() {
        let text = "#[cfg(test)]\nconst A: [u8; 2] = [1; 2];\nfn b() {}";
        assert!(in_test(text, "const A") && !in_test(text, "fn b"));
    }

    #[test]
    fn a_test_module_in_a_file_of_its_own_is_found() {
        let repo = Repo::of(&[
            ("src/lib.rs", "mod run;"),
            ("src/run.rs", "#[cfg(test)]\nmod plays;\nmod real;"),
            ("src/run/plays.rs", "fn a() {}"),
            ("src/run/plays/deep.rs", "fn a() {}"),
            ("src/run/real.rs", "fn a() {}"),
            ("tests/crash.rs", "fn a() {}"),
        ]);
        let is_test = |path: &str| repo.sources[path].in_test(0);
        assert!(is_test("src/run/plays.rs") && is_test("src/run/plays/deep.rs"));
        assert!(is_test("tests/crash.rs") && !is_test("src/run/real.rs"));
    }
}
