//! The systems outside: a file to which every effect adds a line, and gates at which bodies wait.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// How often a body looks whether its gate is open.
const LOOK: std::time::Duration = std::time::Duration::from_millis(5);

#[derive(Clone)]
pub struct Effects(PathBuf);

/// One line: what was done, for which execution, by which attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    pub what: String,
    pub id: String,
    pub key: String,
    pub fence: u64,
}

impl Effects {
    pub fn new(folder: &Path) -> Effects {
        Effects(folder.to_owned())
    }

    /// One write per line, so that a death leaves no half of two lines in one.
    pub fn add(&self, what: &str, id: &str, key: &str, fence: u64) {
        let path = self.0.join("effects");
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{what} {id} {key} {fence}\n").as_bytes()).unwrap();
    }

    pub fn all(&self) -> Vec<Effect> {
        let text = std::fs::read_to_string(self.0.join("effects")).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let [what, id, key, fence] = words[..] else { panic!("{line:?} is no effect") };
                let (what, id, key) = (what.to_owned(), id.to_owned(), key.to_owned());
                Effect { what, id, key, fence: fence.parse().unwrap() }
            })
            .collect()
    }

    pub fn of(&self, what: &str, id: &str) -> Vec<Effect> {
        self.all().into_iter().filter(|effect| effect.what == what && effect.id == id).collect()
    }

    pub fn open_gate(&self, name: &str) {
        std::fs::write(self.0.join(format!("gate {name}")), "").unwrap();
    }

    pub async fn pass_gate(&self, name: &str) {
        while !self.0.join(format!("gate {name}")).exists() {
            // tidy: allow-sleep the gate is opened by another process
            tokio::time::sleep(LOOK).await;
        }
    }
}
