//! The world outside: effects by idempotency key, and a record of who was at work when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use backstitch::core::event::{AbandonWhy, Event};
use backstitch::core::id::Ordinal;
use backstitch::core::run::Run;
use backstitch::store::CommittedRow;
use backstitch::{Error, ErrorKind, Failure, FailureExt, Row, StepCtx, Undo, msg};

use crate::world::Threads;

/// What is applied and reversed outside of the workflow. Outlives every process.
#[derive(Clone)]
pub struct Outside(Arc<Mutex<Books>>, Threads);

#[derive(Default)]
struct Books {
    /// Effects that stand, by the key of their step.
    standing: BTreeMap<String, String>,
    /// Keys of steps that were reversed; whatever comes under them later is refused.
    reversed: BTreeSet<String>,
    /// The key under which each effect and each reversal was asked for.
    keys: BTreeMap<String, BTreeSet<String>>,
    /// Names of bodies and undos that began, `undo NAME` for the latter.
    began: BTreeSet<String>,
    flags: BTreeSet<String>,
    journal: Durable,
    bodies_at_work: usize,
    violations: Vec<String>,
    /// What those were told who waited for the result.
    told: Vec<Result<String, ErrorKind>>,
}

/// What the journal says durably, as the hook behind the sync sees it.
#[derive(Default)]
struct Durable {
    keys: BTreeMap<Ordinal, String>,
    steps: BTreeSet<(String, u32)>,
    undos: BTreeSet<(String, u32)>,
    decided: bool,
    /// A body was given up: the clock of the test ran ahead of the thread that it is on.
    left_behind: bool,
}

impl Outside {
    pub fn new(threads: Threads) -> Outside {
        Outside(Arc::default(), threads)
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap()
    }

    /// Hears of every row as soon as it is durable, and before anybody else.
    pub fn hear(&self, rows: &[CommittedRow]) {
        let journal = &mut self.lock().journal;
        for row in rows {
            for event in Row::decode(row.row.clone()).unwrap().events {
                match event {
                    Event::StepScheduled(e) => {
                        journal.keys.insert(e.ord, e.key.to_string());
                    }
                    Event::StepStarted(e) => {
                        journal.steps.insert((journal.keys[&e.ord].clone(), e.attempt));
                    }
                    Event::UndoStarted(e) => {
                        journal.undos.insert((journal.keys[&e.ord].clone(), e.attempt));
                    }
                    Event::RollbackStarted(_) => journal.decided = true,
                    Event::StepAbandoned(e) if e.why() == AbandonWhy::DidNotYield => {
                        journal.left_behind = true;
                    }
                    _ => {}
                }
            }
        }
    }

    /// A body begins. The guard is held while it is at work.
    pub fn body(&self, s: &StepCtx) -> AtWork {
        let (key, attempt) = (format!("{}#{}", s.name(), s.count()), s.attempt());
        let mut books = self.lock();
        if !books.journal.steps.contains(&(key.clone(), attempt)) {
            books.violations.push(format!("body {key} {attempt} without an intent (P2)"));
        }
        // On another thread it may have been let in just before, and get here just behind.
        if books.journal.decided && self.1 == Threads::One {
            books.violations.push(format!("body {key} {attempt} after the decision (P5)"));
        }
        books.began.insert(s.name().to_owned());
        books.bodies_at_work += 1;
        AtWork(self.clone())
    }

    /// An undo begins.
    pub fn undo<T>(&self, u: &Undo<T>) {
        let step = u.step();
        let (key, attempt) = (format!("{}#{}", step.name, step.count), u.attempt());
        let mut books = self.lock();
        if !books.journal.undos.contains(&(key.clone(), attempt)) {
            books.violations.push(format!("undo {key} {attempt} without an intent (P2)"));
        }
        if books.bodies_at_work > 0 && !books.journal.left_behind {
            books.violations.push(format!("undo {key} {attempt} under a running body (P7)"));
        }
        books.began.insert(format!("undo {}", step.name));
    }

    /// Applies an effect, once per key.
    pub fn apply(&self, key: &str, effect: &str) -> Result<(), Failure> {
        let mut books = self.lock();
        books.keys.entry(effect.to_owned()).or_default().insert(key.to_owned());
        if books.reversed.contains(key) {
            return Err(msg("it was reversed before").permanent());
        }
        books.standing.insert(key.to_owned(), effect.to_owned());
        Ok(())
    }

    /// Reverses what stands under the key of a step, or sees to it that nothing will.
    pub fn reverse(&self, undo_key: &str, step_key: &str, effect: &str) {
        let mut books = self.lock();
        books.keys.entry(format!("undo {effect}")).or_default().insert(undo_key.to_owned());
        books.standing.remove(step_key);
        books.reversed.insert(step_key.to_owned());
    }

    pub fn is_at_work(&self) -> bool {
        self.lock().bodies_at_work > 0
    }

    pub fn has_begun(&self, name: &str) -> bool {
        self.lock().began.contains(name)
    }

    pub fn raise(&self, flag: &str) {
        self.lock().flags.insert(flag.to_owned());
    }

    pub fn is_up(&self, flag: &str) -> bool {
        self.lock().flags.contains(flag)
    }

    /// Yields until the flag is up.
    pub async fn flag(&self, flag: &str) {
        while !self.is_up(flag) {
            tokio::task::yield_now().await;
        }
    }

    pub fn told(&self, result: Result<String, ErrorKind>) {
        self.lock().told.push(result);
    }

    /// Nobody was told what did not come true (P1).
    pub fn assert_told(&self, result: &Result<String, Error>, run: &Run) {
        let result = result.clone().map_err(|error| error.kind());
        for told in &self.lock().told {
            if told.is_ok() && run.output.is_some() {
                // It was true when it was told; perhaps it was undone since.
                continue;
            }
            assert_eq!(*told, result, "somebody was told otherwise (P1)");
        }
    }

    /// The effects that stand, after all checks.
    pub fn settle(&self) -> Vec<String> {
        let books = self.lock();
        assert_eq!(books.violations, [] as [&str; 0]);
        for (effect, keys) in &books.keys {
            assert_eq!(keys.len(), 1, "{effect} was asked for under several keys: {keys:?}");
        }
        let mut standing: Vec<_> = books.standing.values().cloned().collect();
        standing.sort();
        standing
    }
}

/// A body at work; it is no longer when its future is gone.
pub struct AtWork(Outside);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.lock().bodies_at_work -= 1;
    }
}
