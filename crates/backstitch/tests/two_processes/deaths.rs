//! Each side dies, and the other one goes on (P1).

use std::collections::BTreeSet;

use backstitch::{Backstitch, ErrorKind, Status};

use crate::checked;
use crate::job::{Plan, job};
use crate::process::{Folder, Other};
use crate::world::{eventually, until};

/// A store that nobody works on.
async fn left_alone(folder: &Folder) {
    Other::owner(folder).stop();
}

#[tokio::test]
async fn p1_without_an_owner_everything_is_acknowledged_and_waits_for_one() {
    let folder = Folder::new();
    left_alone(&folder).await;
    let guest = folder.connect().await;
    let started = guest.start(job, "started", Plan::Returns(5)).await.unwrap();
    let sent = guest.start(job, "sent", Plan::Takes(2)).await.unwrap();
    let cancelled = guest.start(job, "cancelled", Plan::Returns(5)).await.unwrap();
    let paused = guest.start(job, "paused", Plan::Returns(5)).await.unwrap();
    for value in [1, 2] {
        sent.send_event("part", &value).await.unwrap();
    }
    let answer = cancelled.cancel().by("Ada").request_id("r").await.unwrap();
    paused.pause().await.unwrap();
    sent.set_attributes([("Mood", "calm")]).await.unwrap();
    for handle in [&started, &sent, &cancelled, &paused] {
        assert_eq!(handle.status().await.unwrap().status, Status::Pending);
        assert_eq!(handle.journal().await.unwrap().len(), 1, "nobody has done anything");
    }
    assert_eq!(cancelled.cancel().by("Ada").request_id("r").await.unwrap(), answer);
    assert_eq!(guest.list(10).await.unwrap().len(), 4);
    // Two who wait from now on.
    let waiter = {
        let handle = guest.handle::<u32>("started").await.unwrap();
        tokio::spawn(async move { handle.result().await })
    };
    let _owner = Other::owner(&folder);
    assert_eq!(waiter.await.unwrap().unwrap(), 5);
    assert_eq!(sent.result().await.unwrap(), 3);
    assert_eq!(cancelled.closed().await.unwrap(), Status::Cancelled);
    until(&paused, Status::Paused).await;
    assert_eq!(guest.find("Mood", "calm", 10).await.unwrap().len(), 1);
    assert_eq!(folder.place().count("book"), 2, "neither the cancelled nor the paused one");
    for handle in [&started, &sent, &cancelled, &paused] {
        checked(handle).await;
    }
}

#[tokio::test]
async fn p1_p8_the_owner_dies_after_each_event_and_each_is_taken_once_in_order() {
    const ROUNDS: u32 = 6;
    let folder = Folder::new();
    let mut owner = Other::owner(&folder);
    let guest = folder.connect().await;
    let handle = guest.start(job, "t", Plan::Takes(2 * ROUNDS)).await.unwrap();
    let mut follow = handle.follow::<u32>("parts");
    for round in 0..ROUNDS {
        // The first one is perhaps taken, and the second one hardly.
        for value in [2 * round, 2 * round + 1] {
            handle.send_event("part", &value).id(value.to_string()).await.unwrap();
        }
        owner.kill();
        let again = handle.send_event("part", &(2 * round)).id((2 * round).to_string());
        assert!(!again.await.unwrap().first);
        owner = Other::owner(&folder);
        while follow.next().await.unwrap() != Some(2 * round + 2) {}
    }
    assert_eq!(handle.result().await.unwrap(), (0..2 * ROUNDS).sum::<u32>());
    let run = checked(&handle).await;
    assert_eq!(run.inbox_read, u64::from(2 * ROUNDS));
}

