//! Which events the workflows of workers take.

use backstitch_api::worker as wire;
use backstitch_core::payload::Payload;
use backstitch_engine::ErrorKind;
use backstitch_engine::events::EventPost;
use backstitch_store::RunNo;

use crate::peer::{Peer, Talk, hello};

/// A worker of its own, that tells these types.
async fn worker(peer: &Peer, session: u8, types: Option<&[&str]>) -> Talk {
    let mut hello = hello(1);
    hello.session = vec![session; 16];
    hello.workflows[0].event_types =
        types.map(|types| wire::EventTypes { types: types.iter().map(|t| (*t).into()).collect() });
    peer.talk(hello).await.expect("it is taken on")
}

/// Sends an event; gives why not.
async fn refused(peer: &Peer, run: RunNo, event_type: &str) -> Option<String> {
    let (event_type, payload, by) = (event_type.into(), Payload::json("1"), "ada".into());
    let post = EventPost { event_type, payload, event_id: None, by };
    let error = peer.engine.send_event(run, post).await.err()?;
    assert_eq!(error.kind(), ErrorKind::Invalid);
    Some(error.to_string())
}

#[tokio::test]
async fn an_event_is_refused_that_no_worker_of_the_workflow_takes() {
    let peer = Peer::start().await;
    let run = peer.begin("a").await.run;
    assert_eq!(refused(&peer, run, "stop").await, None, "nobody has the workflow");
    let first = worker(&peer, 1, Some(&["go"])).await;
    let why = refused(&peer, run, "stop").await.expect("it is not taken");
    assert_eq!(why, "the workflow \"transfer\" takes no events of type \"stop\"; it takes: go");
    assert_eq!(refused(&peer, run, "go").await, None);
    let second = worker(&peer, 2, Some(&["stop"])).await;
    assert_eq!(refused(&peer, run, "stop").await, None, "one of them takes it");
    let why = refused(&peer, run, "halt").await.expect("neither of them takes it");
    assert!(why.ends_with("it takes: go, stop"), "{why}");
    let silent = worker(&peer, 3, None).await;
    assert_eq!(refused(&peer, run, "halt").await, None, "one that does not tell may take it");
    drop((first, second, silent));
}

#[tokio::test]
async fn a_workflow_that_tells_that_it_takes_none_takes_none() {
    let peer = Peer::start().await;
    let run = peer.begin("a").await.run;
    let worker = worker(&peer, 1, Some(&[])).await;
    let why = refused(&peer, run, "go").await.expect("it is not taken");
    assert!(why.ends_with("it takes: none"), "{why}");
    drop(worker);
}

#[tokio::test]
async fn what_another_version_takes_does_not_count() {
    let peer = Peer::start().await;
    let run = peer.begin("a").await.run;
    let mut other = hello(1);
    other.workflows[0].version = "2".into();
    other.workflows[0].event_types = Some(wire::EventTypes { types: vec!["go".into()] });
    let other = peer.talk(other).await.expect("it is taken on");
    assert_eq!(refused(&peer, run, "stop").await, None);
    drop(other);
}
