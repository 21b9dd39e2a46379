//! The page about the journal says what the code does.

use backstitch_core::event::Event;

#[test]
fn p11_every_kind_of_event_stands_on_the_page() {
    let page = include_str!("../../../docs/journal.md");
    let listed: Vec<(u16, u8, &str)> = page.lines().filter_map(row).collect();
    assert_eq!(listed, Event::KINDS, "docs/journal.md and Event::KINDS differ");
}

fn row(line: &str) -> Option<(u16, u8, &str)> {
    let mut cells = line.split('|').map(str::trim).skip(1);
    let kind = cells.next()?.parse().ok()?;
    let version = cells.next()?.parse().ok()?;
    Some((kind, version, cells.next()?))
}
