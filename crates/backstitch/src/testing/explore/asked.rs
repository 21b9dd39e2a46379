//! What the code asked for in a world: it has to be the same in each, up to what goes wrong there.

use std::collections::BTreeMap;
use std::time::Duration;

use backstitch_core::event::Event;
use backstitch_core::id::Key;
use backstitch_core::row::Row;

/// Something that the code asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    key: Key,
    words: String,
}

/// In the order in which it was asked for.
pub(super) fn asked(rows: &[Row]) -> Vec<Asked> {
    let events = rows.iter().flat_map(|row| row.events.iter().map(move |event| (row, event)));
    events.filter_map(|(row, event)| of_event(row, event)).collect()
}

/// How much was asked for before somebody cancelled.
pub(super) fn before_cancel(rows: &[Row]) -> usize {
    let events = rows.iter().flat_map(|row| row.events.iter().map(move |event| (row, event)));
    let before = events.take_while(|(_, event)| !matches!(event, Event::CancelRequested(_)));
    before.filter(|(row, event)| of_event(row, event).is_some()).count()
}

/// The place of a step, by its printed key.
pub(super) fn place(asked: &[Asked], step: &str) -> Option<usize> {
    let words = format!("step {step:?}");
    asked.iter().position(|asked| asked.words == words)
}

/// How the code went another way than in the plain case, in words. Branches are looked at one by one,
/// because they may overtake each other.
pub(super) fn difference(plain: &[Asked], here: &[Asked], extent: Extent) -> Option<String> {
    let (plain, here) = (by_branch(plain), by_branch(here));
    let branches = plain.keys().chain(here.keys());
    let nothing = Vec::new();
    for branch in branches {
        let of = |asked: &BTreeMap<_, Vec<_>>| asked.get(branch).unwrap_or(&nothing).clone();
        let (plain, here) = (of(&plain), of(&here));
        let places = match extent {
            Extent::UpToTheEnd => plain.len().max(here.len()),
            Extent::UpToTheFault => here.len(),
        };
        for place in 0..places {
            let (plain, here) = (plain.get(place), here.get(place));
            if plain != here {
                let or_not = |asked: Option<&String>| match asked {
                    Some(asked) => format!("asks for {asked}"),
                    None => "asks for nothing more".to_owned(),
                };
                let (plain, here) = (or_not(plain), or_not(here));
                return Some(format!("it {here}, where the first time it {plain}"));
            }
        }
    }
    None
}

/// How far two worlds have to be the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    UpToTheEnd,
    UpToTheFault,
}

fn by_branch(asked: &[Asked]) -> BTreeMap<Vec<String>, Vec<String>> {
    let mut branches: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for asked in asked {
        branches.entry(asked.key.scope.clone()).or_default().push(asked.words.clone());
    }
    branches
}

fn of_event(row: &Row, event: &Event) -> Option<Asked> {
    let now_us = row.header.now_us.unwrap_or(row.header.at_us);
    let from_now = |us: i64| Duration::from_micros(us.saturating_sub(now_us).max(0) as u64);
    let (key, words) = match event {
        Event::StepScheduled(step) => (&step.key, format!("step \"{}\"", step.key)),
        Event::TimerStarted(timer) => {
            let lasts = from_now(timer.fire_at_us);
            (&timer.key, format!("sleep \"{}\" of {lasts:?}", timer.key))
        }
        Event::WaitStarted(wait) => {
            let types = wait.types.join(" or ");
            let until = wait.until_us.map(|us| format!(" within {:?}", from_now(us)));
            let until = until.unwrap_or_default();
            (&wait.key, format!("wait \"{}\" for {types}{until}", wait.key))
        }
        _ => return None,
    };
    Some(Asked { key: key.clone(), words })
}
