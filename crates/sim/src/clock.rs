//! The clock of one process of a simulated world.
//!
//! It shows two times: that of the wall, which somebody may set, and steady time, which only passes.
//! **Invariant:** whoever waits is woken in the order of instants, and of asking.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use backstitch::engine::Clock;
use backstitch::engine::program::BoxFuture;

use crate::guard;

/// Stands still until the world moves it. Clones are the same clock.
#[derive(Clone)]
pub(crate) struct SimClock(Arc<Mutex<Hands>>);

struct Hands {
    wall: Hand,
    steady: Hand,
    /// Steady as well; nobody moves the clock for them.
    chores: Hand,
    asked: u64,
}

#[derive(Default)]
struct Hand {
    at_us: i64,
    /// By instant, and then in the order in which they asked.
    waiting: BTreeMap<(i64, u64), Option<Waker>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Wall,
    Steady,
    Chores,
}

impl SimClock {
    pub(crate) fn new(now_us: i64) -> SimClock {
        let wall = Hand { at_us: now_us, ..Hand::default() };
        let (steady, chores) = (Hand::default(), Hand::default());
        SimClock(Arc::new(Mutex::new(Hands { wall, steady, chores, asked: 0 })))
    }

    /// So much time passes.
    pub(crate) fn pass(&self, us: i64) {
        self.move_hands(us, us);
    }

    /// Somebody sets it, by so much.
    pub(crate) fn jump(&self, us: i64) {
        self.move_hands(us, 0);
    }

    fn move_hands(&self, wall_us: i64, steady_us: i64) {
        let mut hands = self.lock();
        let mut due = hands.wall.moved(wall_us);
        due.extend(hands.steady.moved(steady_us));
        due.extend(hands.chores.moved(steady_us));
        drop(hands);
        due.into_iter().for_each(Waker::wake);
    }

    /// How long it is until somebody has waited for long enough; chores do not count.
    pub(crate) fn next_in_us(&self) -> Option<i64> {
        let hands = self.lock();
        hands.wall.next_in_us().into_iter().chain(hands.steady.next_in_us()).min()
    }

    fn lock(&self) -> MutexGuard<'_, Hands> {
        self.0.lock().expect("no code runs under this lock")
    }

    fn wait(&self, which: Which, at_us: impl FnOnce(i64) -> i64) -> BoxFuture<()> {
        guard::work();
        let mut hands = self.lock();
        hands.asked += 1;
        let asked = hands.asked;
        let hand = hands.hand(which);
        let place = (at_us(hand.at_us), asked);
        hand.waiting.insert(place, None);
        Box::pin(Waiting { clock: self.clone(), which, place })
    }
}

impl Hands {
    fn hand(&mut self, which: Which) -> &mut Hand {
        match which {
            Which::Wall => &mut self.wall,
            Which::Steady => &mut self.steady,
            Which::Chores => &mut self.chores,
        }
    }
}

impl Hand {
    fn moved(&mut self, by_us: i64) -> Vec<Waker> {
        self.at_us += by_us;
        let at_us = self.at_us;
        let due = self.waiting.iter_mut().take_while(|((due_us, _), _)| *due_us <= at_us);
        due.filter_map(|(_, waker)| waker.take()).collect()
    }

    fn next_in_us(&self) -> Option<i64> {
        self.waiting.first_key_value().map(|((due_us, _), _)| due_us.saturating_sub(self.at_us))
    }
}

/// An instant is waited for as long as this lives.
struct Waiting {
    clock: SimClock,
    which: Which,
    place: (i64, u64),
}

impl Future for Waiting {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut hands = self.clock.lock();
        let hand = hands.hand(self.which);
        if self.place.0 <= hand.at_us {
            hand.waiting.remove(&self.place);
            return Poll::Ready(());
        }
        hand.waiting.insert(self.place, Some(cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.clock.lock().hand(self.which).waiting.remove(&self.place);
    }
}

impl Clock for SimClock {
    fn now_us(&self) -> i64 {
        guard::work();
        self.lock().wall.at_us
    }

    fn sleep_until(&self, at_us: i64) -> BoxFuture<()> {
        self.wait(Which::Wall, |_| at_us)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        let us = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        self.wait(Which::Steady, |now_us| now_us.saturating_add(us))
    }

    fn chore(&self, duration: Duration) -> BoxFuture<()> {
        let us = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        self.wait(Which::Chores, |now_us| now_us.saturating_add(us))
    }
}
