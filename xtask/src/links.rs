//! Links between the files of the repository lead somewhere.

use crate::repo::{Finding, Repo};

/// Links of Markdown files to files and folders. Addresses elsewhere and places in a page are not followed.
pub fn point_to_files(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in repo.files.iter().filter(|(path, _)| path.ends_with(".md")) {
        for (line, target) in links(text) {
            if let Some(file) = file_meant(path, &target)
                && !repo.contains(&file)
            {
                let rule = format!("the link `{target}` leads nowhere: there is no {file}");
                findings.push(Finding::new(
                    path,
                    line,
                    rule,
                    "correct the link, or write the file",
                ));
            }
        }
    }
    findings
}

/// The targets of the links in a text, with their lines. Code is passed over.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| trimmed.starts_with(marker));
        match (fence, marker) {
            (None, Some(opened)) => fence = Some(opened),
            (Some(open), Some(closed)) if open == closed => fence = None,
            (Some(_), Some(_) | None) => {}
            (None, None) => {
                let prose = without_code(line);
                let targets = inline_targets(&prose).chain(definition_target(&prose));
                found.extend(targets.map(|target| (at + 1, target.to_owned())));
            }
        }
    }
    found
}

/// The line without its code spans.
fn without_code(line: &str) -> String {
    let pieces: Vec<&str> = line.split('`').collect();
    // With an odd number of backticks the last one opens nothing.
    let last = pieces.len() - 1;
    let is_prose = |at: usize| at.is_multiple_of(2) || at == last;
    let kept = pieces.iter().enumerate().map(|(at, piece)| if is_prose(at) { piece } else { "" });
    kept.collect()
}

/// The targets of `[text](target)`.
fn inline_targets(prose: &str) -> impl Iterator<Item = &str> {
    prose.match_indices("](").filter_map(|(at, open)| {
        let rest = &prose[at + open.len()..];
        target_of(rest.split(')').next()?)
    })
}

/// The target of `[name]: target`.
fn definition_target(prose: &str) -> Option<&str> {
    let (name, target) = prose.trim_start().strip_prefix('[')?.split_once("]:")?;
    if name.contains(']') || name.starts_with('^') {
        return None;
    }
    target_of(target)
}

/// The target without its title and angle brackets.
fn target_of(text: &str) -> Option<&str> {
    text.split_whitespace().next().map(|target| target.trim_matches(['<', '>']))
}

/// The file a target means, as a path from the root; `None` if it means none of ours.
fn file_meant(from: &str, target: &str) -> Option<String> {
    let target = target.split(['#', '?']).next().unwrap_or_default();
    let has_scheme = target.split('/').next().is_some_and(|first| first.contains(':'));
    if target.is_empty() || has_scheme || target.starts_with("//") {
        return None;
    }
    let mut parts: Vec<&str> =
        if target.starts_with('/') { Vec::new() } else { from.split('/').collect() };
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            // A link out of the repository keeps its dots and so is never found.
            ".." if parts.last().is_none_or(|last| *last == "..") => parts.push(part),
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(text: &str) -> Vec<usize> {
        let repo = Repo::of(&[("docs/a.md", text), ("docs/b.md", ""), ("crates/core/x.rs", "")]);
        point_to_files(&repo).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn links_to_missing_files_are_found() {
        assert_eq!(lines_of("[b](b.md)\n[c](c.md) and ![d](img/d.png)"), [2, 2]);
        assert_eq!(lines_of("see [c]\n\n[c]: ../c.md \"title\""), [3]);
        assert_eq!(lines_of("[up](../../b.md)\n[root](/b.md)"), [1, 2]);
    }

    #[test]
    fn links_to_files_folders_and_elsewhere_are_fine() {
        assert!(
            lines_of("[b](./b.md#part) [core](../crates/core/) [x](/crates/core/x.rs)").is_empty()
        );
        assert!(
            lines_of("[w](https://example.org) [m](mailto:a@b.c) [p](#part) [root](..)").is_empty()
        );
        assert!(lines_of("[^1]: a footnote").is_empty());
    }

    #[test]
    fn code_is_passed_over() {
        assert!(lines_of("```\n[a](none.md)\n```\nand `[a](none.md)`").is_empty());
        assert_eq!(lines_of("~~~\n```\n~~~\n`[a](b)` [a](none.md)"), [4]);
    }
}
