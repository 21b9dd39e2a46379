//! Starting, sending, looking and waiting from outside.

use backstitch::{ErrorKind, Status, WaitsFor};

use crate::checked;
use crate::job::{Plan, job};
use crate::process::{Folder, Other};
use crate::world::{events, eventually, until};

#[tokio::test]
async fn t16_a_guest_starts_executions_looks_at_them_and_gets_their_results() {
    let folder = Folder::new();
    let owner = Other::owner(&folder);
    let guest = folder.connect().await;
    let handle = guest.start(job, "order", Plan::Returns(5)).by("Ada").await.unwrap();
    assert!(handle.created());
    assert_eq!(handle.result().await.unwrap(), 5);
    assert_eq!(handle.closed().await.unwrap(), Status::Succeeded);
    let status = handle.status().await.unwrap();
    assert_eq!((status.status, status.waits_for.len()), (Status::Succeeded, 0));
    assert_eq!(status.run.started.started_by, "Ada");
    assert_eq!(folder.place().effects(), ["book"]);
    let again = guest.start(job, "order", Plan::Returns(5)).await.unwrap();
    assert!(!again.created() && again.run_id() == handle.run_id());
    let other = guest.start(job, "order", Plan::Returns(6)).await;
    assert_eq!(other.err().unwrap().kind(), ErrorKind::OtherInput);
    assert_eq!(guest.list(10).await.unwrap()[0].status, Status::Succeeded);
    let error = guest.handle::<u32>("nobody").await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    checked(&handle).await;
    guest.close().await.unwrap();
    owner.stop();
}

#[tokio::test]
async fn t16_a_guest_sends_events_follows_what_is_published_and_finds_by_attribute() {
    let folder = Folder::new();
    let _owner = Other::owner(&folder);
    let guest = folder.connect().await;
    let start = guest.start(job, "parts", Plan::Takes(3)).attribute("Customer", "c-1");
    let handle = start.await.unwrap();
    assert_eq!(guest.find("Customer", "c-1", 10).await.unwrap()[0].id, "parts");
    let mut follow = handle.follow::<u32>("parts");
    for part in 1..=3 {
        let sent = handle.send_event("part", &(10 * part)).id(format!("p-{part}")).await.unwrap();
        assert!(sent.first);
        assert_eq!(follow.next().await.unwrap(), Some(part));
        assert_eq!(handle.published("parts").await.unwrap(), Some(part));
        assert_eq!(guest.find("Parts", part, 10).await.unwrap().len(), 1);
    }
    assert_eq!(follow.next().await.unwrap(), None);
    assert_eq!(handle.result().await.unwrap(), 60);
    assert!(!handle.send_event("part", &10).id("p-1").await.unwrap().first);
    let late = handle.send_event("part", &40).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Refused);
    // Attributes of what is closed.
    handle.set_attributes([("Customer", "c-2")]).by("Ada").await.unwrap();
    eventually("it is found by the new one", async || {
        guest.find("Customer", "c-2", 10).await.unwrap().len() == 1
    })
    .await;
    assert!(guest.find("Customer", "c-1", 10).await.unwrap().is_empty());
    checked(&handle).await;
}

#[tokio::test]
async fn t16_a_guest_pauses_resumes_cancels_terminates_and_kills() {
    let folder = Folder::new();
    let _owner = Other::owner(&folder);
    let guest = folder.connect().await;
    let handle = guest.start(job, "a", Plan::Takes(1)).await.unwrap();
    until(&handle, Status::Suspended).await;
    assert!(handle.pause().by("Ada").await.unwrap().changed);
    until(&handle, Status::Paused).await;
    assert!(!handle.pause().await.unwrap().changed);
    handle.send_event("part", &1).await.unwrap();
    assert!(handle.resume().await.unwrap().changed);
    assert_eq!(handle.result().await.unwrap(), 1);

    for (id, status, kind) in [
        ("b", Status::Cancelled, ErrorKind::Cancelled),
        ("c", Status::Terminated, ErrorKind::Terminated),
        ("d", Status::Terminated, ErrorKind::Terminated),
    ] {
        let handle = guest.start(job, id, Plan::Works).await.unwrap();
        until(&handle, Status::Running).await;
        eventually("it has booked", async || {
            events(&handle).await.iter().filter(|event| **event == "StepStarted").count() == 2
        })
        .await;
        let request = match id {
            "b" => handle.cancel(),
            "c" => handle.terminate(),
            _ => handle.kill(),
        };
        let answer = request.by("Ada").request_id("r").await.unwrap();
        assert!(answer.changed);
        assert_eq!(handle.closed().await.unwrap(), status);
        assert_eq!(handle.result().await.unwrap_err().kind(), kind);
        let repeated = match id {
            "b" => handle.cancel(),
            "c" => handle.terminate(),
            _ => handle.kill(),
        };
        assert_eq!(repeated.by("Ada").request_id("r").await.unwrap(), answer);
        checked(&handle).await;
    }
    assert_eq!(folder.place().count("undo book"), 2);
    assert_eq!(guest.attention(10).await.unwrap()[0].kind, "killed");
}

#[tokio::test]
async fn t16_what_a_guest_starts_for_an_owner_without_the_code_waits_for_it() {
    let folder = Folder::new();
    let owner = Other::idle_owner(&folder);
    let guest = folder.connect().await;
    let handle = guest.start(job, "a", Plan::Returns(5)).await.unwrap();
    let unwanted = guest.start(job, "b", Plan::Returns(5)).await.unwrap();
    let status = until(&handle, Status::Pending).await;
    assert!(matches!(&status.waits_for[0], WaitsFor::Worker { workflow, .. } if workflow == "job"));
    unwanted.cancel().await.unwrap();
    assert_eq!(unwanted.closed().await.unwrap(), Status::Cancelled);
    owner.stop();
    let _owner = Other::owner(&folder);
    assert_eq!(handle.result().await.unwrap(), 5);
}

#[tokio::test]
async fn t16_two_guests_that_start_one_id_start_one_execution() {
    let folder = Folder::new();
    let _owner = Other::owner(&folder);
    let guests = [folder.connect().await, folder.connect().await];
    for round in 0..20 {
        let id = format!("order-{round}");
        let (one, two) = tokio::join!(
            async { guests[0].start(job, &id, Plan::Returns(round)).await.unwrap() },
            async { guests[1].start(job, &id, Plan::Returns(round)).await.unwrap() },
        );
        assert_eq!(one.run_id(), two.run_id());
        assert!(one.created() != two.created(), "one of them made it");
        assert_eq!(two.result().await.unwrap(), round);
    }
    assert_eq!(folder.place().count("book"), 20);
}
