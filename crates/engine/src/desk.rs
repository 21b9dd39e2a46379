//! The desk between a workflow's code and its driver: where the code's futures hand in what they
//! ask for, and where the driver lays out what they are shown.
//!
//! **Invariants:** what is visible never changes inside a poll. No waker is woken or dropped under
//! the lock.

mod driver_side;
mod notes;
mod waker;

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use backstitch_core::failure::{Class, Failure, Origin};
use backstitch_core::id::{Key, KeyKind, Ordinal, draw, name_defect};
use backstitch_core::session::{AskedKind, Note, Outcome, Patches};

pub(crate) use self::driver_side::{Closures, Collected};
use self::waker::RootWaker;
use crate::program::{Body, ExecutionFacts, Handler};

thread_local! {
    /// The desk whose code is being polled on this thread; 0 for none.
    static POLLING: Cell<usize> = const { Cell::new(0) };
    /// Whose future is being polled on this thread besides.
    static INSIDE: Cell<Inside> = const { Cell::new(Inside::Neither) };
}

/// Whose future a thread is polling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    Neither,
    Body,
    Undo,
}

/// Runs `poll` as part of a body or an undo, so that a step built in it is refused by name.
pub(crate) fn inside<T>(what: Inside, poll: impl FnOnce() -> T) -> T {
    let before = INSIDE.replace(what);
    let polled = poll();
    INSIDE.set(before);
    polled
}

/// Handed out when a thing is built; names its place on the desk.
#[derive(Debug)]
pub struct Ticket(usize);

/// What is handed in at the first poll.
pub struct Request {
    /// What is asked for.
    pub what: AskedKind,
    /// The body, for a step.
    pub body: Option<Body>,
    /// The undo handler, for a step that has one.
    pub undo: Option<Handler>,
}

/// Shared by a workflow's code and its driver. Cheap to clone.
#[derive(Clone)]
pub struct Desk(Arc<Shared>);

struct Shared {
    execution: Arc<ExecutionFacts>,
    seed: u64,
    inner: Mutex<Inner>,
    root: Arc<RootWaker>,
}

struct Inner {
    now_us: i64,
    group: u64,
    draws: u64,
    /// Where the names that were used so far stand in `name_uses`.
    names: HashMap<(Vec<String>, i32, String), usize>,
    name_uses: Vec<NameUse>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    by_ord: BTreeMap<Ordinal, usize>,
    /// Things asked for whose outcome is not visible yet.
    open: usize,
    /// First polled in this group, in order.
    asked: Vec<usize>,
    /// Dropped in this group.
    dropped: Vec<Ordinal>,
    undecodable: Option<String>,
    last_place: Option<&'static Location<'static>>,
    patches: Patches,
    /// Which way the code went at its patches: the first answer stands for the whole run.
    ways: HashMap<String, Way>,
    /// Patches whose new way was taken for the first time in this group.
    patched: Vec<String>,
    /// Said in this group, in order.
    notes: Vec<Note>,
}

impl Default for Inner {
    fn default() -> Inner {
        Inner {
            now_us: 0,
            group: 0,
            draws: 0,
            names: HashMap::new(),
            name_uses: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            by_ord: BTreeMap::new(),
            open: 0,
            asked: Vec::new(),
            dropped: Vec::new(),
            undecodable: None,
            last_place: None,
            patches: Patches::Live,
            ways: HashMap::new(),
            patched: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Which way the code goes at a place that was patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    New,
    Old,
}

/// A name of one kind in one scope.
#[derive(Default)]
struct NameUse {
    /// How many things of this name were built.
    count: u32,
    /// In which group one of them was first polled last, and where that one was built.
    started: Option<(u64, &'static Location<'static>)>,
}

struct Slot {
    key: Key,
    /// Its name in `name_uses`.
    name: usize,
    place: &'static Location<'static>,
    state: SlotState,
    ord: Option<Ordinal>,
    waker: Option<Waker>,
}

enum SlotState {
    Free,
    Built,
    Asked(Box<Request>),
    Open,
    Visible(Outcome),
}

impl Desk {
    pub(crate) fn new(
        execution: Arc<ExecutionFacts>,
        seed: u64,
        foreign: Box<dyn Fn() + Send + Sync>,
    ) -> Desk {
        let root = Arc::new(RootWaker {
            desk: AtomicUsize::new(0),
            woken: AtomicBool::new(false),
            foreign_told: AtomicBool::new(false),
            foreign,
        });
        let desk = Desk(Arc::new(Shared { execution, seed, inner: Mutex::default(), root }));
        desk.0.root.desk.store(desk.identity(), Ordering::SeqCst);
        desk
    }

    fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().expect("the desk's lock is held over no foreign code")
    }

    /// Whether the caller is the workflow's own code, being polled.
    fn is_polling(&self) -> bool {
        POLLING.get() == self.identity() && INSIDE.get() == Inside::Neither
    }

    /// The execution whose code this is.
    pub fn execution(&self) -> &Arc<ExecutionFacts> {
        &self.0.execution
    }

    /// The time that the code sees throughout a turn, microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.lock().now_us
    }

