//! What happens to the rows of a journal. Every mutation is a function of the dice alone.

use backstitch_core::event::Event;
use backstitch_core::row::Row;

use crate::dice::Dice;

/// Numbers at which arithmetic goes wrong.
pub const EDGES: &[u64] = &[
    0,
    1,
    2,
    127,
    128,
    u32::MAX as u64 - 1,
    u32::MAX as u64,
    u32::MAX as u64 + 1,
    i64::MAX as u64 - 1,
    i64::MAX as u64,
    i64::MIN as u64,
    u64::MAX - 1,
    u64::MAX,
];

/// Changes a journal row by row, event by event and field by field.
pub fn mutate(dice: &mut Dice, rows: &mut Vec<Row>, others: &[Row]) {
    for _ in 0..=dice.below(3) {
        let (at, to) = (dice.below(rows.len()), dice.below(rows.len()));
        match dice.below(7) {
            0 => rows.insert(to, rows[at].clone()),
            1 => rows.swap(at, to),
            2 if rows.len() > 1 => drop(rows.remove(at)),
            3 => rows.insert(to, others[dice.below(others.len())].clone()),
            4 => events(dice, rows, others),
            _ => field(dice, &mut rows[at]),
        }
    }
    if dice.below(8) != 0 {
        (1..).zip(rows).for_each(|(seq, row)| row.header.seq = seq);
    }
}

/// Takes out, repeats or moves an event, or brings one from elsewhere.
fn events(dice: &mut Dice, rows: &mut [Row], others: &[Row]) {
    let (from, to) = (dice.below(rows.len()), dice.below(rows.len()));
    let foreign = &others[dice.below(others.len())].events;
    let source = if dice.below(2) == 0 { &rows[from].events } else { foreign };
    let Some(event) = (!source.is_empty()).then(|| source[dice.below(source.len())].clone()) else {
        return;
    };
    let target = &mut rows[to].events;
    match dice.below(3) {
        0 if !target.is_empty() => drop(target.remove(dice.below(target.len()))),
        1 if !target.is_empty() => {
            let at = dice.below(target.len());
            target[at] = event;
        }
        _ => target.insert(dice.below(target.len() + 1), event),
    }
}

/// Changes one field of one event: a number becomes another one, whatever encloses it grows or
/// shrinks with it.
fn field(dice: &mut Dice, row: &mut Row) {
    if row.events.is_empty() {
        return;
    }
    let at = dice.below(row.events.len());
    let mut encoded = Vec::new();
    row.events[at].encode(&mut encoded);
    let (kind, mut body) = (encoded[..3].to_vec(), &encoded[3..]);
    let (_, rest) = read_varint(body).expect("it was just written");
    body = rest;
    let body = message(dice, body);
    let mut changed = [kind, varint(body.len() as u64), body].concat().into();
    if let Ok(event) = Event::decode(&mut changed) {
        row.events[at] = event;
    }
}

fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().take(9).take_while(|byte| **byte >= 0x80).count() + 1;
    let (varint, rest) = bytes.split_at_checked(length)?;
    let number = varint.iter().rev().fold(0_u64, |n, byte| n << 7 | u64::from(byte & 0x7f));
    Some((number, rest))
}

/// The fields of a message, of which one is changed; what is not a message is left as it is.
fn message(dice: &mut Dice, bytes: &[u8]) -> Vec<u8> {
    let Some(mut fields) = fields(bytes).filter(|fields| !fields.is_empty()) else {
        return bytes.to_vec();
    };
    let at = dice.below(fields.len());
    let (tag, value) = &mut fields[at];
    match (*tag & 7, dice.below(8)) {
        (_, 0) => drop(fields.remove(at)),
        (0, _) => *value = varint(EDGES[dice.below(EDGES.len())]),
        (2, _) => {
            let (_, inner) = read_varint(value).expect("it was just read");
            let inner = message(dice, inner);
            *value = [varint(inner.len() as u64), inner].concat();
        }
        (_, _) => *value = dice.bytes(value.len()),
    }
    fields.into_iter().flat_map(|(tag, value)| [varint(tag), value].concat()).collect()
}

/// Cuts a message into its fields: each with its tag, and what stands behind it.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Vec<u8>)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let (tag, rest) = read_varint(bytes)?;
        let after = match tag & 7 {
            0 => read_varint(rest)?.1,
            1 => rest.get(8..)?,
            2 => {
                let (length, inner) = read_varint(rest)?;
                inner.get(usize::try_from(length).ok()?..)?
            }
            5 => rest.get(4..)?,
            _ => return None,
        };
        fields.push((tag, rest[..rest.len() - after.len()].to_vec()));
        bytes = after;
    }
    Some(fields)
}

pub fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}
