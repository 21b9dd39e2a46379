//! A workflow function under way: polled in groups, and kept apart from everything else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::limits::POLLS_PER_GROUP_MAX;
use backstitch_core::payload::Payload;
use backstitch_core::session::{GroupStart, Report};

use crate::desk::{Closures, Collected, Desk};
use crate::program::BoxFuture;

/// The future of a workflow function, with its desk.
pub(crate) struct RunningCode {
    pub desk: Desk,
    future: Option<BoxFuture<Result<Payload, Failure>>>,
}

/// What came of polling the code.
pub(crate) struct Played {
    pub report: Report,
    /// Where the asks of the report stand on the desk, and their closures.
    pub closures: Vec<Closures>,
    /// It woke itself more often than anything sensible does.
    pub spins: bool,
}

impl RunningCode {
    pub fn new(desk: Desk, future: BoxFuture<Result<Payload, Failure>>) -> RunningCode {
        // Within tokio's budget, channels between branches would stop being ready in the middle of
        // a group, and the code would wake itself until the budget of the driver's task is renewed.
        let future = Box::pin(tokio::task::unconstrained(future));
        RunningCode { desk, future: Some(future) }
    }

    /// Plays one group: shows, polls until the code is quiet, collects.
    pub fn play(&mut self, group: &GroupStart) -> Played {
        self.desk.begin_group(group.group, group.now_us, group.patches.clone());
        if let Some((ord, outcome)) = &group.show {
            let desk = self.desk.clone();
            desk.polling(|| desk.show(*ord, outcome.clone()));
        }
        self.poll()
    }

    /// Polls the code while it wakes itself, without showing anything.
    pub fn poll(&mut self) -> Played {
        let mut ended = None;
        let mut polls = 0;
        if self.future.is_some() {
            self.desk.take_woken();
            loop {
                polls += 1;
                if let Poll::Ready(result) = self.poll_once() {
                    ended = Some(result);
                    break;
                }
                if !self.desk.take_woken() || polls >= POLLS_PER_GROUP_MAX {
                    break;
                }
            }
        }
        let open_at_end = if ended.is_some() { self.desk.open_ordinals() } else { Vec::new() };
        let Collected { mut asks, mut closures, mut drops, notes, patched, undecodable } =
            self.desk.collect();
        drops.extend(open_at_end);
        if ended.is_some() {
            // What is asked for in the last poll is dropped with the function: it never existed.
            asks.clear();
            closures.clear();
        }
        let report = Report { asks, drops, ended, notes, patched, undecodable };
        Played { report, closures, spins: polls >= POLLS_PER_GROUP_MAX }
    }

    /// Whether the function has returned or panicked.
    pub fn has_ended(&self) -> bool {
        self.future.is_none()
    }

    fn poll_once(&mut self) -> Poll<Result<Payload, Failure>> {
        let waker = self.desk.waker();
        let mut cx = Context::from_waker(&waker);
        let slot = &mut self.future;
        let polled = self.desk.polling(|| {
            catch_unwind(AssertUnwindSafe(|| {
                let future = slot.as_mut().expect("only a future that has not ended is polled");
                let polled = future.as_mut().poll(&mut cx);
                if polled.is_ready() {
                    // What the function still holds is dropped as part of its last poll.
                    *slot = None;
                }
                polled
            }))
        });
        match polled {
            Ok(polled) => polled,
            Err(panic) => {
                let desk = self.desk.clone();
                desk.polling(|| self.drop_future());
                Poll::Ready(Err(panicked("the workflow function", panic)))
            }
        }
    }

    fn drop_future(&mut self) {
        let future = self.future.take();
        if catch_unwind(AssertUnwindSafe(|| drop(future))).is_err() {
            tracing::warn!("a workflow function panicked while it was dropped");
        }
    }
}

impl Drop for RunningCode {
    fn drop(&mut self) {
        // Not as part of a poll: that the engine drops the code means nothing to its steps.
        self.drop_future();
    }
}

/// The failure that a panic stands for. A panic that carries a failure is that failure.
pub(crate) fn panicked(what: &str, panic: Box<dyn Any + Send>) -> Failure {
    let panic = match panic.downcast::<Failure>() {
        Ok(failure) => return *failure,
        Err(panic) => panic,
    };
    let text = match (panic.downcast_ref::<&'static str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "a panic without a text".to_owned(),
    };
    Failure::new(Class::Transient, Origin::Panic, "Panic", format!("{what} panicked: {text}"))
}
