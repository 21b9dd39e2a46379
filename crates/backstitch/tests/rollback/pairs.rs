//! Two things in one moment, in both orders, with and without a crash right behind them.

use std::time::Duration;

use backstitch::{Ctx, ErrorKind, Handle, Result, Status, join, workflow};

use crate::stage::{Gates, Stage, booking, checked, gated, refusal, undone, undos};
use crate::world::{Effects, events, eventually};

/// Its body is held at a gate, beside it it sleeps.
#[workflow]
async fn two_waits(ctx: Ctx, (): ()) -> Result<()> {
    let (a, slept) = join!(gated(&ctx, "a"), ctx.sleep("1h"));
    a?;
    slept?;
    booking(&ctx, "b").await.map(drop)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happens {
    Cancel,
    Terminate,
    Kill,
    Pause,
    Completion,
    Timer,
}

const ALL: [Happens; 6] = [
    Happens::Cancel,
    Happens::Terminate,
    Happens::Kill,
    Happens::Pause,
    Happens::Completion,
    Happens::Timer,
];

impl Happens {
    /// Whether it was accepted.
    async fn happen(self, stage: &Stage, handle: &Handle<()>) -> bool {
        let sent = match self {
            Happens::Cancel => handle.cancel().await,
            Happens::Terminate => handle.terminate().await,
            Happens::Kill => handle.kill().by("ops").await,
            Happens::Pause => handle.pause().await,
            Happens::Completion => {
                stage.gates.open("a");
                return true;
            }
            Happens::Timer => {
                stage.world.advance(Duration::from_secs(3600));
                return true;
            }
        };
        if let Err(error) = &sent {
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        }
        sent.is_ok()
    }

    fn decides(self) -> Option<Status> {
        match self {
            Happens::Cancel => Some(Status::Cancelled),
            Happens::Terminate | Happens::Kill => Some(Status::Terminated),
            Happens::Pause | Happens::Completion | Happens::Timer => None,
        }
    }
}

async fn in_one_moment(first: Happens, second: Happens, crash: bool) {
    let (what, stage) = (format!("{first:?}, {second:?}, crash: {crash}"), Stage::new());
    let app = stage.open(|b| b.register(two_waits)).await;
    let mut handle = app.start(two_waits, "t", ()).await.unwrap();
    stage.sees("begin a").await;
    let (one, two) = tokio::join!(first.happen(&stage, &handle), second.happen(&stage, &handle));
    assert!(one, "{what}");
    if crash {
        let app = stage.open(|b| b.register(two_waits)).await;
        handle = app.handle("t").await.unwrap();
    }
    // What has not happened yet happens now.
    stage.gates.open("a");
    stage.world.advance(Duration::from_secs(3600));
    eventually(&what, async || {
        let status = handle.status().await.unwrap();
        if status.status == Status::Paused && status.run.pause.is_some() {
            let _ = handle.resume().await;
        }
        status.status.is_closed()
    })
    .await;
    let status = handle.status().await.unwrap().status;
    let killed = first == Happens::Kill || (second == Happens::Kill && two);
    let decided = [first.decides(), second.decides().filter(|_| two)].into_iter().flatten().next();
    let wanted = if killed { Status::Terminated } else { decided.unwrap_or(Status::Succeeded) };
    assert_eq!(status, wanted, "{what}: {:?}", events(&handle).await);
    let back = undos(&stage.effects()).len();
    match (killed, status) {
        (true, _) | (_, Status::Succeeded) => assert_eq!(back, 0, "{what}"),
        (false, _) => assert_eq!(back, 1, "{what}: {:?}", stage.effects()),
    }
    checked(&handle).await;
}

#[tokio::test]
async fn t4_each_pair_in_one_moment_is_decided_once_by_its_order() {
    for first in ALL {
        for second in ALL {
            in_one_moment(first, second, false).await;
        }
    }
}

#[tokio::test]
async fn t4_each_pair_survives_a_crash_right_behind_it() {
    for first in ALL {
        for second in ALL {
            in_one_moment(first, second, true).await;
        }
    }
}

/// The undo of b is held at a gate; that of a comes after it.
#[workflow]
async fn held_undo(ctx: Ctx, (): ()) -> Result<()> {
    booking(&ctx, "a").await?;
    ctx.step("b", async |_s| Ok("ticket b".to_owned()))
        .rollback(async |u| {
            u.state::<Effects>().add("undoing b");
            u.state::<Gates>().pass("undo b").await;
            undone(u).await
        })
        .await?;
    refusal(&ctx).await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnTheWayBack {
    Cancel,
    Kill,
    Pause,
    /// The one that has not started.
    WaiveTheOther,
    /// The one that runs comes to its end.
    End,
}

impl OnTheWayBack {
    const ALL: [OnTheWayBack; 5] = [
        OnTheWayBack::Cancel,
        OnTheWayBack::Kill,
        OnTheWayBack::Pause,
        OnTheWayBack::WaiveTheOther,
        OnTheWayBack::End,
    ];

    async fn happen(self, stage: &Stage, handle: &Handle<()>) -> bool {
        let sent = match self {
            OnTheWayBack::Cancel => handle.cancel().await,
            OnTheWayBack::Kill => handle.kill().by("ops").await,
            OnTheWayBack::Pause => handle.pause().await,
            OnTheWayBack::WaiveTheOther => handle.waive_undo("a").by("ops").await,
            OnTheWayBack::End => {
                stage.gates.open("undo b");
                return true;
            }
        };
        sent.is_ok()
    }
}

#[tokio::test]
async fn t4_each_pair_on_the_way_back_loses_no_undo_and_runs_none_twice() {
    for first in OnTheWayBack::ALL {
        for second in OnTheWayBack::ALL {
            let (what, stage) = (format!("{first:?}, {second:?}"), Stage::new());
            let app = stage.open(|b| b.register(held_undo)).await;
            let handle = app.start(held_undo, "t", ()).await.unwrap();
            stage.sees("undoing b").await;
            let (one, two) =
                tokio::join!(first.happen(&stage, &handle), second.happen(&stage, &handle));
            assert!(one, "{what}");
            stage.gates.open("undo b");
            eventually(&what, async || {
                let status = handle.status().await.unwrap().status;
                if status == Status::Paused {
                    let _ = handle.resume().await;
                }
                status.is_closed()
            })
            .await;
            let pair = [first, second];
            let kill = OnTheWayBack::Kill;
            let killed = first == kill || (second == kill && two);
            let wanted = if killed { Status::Terminated } else { Status::Failed };
            assert_eq!(handle.status().await.unwrap().status, wanted, "{what}");
            assert_eq!(stage.world.effects.count("undoing b"), 1, "{what}");
            assert!(stage.world.effects.count("undo b: succeeded") <= 1, "{what}");
            if !killed {
                let waived = pair.contains(&OnTheWayBack::WaiveTheOther)
                    && events(&handle).await.contains(&"UndoWaived");
                let undone = stage.world.effects.count("undo a: succeeded");
                assert_eq!(undone, usize::from(!waived), "{what}");
            }
            checked(&handle).await;
        }
    }
}
