//! One attempt of a body or an undo, in a task of its own.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::session::AttemptEnd;
use backstitch_store::{RunNo, Store};

use crate::clock::Clock;
use crate::code::panicked;
use crate::desk::{Inside, inside};
use crate::program::{BoxFuture, CancelToken};

/// What an attempt needs besides its closure.
pub(crate) struct AttemptOptions {
    pub what: Inside,
    pub store: Arc<dyn Store>,
    pub run: RunNo,
    pub timeout_us: u64,
    pub cancel: CancelToken,
    pub clock: Arc<dyn Clock>,
}

/// Runs one attempt to its end, unless it is no longer wanted before it begins. Its future has been
/// dropped when this returns. `None` if it never began because the run is not held any more (P4): its
/// driver is being given up, and has no use for an end.
pub(crate) async fn run<T>(
    options: AttemptOptions,
    make: impl FnOnce() -> BoxFuture<Result<T, Failure>>,
    output: impl FnOnce(T) -> AttemptEnd,
) -> Option<AttemptEnd> {
    if !options.cancel.begin().await {
        return Some(AttemptEnd::Dropped);
    }
    if !options.store.holds(options.run) {
        return None;
    }
    let name = match options.what {
        Inside::Undo => "the undo",
        Inside::Body | Inside::Neither => "the body",
    };
    let made = inside(options.what, || catch_unwind(AssertUnwindSafe(make)));
    let ended = match made {
        Err(panic) => Err(panicked(name, panic)),
        Ok(future) => {
            let mut race = Race { options, future: Some(future), timeout: None, cancelled: None };
            let ended = std::future::poll_fn(|cx| race.poll(cx)).await;
            match (race.drop_future(), ended) {
                (_, Ended::Returned(result)) => result,
                (_, Ended::Panicked(panic)) => Err(panicked(name, panic)),
                (_, Ended::TimedOut(after_us)) => Err(timed_out(name, after_us)),
                ((), Ended::Cancelled) => return Some(AttemptEnd::Dropped),
            }
        }
    };
    Some(match ended {
        Ok(value) => output(value),
        Err(failure) => AttemptEnd::Failed { failure, delay_us: None },
    })
}

fn timed_out(name: &str, after_us: u64) -> Failure {
    let after = Duration::from_micros(after_us);
    let message = format!("{name} took longer than its timeout of {after:?} and was dropped");
    Failure::new(Class::Transient, Origin::Timeout, "Timeout", message)
}

enum Ended<T> {
    Returned(Result<T, Failure>),
    Panicked(Box<dyn std::any::Any + Send>),
    TimedOut(u64),
    Cancelled,
}

/// The future against its cancellation and its timeout; the future goes first.
struct Race<T> {
    options: AttemptOptions,
    future: Option<BoxFuture<Result<T, Failure>>>,
    timeout: Option<BoxFuture<()>>,
    cancelled: Option<BoxFuture<()>>,
}

impl<T> Race<T> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended<T>> {
        let future = self.future.as_mut().expect("polled until it ends");
        let polled = inside(self.options.what, || {
            catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)))
        });
        match polled {
            Ok(Poll::Ready(result)) => return Poll::Ready(Ended::Returned(result)),
            Err(panic) => return Poll::Ready(Ended::Panicked(panic)),
            Ok(Poll::Pending) => {}
        }
        let cancelled = self.cancelled.get_or_insert_with(|| {
            let token = self.options.cancel.clone();
            Box::pin(async move { token.cancelled().await })
        });
        if Pin::new(cancelled).poll(cx).is_ready() {
            return Poll::Ready(Ended::Cancelled);
        }
        let timeout_us = self.options.timeout_us;
        let timeout = self
            .timeout
            .get_or_insert_with(|| self.options.clock.sleep(Duration::from_micros(timeout_us)));
        if Pin::new(timeout).poll(cx).is_ready() {
            return Poll::Ready(Ended::TimedOut(timeout_us));
        }
        Poll::Pending
    }

    fn drop_future(&mut self) {
        let future = self.future.take();
        let what = self.options.what;
        if inside(what, || catch_unwind(AssertUnwindSafe(|| drop(future)))).is_err() {
            tracing::warn!("the future of an attempt panicked while it was dropped");
        }
    }
}
