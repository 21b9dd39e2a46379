//! Waiting for what becomes of a run: in its owner's process by what its driver shows, in a guest's
//! by looking again whenever the store has changed.

use std::sync::Arc;

use backstitch_core::inbox::InboxKind;
use backstitch_core::run::{Outcome, Published, Run};
use backstitch_core::status::Status;
use backstitch_store::{ErrorKind as StoreErrorKind, RunNo};
use tokio::sync::watch;

use crate::driver::INBOX_PAGE;
use crate::engine::{Engine, Role, Shared};
use crate::error::{Error, ErrorKind};
use crate::host::{Awaited, Told};
use crate::live::{Driven, Seen};
use crate::view::RunView;

impl Engine {
    /// Waits until the run is closed or stuck; at once if it is. A run that gets stuck is told as
    /// such to everybody who waits, and may be waited for again.
    ///
    /// # Errors
    /// As [`Engine::view`]; `Stopped` when the engine stops meanwhile.
    pub async fn settled(&self, run: RunNo) -> Result<Arc<Run>, Error> {
        let seen = |seen: &Seen| seen.settled.clone();
        self.wait_for(run, Awaited::Settled, seen, settled).await
    }

    /// What came of the run, as soon as it is closed or stuck.
    ///
    /// # Errors
    /// As [`Engine::settled`].
    pub async fn outcome(&self, run: RunNo) -> Result<Outcome, Error> {
        if let Some(host) = &self.shared.host {
            let told = tokio::select! {
                told = host.outcome(run) => told,
                () = self.shared.stop_asked() => return Err(stopped()),
            };
            return match told {
                Told::Outcome(outcome) => Ok(outcome),
                Told::Nothing { was_there } => {
                    let run = self.look_until(run, Awaited::Settled, was_there, settled).await?;
                    Ok(run.outcome(run.status(true)))
                }
            };
        }
        let run = self.settled(run).await?;
        Ok(run.outcome(run.status(true)))
    }

    /// Waits until the run is closed, however often it gets stuck before.
    ///
    /// # Errors
    /// As [`Engine::settled`].
    pub async fn closed(&self, run: RunNo) -> Result<Arc<Run>, Error> {
        let closed = |run: &Arc<Run>| run.status(true).is_closed();
        let seen = |seen: &Seen| seen.settled.clone().filter(closed);
        let looked = |view: RunView, ahead: Ahead| {
            Some(view.run).filter(|run| closed(run) && ahead == Ahead::Nothing)
        };
        self.wait_for(run, Awaited::Closed, seen, looked).await
    }

    /// Waits until the code has published a value under `key` in a row after `seq`; at once if it
    /// has. `None` when the run is closed, and has not.
    ///
    /// # Errors
    /// As [`Engine::settled`].
    pub async fn published_after(
        &self,
        run: RunNo,
        key: &str,
        seq: u64,
    ) -> Result<Option<Published>, Error> {
        let newer = |published: &Published| published.seq > seq;
        let seen = |seen: &Seen| match seen.published.get(key).cloned().filter(newer) {
            None => {
                let closed = |run: &Arc<Run>| run.status(true).is_closed();
                seen.settled.as_ref().filter(|run| closed(run)).map(|_| None)
            }
            published => Some(published),
        };
        let looked = |view: RunView, _: Ahead| {
            let closed = view.status().is_closed();
            match view.run.published.get(key).cloned().filter(newer) {
                None if closed => Some(None),
                None => None,
                published => Some(published),
            }
        };
        let awaited = Awaited::Published { key: key.to_owned(), seq };
        self.wait_for(run, awaited, seen, looked).await
    }

    /// Waits until the run looks as `wanted` says; at once if it does.
    ///
    /// # Errors
    /// As [`Engine::view`]; `Stopped` when the engine stops meanwhile.
    pub async fn view_until(
        &self,
        run: RunNo,
        wanted: impl Fn(&RunView) -> bool,
    ) -> Result<RunView, Error> {
        let looked = |view: RunView, _: Ahead| Some(view).filter(&wanted);
        if self.shared.role == Role::Guest {
            return self.look_until(run, Awaited::Row(0), false, looked).await;
        }
        // What is committed while it is looked at stands in the feed.
        let mut feed = self.feed();
        loop {
            if let (Some(found), _) = self.look(run, looked).await? {
                return Ok(found);
            }
            tokio::select! {
                told = feed.next() => drop(told.ok_or_else(stopped)?),
                () = self.shared.stop_asked() => return Err(stopped()),
                () = self.shared.home_gone() => return Err(stopped()),
            }
        }
    }

    async fn wait_for<T>(
        &self,
        run: RunNo,
        awaited: Awaited,
        seen: impl Fn(&Seen) -> Option<T>,
        looked: impl Fn(RunView, Ahead) -> Option<T>,
    ) -> Result<T, Error> {
        match self.shared.role {
            Role::Guest => self.look_until(run, awaited, false, looked).await,
            Role::Owner => self.watch_until(run, seen, looked).await,
        }
    }

