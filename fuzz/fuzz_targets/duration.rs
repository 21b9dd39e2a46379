//! A text that may be a duration.
#![no_main]

#[path = "../../crates/backstitch/tests/durations/text.rs"]
mod text;

libfuzzer_sys::fuzz_target!(|text: &str| {
    text::read(text);
});
