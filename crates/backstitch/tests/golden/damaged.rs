//! Journals that were damaged and still fold are carried on somehow or held; they bring nothing down,
//! and a person can end them (P10).

use std::sync::Mutex;
use std::time::Duration;

use backstitch::core::run::{Phase, Run};
use backstitch::{ErrorKind, Handle, Row};
use bytes::Bytes;
use serde_json::Value;

use crate::dice::Dice;
use crate::file::Golden;
use crate::scene::{Gates, Scene};
use crate::world::World;
use crate::{disk, rows, scenes};

/// So many take a second or two.
const JOURNALS: usize = 400;

/// Longer than it takes to kill a run; only one whose driver is gone gets there.
const HANG: Duration = Duration::from_secs(30);

/// What went down inside of the library, and where.
static FALLEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn listen_for_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        if place.contains("/src/") && place.starts_with("crates/") {
            FALLEN.lock().unwrap().push(panic.to_string());
        }
        before(panic);
    }));
}

#[tokio::test]
async fn p10_damaged_journals_that_fold_bring_nothing_down_and_can_be_ended() {
    listen_for_panics();
    let scenes = scenes();
    let all =
        scenes.iter().flat_map(|scene| Golden::of(scene.name).into_iter().map(move |g| (scene, g)));
    let journals: Vec<(&Scene, Vec<Row>)> =
        all.map(|(scene, golden)| (scene, golden.rows())).collect();
    let (mut dice, mut folded) = (Dice::new(23), 0);
    while folded < JOURNALS {
        let (scene, mut journal) = journals[dice.below(journals.len())].clone();
        journal.truncate(1 + dice.below(journal.len()));
        let (_, others) = &journals[dice.below(journals.len())];
        rows::mutate(&mut dice, &mut journal, others);
        in_one_hand(&mut journal);
        let Ok(run) = Run::fold(&journal) else { continue };
        // What no store would have: a start without its digest, an inbox without its rows.
        if run.started.input_digest.len() != 32 || run.inbox_read > 100 {
            continue;
        }
        folded += 1;
        is_carried_on(scene, &journal, &run).await;
        let fallen = std::mem::take(&mut *FALLEN.lock().unwrap());
        assert!(fallen.is_empty(), "{fallen:?} by {journal:#?}");
    }
}

async fn is_carried_on(scene: &Scene, journal: &[Row], run: &Run) {
    let world = World::new();
    let sealed: Vec<Bytes> = (1_u128..).zip(journal).map(|(id, row)| seal(row, id)).collect();
    disk::lay_down(&world, &sealed).await;
    let app = world.open(|builder| (scene.register)(builder.state(Gates::closed()))).await;
    let started = &run.started;
    let handle = app.handle_in::<Value>(&started.namespace, &started.id).await.unwrap();
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    if !matches!(run.phase, Phase::Closed(_)) {
        let ended = tokio::time::timeout(HANG, end(&handle)).await;
        assert!(ended.is_ok(), "it cannot be ended: {journal:#?}");
    }
}

/// What a store sees to: fences and instants never run backwards.
fn in_one_hand(journal: &mut [Row]) {
    let (mut fence, mut at_us) = (0, i64::MIN);
    for Row { header, .. } in journal {
        (fence, at_us) = (fence.max(header.fence), at_us.max(header.at_us));
        (header.fence, header.at_us) = (fence, at_us);
    }
}

/// As it would have been written, under an id of its own.
fn seal(row: &Row, append_id: u128) -> Bytes {
    let mut header = row.header.clone();
    header.at_us = 0;
    header.append_id = append_id.to_be_bytes().to_vec();
    backstitch::core::row::Draft::new(header, &row.events).seal(row.header.at_us).into()
}

async fn end(handle: &Handle<Value>) {
    match handle.kill().by("ada").reason("it is damaged").await {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::Refused, "it has ended: {error}"),
    }
    handle.closed().await.unwrap();
}
