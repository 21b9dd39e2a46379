//! Watching over a world while it lives: it must come to rest, and nothing in it may panic by itself.
//!
//! A world is bounded in ticks; but an engine with a bug can go round in circles within one tick, and
//! then nobody outside of it has a turn any more. So whatever goes round has to pass here: who looks
//! at the clock or asks the disk does a piece of work, and a world has only so much of it.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

/// Pieces of work in one world. The busiest of 40,000 worlds needed 13,430 of them.
pub(crate) const WORK_MAX: u64 = 100_000;

thread_local! {
    /// Of the world that lives on this thread, if one does.
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Watch {
    work: u64,
    panics: Vec<String>,
}

/// Ends a world that does not come to rest. Not by `panic!`: nobody is to be told on the terminal.
struct TooMuch;

/// Lets a world live on this thread, and gives what was wrong with that as such: sentences that begin
/// with what they are about; and the work that it was.
///
/// A panic in it is silent and ends nothing but the task in which it happens. Bodies that panic by
/// order do so by `resume_unwind`, and do not count.
pub(crate) fn over(live: impl FnOnce()) -> (Vec<String>, u64) {
    keep_panics_quiet();
    WATCH.set(Some(Watch::default()));
    let lived = catch_unwind(AssertUnwindSafe(live));
    let watch = WATCH.take().expect("set above");
    let mut wrong: Vec<String> =
        watch.panics.into_iter().map(|panic| format!("panic: {panic}")).collect();
    if watch.work > WORK_MAX {
        wrong.push(format!(
            "liveness: the world does not come to rest in {WORK_MAX} pieces of work"
        ));
    } else if lived.is_err() && wrong.is_empty() {
        wrong.push("panic: the simulated world ended in a panic".to_owned());
    }
    (wrong, watch.work)
}

/// A piece of work is done. Does not return when it was one too many: what goes round in circles is
/// torn out of them, and so is the world after it.
pub(crate) fn work() {
    let too_much = WATCH.with_borrow_mut(|watch| {
        watch.as_mut().is_some_and(|watch| {
            watch.work += 1;
            watch.work > WORK_MAX
        })
    });
    if too_much && !std::thread::panicking() {
        resume_unwind(Box::new(TooMuch));
    }
}

/// Whether something in the world panicked. There is nothing more to find out in it: a run that nobody
/// drives any more would only be waited for.
pub(crate) fn has_panicked() -> bool {
    WATCH.with_borrow(|watch| watch.as_ref().is_some_and(|watch| !watch.panics.is_empty()))
}

/// A backtrace for each panic of an engine with a bug takes longer than the world.
fn keep_panics_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let noted = WATCH.with_borrow_mut(|watch| match watch {
                Some(watch) => {
                    let place = panic.location().map(ToString::to_string).unwrap_or_default();
                    let words = panic.payload_as_str().unwrap_or("without a word");
                    watch.panics.push(format!("{words} ({place})"));
                    true
                }
                None => false,
            });
            if !noted {
                usual(panic);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_that_goes_round_in_circles_is_ended_and_named() {
        let (wrong, _) = over(|| {
            loop {
                // As the owner of a run does, and is torn out of it.
                let _ = catch_unwind(|| {
                    loop {
                        work();
                    }
                });
                work();
            }
        });
        assert!(matches!(wrong.as_slice(), [why] if why.starts_with("liveness:")), "{wrong:?}");
    }

    #[test]
    fn a_panic_that_somebody_catches_is_told_all_the_same_and_one_by_order_is_not() {
        let caught = || drop(catch_unwind(|| panic!("an illegal row")));
        let ordered = || drop(catch_unwind(|| resume_unwind(Box::new("by order"))));
        assert!(matches!(over(caught).0.as_slice(), [why] if why.contains("an illegal row")));
        assert!(over(ordered).0.is_empty());
        assert_eq!(over(work), (Vec::new(), 1));
    }
}
