//! A Rust file taken apart: its code without comments and literals, and its comments without code.
//!
//! **Invariant:** `code` and `comments` have the length and the line breaks of the text, and blanks where
//! the other has something. So an offset into one is an offset into all three.

use std::ops::Range;

use crate::regions;

pub struct Source {
    pub text: String,
    /// Comments and string and character literals are blanked.
    pub code: String,
    /// Everything but comments is blanked.
    pub comments: String,
    /// Where test code stands, by `#[cfg(test)]` and `#[test]`, as offsets.
    pub test_regions: Vec<Range<usize>>,
}

impl Source {
    pub fn new(text: &str) -> Source {
        let (code, comments) = split(text);
        let test_regions = regions::test_regions(&code);
        Source { text: text.to_owned(), code, comments, test_regions }
    }

    /// The line an offset is on, counted from 1.
    pub fn line_of(&self, offset: usize) -> usize {
        self.text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    pub fn in_test(&self, offset: usize) -> bool {
        self.test_regions.iter().any(|region| region.contains(&offset))
    }
}

/// Splits a text into its code and its comments.
fn split(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let blank: Vec<u8> = bytes.iter().map(|b| if *b == b'\n' { b'\n' } else { b' ' }).collect();
    let (mut code, mut comments) = (blank.clone(), blank);
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let end = if rest.starts_with("//") {
            at + rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            at + block_comment_bytes(rest)
        } else {
            at
        };
        if end > at {
            comments[at..end].copy_from_slice(&bytes[at..end]);
            at = end;
            continue;
        }
        match literal_bytes(text, at) {
            Some(count) => at += count,
            None => {
                let count = rest.chars().next().map_or(1, char::len_utf8);
                code[at..at + count].copy_from_slice(&bytes[at..at + count]);
                at += count;
            }
        }
    }
    let whole = |bytes| String::from_utf8(bytes).expect("only whole characters are copied");
    (whole(code), whole(comments))
}

fn block_comment_bytes(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => {
                depth += 1;
                at += 2;
            }
            Some(b"*/") => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The length of the string or character literal that begins at `at`, with its prefix and quotes.
fn literal_bytes(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let begins_word = at == 0 || !is_word_byte(bytes[at - 1]);
    let rest = &text[at..];
    let prefixes = ["br", "cr", "r", "b", "c", ""];
    let prefix = prefixes.into_iter().find(|p| begins_word && rest.starts_with(p)).unwrap_or("");
    let quoted = &rest[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = quoted.bytes().take_while(|b| *b == b'#').count();
        if quoted[hashes..].starts_with('"') {
            let close = format!("\"{}", &quoted[..hashes]);
            let inside = prefix.len() + hashes + 1;
            let found = rest[inside..].find(&close);
            return Some(found.map_or(rest.len(), |end| inside + end + close.len()));
        }
        return None;
    }
    match quoted.as_bytes().first() {
        Some(b'"') => Some(prefix.len() + escaped_bytes(quoted, b'"')),
        Some(b'\'') if prefix != "c" => character_bytes(quoted).map(|count| prefix.len() + count),
        _ => None,
    }
}

/// The length of a character literal; `None` for a lifetime or a label.
fn character_bytes(quoted: &str) -> Option<usize> {
    let mut chars = quoted[1..].chars();
    match chars.next()? {
        '\\' => Some(escaped_bytes(quoted, b'\'')),
        first => (chars.next()? == '\'').then(|| 2 + first.len_utf8()),
    }
}

fn escaped_bytes(quoted: &str, close: u8) -> usize {
    let bytes = quoted.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == close => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Whether a byte can stand inside an identifier.
pub fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(text: &str) -> String {
        Source::new(text).code
    }

    #[test]
    fn comments_go_to_one_side_and_code_to_the_other() {
        let source = Source::new("let a = 1; // one\n/* two /* deep */ */ let b;\n");
        assert_eq!(source.code, "let a = 1;       \n                     let b;\n");
        assert_eq!(source.comments.trim(), "// one\n/* two /* deep */ */".trim());
        assert_eq!(source.line_of(source.code.find("let b").unwrap()), 2);
    }

    #[test]
    fn literals_are_blanked_whatever_their_form() {
        let literals = [
            r#""// no \" comment""#,
            "r##\"a\"# b\"##",
            "br\"{\"",
            "c\"{\"",
            "'{'",
            "b'\\''",
            "'é'",
            "'\\u{7b}'",
        ];
        for literal in literals {
            let blank = " ".repeat(literal.len());
            assert_eq!(code_of(&format!("f({literal}, x);")), format!("f({blank}, x);"));
        }
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        for text in ["fn f<'a>(x: &'a str) {}", "let r#type = 1;", "'outer: loop {}"] {
            assert_eq!(code_of(text), text);
        }
    }

    #[test]
    fn an_unfinished_literal_or_comment_reaches_to_the_end() {
        assert_eq!(code_of("x = \"abc\\"), "x =      ");
        assert_eq!(code_of("x = r#\"é\""), "x =       ");
        assert_eq!(Source::new("/* open").comments, "/* open");
    }
}
