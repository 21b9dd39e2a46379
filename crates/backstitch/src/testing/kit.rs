//! The engine of a test, whose processes die and whose clock skips.

mod asking;
mod life;
mod waiting;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use backstitch_engine::{Clock, ManualClock};
use backstitch_store::NowUs;
use backstitch_store::memory::MemoryStore;

pub use self::asking::Execution;
pub(super) use self::life::panic_text;
pub(super) use self::waiting::{MOVES_MAX, Rest};
pub(super) use self::waits::{awaited, waits_in_words};

use self::life::{Crash, CrashSide, Live};
use self::waiting::GRACE;
use super::mock::{Act, Mock};
use super::script::{Script, Target};
use crate::duration::IntoDuration;
use crate::error::{Error, ErrorKind};
use crate::open::Builder;
use crate::workflow::Workflow;

/// 2026-01-01T00:00:00Z: where the clock of a kit begins.
const EPOCH_US: i64 = 1_767_225_600_000_000;

type Setup = Box<dyn Fn(Builder) -> Builder + Send>;

/// An engine in memory for one test. Nothing happens in it except during calls of its methods, in
/// one thread, so a test goes the same way each time.
///
/// Its clock stands still until [`TestKit::advance`], or skips what nobody has to wait for
/// ([`TestKit::skip_time`]). Mocks and faults that never took effect make the test fail when the kit
/// is dropped; [`TestKit::verify`] asks earlier.
///
/// Closed executions are kept for ever, however far the clock moves, unless [`TestKit::setup`] or a
/// start says otherwise. Timers of tokio inside of a body are real time, and are waited for; with
/// [`TestKit::skip_time`] a body that waits for longer than two seconds is taken to hang, and the clock
/// moves on, up to its timeout.
///
/// # Examples
/// ```
/// use backstitch::testing::{Mock, TestKit};
/// use backstitch::{Class, Ctx, ErrorKind, workflow};
///
/// #[workflow]
/// async fn trip(ctx: Ctx, days: u32) -> backstitch::Result<String> {
///     let booked = async move |_s| Ok::<_, backstitch::Failure>("F-1".to_owned());
///     let flight = ctx.step("flight", booked).rollback(async move |_u| Ok(())).await?;
///     ctx.sleep(std::time::Duration::from_secs(86_400) * days).await?;
///     ctx.step("hotel", async move |_s| Ok("H-1".to_owned())).await?;
///     Ok(flight)
/// }
///
/// # fn main() -> Result<(), backstitch::Error> {
/// let mut kit = TestKit::new().register(trip).skip_time();
/// kit.mock("hotel", Mock::fails(Class::Permanent));
/// let holiday = kit.start(trip, "holiday", 30)?;
/// let error = kit.result(&holiday).expect_err("the hotel is full");
/// assert_eq!(error.kind(), ErrorKind::Failed);
/// assert_eq!(kit.undone(&holiday)?, ["flight#1"]);
/// # Ok(())
/// # }
/// ```
pub struct TestKit {
    setups: Vec<Setup>,
    clock: ManualClock,
    disk: MemoryStore,
    script: Script,
    time: Time,
    crashes: Vec<Crash>,
    live: Option<Live>,
    processes: u64,
    /// Offered to the store by processes that are dead.
    writes_before: u64,
    /// What landed late and panicked, in words.
    late_panics: Vec<String>,
    /// How long code that waits for something real is waited for.
    grace: Duration,
    /// What a method has said first of what cannot be reached.
    first_error: Option<String>,
}

/// Who moves the clock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    Stands,
    Skips,
}

impl Default for TestKit {
    fn default() -> TestKit {
        TestKit::new()
    }
}

impl TestKit {
    /// An empty store, at midnight (UTC) of 2026-01-01.
    pub fn new() -> TestKit {
        let clock = ManualClock::new(EPOCH_US);
        let now: NowUs = {
            let clock = clock.clone();
            Arc::new(move || clock.now_us())
        };
        TestKit {
            setups: Vec::new(),
            disk: MemoryStore::new(now),
            clock,
            script: Script::default(),
            time: Time::Stands,
            crashes: Vec::new(),
            live: None,
            processes: 0,
            writes_before: 0,
            late_panics: Vec::new(),
            grace: GRACE,
            first_error: None,
        }
    }

    /// Registers a workflow, in each process.
    #[must_use]
    pub fn register<W: Workflow>(self, workflow: W) -> TestKit {
        self.setup(move |builder| builder.register(workflow.clone()))
    }

