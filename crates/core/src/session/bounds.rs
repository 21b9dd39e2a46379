//! The bounds of the way forward, and what the code says without waiting for it.
//!
//! **Invariant:** exceeding a bound fails the run for good, and the rollback of what it did before
//! is bounded by none of them (P12).

use std::collections::BTreeSet;

use crate::event::{AttributeOrigin, AttributesSet, ValuePublished};
use crate::failure::{Class, Failure, Origin};
use crate::limits::{
    ASKS_PER_GROUP_MAX, ATTRIBUTES_MAX, PATCHES_MAX, PUBLISHED_KEYS_MAX, RunLimits,
};
use crate::session::script::RecordedGroup;
use crate::session::{AskedKind, Note, Report, Session};

impl Session {
    /// Other bounds than the default ones.
    pub fn limit(&mut self, limits: RunLimits) {
        self.limits = limits;
    }

    /// The failure for a report that goes beyond a bound. One that adds nothing to what is bounded
    /// never does, also if the bound was lowered meanwhile.
    pub(super) fn exceeded(&self, report: &Report) -> Option<Failure> {
        let waits =
            report.asks.iter().filter(|asked| matches!(asked.what, AskedKind::Wait { .. })).count();
        let dropped = report.drops.iter().filter(|ord| self.run.waits.contains(ord)).count();
        let RunLimits { asks_max, waits_open_max, journal_bytes_max } = self.limits;
        let (published, attributes) = self.named_after(&report.notes);
        let found = [
            (
                "AsksPerTurn",
                0,
                report.asks.len(),
                ASKS_PER_GROUP_MAX,
                "things in one turn",
                "await some before asking for more",
            ),
            (
                "AsksPerRun",
                self.run.asks.len(),
                self.run.asks.len() + report.asks.len(),
                asks_max,
                "steps, sleeps and waits in all",
                "cut the work into several executions",
            ),
            (
                "WaitsOpen",
                self.run.waits.len(),
                self.run.waits.len() - dropped + waits,
                waits_open_max,
                "waits that are open at a time",
                "wait for several types at once, or for one after the other",
            ),
            (
                "PublishedKeys",
                self.run.published.len(),
                published,
                PUBLISHED_KEYS_MAX,
                "published keys",
                "publish again under the same key, or put several values into one",
            ),
            (
                "Attributes",
                self.run.attributes.len(),
                attributes,
                ATTRIBUTES_MAX,
                "search attributes",
                "take some away before setting more",
            ),
            (
                "Patches",
                self.patches,
                self.patches + report.patched.len(),
                PATCHES_MAX,
                "patches",
                "register the code as a new version",
            ),
        ];
        for (type_name, before, count, max, what, way_out) in found {
            if count > max && count > before {
                let message = format!(
                    "the workflow asked for {count} {what}; at most {max} are allowed: {way_out}"
                );
                return Some(Failure::new(Class::Permanent, Origin::Limit, type_name, message));
            }
        }
        // A run that ends makes its journal no longer than it has to be.
        // Events that it has not taken are bounded at the door: no sender ends a run.
        let bytes = self.journal_bytes.saturating_sub(self.run.kept.bytes());
        if bytes > journal_bytes_max && report.ended.is_none() {
            let message = format!(
                "the journal has {bytes} bytes; at most {journal_bytes_max} are allowed: keep large \
                 data elsewhere, or cut the work into several executions"
            );
            return Some(Failure::new(Class::Permanent, Origin::Limit, "JournalBytes", message));
        }
        None
    }

    /// Whether what the code asked for in this group was too much: the decision stands in its place.
    pub(super) fn went_beyond(&self, recorded: &RecordedGroup) -> bool {
        let cause = self.run.rollback.as_ref().and_then(|rollback| rollback.causes.first());
        let failure = cause.and_then(|cause| cause.failure.as_ref());
        failure.is_some_and(|failure| failure.origin() == Origin::Limit)
            && recorded.asks.is_empty()
            && recorded.markers.is_empty()
    }

    /// How many published keys and search attributes there are after these notes.
    fn named_after(&self, notes: &[Note]) -> (usize, usize) {
        if notes.is_empty() {
            return (self.run.published.len(), self.run.attributes.len());
        }
        let mut published: BTreeSet<&str> = self.run.published.keys().map(String::as_str).collect();
        let mut attributes: BTreeSet<&str> =
            self.run.attributes.keys().map(String::as_str).collect();
        for note in notes {
            match note {
                Note::Published { key, .. } => published.insert(key),
                Note::Attribute(change) if change.value.is_some() => {
                    attributes.insert(&change.name)
                }
                Note::Attribute(change) => attributes.remove(change.name.as_str()),
            };
        }
        (published.len(), attributes.len())
    }

    /// Writes down what the code said.
    pub(super) fn note(&mut self, note: Note) {
        match note {
            Note::Published { key, value } => self.push(ValuePublished { key, value }),
            Note::Attribute(change) => self.push(AttributesSet {
                changes: vec![change],
                origin: AttributeOrigin::Code as i32,
                ..AttributesSet::default()
            }),
        }
    }
}
