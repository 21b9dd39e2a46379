//! Reads as much of a `Cargo.toml` as the checks need, with line numbers.

/// One manifest.
#[derive(Debug, Default)]
pub struct Manifest {
    pub path: String,
    pub package: String,
    pub dependencies: Vec<Dependency>,
    /// Whether it says `[lints] workspace = true`.
    pub inherits_lints: bool,
    /// The patterns of `[workspace] members`.
    members: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The package, also when it is used under another name.
    pub name: String,
    pub kind: Kind,
    pub line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Normal,
    Dev,
    Build,
}

impl Manifest {
    pub fn parse(path: &str, text: &str) -> Manifest {
        let mut manifest = Manifest { path: path.to_owned(), ..Manifest::default() };
        let mut section = String::new();
        for (line, entry) in entries(text) {
            if let Some(header) = entry.strip_prefix('[') {
                section = header.trim_matches(['[', ']', ' ']).to_owned();
                if let Some((kind, Some(name))) = dependency_section(&section) {
                    manifest.dependencies.push(Dependency { name: name.to_owned(), kind, line });
                }
            } else if let Some((key, value)) = entry.split_once('=') {
                manifest.take(&section, key.trim(), value.trim(), line);
            }
        }
        manifest
    }

    /// Whether the member patterns of this (root) manifest name the folder.
    pub fn has_member(&self, folder: &str) -> bool {
        self.members.iter().any(|member| match member.strip_suffix("/*") {
            Some(parent) => folder.rsplit_once('/').is_some_and(|(above, _)| above == parent),
            None => member == folder,
        })
    }

    fn take(&mut self, section: &str, key: &str, value: &str, line: usize) {
        match (section, key, value) {
            ("package", "name", name) => self.package = unquoted(name),
            ("lints", "workspace", "true") | ("", "lints.workspace", "true") => {
                self.inherits_lints = true;
            }
            ("workspace", "members", list) => {
                let list = list.trim_matches(['[', ']']);
                self.members = list.split(',').map(unquoted).filter(|m| !m.is_empty()).collect();
            }
            _ => match dependency_section(section) {
                Some((kind, None)) => {
                    let name = package_in(value).unwrap_or_else(|| name_of(key));
                    let known = |d: &Dependency| d.name == name && d.kind == kind;
                    if !self.dependencies.iter().any(known) {
                        self.dependencies.push(Dependency { name, kind, line });
                    }
                }
                Some((_, Some(_))) if key == "package" => {
                    let last = self.dependencies.last_mut().expect("its header came before");
                    last.name = unquoted(value);
                }
                Some((_, Some(_))) | None => {}
            },
        }
    }
}

/// The headers and `key = value` entries, each on one line and without comments, with their line numbers.
fn entries(text: &str) -> Vec<(usize, String)> {
    let mut entries: Vec<(usize, String)> = Vec::new();
    let mut depth = 0i32;
    for (line, text) in text.lines().enumerate() {
        let text = without_comment(text).trim().to_owned();
        let continues = depth > 0;
        let count = |c: char| text.matches(c).count() as i32;
        depth += count('[') + count('{') - count(']') - count('}');
        match entries.last_mut() {
            Some((_, entry)) if continues => entry.push_str(&text),
            _ if text.is_empty() => {}
            _ => entries.push((line + 1, text)),
        }
    }
    entries
}

fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return &line[..at],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None | Some(_), _) => {}
        }
    }
    line
}

/// The kind of dependencies a section lists, and the one it is about if it is about a single one.
fn dependency_section(section: &str) -> Option<(Kind, Option<&str>)> {
    if section.starts_with("workspace.") {
        return None;
    }
    let kinds = [
        ("dev-dependencies", Kind::Dev),
        ("build-dependencies", Kind::Build),
        ("dependencies", Kind::Normal),
    ];
    kinds.into_iter().find_map(|(name, kind)| {
        let at = section.rfind(name)?;
        let before = &section[..at];
        if !(before.is_empty() || before.ends_with('.')) {
            return None;
        }
        match &section[at + name.len()..] {
            "" => Some((kind, None)),
            rest => rest.strip_prefix('.').map(|name| (kind, Some(name.trim_matches('"')))),
        }
    })
}

/// `tokio` of `tokio.workspace`.
fn name_of(key: &str) -> String {
    unquoted(key.split('.').next().unwrap_or(key))
}

fn package_in(value: &str) -> Option<String> {
    let after = value.split_once("package")?.1.trim_start().strip_prefix('=')?.trim_start();
    after.strip_prefix('"')?.split('"').next().map(str::to_owned)
}

fn unquoted(value: &str) -> String {
    value.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
[package]
name = "engine" # a comment
[dependencies]
core.workspace = true
tokio = { workspace = true, features = [
    "sync",
] }
renamed = { package = "real", version = "1" }
[dev-dependencies.proptest]
version = "1"
[target.'cfg(unix)'.build-dependencies]
cc = "1"
[lints]
workspace = true
"#;

    #[test]
    fn dependencies_have_name_kind_and_line() {
        let manifest = Manifest::parse("Cargo.toml", TEXT);
        let found: Vec<(&str, Kind, usize)> =
            manifest.dependencies.iter().map(|d| (d.name.as_str(), d.kind, d.line)).collect();
        let expected = [
            ("core", Kind::Normal, 5),
            ("tokio", Kind::Normal, 6),
            ("real", Kind::Normal, 9),
            ("proptest", Kind::Dev, 10),
            ("cc", Kind::Build, 13),
        ];
        assert_eq!(found, expected);
        assert_eq!(manifest.package, "engine");
        assert!(manifest.inherits_lints);
    }

    #[test]
    fn dotted_keys_make_one_dependency_and_workspace_tables_none() {
        let text = "[dependencies]\nserde.version = \"1\"\nserde.features = []\n";
        assert_eq!(Manifest::parse("", text).dependencies.len(), 1);
        let text =
            "[workspace.dependencies]\nserde = \"1\"\n[workspace.lints.rust]\nx = \"deny\"\n";
        let manifest = Manifest::parse("", text);
        assert!(manifest.dependencies.is_empty() && !manifest.inherits_lints);
    }

    #[test]
    fn member_patterns_match_folders() {
        let text = "[workspace]\nmembers = [\n  \"crates/*\",\n  \"xtask\",\n]\n";
        let manifest = Manifest::parse("Cargo.toml", text);
        assert!(manifest.has_member("crates/core") && manifest.has_member("xtask"));
        assert!(!manifest.has_member("crates/core/deep") && !manifest.has_member("bench"));
    }
}
