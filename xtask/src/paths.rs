//! Finds names in masked code, also where a `use` spells them in pieces.

use crate::source::is_word_byte;

/// The offsets at which `name` (a word or a path) stands as whole words.
pub fn occurrences(code: &str, name: &str) -> Vec<usize> {
    let is_word = |text: Option<&u8>| text.is_some_and(|byte| is_word_byte(*byte));
    let (code_bytes, name_bytes) = (code.as_bytes(), name.as_bytes());
    let goes_on_before =
        |at: usize| is_word(name_bytes.first()) && is_word(code_bytes[..at].last());
    let goes_on_behind =
        |at: usize| is_word(name_bytes.last()) && is_word(code_bytes.get(at + name.len()));
    let places = code.match_indices(name).map(|(at, _)| at);
    places.filter(|at| !goes_on_before(*at) && !goes_on_behind(*at)).collect()
}

/// The offsets at which the path is used: written out, or named by a `use`.
///
/// `std::fs` is found in `std::fs::read`, `use std::fs;` and `use std::{fmt, fs::File};`.
pub fn uses_of_path(code: &str, path: &str) -> Vec<usize> {
    let mut found = occurrences(code, path);
    let under = format!("{path}::");
    let imported = imports(code).into_iter();
    found.extend(imported.filter(|(_, p)| p == path || p.starts_with(&under)).map(|(at, _)| at));
    found.sort_unstable();
    found.dedup();
    found
}

/// Every path that a `use` names, in full, with the offset of its last piece.
pub fn imports(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for at in occurrences(code, "use") {
        let start = at + "use".len();
        if code[start..].starts_with(char::is_whitespace) {
            let end = code[start..].find(';').map_or(code.len(), |end| start + end);
            expand(code, start, end, "", &mut found);
        }
    }
    found
}

/// Expands the list of use trees in `start..end`, all of them below `prefix`.
fn expand(code: &str, start: usize, end: usize, prefix: &str, found: &mut Vec<(usize, String)>) {
    let (mut depth, mut from) = (0usize, start);
    for at in start..=end {
        match code.as_bytes().get(at) {
            Some(b'{') if at < end => depth += 1,
            Some(b'}') if at < end => depth = depth.saturating_sub(1),
            _ => {}
        }
        let comma = at < end && depth == 0 && code.as_bytes()[at] == b',';
        if comma || at == end {
            tree(code, from, at, prefix, found);
            from = at + 1;
        }
    }
}

fn tree(code: &str, start: usize, end: usize, prefix: &str, found: &mut Vec<(usize, String)>) {
    let text = &code[start..end];
    let offset = start + text.len() - text.trim_start().len();
    match (text.find('{'), text.rfind('}')) {
        (Some(open), Some(close)) => {
            let prefix = format!("{prefix}{}", squeezed(&text[..open]));
            expand(code, start + open + 1, start + close, &prefix, found);
        }
        _ => {
            let path = squeezed(text.split(" as ").next().unwrap_or_default());
            if !path.is_empty() {
                let path = format!("{prefix}{path}");
                found.push((offset, path.trim_end_matches("::self").to_owned()));
            }
        }
    }
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_are_found() {
        assert_eq!(occurrences("rand strand rand_x rand", "rand"), [0, 19]);
        assert_eq!(occurrences("x.sleep(); sleep!()", "sleep("), [2]);
        assert!(occurrences("std::fsx", "std::fs").is_empty());
    }

    #[test]
    fn a_use_is_spelled_out() {
        let code = "use std::{fmt, fs::{self, File}, time as t};\nuse a::B;";
        let paths: Vec<String> = imports(code).into_iter().map(|(_, path)| path).collect();
        assert_eq!(paths, ["std::fmt", "std::fs", "std::fs::File", "std::time", "a::B"]);
    }

    #[test]
    fn a_path_is_found_in_either_form() {
        assert_eq!(uses_of_path("let a = std::fs::read(b);", "std::fs").len(), 1);
        assert_eq!(uses_of_path("use std::{\n    fmt,\n    fs,\n};", "std::fs").len(), 1);
        assert!(uses_of_path("use std::fmt;", "std::fs").is_empty());
    }
}
