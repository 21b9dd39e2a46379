//! Events from outside, waits for them, and what the code says of itself.

use backstitch_core::event::{
    AttributeOrigin, AttributesSet, EventReceived, MarkerRecorded, ValuePublished, WaitSatisfied,
    WaitStarted,
};
use backstitch_core::id::Ordinal;

use super::rail::{Rail, Tone};
use super::scribe::Scribe;
use super::words;

impl Scribe {
    pub fn wait_started(&mut self, event: &WaitStarted) {
        self.call(event.ord, &event.key);
        self.blank();
        let types = event.types.join(" or ");
        let until = match event.until_us {
            Some(until_us) => format!(", until {}", self.since_start(until_us)),
            None => String::new(),
        };
        let name = (Tone::Strong, self.name(event.ord));
        let what = (Tone::Plain, format!("  waits for {types}{until}"));
        self.line(Rail::Ask, self.now_us, [name, what]);
    }

    pub fn event_received(&mut self, event: &EventReceived) {
        self.received.insert(event.inbox, event.event_type.clone());
        let what = format!("sends {}", event.event_type);
        self.person(&event.by, &what, &words::payload(&event.payload));
    }

    pub fn wait_satisfied(&mut self, event: &WaitSatisfied) {
        let name = (Tone::Strong, self.name(event.ord));
        let took = self.received.get(&event.inbox).cloned().unwrap_or_default();
        let took = (Tone::Plain, format!("  took {took}"));
        self.note(self.now_us, [(Tone::Good, "✔ ".into()), name, took]);
    }

    pub fn wait_timed_out(&mut self, ord: Ordinal) {
        let name = (Tone::Strong, self.name(ord));
        let why = (Tone::Plain, "  no event came in time".into());
        self.note(self.now_us, [(Tone::Wait, "◷ ".into()), name, why]);
    }

    pub fn wait_cancelled(&mut self, ord: Ordinal) {
        let name = (Tone::Strong, self.name(ord));
        let why = (Tone::Plain, "  is no longer waited for".into());
        self.note(self.now_us, [(Tone::Faint, "∅ ".into()), name, why]);
    }

    pub fn marker_recorded(&mut self, event: &MarkerRecorded) {
        let what = format!("takes the new way of the patch {}", event.name);
        self.note(self.now_us, [(Tone::Faint, "⚑ ".into()), (Tone::Faint, what)]);
    }

    pub fn value_published(&mut self, event: &ValuePublished) {
        let value = match words::payload(&event.value).as_str() {
            "" => "nothing".to_owned(),
            value => value.to_owned(),
        };
        let what = format!("{} is {value}", event.key);
        self.note(self.now_us, [(Tone::Faint, "⇡ ".into()), (Tone::Faint, what)]);
    }

    pub fn attributes_set(&mut self, event: &AttributesSet) {
        let changes = event.changes.iter().map(|change| match &change.value {
            Some(value) => format!("{} = {value}", change.name),
            None => format!("no {}", change.name),
        });
        let changes = changes.collect::<Vec<_>>().join(", ");
        match event.origin() {
            AttributeOrigin::Start | AttributeOrigin::Code => {
                self.note(self.now_us, [(Tone::Faint, "# ".into()), (Tone::Faint, changes)]);
            }
            AttributeOrigin::Verb => {
                self.person(&event.by, &format!("sets {changes}"), &event.reason);
            }
        }
    }
}
