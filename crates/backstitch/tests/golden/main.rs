//! Journals that last (P11): whole executions, as some version wrote them, are read, folded and
//! carried on from each of their rows by this one, and come to the same end.
//!
//! The files in `journals/` are added, never edited. When this version writes an execution down in
//! another way, the test that notices it says how a further file of that scene is added; the older
//! ones stay.

#[path = "../../../core/tests/dice/mod.rs"]
mod dice;
#[path = "../../../core/tests/fuzz/rows.rs"]
mod rows;
#[path = "../world/mod.rs"]
mod world;

mod disk;
mod file;
mod scene;
mod steps;

mod back;
mod forward;
mod outside;

mod damaged;
mod newer;

use std::collections::BTreeSet;
use std::fs;

use backstitch::Row;
use backstitch::core::event::{BlockKind, Event};
use backstitch::core::run::{Phase, Run};
use backstitch::store::{RunNo, Store};
use bytes::Bytes;

use file::{Golden, outcome};
use scene::Scene;
use world::World;

/// Set to `add`, it has a further golden journal written for each scene that has changed.
const ADD: &str = "BACKSTITCH_GOLDEN";

fn scenes() -> Vec<Scene> {
    [forward::scenes(), outside::scenes(), back::scenes()].into_iter().flatten().collect()
}

fn names(rows: &[Row]) -> Vec<&'static str> {
    rows.iter().flat_map(|row| &row.events).map(Event::name).collect()
}

/// The steps whose undo is settled, in that order.
fn settled(rows: &[Row]) -> Vec<u32> {
    let events = rows.iter().flat_map(|row| &row.events);
    let ords = events.filter_map(|event| match event {
        Event::UndoSucceeded(e) => Some(e.ord),
        Event::UndoNotNeeded(e) => Some(e.ord),
        Event::UndoWaived(e) => Some(e.ord),
        _ => None,
    });
    ords.collect()
}

/// How often the run as a whole was held because its code does not fit.
fn misfits(rows: &[Row]) -> usize {
    let events = rows.iter().flat_map(|row| &row.events);
    let misfit = |e: &&Event| matches!(e, Event::Blocked(e) if e.what() != BlockKind::Step);
    events.filter(misfit).count()
}

#[test]
fn p11_golden_journals_are_read_and_folded_as_they_were_written() {
    for scene in scenes() {
        let all = Golden::of(scene.name);
        assert!(!all.is_empty(), "{}: no version has written it down", scene.name);
        for golden in all {
            let now = file::written(golden.about(), &golden.sealed);
            assert_eq!(now, golden.text, "{}", golden.file);
        }
    }
}

#[test]
fn p11_every_golden_journal_belongs_to_a_scene() {
    let known = scenes().into_iter().flat_map(|scene| Golden::of(scene.name));
    let known: BTreeSet<String> = known.map(|golden| format!("{}.journal", golden.file)).collect();
    let there = fs::read_dir(file::folder()).expect("the folder is there");
    let there = there.map(|entry| entry.expect("it can be listed").file_name());
    let there = there.map(|name| name.into_string().expect("golden files have plain names"));
    let there: BTreeSet<String> = there.filter(|name| name != "frozen.txt").collect();
    assert_eq!(there, known);
}

#[test]
fn p11_every_kind_of_event_stands_in_a_golden_journal() {
    let all = scenes().into_iter().flat_map(|scene| Golden::of(scene.name));
    let shown: BTreeSet<&str> = all.flat_map(|golden| names(&golden.rows())).collect();
    let kinds = Event::KINDS.iter().map(|(_, _, name)| *name);
    assert_eq!(shown, kinds.collect());
}

#[tokio::test]
async fn p11_golden_journals_come_to_the_same_end_from_every_row() {
    for scene in scenes() {
        for golden in Golden::of(scene.name) {
            for length in 1..=golden.sealed.len() {
                carried_on(&scene, &golden, length).await;
            }
        }
    }
}

/// Takes up the first rows of the journal in a process of this version, and plays it to its end.
async fn carried_on(scene: &Scene, golden: &Golden, length: usize) {
    let what = format!("{} from row {length}", golden.file);
    let (whole, world) = (golden.rows(), World::new());
    disk::lay_down(&world, &golden.sealed[..length]).await;
    let handle = scene.play(&world, &whole[..length]).await;
    let rows = handle.journal().await.unwrap();
    assert_eq!(rows[..length], whole[..length], "{what}: what is recorded stays");

    let (before, was) = (Run::fold(&whole[..length]).unwrap(), Run::fold(&whole).unwrap());
    let is = Run::fold(&rows).unwrap();
    assert_eq!(outcome(&is), outcome(&was), "{what}");
    assert_eq!(settled(&rows), settled(&whole), "{what}");
    assert!(misfits(&rows) <= misfits(&whole), "{what}: the code fits the journal");
    assert_eq!(is.published, was.published, "{what}");
    assert_eq!(is.attributes, was.attributes, "{what}");
    assert!(is.attention.len() == was.attention.len(), "{what}: {:?}", is.attention);
    for (_, step) in before.steps().filter(|(_, step)| step.is_recorded()) {
        let again = format!("do {}#{}", step.key.name, step.key.count);
        let branched = !step.key.scope.is_empty();
        assert!(branched || world.effects.count(&again) == 0, "{what}: {again} again (P3)");
    }
    if matches!(before.phase, Phase::Closed(_)) && length == whole.len() {
        assert_eq!(rows.len(), length, "{what}: what is over stays as it is (B85)");
    }
}

#[tokio::test]
async fn p11_this_version_writes_what_the_newest_golden_journals_say() {
    for scene in scenes() {
        let sealed = recorded(&scene).await;
        let now = file::decoded(&sealed);
        let newest = Golden::of(scene.name).pop();
        let was = newest.as_ref().map(|golden| names(&golden.rows()));
        if was.as_ref() == Some(&names(&now)) {
            continue;
        }
        let written = newest.map(|golden| golden.file).unwrap_or_else(|| "none".into());
        assert!(
            std::env::var(ADD).is_ok_and(|value| value == "add"),
            "{}: this version writes another journal than the newest golden one ({written}):\n\
             {:?}\nwhere it was\n{was:?}\nIf that is right, add it: run this test with {ADD}=add",
            scene.name,
            names(&now),
        );
        let number = Golden::of(scene.name).len() + 1;
        let path = file::folder().join(format!("{}_{number}.journal", scene.name));
        fs::write(path, file::written(scene.about, &sealed)).expect("it can be written");
    }
}

/// The journal that this version writes.
async fn recorded(scene: &Scene) -> Vec<Bytes> {
    let world = World::new();
    scene.play(&world, &[]).await;
    world.reopen().journal(RunNo(1), 0, 1_000).await.expect("it can be read")
}
