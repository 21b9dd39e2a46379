//! Golden files are added, never edited and never taken away (P11).
//!
//! Beside them stands `frozen.txt`: one line for each, with the first half of its SHA-256 in
//! hexadecimal digits. Whoever changes what is written down adds a file and a line; whoever touches
//! a line says that journals in the field may be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use backstitch_core::event::Event;

/// By name, the digests of golden files.
type Digests = BTreeMap<String, String>;

const LIST: &str = "frozen.txt";

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn digest(bytes: &[u8]) -> String {
    hmac_sha256::Hash::hash(bytes)[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn files(folder: &Path) -> Digests {
    let entries = fs::read_dir(folder).expect("the golden files are there");
    let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
    let golden = paths.filter(|path| !path.ends_with(LIST));
    let named = golden.map(|path| {
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        (name, digest(&fs::read(path).expect("it can be read")))
    });
    named.collect()
}

fn listed(folder: &Path) -> Digests {
    let list = fs::read_to_string(folder.join(LIST)).expect("the list is there");
    let pairs = list.lines().map(|line| line.split_once(' ').expect("a digest and a name"));
    pairs.map(|(digest, name)| (name.to_owned(), digest.to_owned())).collect()
}

/// What is wrong with `files`, where `listed` is what there has to be.
fn changed(files: &Digests, listed: &Digests) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, digest) in listed {
        match files.get(name) {
            Some(now) if now == digest => {}
            Some(_) => complaints.push(format!("{name} was edited: bring it back, add another")),
            None => complaints.push(format!("{name} was taken away: bring it back")),
        }
    }
    for (name, digest) in files {
        if !listed.contains_key(name) {
            complaints.push(format!("{name} is not listed; if it is right, add: {digest} {name}"));
        }
    }
    complaints
}

/// The kinds and versions of `kinds` for which no golden file is listed: the present versions, and
/// all that were before them.
fn without_a_file(kinds: &[(u16, u8, &str)], listed: &Digests) -> Vec<String> {
    let versions = kinds.iter().flat_map(|(kind, newest, name)| {
        (1..=*newest).map(move |version| format!("{kind:03}_v{version}_{name}.hex"))
    });
    versions.filter(|file| !listed.contains_key(file)).collect()
}

/// The files of `listed` whose kind or version is not among `kinds` (any more).
fn of_no_kind(kinds: &[(u16, u8, &str)], listed: &Digests) -> Vec<String> {
    let known: BTreeMap<u16, u8> = kinds.iter().map(|(kind, newest, _)| (*kind, *newest)).collect();
    let of_events = listed.keys().filter(|name| !name.starts_with("row_"));
    let unknown = of_events.filter(|name| {
        let mut parts = name.split('_');
        let kind = parts.next().and_then(|kind| kind.parse().ok());
        let version: Option<u8> =
            parts.next().and_then(|text| text.strip_prefix('v')?.parse().ok());
        match (kind.and_then(|kind: u16| known.get(&kind)), version) {
            (Some(newest), Some(version)) => version == 0 || version > *newest,
            (None, _) | (_, None) => true,
        }
    });
    unknown.cloned().collect()
}

const NOTHING: [String; 0] = [];

#[test]
fn p11_golden_files_are_neither_edited_nor_taken_away() {
    for path in ["tests/golden", "../backstitch/tests/golden/journals"] {
        let folder = folder(path);
        assert_eq!(changed(&files(&folder), &listed(&folder)), NOTHING, "in {}", folder.display());
    }
}

#[test]
fn p11_every_version_of_every_kind_that_ever_was_has_a_golden_file() {
    let listed = listed(&folder("tests/golden"));
    assert_eq!(without_a_file(Event::KINDS, &listed), NOTHING);
    assert_eq!(of_no_kind(Event::KINDS, &listed), NOTHING, "numbers are never given up");
}

#[test]
fn p11_a_new_kind_or_version_without_a_golden_file_is_noticed() {
    let listed = listed(&folder("tests/golden"));
    let mut kinds = Event::KINDS.to_vec();
    kinds.push((99, 1, "SomethingNew"));
    let shown = kinds.iter_mut().find(|(_, _, name)| *name == "Shown").expect("it is a kind");
    shown.1 = 2;
    let missing: BTreeSet<String> = without_a_file(&kinds, &listed).into_iter().collect();
    let wanted = ["048_v2_Shown.hex", "099_v1_SomethingNew.hex"];
    assert_eq!(missing, wanted.map(str::to_owned).into());
    kinds.retain(|(_, _, name)| *name != "TimerFired");
    assert_eq!(of_no_kind(&kinds, &listed), ["033_v1_TimerFired.hex"]);
}

#[test]
fn p11_a_golden_file_that_is_edited_added_or_taken_away_is_noticed() {
    let listed = listed(&folder("tests/golden"));
    let mut files = listed.clone();
    files.remove("048_v1_Shown.hex");
    files.insert("072_v1_RollbackFinished.hex".into(), "00".into());
    files.insert("072_v2_RollbackFinished.hex".into(), "11".into());
    let complaints = changed(&files, &listed);
    assert_eq!(complaints.len(), 3, "{complaints:?}");
    assert!(complaints[0].starts_with("048_v1_Shown.hex was taken away"), "{complaints:?}");
    assert!(complaints[1].starts_with("072_v1_RollbackFinished.hex was edited"), "{complaints:?}");
    assert!(complaints[2].ends_with("add: 11 072_v2_RollbackFinished.hex"), "{complaints:?}");
}