    /// What was wanted, if it is there; and the last row that was seen.
    async fn look<T>(
        &self,
        run: RunNo,
        looked: impl Fn(RunView, Ahead) -> Option<T>,
    ) -> Result<(Option<T>, u64), Error> {
        let view = self.view(run).await?;
        let ahead = self.ahead(&view).await?;
        let seq = view.run.seq;
        Ok((looked(view, ahead), seq))
    }

    /// What stands in the inbox of a run that is over, or stuck.
    async fn ahead(&self, view: &RunView) -> Result<Ahead, Error> {
        let opening: &[InboxKind] = match view.status() {
            Status::Succeeded => &[InboxKind::Rollback],
            Status::Stuck => InboxKind::SETTLING,
            Status::Pending
            | Status::Running
            | Status::Suspended
            | Status::Paused
            | Status::Blocked
            | Status::RollingBack
            | Status::Failed
            | Status::Cancelled
            | Status::Terminated => return Ok(Ahead::Nothing),
        };
        let mut number = view.run.inbox_read;
        loop {
            let rows = self.shared.store.inbox(view.info.run, number, INBOX_PAGE).await?;
            let Some(last) = rows.last() else { return Ok(Ahead::Nothing) };
            number = last.number;
            if rows.iter().any(|row| row.changed && opening.contains(&row.kind)) {
                return Ok(Ahead::More);
            }
        }
    }

    /// `was_there` says whether the host has answered before.
    async fn look_until<T>(
        &self,
        run: RunNo,
        mut awaited: Awaited,
        mut was_there: bool,
        looked: impl Fn(RunView, Ahead) -> Option<T>,
    ) -> Result<T, Error> {
        let mut news = self.shared.store.news();
        let mut misses = 0;
        loop {
            news.borrow_and_update();
            match (self.look(run, &looked).await, &self.shared.host) {
                (Ok((Some(found), _)), _) => return Ok(found),
                (Ok((None, seq)), _) => (awaited, was_there) = (awaited.seen(seq), true),
                // Who waits goes on waiting while the host is away.
                (Err(error), Some(_))
                    if is_unavailable(&error) && (was_there || misses < MISSES_MAX) =>
                {
                    misses += 1;
                }
                (Err(error), _) => return Err(error),
            }
            let moved = async {
                match &self.shared.host {
                    Some(host) => {
                        host.wait(run, awaited.clone()).await;
                        Ok(())
                    }
                    None => news.changed().await.map_err(|_| stopped()),
                }
            };
            tokio::select! {
                moved = moved => moved?,
                () = self.shared.stop_asked() => return Err(stopped()),
            }
        }
    }

    async fn watch_until<T>(
        &self,
        run: RunNo,
        seen: impl Fn(&Seen) -> Option<T>,
        looked: impl Fn(RunView, Ahead) -> Option<T>,
    ) -> Result<T, Error> {
        let (mut watched, driven) = Watched::new(&self.shared, run);
        if driven == Driven::No {
            if let (Some(found), _) = self.look(run, &looked).await? {
                return Ok(found);
            }
            if self.shared.is_stopping() {
                return Err(stopped());
            }
            if let Some(why) = self.left_alone(run) {
                return Err(why);
            }
        }
        let found = tokio::select! {
            biased;
            found = watched.seen.wait_for(|now| seen(now).is_some()) => {
                found.ok().map(|now| seen(&now).expect("waited for"))
            }
            () = self.shared.home_gone() => None,
        };
        if let Some(found) = found {
            return Ok(found);
        }
        // Its driver has left it for good: the journal has the last word.
        let (found, _) = self.look(run, &looked).await?;
        found.ok_or_else(|| self.left_alone(run).unwrap_or_else(stopped))
    }
}

/// The run, if it is closed or stuck, and nothing is to come.
fn settled(view: RunView, ahead: Ahead) -> Option<Arc<Run>> {
    let status = view.status();
    let settled = status.is_closed() || status == Status::Stuck;
    (settled && ahead == Ahead::Nothing).then_some(view.run)
}

/// Whether a run that is over, or stuck, goes on by something that was acknowledged and is not
/// carried out yet. Who has the acknowledgement must not be told of the end before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ahead {
    Nothing,
    More,
}

/// A waiter of a run, which leaves nothing behind.
struct Watched<'a> {
    shared: &'a Shared,
    run: RunNo,
    seen: watch::Receiver<Seen>,
}

impl<'a> Watched<'a> {
    fn new(shared: &'a Shared, run: RunNo) -> (Watched<'a>, Driven) {
        let (seen, driven) = shared.live.watch(run);
        (Watched { shared, run, seen }, driven)
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        // The place is given up only when nobody listens any more, so stop listening first.
        self.seen = watch::Sender::default().subscribe();
        self.shared.live.unwatch(self.run);
    }
}

/// So often a host may be away before it was there once: a connection breaks, and another one comes about.
const MISSES_MAX: u32 = 3;

fn is_unavailable(error: &Error) -> bool {
    error.kind() == ErrorKind::Store(StoreErrorKind::Unavailable)
}

pub(crate) fn stopped() -> Error {
    let message = "the engine was stopped (or its tokio runtime ended) before the execution was over; \
                   it goes on when the store is opened again";
    Error::new(ErrorKind::Stopped, message)
}
