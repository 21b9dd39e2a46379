//! What happens to the bytes of a row. Every mutation is a function of the dice alone.

use backstitch_core::row::Row;

use crate::dice::Dice;
use crate::rows::{EDGES, varint};
use crate::targets::{resealed, sealed};

/// Changes a sealed row; the checksum fits again afterwards, but for one time in sixteen.
pub fn mutate(dice: &mut Dice, row: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = row.to_vec();
    for _ in 0..=dice.below(3) {
        bytes = match dice.below(6) {
            0 => flip(dice, bytes),
            1 => overwrite(dice, bytes),
            2 => cut(dice, bytes),
            3 => splice(dice, &bytes, other),
            4 => change_varint(dice, bytes),
            _ => insert(dice, bytes),
        };
    }
    if dice.below(16) == 0 { bytes } else { resealed(bytes) }
}

fn flip(dice: &mut Dice, mut bytes: Vec<u8>) -> Vec<u8> {
    if !bytes.is_empty() {
        let at = dice.below(bytes.len());
        bytes[at] ^= 1 << dice.below(8);
    }
    bytes
}

fn overwrite(dice: &mut Dice, mut bytes: Vec<u8>) -> Vec<u8> {
    if !bytes.is_empty() {
        let at = dice.below(bytes.len());
        bytes[at] = [0, 1, 0x7f, 0x80, 0xff, dice.next() as u8][dice.below(6)];
    }
    bytes
}

fn cut(dice: &mut Dice, mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(dice.below(bytes.len() + 1));
    bytes
}

/// The front of one and the back of the other.
fn splice(dice: &mut Dice, front: &[u8], back: &[u8]) -> Vec<u8> {
    let (front_len, back_from) = (dice.below(front.len() + 1), dice.below(back.len() + 1));
    [&front[..front_len], &back[back_from..]].concat()
}

fn insert(dice: &mut Dice, mut bytes: Vec<u8>) -> Vec<u8> {
    let at = dice.below(bytes.len() + 1);
    let varint = varint(EDGES[dice.below(EDGES.len())]);
    bytes.splice(at..at, varint);
    bytes
}

/// Puts another number where, by chance, one stands.
fn change_varint(dice: &mut Dice, mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.is_empty() {
        return bytes;
    }
    let at = dice.below(bytes.len());
    let length = bytes[at..].iter().take(9).take_while(|byte| **byte >= 0x80).count() + 1;
    let end = (at + length).min(bytes.len());
    bytes.splice(at..end, varint(EDGES[dice.below(EDGES.len())]));
    bytes
}

/// Changes the header as bytes are changed, if it is still one then.
pub fn mutate_header(dice: &mut Dice, row: &mut Row) {
    let header = Row { header: row.header.clone(), events: Vec::new() };
    let changed = resealed(change_varint(dice, sealed(&header)));
    if let Ok(changed) = Row::decode(changed) {
        row.header = changed.header;
    }
}
