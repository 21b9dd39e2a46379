//! What becomes of one attempt: its own code, and what the script does to it.

use std::future::{pending, poll_fn, ready};
use std::task::Poll;

use backstitch_core::failure::Failure;
use backstitch_core::payload::Payload;
use backstitch_engine::program::BoxFuture;

use super::super::mock::{Act, Side};
use super::{AtWork, Held, OnPoll, Own, Script};

impl Script {
    /// The future of the attempt with this number.
    pub(super) fn attempt<T: Send + 'static>(
        &self,
        nth: usize,
        act: Option<Act>,
        own: Own<T>,
        mocked: impl FnOnce(Payload) -> T + Send + 'static,
    ) -> BoxFuture<Result<T, Failure>> {
        let script = self.clone();
        match act {
            None => self.work(nth, &own, None),
            Some(Act::Output(output)) => Box::pin(ready(output.map(mocked))),
            Some(Act::Fail(failure)) => Box::pin(ready(Err(failure))),
            Some(Act::FailAfter(failure)) => Box::pin(async move {
                let _ = script.work(nth, &own, None).await;
                Err(failure)
            }),
            Some(Act::Hang(Side::Before)) => Box::pin(pending()),
            Some(Act::Hang(Side::After)) => Box::pin(async move {
                let _ = script.work(nth, &own, None).await;
                pending().await
            }),
            Some(Act::Panic(text)) => Box::pin(async move { panic!("{text}") }),
            Some(Act::Repeat(times)) => Box::pin(async move {
                for _ in 1..times {
                    let _ = script.work(nth, &own, None).await;
                }
                script.work(nth, &own, None).await
            }),
            Some(Act::Crash) => Box::pin(async move {
                let _ = script.work(nth, &own, None).await;
                script.die().await
            }),
            Some(Act::CrashAt(place)) => self.work(nth, &own, Some(place)),
            Some(Act::Stale) => {
                let key = self.lock().tries[nth].key.to_string();
                let late = self.clone();
                let late = Box::pin(async move { drop(late.work(nth, &own, None).await) });
                self.lock().late.push((key, late));
                Box::pin(async move { script.die().await })
            }
            Some(Act::Hold(Side::Before)) => Box::pin(async move {
                script.hold().await;
                script.work(nth, &own, None).await
            }),
            Some(Act::Hold(Side::After)) => Box::pin(async move {
                let ended = script.work(nth, &own, None).await;
                script.hold().await;
                ended
            }),
            Some(Act::HoldAndCrash) => Box::pin(async move {
                let _ = script.work(nth, &own, None).await;
                script.hold().await;
                script.die().await
            }),
        }
    }

    /// Runs the user's code, counted; the process dies where it waits for the `dies_at`th time.
    fn work<T: Send + 'static>(
        &self,
        nth: usize,
        own: &Own<T>,
        dies_at: Option<u32>,
    ) -> BoxFuture<Result<T, Failure>> {
        let at_work = AtWork::new(self, nth);
        let (script, mut future) = (self.clone(), own());
        let (mut awaits, mut goes_on) = (0, OnPoll::GoOn);
        Box::pin(async move {
            let _at_work = at_work;
            poll_fn(move |cx| {
                if goes_on == OnPoll::Stop {
                    return Poll::Pending;
                }
                let Poll::Ready(ended) = future.as_mut().poll(cx) else {
                    awaits += 1;
                    goes_on = script.awaits(nth, awaits);
                    if dies_at == Some(awaits) {
                        goes_on = OnPoll::Stop;
                        script.die_at_await(nth);
                    }
                    return Poll::Pending;
                };
                script.ended_so(nth, ended.is_ok());
                Poll::Ready(ended)
            })
            .await
        })
    }

    fn die_at_await(&self, nth: usize) {
        let (target, key, plan) = {
            let inner = self.lock();
            let tried = &inner.tries[nth];
            (tried.target, tried.key.clone(), inner.plan.clone())
        };
        self.fired_at_await(target, &key);
        plan.die();
    }

    async fn die<T>(&self) -> T {
        let plan = self.lock().plan.clone();
        plan.die();
        pending().await
    }

    async fn hold(&self) {
        let released = self.0.released.notified();
        tokio::pin!(released);
        released.as_mut().enable();
        {
            let mut inner = self.lock();
            if !inner.holding {
                return;
            }
            inner.held += 1;
        }
        let _held = Held(self.clone());
        released.await;
    }
}
