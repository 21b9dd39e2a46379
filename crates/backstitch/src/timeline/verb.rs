//! What comes from outside, and what waits for somebody from outside.

use backstitch_core::event::{
    BlockKind, Blocked, CancelRequested, CancelVerb, PauseRequested, Resumed, Unblocked,
    VerbRefused,
};

use super::rail::Tone;
use super::scribe::Scribe;
use super::words;

impl Scribe {
    pub fn cancel_requested(&mut self, event: &CancelRequested) {
        let what = match event.verb() {
            CancelVerb::Cancel => "cancels the run",
            CancelVerb::Terminate => "terminates the run",
            CancelVerb::Rollback => "has the run rolled back",
        };
        self.person(&event.by, what, &event.reason);
    }

    pub fn pause_requested(&mut self, event: &PauseRequested) {
        self.person(&event.by, "pauses the run", &event.reason);
    }

    pub fn resumed(&mut self, event: &Resumed) {
        let what = match event.shift_us {
            0 => "resumes the run".to_owned(),
            shift_us => format!("resumes the run, timers move by {}", words::time(shift_us)),
        };
        self.person(&event.by, &what, &event.reason);
    }

    pub fn verb_refused(&mut self, event: &VerbRefused) {
        let step = event.ord.map(|ord| format!(" {}", self.name(ord))).unwrap_or_default();
        let what = format!("asked for {}{step}, which changed nothing", event.verb);
        self.person(&event.by, &what, &event.why);
    }

    pub fn blocked(&mut self, event: &Blocked) {
        let what = self.held(event.what(), event.ord);
        match (event.what(), event.ord) {
            // The attempt that failed stands just above, with the reason.
            (BlockKind::Step, Some(_)) => {
                self.more([(
                    Tone::Bad,
                    format!("  ‼ {what} is blocked until a person has it tried again"),
                )]);
            }
            (
                BlockKind::Step
                | BlockKind::Mismatch
                | BlockKind::ForeignWait
                | BlockKind::Unreadable,
                _,
            ) => self.failed(self.now_us, &format!("{what} is blocked"), &event.failure),
        }
    }

    pub fn unblocked(&mut self, event: &Unblocked) {
        let what = format!("frees {}", self.held(event.what(), event.ord));
        self.person(&event.by, &what, "");
    }

    fn held(&self, what: BlockKind, ord: Option<u32>) -> String {
        match (what, ord) {
            (BlockKind::Step, Some(ord)) => self.name(ord),
            (BlockKind::Step, None) => "a step".into(),
            (BlockKind::Mismatch, _) => "the run, whose code does not fit its journal,".into(),
            (BlockKind::ForeignWait, _) => "the run, whose code awaits something foreign,".into(),
            (BlockKind::Unreadable, _) => "the run, whose journal cannot be read,".into(),
        }
    }

    /// Somebody outside of the run did something.
    pub fn person(&mut self, who: &str, what: &str, reason: &str) {
        let said = format!(" {what}{}", words::reason(reason));
        self.blank();
        self.note(
            self.now_us,
            [(Tone::Wait, "» ".into()), (Tone::Strong, who.to_owned()), (Tone::Plain, said)],
        );
    }
}
