//! The waker under which a workflow's code is polled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Wake;

use super::POLLING;

/// The waker under which the code is polled. A wake during a poll is the code waking itself (a
/// channel between branches); one from anywhere else is something the engine does not know.
pub(super) struct RootWaker {
    pub desk: AtomicUsize,
    pub woken: AtomicBool,
    pub foreign_told: AtomicBool,
    pub foreign: Box<dyn Fn() + Send + Sync>,
}

impl Wake for RootWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if POLLING.get() == self.desk.load(Ordering::SeqCst) {
            self.woken.store(true, Ordering::SeqCst);
        } else if !self.foreign_told.swap(true, Ordering::SeqCst) {
            (self.foreign)();
        }
    }
}