    /// The next random number: draw k of group g comes from the seed, g and k.
    ///
    /// # Panics
    /// With a permanent failure when the caller is not the workflow's own code: its draws would
    /// shift those of the code.
    #[track_caller]
    pub fn draw(&self) -> u64 {
        self.must_be_polling("a random number", Location::caller());
        let mut inner = self.lock();
        let k = inner.draws;
        inner.draws += 1;
        draw(self.0.seed, inner.group, k)
    }

    /// Takes the key of a thing that is being built.
    ///
    /// # Errors
    /// A permanent failure for the code: a bad name; built outside of the workflow's own code; or,
    /// for a step, built after one of the same name was started in the same group, when the order
    /// in which branches are polled would decide which is which.
    pub fn build(
        &self,
        scope: &[String],
        kind: KeyKind,
        name: &str,
        place: &'static Location<'static>,
    ) -> Result<Ticket, Failure> {
        let what = match kind {
            KeyKind::Step => "step name",
            KeyKind::Timer => "name of the sleep",
            KeyKind::Wait => "name of the wait",
        };
        if let Some(defect) = name_defect(what, name) {
            return Err(refused("BadName", format!("{defect} ({place})")));
        }
        if !self.is_polling() {
            return Err(self.built_elsewhere(name, place));
        }
        let mut guard = self.lock();
        let inner = &mut *guard;
        let in_use = inner.name_uses.len();
        let index =
            *inner.names.entry((scope.to_vec(), kind as i32, name.to_owned())).or_insert(in_use);
        if index == in_use {
            inner.name_uses.push(NameUse::default());
        }
        let name_use = &mut inner.name_uses[index];
        if kind != KeyKind::Timer
            && let Some((group, first)) = name_use.started
            && group == inner.group
        {
            return Err(refused(
                "AmbiguousStep",
                format!(
                    "{name:?} is built at {place} after one of the same name, built at \
                     {first}, was started in the same turn; which is which would depend on the \
                     order of polls. Build both before awaiting either, or give each branch a \
                     context of its own with ctx.branch(…)"
                ),
            ));
        }
        name_use.count += 1;
        let count = name_use.count;
        let key = Key { scope: scope.to_vec(), kind: kind as i32, name: name.to_owned(), count };
        let state = SlotState::Built;
        let slot = Slot { key, name: index, place, state, ord: None, waker: None };
        let index = match inner.free.pop() {
            Some(index) => {
                inner.slots[index] = slot;
                index
            }
            None => {
                inner.slots.push(slot);
                inner.slots.len() - 1
            }
        };
        Ok(Ticket(index))
    }

    fn built_elsewhere(&self, name: &str, place: &Location<'_>) -> Failure {
        match INSIDE.get() {
            Inside::Body => refused(
                "NestedStep",
                format!(
                    "{name:?} (at {place}) is used inside the body of a step; a body is one unit \
                     of work. Build it in the workflow function, before or after the step"
                ),
            ),
            Inside::Undo => refused(
                "StepInUndo",
                format!(
                    "{name:?} (at {place}) is used inside an undo; an undo is one unit of work. Do \
                     the work in the handler itself"
                ),
            ),
            Inside::Neither => refused(
                "StepElsewhere",
                format!(
                    "{name:?} (at {place}) is used outside of the workflow's own code (in a spawned \
                     task or a thread); build and await it in the workflow function"
                ),
            ),
        }
    }

