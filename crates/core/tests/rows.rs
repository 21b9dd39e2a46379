//! Damaged rows are named as such, and never anything worse.

mod dice;
mod examples;

use backstitch_core::event::Event;
use backstitch_core::row::{Draft, Row, RowError};
use backstitch_core::run::Run;
use bytes::Bytes;
use dice::Dice;
use examples::{AT_US, engine_header, events, turn_header};

fn row() -> Vec<u8> {
    Draft::new(turn_header(), &events()).seal(AT_US)
}

/// Puts the right checksum under whatever stands before it.
fn resealed(mut row: Vec<u8>) -> Vec<u8> {
    let length = row.len() - 4;
    let crc = crc32c::crc32c(&row[..length]);
    row[length..].copy_from_slice(&crc.to_be_bytes());
    row
}

/// Reads it, and folds it if it can be read; says whether it could.
fn swallow(bytes: Vec<u8>) -> bool {
    let Ok(row) = Row::decode(bytes) else { return false };
    let _ = Run::fold([&row]);
    true
}

#[test]
fn p11_a_row_reads_back_as_it_was_written() {
    for (header, events) in [(turn_header(), events()), (engine_header(), Vec::new())] {
        let row = Row::decode(Draft::new(header.clone(), &events).seal(AT_US)).unwrap();
        assert_eq!(row.events, events);
        let header_read = backstitch_core::row::Header { at_us: 0, ..row.header };
        assert_eq!(header_read, header);
    }
}

#[test]
fn p11_one_flipped_bit_is_a_wrong_checksum() {
    let row = row();
    for at in 0..row.len() * 8 {
        let mut damaged = row.clone();
        damaged[at / 8] ^= 1 << (at % 8);
        let read = Row::decode(damaged);
        assert_eq!(read, Err(RowError::Checksum { bytes: row.len() }), "bit {at}");
    }
}

#[test]
fn p11_a_row_that_is_cut_off_is_a_wrong_checksum() {
    let row = row();
    for length in 0..row.len() {
        let read = Row::decode(row[..length].to_vec());
        assert_eq!(read, Err(RowError::Checksum { bytes: length }));
    }
}

#[test]
fn p11_random_bytes_are_refused() {
    let mut dice = Dice::new(1);
    for _ in 0..5_000 {
        let length = dice.below(200);
        assert!(!swallow(dice.bytes(length)), "four random bytes are hardly the checksum");
    }
}

#[test]
fn p11_random_bytes_under_a_right_checksum_do_no_harm() {
    let mut dice = Dice::new(2);
    for round in 0..20_000 {
        let length = 10 + dice.below(118);
        let mut bytes = dice.bytes(length);
        bytes[0] = 1;
        if round % 2 == 0 {
            // An empty header, and behind it events of kinds that exist.
            let kinds = Event::KINDS;
            let (kind, version, _) = kinds[dice.below(kinds.len())];
            let front = [1, 0, (kind >> 8) as u8, kind as u8, version, (length - 10) as u8];
            bytes[..6].copy_from_slice(&front);
        }
        swallow(resealed(bytes));
    }
}

#[test]
fn p11_changed_bytes_under_a_right_checksum_do_no_harm() {
    let (mut dice, row) = (Dice::new(3), row());
    let mut read = 0;
    for _ in 0..5_000 {
        let mut damaged = row.clone();
        for _ in 0..=dice.below(3) {
            let at = dice.below(damaged.len());
            damaged[at] = dice.next() as u8;
        }
        read += usize::from(swallow(resealed(damaged)));
    }
    assert!(read > 200, "some are still rows: {read}");
}

#[test]
fn p11_an_event_never_reads_beyond_its_length() {
    for event in events() {
        let mut bytes = Vec::new();
        event.encode(&mut bytes);
        for length in 0..bytes.len() {
            let mut cut = Bytes::copy_from_slice(&bytes[..length]);
            assert!(Event::decode(&mut cut).is_err(), "{} cut to {length}", event.name());
        }
        bytes.extend([0xff; 8]);
        let mut longer = Bytes::from(bytes);
        assert_eq!(Event::decode(&mut longer), Ok(event));
        assert_eq!(longer.len(), 8);
    }
}
