//! The driver's side of the desk.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use backstitch_core::id::Ordinal;
use backstitch_core::session::{Asked, Note, Outcome, Patches};

use super::{Desk, POLLING, SlotState, is_unread};
use crate::program::{Body, Handler};

/// A place on the desk, with the body and the undo of what stands there.
pub(crate) type Closures = (usize, Option<Body>, Option<Handler>);

/// What the driver takes off the desk after a group.
#[derive(Default)]
pub(crate) struct Collected {
    pub asks: Vec<Asked>,
    /// Where each of `asks` stands on the desk, and its closures.
    pub closures: Vec<Closures>,
    pub drops: Vec<Ordinal>,
    pub notes: Vec<Note>,
    pub patched: Vec<String>,
    pub undecodable: Option<String>,
}

impl Desk {
    pub(crate) fn begin_group(&self, group: u64, now_us: i64, patches: Patches) {
        let mut inner = self.lock();
        inner.group = group;
        inner.draws = 0;
        inner.now_us = now_us;
        inner.patches = patches;
    }

    /// Makes an outcome visible and wakes whoever waits for it, and nobody else.
    pub(crate) fn show(&self, ord: Ordinal, outcome: Outcome) {
        let mut inner = self.lock();
        let Some(index) = inner.by_ord.get(&ord).copied() else { return };
        let slot = &mut inner.slots[index];
        slot.state = SlotState::Visible(outcome);
        let waker = slot.waker.take();
        inner.open -= 1;
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn collect(&self) -> Collected {
        let mut inner = self.lock();
        let mut collected = Collected {
            asks: Vec::with_capacity(inner.asked.len()),
            closures: Vec::with_capacity(inner.asked.len()),
            drops: std::mem::take(&mut inner.dropped),
            notes: std::mem::take(&mut inner.notes),
            patched: std::mem::take(&mut inner.patched),
            undecodable: inner.undecodable.take(),
        };
        for index in std::mem::take(&mut inner.asked) {
            let slot = &mut inner.slots[index];
            let SlotState::Asked(request) = std::mem::replace(&mut slot.state, SlotState::Open)
            else {
                unreachable!("what stands in the list was asked for");
            };
            let place = slot.place.to_string();
            collected.asks.push(Asked { key: slot.key.clone(), place, what: request.what });
            collected.closures.push((index, request.body, request.undo));
        }
        collected
    }

    pub(crate) fn assign(&self, index: usize, ord: Ordinal) {
        let mut inner = self.lock();
        inner.slots[index].ord = Some(ord);
        inner.by_ord.insert(ord, index);
        inner.open += 1;
    }

    /// Everything that is still open, for a function that came to its end.
    pub(crate) fn open_ordinals(&self) -> Vec<Ordinal> {
        let inner = self.lock();
        let unread = |index: usize| {
            let slot = &inner.slots[index];
            is_unread(slot.key.kind(), &slot.state)
        };
        let open = inner.by_ord.iter().filter(|(_, index)| unread(**index));
        open.map(|(ord, _)| *ord).collect()
    }

    /// Whether the code waits for nothing that the engine knows.
    pub(crate) fn is_quiet(&self) -> bool {
        self.lock().open == 0
    }

    /// Where the code was last seen.
    pub(crate) fn last_place(&self) -> String {
        let place = self.lock().last_place;
        place.map_or_else(|| "before its first step".to_owned(), |place| format!("after {place}"))
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker::from(self.0.root.clone())
    }

    /// Whether somebody may hold the code's waker who is not waiting for one of the things on this
    /// desk: a combinator between them, or something that the engine does not know.
    pub(crate) fn may_be_woken_by_others(&self) -> bool {
        let root = self.waker();
        let inner = self.lock();
        let wakers = inner.slots.iter().filter_map(|slot| slot.waker.as_ref());
        // By the address of what is woken; the table of functions beside it may exist twice.
        let ours = wakers.filter(|waker| waker.data() == root.data()).count();
        // The desk itself holds one, and `root` is one.
        Arc::strong_count(&self.0.root) > ours + 2
    }

    /// Whether the code woke itself since the last call.
    pub(crate) fn take_woken(&self) -> bool {
        self.0.root.woken.swap(false, Ordering::SeqCst)
    }

    /// Listens for the next wake from outside again.
    pub(crate) fn listen(&self) {
        self.0.root.foreign_told.store(false, Ordering::SeqCst);
    }

    /// Runs `poll` as the workflow's own code.
    pub(crate) fn polling<T>(&self, poll: impl FnOnce() -> T) -> T {
        let before = POLLING.replace(self.identity());
        let polled = poll();
        POLLING.set(before);
        polled
    }
}
