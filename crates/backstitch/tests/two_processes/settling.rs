//! What a person settles from outside: blocks, failed undos, successes that are no longer wanted.

use backstitch::{ErrorKind, RollbackOutcome, Status};

use crate::checked;
use crate::job::{Plan, job};
use crate::process::{Folder, Other};
use crate::world::{eventually, until};

#[tokio::test]
async fn t16_a_guest_retries_a_blocked_step() {
    let folder = Folder::new();
    folder.place().break_it("call");
    let _owner = Other::owner(&folder);
    let guest = folder.connect().await;
    let handle = guest.start(job, "a", Plan::Calls).await.unwrap();
    until(&handle, Status::Blocked).await;
    assert_eq!(guest.attention(10).await.unwrap()[0].kind, "step_blocked");
    let other = handle.retry_step("book").await.unwrap_err();
    assert!(other.to_string().contains("these are: 2 (call#1)"), "{other}");
    folder.place().mend("call");
    handle.retry_step("call").by("Ada").reason("new key").await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 7);
    assert_eq!(folder.place().count("call"), 2);
    assert!(guest.attention(10).await.unwrap().is_empty());
    checked(&handle).await;
}

#[tokio::test]
async fn t16_a_guest_is_told_of_a_stuck_rollback_and_retries_or_waives() {
    let folder = Folder::new();
    folder.place().break_it("undo");
    let _owner = Other::owner(&folder);
    let guest = folder.connect().await;
    let retried = guest.start(job, "a", Plan::Fails).await.unwrap();
    let waived = guest.start(job, "b", Plan::Fails).await.unwrap();
    for handle in [&retried, &waived] {
        assert_eq!(handle.result().await.unwrap_err().kind(), ErrorKind::Stuck);
        assert_eq!(handle.status().await.unwrap().status, Status::Stuck);
        let refused = handle.pause().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
    }
    waived.waive_undo("book").by("Ada").reason("by hand").await.unwrap();
    assert_eq!(waived.closed().await.unwrap(), Status::Failed);
    let error = waived.result().await.unwrap_err();
    assert_eq!(error.rollback().unwrap().outcome, RollbackOutcome::Incomplete);
    folder.place().mend("undo");
    retried.retry_undo("book").by("Ada").await.unwrap();
    let error = retried.result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed, "what was acknowledged is waited for");
    assert_eq!(error.rollback().unwrap().outcome, RollbackOutcome::Complete);
    assert_eq!(folder.place().effects(), ["book", "book", "undo book"]);
    assert!(guest.attention(10).await.unwrap().is_empty());
    checked(&retried).await;
    checked(&waived).await;
}

#[tokio::test]
async fn t16_a_guest_undoes_deletes_and_does_over_what_is_closed() {
    let folder = Folder::new();
    let _owner = Other::owner(&folder);
    let guest = folder.connect().await;
    let open = guest.start(job, "open", Plan::Takes(1)).await.unwrap();
    assert_eq!(open.delete().await.unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(open.restart().await.err().unwrap().kind(), ErrorKind::Refused);
    let first = guest.start(job, "a", Plan::Returns(5)).await.unwrap();
    assert_eq!(first.result().await.unwrap(), 5);

    let answer = first.rollback().by("Ada").request_id("r").await.unwrap();
    assert!(answer.changed);
    assert_eq!(first.result().await.unwrap_err().kind(), ErrorKind::RolledBack);
    assert_eq!(first.output().await.unwrap(), Some(5));
    assert_eq!(first.rollback().by("Ada").request_id("r").await.unwrap(), answer);
    assert_eq!(folder.place().effects().last().unwrap(), "undo book");

    let again = first.restart().by("Ada").request_id("again").await.unwrap();
    assert_eq!(again.result().await.unwrap(), 5);
    let repeated = first.restart().by("Ada").request_id("again").await.unwrap();
    assert_eq!(repeated.run_id(), again.run_id());
    assert_eq!(first.restart().await.err().unwrap().kind(), ErrorKind::Refused);

    for handle in [&again, &first] {
        // Its owner may still have it on its list.
        eventually("it is deleted", async || match handle.delete().by("Ada").await {
            Ok(()) => true,
            Err(error) => {
                assert!(error.to_string().contains("try again"), "{error}");
                false
            }
        })
        .await;
        assert_eq!(handle.status().await.unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert_eq!(guest.list(10).await.unwrap().len(), 1, "the open one");
    assert!(guest.start(job, "a", Plan::Returns(6)).await.unwrap().created(), "the id is free");
}

#[tokio::test]
async fn t16_what_a_kill_left_is_waived_from_outside_and_then_deleted() {
    let folder = Folder::new();
    let _owner = Other::owner(&folder);
    let guest = folder.connect().await;
    let handle = guest.start(job, "a", Plan::Takes(1)).await.unwrap();
    until(&handle, Status::Suspended).await;
    handle.kill().by("Ada").await.unwrap();
    assert_eq!(handle.closed().await.unwrap(), Status::Terminated);
    let refused = handle.delete().await.unwrap_err();
    assert!(refused.to_string().contains("waive them"), "{refused}");
    handle.waive_undo("book").by("Ada").reason("by phone").await.unwrap();
    eventually("it is settled", async || guest.attention(10).await.unwrap().is_empty()).await;
    checked(&handle).await;
    eventually("it is deleted", async || handle.delete().await.is_ok()).await;
}