    /// Polls a thing that was built. At the first poll `request` is handed in.
    ///
    /// # Errors
    /// A permanent failure when it is polled outside of the workflow's own code.
    pub fn poll(
        &self,
        ticket: &Ticket,
        cx: &mut Context<'_>,
        request: impl FnOnce(i64) -> Request,
    ) -> Poll<Result<Outcome, Failure>> {
        let mut guard = self.lock();
        if !self.is_polling() {
            let slot = &guard.slots[ticket.0];
            return Poll::Ready(Err(self.built_elsewhere(&slot.key.name, slot.place)));
        }
        let inner = &mut *guard;
        let now_us = inner.now_us;
        let slot = &mut inner.slots[ticket.0];
        inner.last_place = Some(slot.place);
        let polled = match std::mem::replace(&mut slot.state, SlotState::Open) {
            SlotState::Built => {
                slot.state = SlotState::Asked(Box::new(request(now_us)));
                inner.asked.push(ticket.0);
                let started = &mut inner.name_uses[slot.name].started;
                if started.is_none_or(|(group, _)| group != inner.group) {
                    *started = Some((inner.group, slot.place));
                }
                Poll::Pending
            }
            SlotState::Visible(outcome) => {
                let ord = slot.ord.take().expect("what is visible has an ordinal");
                inner.by_ord.remove(&ord);
                Poll::Ready(Ok(outcome))
            }
            state @ (SlotState::Asked(_) | SlotState::Open | SlotState::Free) => {
                slot.state = state;
                Poll::Pending
            }
        };
        let mut old = None;
        if polled.is_pending() && !slot.waker.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
            old = slot.waker.replace(cx.waker().clone());
        }
        drop(guard);
        drop(old);
        polled
    }

    /// The code lets go of a thing, finished or not.
    pub fn release(&self, ticket: &Ticket) {
        let mut guard = self.lock();
        let inner = &mut *guard;
        let slot = &mut inner.slots[ticket.0];
        let kind = slot.key.kind();
        let state = std::mem::replace(&mut slot.state, SlotState::Free);
        let (ord, waker) = (slot.ord.take(), slot.waker.take());
        match &state {
            SlotState::Asked(_) => inner.asked.retain(|asked| *asked != ticket.0),
            SlotState::Open | SlotState::Visible(_) | SlotState::Built | SlotState::Free => {}
        }
        if let Some(ord) = ord {
            inner.by_ord.remove(&ord);
            inner.open -= usize::from(matches!(state, SlotState::Open));
            // That the engine drops the code means nothing to its steps.
            if POLLING.get() == self.identity() && is_unread(kind, &state) {
                inner.dropped.push(ord);
            }
        }
        inner.free.push(ticket.0);
        drop(guard);
        drop((state, waker));
    }

    /// A recorded outcome did not decode as the type that the code asks for.
    pub fn undecodable(&self, what: String) {
        self.lock().undecodable.get_or_insert(what);
    }
}

/// Whether something that the code asked for is dropped when the code lets go of it: it never took
/// the outcome. A step whose outcome was shown to a future that nobody polled is dropped as well,
/// since nobody knows of its effect (R13), and an event that was shown so is there for another wait;
/// a sleep that is over is only over.
fn is_unread(kind: KeyKind, state: &SlotState) -> bool {
    match (state, kind) {
        (SlotState::Open, _) | (SlotState::Visible(_), KeyKind::Step) => true,
        (SlotState::Visible(Outcome::Event(_)), KeyKind::Wait) => true,
        (SlotState::Visible(_), KeyKind::Timer | KeyKind::Wait) => false,
        (SlotState::Free | SlotState::Built | SlotState::Asked(_), _) => false,
    }
}

fn refused(type_name: &str, message: String) -> Failure {
    Failure::new(Class::Permanent, Origin::Engine, type_name, message)
}
