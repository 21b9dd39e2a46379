//! Rows one after the other, each behind its length in two bytes. Checksums and numbers are made to
//! fit, so that what is behind them is reached.
#![no_main]

#[path = "../../crates/core/tests/fuzz/targets.rs"]
#[allow(dead_code, reason = "each target uses a part of it")]
mod targets;

use backstitch_core::row::Row;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (mut rest, mut rows) = (bytes, Vec::<Row>::new());
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let (row, behind) = behind.split_at(length);
        let Ok(mut row) = Row::decode(targets::resealed(row.to_vec())) else { return };
        row.header.seq = rows.len() as u64 + 1;
        rows.push(row);
        rest = behind;
    }
    targets::read_journal(&rows);
});