    /// Gives bodies and undos a value, which they take by its type. Clones of it are to be the same
    /// thing (an `Arc`): each process gets one.
    #[must_use]
    pub fn state<S: Clone + Send + Sync + 'static>(self, state: S) -> TestKit {
        self.setup(move |builder| builder.state(state.clone()))
    }

    /// Whatever else a [`Builder`] can be told, in each process.
    #[must_use]
    pub fn setup(mut self, setup: impl Fn(Builder) -> Builder + Send + 'static) -> TestKit {
        self.setups.push(Box::new(setup));
        self
    }

    /// Lets the clock move to the next instant that an execution waits for, as often as a method
    /// of the kit has nothing else to wait for.
    #[must_use]
    pub fn skip_time(mut self) -> TestKit {
        self.time = Time::Skips;
        self
    }

    /// The time.
    pub fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_microsecond(self.clock.now_us()).unwrap_or(jiff::Timestamp::MAX)
    }

    /// Moves the clock, and lets everything happen that is due by then.
    ///
    /// # Errors
    /// `Invalid` for a text that is no duration.
    pub fn advance(&mut self, by: impl IntoDuration) -> Result<(), Error> {
        let us = by.into_us().map_err(|why| Error::new(ErrorKind::Invalid, why))?;
        self.settle()?;
        let end_us = self.clock.now_us().saturating_add_unsigned(us);
        while let Some(next_us) = self.clock.next_us().filter(|next_us| *next_us <= end_us) {
            self.clock.set(next_us.max(self.clock.now_us()));
            self.settle()?;
        }
        self.clock.set(end_us);
        self.settle()
    }

    /// Has a step do something else instead of its body. `step` is a name, with or without its branches
    /// (`name`, `branch/name`), or a key as it is printed (`name#2`, `branch/name#1`); of several mocks for one step the first goes first, until its
    /// [times](Mock::times) are over.
    pub fn mock(&mut self, step: &str, mock: Mock) {
        self.script.add(Target::Step, step, mock);
    }

    /// Has the undo of a step do something else.
    ///
    /// # Panics
    /// For a mock that returns anything but `()`: an undo returns nothing.
    #[track_caller]
    pub fn mock_undo(&mut self, step: &str, mock: Mock) {
        assert!(
            !mock.act.is_an_output(),
            "the undo of step {step:?} is to be mocked with an output, and an undo returns nothing: \
             give it Mock::output(&()), or mock the step"
        );
        self.script.add(Target::Undo, step, mock);
    }

    /// Kills the process instead of its `n`th write, counted from 1 over all processes of the kit
    /// ([`TestKit::writes`]): starts, rows of journals, verbs and events. Another process goes on.
    ///
    /// # Panics
    /// For 0: there is no such write.
    #[track_caller]
    pub fn crash_before(&mut self, n: u64) {
        self.crash(n, CrashSide::Before);
    }

    /// Kills the process when its `n`th write is durable, and nobody has heard of it.
    ///
    /// # Panics
    /// For 0: there is no such write.
    #[track_caller]
    pub fn crash_after(&mut self, n: u64) {
        self.crash(n, CrashSide::After);
    }

    #[track_caller]
    fn crash(&mut self, write: u64, side: CrashSide) {
        let name = side.name();
        assert!(write > 0, "crash_{name}(0): writes are counted from 1");
        let crash = Crash { write, side, fired: false };
        if let Some(live) = &self.live {
            crash.put_into(&live.plan, self.writes_before);
        }
        self.crashes.push(crash);
    }

    /// Kills the process when the body of this step has had its effect and nothing is recorded; the
    /// next process runs the body again.
    pub fn crash_during(&mut self, step: &str) {
        self.mock(step, Mock::act(Act::Crash, 1));
    }

    /// The same for its undo.
    pub fn crash_during_undo(&mut self, step: &str) {
        self.mock_undo(step, Mock::act(Act::Crash, 1));
    }

    /// Runs the body of a step so many times in all at its next attempt, as after an answer that got
    /// lost. The last time counts.
    ///
    /// # Panics
    /// For less than two times: nothing would be repeated.
    #[track_caller]
    pub fn repeat(&mut self, step: &str, times: u32) {
        assert!(times > 1, "repeat({step:?}, {times}) repeats nothing: give it 2 times or more");
        self.mock(step, Mock::act(Act::Repeat(times), 1));
    }

    /// The same for its undo.
    ///
    /// # Panics
    /// For less than two times: nothing would be repeated.
    #[track_caller]
    pub fn repeat_undo(&mut self, step: &str, times: u32) {
        assert!(times > 1, "repeat_undo({step:?}, {times}) repeats nothing: give it 2 or more");
        self.mock_undo(step, Mock::act(Act::Repeat(times), 1));
    }

    /// Has the next attempt of a step sent off by a worker that then stops for so long that another
    /// process goes on with the execution. The effect of the old attempt lands when the execution
    /// is over: it has the same idempotency key, and is for the other system to refuse.
    pub fn stale_worker(&mut self, step: &str) {
        self.mock(step, Mock::act(Act::Stale, 1));
    }

    /// Kills the process where it stands; the next one goes on.
    ///
    /// # Errors
    /// What [`TestKit::start`] says of a process that cannot begin.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.bury();
        self.settle()
    }

    /// How many changes the processes have offered to the store so far.
    pub fn writes(&self) -> u64 {
        self.writes_before + self.live.as_ref().map_or(0, |live| live.plan.count())
    }

    /// How many processes there were.
    pub fn processes(&self) -> u64 {
        self.processes
    }

    /// Says which mocks and faults never took effect.
    ///
    /// # Errors
    /// `Testing`, with the names of the steps that were attempted.
    pub fn verify(&mut self) -> Result<(), Error> {
        let mut unfired = self.script.unfired();
        let writes = self.writes();
        for crash in self.crashes.iter().filter(|crash| !crash.fired) {
            let (side, write) = (crash.side.name(), crash.write);
            unfired.push(format!(
                "crash_{side}({write}) never took effect; there were {writes} writes"
            ));
        }
        if unfired.is_empty() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Testing, unfired.join("\n")))
    }

    /// Repeated when the kit is dropped with a complaint, which would hide it otherwise.
    fn noted(&mut self, error: Error) -> Error {
        self.first_error.get_or_insert_with(|| error.to_string());
        error
    }

    pub(super) fn script(&self) -> &Script {
        &self.script
    }
}

/// A mock that never took effect tests nothing.
impl Drop for TestKit {
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Err(error) = self.verify()
        {
            match &self.first_error {
                Some(first) => panic!("{first}\n\nand besides: {error}"),
                None => panic!("{error}"),
            }
        }
    }
}
