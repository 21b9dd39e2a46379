//! Workers that say what cannot be.

use backstitch_api::worker as wire;
use backstitch_api::worker::refused::Why;
use backstitch_core::status::Status;
use backstitch_store::AttentionPlace;
use tonic::Code;
use wire::from_worker::Message as Said;

use crate::peer::{Peer, hello};

#[tokio::test]
async fn what_is_wrong_with_a_hello_is_named() {
    let peer = Peer::start().await;
    type Spoil = fn(&mut wire::Hello);
    let cases: [(Spoil, Code, &str); 11] = [
        (|h| h.session = vec![1; 3], Code::InvalidArgument, "`session` has 3 bytes; it has 16"),
        (|h| h.slots = 0, Code::InvalidArgument, "`slots` is 0"),
        (|h| h.slots = 200_000, Code::InvalidArgument, "`slots` is 200000"),
        (|h| h.name.clear(), Code::InvalidArgument, "`name` has 0 bytes"),
        (|h| h.sdk = "x".repeat(201), Code::InvalidArgument, "`sdk` has 201 bytes"),
        (|h| h.workflows.clear(), Code::InvalidArgument, "has 0 workflows"),
        (|h| h.workflows[0].name.clear(), Code::InvalidArgument, "workflow name"),
        (
            |h| h.workflows[0].event_types = Some(wire::EventTypes { types: vec![String::new()] }),
            Code::InvalidArgument,
            "type of the event is empty",
        ),
        (
            |h| {
                let types = vec!["go".into(); 1_001];
                h.workflows[0].event_types = Some(wire::EventTypes { types });
            },
            Code::InvalidArgument,
            "names 1001 types of events; it can name 1000",
        ),
        (|h| h.queues = vec!["gold".into()], Code::InvalidArgument, "\"gold\""),
        (
            |h| (h.protocol_min, h.protocol_max) = (2, 3),
            Code::FailedPrecondition,
            "speaks the protocols 2 to 3, and this server",
        ),
    ];
    for (spoil, code, words) in cases {
        let mut hello = hello(1);
        spoil(&mut hello);
        let Err(error) = peer.talk(hello).await else { panic!("{words}: it was taken on") };
        assert_eq!(error.code(), code, "{error}");
        assert!(error.message().contains(words), "{error}");
    }
    let Err(error) = peer.say(Said::Ping(wire::Ping { number: 1 })).await else {
        panic!("a stream begins with Hello")
    };
    assert!(error.message().contains("has to be Hello"), "{error}");
    assert!(peer.engine.workers().is_empty());
}

#[tokio::test]
async fn p4_a_lie_about_the_fence_or_the_run_writes_nothing() {
    let peer = Peer::start().await;
    let mut worker = peer.worker(1).await;
    let started = peer.begin("a").await;
    let mut run = worker.lease().await;
    let row = run.row().expect("the code asks for a step");
    for (fence, no) in [(row.fence + 1, row.run), (0, row.run), (row.fence, row.run + 1)] {
        let lie = wire::Append { fence, run: no, ..row.clone() };
        assert_eq!(worker.write_in_vain(lie).await.why(), Why::Lost);
    }
    assert_eq!(peer.engine.journal(started.run).await.expect("it can be read").len(), 1);
    // And the truth still does.
    worker.write(row).await;
}

#[tokio::test]
async fn a_row_that_does_not_follow_is_refused_and_the_run_is_listed() {
    type Spoil = fn(&mut wire::Append);
    let cases: [(Spoil, &str); 6] = [
        (|a| a.seq += 1, "row 3 was offered, and the next one is row 2"),
        (|a| a.events.clear(), "row 2 has no events"),
        (|a| a.events.truncate(3), "row 2 cannot be read"),
        (|a| a.version = "2".into(), "row 2 is of version \"2\""),
        (|a| a.turn_now_us = Some(i64::MAX), "row 2 is a turn at"),
        (|a| a.events = [a.events.clone(), a.events.clone()].concat(), "is not legal here"),
    ];
    for (spoil, words) in cases {
        let peer = Peer::start().await;
        let mut worker = peer.worker(1).await;
        let started = peer.begin("a").await;
        let mut run = worker.lease().await;
        let mut row = run.row().expect("the code asks for a step");
        spoil(&mut row);
        let refused = worker.write_in_vain(row).await;
        assert_eq!(refused.why(), Why::Illegal, "{refused:?}");
        assert!(refused.message.contains(words), "{refused:?}");
        assert_eq!(peer.engine.journal(started.run).await.expect("it can be read").len(), 1);
        worker.ping().await;
        let listed =
            peer.engine.attention(AttentionPlace::START, 10).await.expect("it can be listed");
        assert!(listed.len() == 1 && listed[0].message.contains(words), "{listed:?}");
        let behind = peer.engine.attention(listed[0].place(), 10).await.expect("it can be listed");
        assert!(behind.is_empty(), "it is listed once: {behind:?}");
        // All other runs go on.
        peer.begin("b").await;
        assert_eq!(worker.lease().await.lease.id, "b");
        // A mended worker goes on with it.
        let mut mended = hello(1);
        mended.session = vec![2; 16];
        let mut mended = peer.talk(mended).await.expect("it is taken on");
        let mut run = mended.lease().await;
        let row = run.row().expect("the code asks for a step");
        mended.write(row).await;
        assert!(
            peer.engine
                .attention(AttentionPlace::START, 10)
                .await
                .expect("it can be listed")
                .is_empty()
        );
    }
}

#[tokio::test]
async fn what_cannot_be_said_ends_the_stream_and_nothing_else() {
    let short = wire::Append { append_id: vec![1], ..wire::Append::default() };
    let cases = [
        (Said::Hello(hello(1)), "Hello is said once"),
        (Said::Append(short), "`append_id` has 1 bytes"),
    ];
    for (said, words) in cases {
        let peer = Peer::start().await;
        let mut worker = peer.worker(1).await;
        worker.say(said).await;
        let error = worker.next().await.expect_err("the stream is ended");
        assert!(
            error.code() == Code::InvalidArgument && error.message().contains(words),
            "{error}"
        );
        let mut again = peer.worker(1).await;
        peer.begin("a").await;
        again.lease().await;
        assert_eq!(peer.status("a").await, Status::Running);
    }
}