#[tokio::test]
async fn p1_the_owner_dies_after_each_verb_and_each_is_carried_out() {
    let folder = Folder::new();
    let mut owner = Other::owner(&folder);
    let guest = folder.connect().await;
    folder.place().break_it("call");
    let dies = async |owner: &mut Other| {
        owner.kill();
        *owner = Other::owner(&folder);
    };
    // Paused, resumed, retried.
    let handle = guest.start(job, "a", Plan::Calls).await.unwrap();
    dies(&mut owner).await;
    until(&handle, Status::Blocked).await;
    handle.pause().await.unwrap();
    dies(&mut owner).await;
    until(&handle, Status::Paused).await;
    folder.place().mend("call");
    handle.retry_step("call").await.unwrap();
    dies(&mut owner).await;
    until(&handle, Status::Paused).await;
    handle.resume().await.unwrap();
    dies(&mut owner).await;
    assert_eq!(handle.result().await.unwrap(), 7);
    // Undone after success, stuck, waived.
    folder.place().break_it("undo");
    handle.rollback().by("Ada").await.unwrap();
    dies(&mut owner).await;
    until(&handle, Status::Stuck).await;
    handle.waive_undo("book").by("Ada").await.unwrap();
    dies(&mut owner).await;
    assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
    // And attributes of what is closed.
    handle.set_attributes([("Mood", "calm")]).await.unwrap();
    dies(&mut owner).await;
    eventually("it is found", async || guest.find("Mood", "calm", 9).await.unwrap().len() == 1)
        .await;
    checked(&handle).await;
}

#[tokio::test]
async fn p1_who_waits_for_a_result_goes_on_waiting_while_owners_die() {
    let folder = Folder::new();
    let mut owner = Other::owner(&folder);
    let guest = folder.connect().await;
    let handle = guest.start(job, "t", Plan::Takes(1)).await.unwrap();
    let waiter = {
        let handle = guest.handle::<u32>("t").await.unwrap();
        tokio::spawn(async move { (handle.result().await, handle.closed().await) })
    };
    for _ in 0..2 {
        until(&handle, Status::Suspended).await;
        owner.kill();
        owner = Other::owner(&folder);
    }
    assert!(!waiter.is_finished());
    handle.send_event("part", &5).await.unwrap();
    let (result, closed) = waiter.await.unwrap();
    assert_eq!((result.unwrap(), closed.unwrap()), (5, Status::Succeeded));
}

#[tokio::test]
async fn p1_a_guest_that_closes_ends_its_own_waiting_and_nothing_else() {
    let folder = Folder::new();
    let _owner = Other::owner(&folder);
    let guest = folder.connect().await;
    let handle = guest.start(job, "t", Plan::Takes(1)).await.unwrap();
    let waiter = {
        let handle = guest.handle::<u32>("t").await.unwrap();
        tokio::spawn(async move { handle.result().await })
    };
    until(&handle, Status::Suspended).await;
    guest.close().await.unwrap();
    assert_eq!(waiter.await.unwrap().unwrap_err().kind(), ErrorKind::Stopped);
    let late = handle.send_event("part", &1).await.unwrap_err();
    assert!(matches!(late.kind(), ErrorKind::Stopped | ErrorKind::Unavailable), "{late}");
    let guest = folder.connect().await;
    let handle = guest.handle::<u32>("t").await.unwrap();
    handle.send_event("part", &1).await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 1);
}

#[tokio::test]
async fn p1_the_death_of_a_guest_loses_nothing_that_it_was_told() {
    let folder = Folder::new();
    let app = Backstitch::open(folder.url()).state(folder.place()).register(job);
    let app = app.run().await.unwrap();
    let takes = app.start(job, "takes", Plan::Takes(100_000)).await.unwrap();
    let mut told: Vec<String> = Vec::new();
    let mut guest = Other::guest(&folder);
    told.extend(std::iter::from_fn(|| guest.next_word()).take(60));
    guest.kill();
    told.extend(std::iter::from_fn(|| guest.next_word()));
    let words = |what: &str| -> BTreeSet<String> {
        let words = told.iter().filter_map(|word| word.strip_prefix(what));
        words.map(str::to_owned).collect()
    };
    let (started, sent, cancelled) = (words("started "), words("sent "), words("cancelled "));
    assert!(started.len() > 10 && cancelled.len() > 3);
    for id in &started {
        let handle = app.handle::<u32>(id).await.unwrap();
        if cancelled.contains(id) {
            assert_eq!(handle.closed().await.unwrap(), Status::Cancelled);
        } else {
            // The last one may have been cancelled without an answer.
            eventually("it has begun", async || {
                let status = handle.status().await.unwrap().status;
                status == Status::Suspended || status == Status::Cancelled
            })
            .await;
        }
        checked(&handle).await;
    }
    let taken = async || takes.published::<u32>("parts").await.unwrap().unwrap_or(0) as usize;
    eventually("all are taken", async || taken().await >= sent.len()).await;
    assert!(taken().await <= sent.len() + 1, "the last one may have had no answer");
    checked(&takes).await;
    app.shutdown().await.unwrap();
}
