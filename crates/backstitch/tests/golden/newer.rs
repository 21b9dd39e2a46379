//! A journal in which a newer engine wrote is left alone: nothing of it runs, nothing is added, and
//! the others go on (P11).

use backstitch::core::event::{BlockKind, Blocked, Event, VerbRefused};
use backstitch::core::failure::{Class, Failure, Origin};
use backstitch::core::row::{Draft, Header, RowKind};
use backstitch::store::{Answer, Append, Expects, Guard, RunNo, Store};
use backstitch::{ErrorKind, Status};
use serde_json::Value;

use crate::file::Golden;
use crate::scene::Gates;
use crate::world::{World, eventually};
use crate::{disk, scenes};

/// The events of a row of a newer engine: with a new value of an enumeration, with a new version.
fn newer_rows() -> [Vec<u8>; 2] {
    let failure = Failure::new(Class::Attention, Origin::Engine, "Newer", "something new");
    let encoded = |event: Event| {
        let mut bytes = Vec::new();
        event.encode(&mut bytes);
        bytes
    };
    let value =
        encoded(Blocked { what: BlockKind::Unreadable as i32 + 9, ord: None, failure }.into());
    let mut version = encoded(VerbRefused::default().into());
    version[2] = 9;
    [value, version]
}

#[tokio::test]
async fn p11_t15_a_run_of_a_newer_engine_is_left_alone_and_others_go_on() {
    let scene = scenes().into_iter().find(|scene| scene.name == "three_steps").expect("a scene");
    let golden = Golden::of(scene.name).remove(0);
    for events in newer_rows() {
        let world = World::new();
        disk::lay_down(&world, &golden.sealed[..2]).await;
        let store = world.reopen();
        let header = Header {
            seq: 3,
            kind: RowKind::Engine as i32,
            fence: store.fence(),
            append_id: 900_u128.to_be_bytes().to_vec(),
            ..Header::default()
        };
        let append = Append {
            run: RunNo(1),
            draft: Draft { header, events: events.into() },
            expects: Expects::Open,
            read: 0,
            guard: Guard::default(),
            update: None,
            attention: Vec::new(),
            attributes: Vec::new(),
        };
        let answer = store.commit(append.into()).await.expect("memory is always available");
        assert!(matches!(answer, Answer::Appended { .. }), "{answer:?}");
        drop(store);

        let app = world.open(|builder| (scene.register)(builder.state(Gates::closed()))).await;
        let handle = app.handle::<Value>(scene.name).await.unwrap();
        eventually("the run is left alone", async || handle.status().await.is_err()).await;
        let error = handle.status().await.unwrap_err();
        let said = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Unreadable, "{said}");
        assert!(said.contains("row 3") && said.contains("newer Backstitch"), "{said}");
        assert_eq!(world.effects.all(), Vec::<String>::new(), "no body began");
        let refused = handle.cancel().await.unwrap_err();
        assert_eq!((refused.kind(), refused.to_string()), (ErrorKind::Unreadable, said));
        let listed = app.list(9).await.unwrap();
        assert_eq!(listed.len(), 1, "it is listed as it stood: {listed:?}");
        assert_eq!(listed[0].status, Status::Running);

        (scene.start)(&app, "another").await;
        let another = app.handle::<Value>("another").await.unwrap();
        assert_eq!(another.closed().await.unwrap(), Status::Succeeded, "others go on");
        app.shutdown().await.unwrap();
        let rows = world.reopen().journal(RunNo(1), 0, 9).await.unwrap();
        assert_eq!(rows.len(), 3, "nothing was added");
    }
}
