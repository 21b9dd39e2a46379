//! What the code says and does not wait for: published values, search attributes, patches.

use std::panic::Location;

use backstitch_core::failure::Failure;
use backstitch_core::session::{Note, Patches};

use super::{Desk, Way};

impl Desk {
    /// Whether the code takes the new way at the patch `name`. The first answer in a run stands for
    /// the whole run: new where the code comes by for the first time, old where its journal shows
    /// that it went by before there was a patch.
    ///
    /// # Panics
    /// With a permanent failure when the caller is not the workflow's own code.
    #[track_caller]
    pub fn takes_new_way(&self, name: &str) -> bool {
        self.must_be_polling(name, Location::caller());
        let mut inner = self.lock();
        if let Some(way) = inner.ways.get(name) {
            return *way == Way::New;
        }
        let way = match &inner.patches {
            Patches::Live => Way::New,
            Patches::Recorded(names) if names.iter().any(|recorded| recorded == name) => Way::New,
            Patches::Recorded(_) => Way::Old,
        };
        inner.ways.insert(name.to_owned(), way);
        if way == Way::New {
            inner.patched.push(name.to_owned());
        }
        way == Way::New
    }

    /// Takes a note. Of several values under one key in one group the last stands.
    ///
    /// # Errors
    /// A permanent failure when the caller is not the workflow's own code.
    #[track_caller]
    pub fn note(&self, note: Note) -> Result<(), Failure> {
        let what = match &note {
            Note::Published { key, .. } => key.as_str(),
            Note::Attribute(change) => change.name.as_str(),
        };
        if !self.is_polling() {
            return Err(self.built_elsewhere(what, Location::caller()));
        }
        let mut inner = self.lock();
        inner.notes.retain(|earlier| !is_replaced(earlier, &note));
        inner.notes.push(note);
        Ok(())
    }

    /// A draw or a patch of anybody else would be another one on replay.
    pub(super) fn must_be_polling(&self, what: &str, place: &Location<'_>) {
        if !self.is_polling() {
            let failure = self.built_elsewhere(what, place);
            // In a spawned task nobody else would say so.
            tracing::error!(%failure, "a panic follows");
            std::panic::panic_any(failure);
        }
    }
}

fn is_replaced(earlier: &Note, later: &Note) -> bool {
    match (earlier, later) {
        (Note::Published { key: earlier, .. }, Note::Published { key: later, .. }) => {
            earlier == later
        }
        (Note::Attribute(earlier), Note::Attribute(later)) => earlier.name == later.name,
        (Note::Published { .. }, Note::Attribute(_))
        | (Note::Attribute(_), Note::Published { .. }) => false,
    }
}
