//! One row, whose checksum is made to fit.
#![no_main]

#[path = "../../crates/core/tests/fuzz/targets.rs"]
#[allow(dead_code, reason = "each target uses a part of it")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    targets::read_row(targets::resealed(bytes.to_vec()));
});
