//! The engine of a test, whose processes die and whose clock skips.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backstitch_core::row::Row;
use backstitch_core::status::Status;
use backstitch_engine::program::Intercept;
use backstitch_engine::{Clock, ManualClock};
use backstitch_store::NowUs;
use backstitch_store::fault::{FaultPlan, FaultStore};
use backstitch_store::memory::MemoryStore;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::mock::{Act, Mock};
use super::process::Process;
use super::reached::Reached;
use super::script::{Script, Target};
use crate::app::App;
use crate::client::Attention;
use crate::duration::IntoDuration;
use crate::error::{Error, ErrorKind};
use crate::handle::{ExecutionStatus, Handle};
use crate::open::{Backstitch, Builder};
use crate::timeline;
use crate::workflow::Workflow;

/// 2026-01-01T00:00:00Z: where the clock of a kit begins.
const EPOCH_US: i64 = 1_767_225_600_000_000;

/// How long code of the user may be seen to wait for something real before it is taken to hang.
const PATIENCE: Duration = Duration::from_millis(100);

/// Longer than the body of a step in a test takes.
const HANG: Duration = Duration::from_secs(30);

/// Moves of the clock to the next instant that one call makes at most: a workflow that renews each
/// minute for two months.
const MOVES_MAX: u32 = 100_000;

type Setup = Box<dyn Fn(Builder) -> Builder + Send>;

/// An engine in memory for one test. Nothing happens in it except during calls of its methods, in
/// one thread, so a test goes the same way each time.
///
/// Its clock stands still until [`TestKit::advance`], or skips what nobody has to wait for
/// ([`TestKit::skip_time`]). Mocks and faults that never took effect make the test fail when the kit
/// is dropped; [`TestKit::verify`] asks earlier.
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
}

/// Who moves the clock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    Stands,
    Skips,
}

/// The process that lives.
struct Live {
    app: App,
    plan: FaultPlan,
    /// Last: what runs in it is dropped when nothing above is needed any more.
    process: Process,
}

/// A death at a write, counted over all processes.
struct Crash {
    write: u64,
    side: CrashSide,
    fired: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CrashSide {
    Before,
    After,
}

/// An execution of a kit, with the type of its result. Good for all processes of the kit.
#[derive(Debug)]
pub struct Execution<T> {
    id: String,
    output: PhantomData<fn() -> T>,
}

impl<T> Clone for Execution<T> {
    fn clone(&self) -> Execution<T> {
        Execution { id: self.id.clone(), output: PhantomData }
    }
}

impl<T> Execution<T> {
    /// The business id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// What a step along the way comes to.
enum Look<R> {
    There(R),
    /// It may come yet.
    NotYet,
    /// It cannot come any more, for this reason.
    Never(String),
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

    /// Has a step do something else instead of its body. `step` is a name, or a key as it is printed
    /// (`name#2`, `branch/name#1`); of several mocks for one step the first goes first, until its
    /// [times](Mock::times) are over.
    pub fn mock(&mut self, step: &str, mock: Mock) {
        self.script.add(Target::Step, step, mock);
    }

    /// Has the undo of a step do something else.
    pub fn mock_undo(&mut self, step: &str, mock: Mock) {
        self.script.add(Target::Undo, step, mock);
    }

    /// Kills the process instead of its `n`th write, counted from 1 over all processes of the kit
    /// ([`TestKit::writes`]): starts, rows of journals, verbs and events. Another process goes on.
    pub fn crash_before(&mut self, n: u64) {
        self.crash(n, CrashSide::Before);
    }

    /// Kills the process when its `n`th write is durable, and nobody has heard of it.
    pub fn crash_after(&mut self, n: u64) {
        self.crash(n, CrashSide::After);
    }

    fn crash(&mut self, write: u64, side: CrashSide) {
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
    pub fn repeat(&mut self, step: &str, times: u32) {
        self.mock(step, Mock::act(Act::Repeat(times), 1));
    }

    /// The same for its undo.
    pub fn repeat_undo(&mut self, step: &str, times: u32) {
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

    /// Starts an execution, and goes on until it waits for something.
    ///
    /// # Errors
    /// As [`Client::start`](crate::Client::start); `Testing` inside of another runtime.
    pub fn start<W: Workflow>(
        &mut self,
        workflow: W,
        id: &str,
        input: W::Input,
    ) -> Result<Execution<W::Output>, Error> {
        let input = serde_json::to_value(&input).map_err(|error| {
            let message = format!("the input of execution {id:?} cannot be encoded: {error}");
            Error::new(ErrorKind::Decode, message)
        })?;
        self.call(|app| {
            let input = serde_json::from_value(input.clone());
            let start = input.map(|input: W::Input| app.start(workflow.clone(), id, input));
            async move {
                let start = start.map_err(|error| {
                    let message = format!("the input does not decode as what it was: {error}");
                    Error::new(ErrorKind::Decode, message)
                })?;
                start.await.map(drop)
            }
        })?;
        self.settle()?;
        Ok(Execution { id: id.to_owned(), output: PhantomData })
    }

    /// The execution with this id, whoever started it.
    pub fn execution<T>(&self, id: &str) -> Execution<T> {
        Execution { id: id.to_owned(), output: PhantomData }
    }

    /// Asks something of an execution, and goes on until it waits for something. When the process
    /// dies meanwhile the next one is asked again.
    ///
    /// ```
    /// # use backstitch::testing::{Execution, TestKit};
    /// # fn example(kit: &mut TestKit, trip: &Execution<String>) -> Result<(), backstitch::Error> {
    /// kit.ask(trip, |trip| trip.cancel().by("Ada").reason("rain"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Whatever it is answered.
    pub fn ask<T, R, F>(
        &mut self,
        execution: &Execution<T>,
        request: impl Fn(&Handle<T>) -> F,
    ) -> Result<R, Error>
    where
        F: IntoFuture<Output = Result<R, Error>>,
    {
        let answer = self.call(|app| {
            let (app, id, request) = (app.clone(), execution.id.clone(), &request);
            async move { request(&app.handle(&id).await?).await }
        })?;
        self.settle()?;
        Ok(answer)
    }

    /// Sends an event.
    ///
    /// # Errors
    /// As [`Handle::send_event`].
    pub fn send_event<T, P: Serialize + ?Sized>(
        &mut self,
        execution: &Execution<T>,
        event_type: &str,
        payload: &P,
    ) -> Result<(), Error> {
        self.ask(execution, |handle| handle.send_event(event_type, payload)).map(drop)
    }

    /// What the execution is doing.
    ///
    /// # Errors
    /// As [`Handle::status`].
    pub fn status<T>(&mut self, execution: &Execution<T>) -> Result<ExecutionStatus, Error> {
        self.call(|app| {
            let (app, id) = (app.clone(), execution.id.clone());
            async move { app.handle::<T>(&id).await?.status().await }
        })
    }

    /// Its journal.
    ///
    /// # Errors
    /// As [`Handle::journal`].
    pub fn journal<T>(&mut self, execution: &Execution<T>) -> Result<Vec<Row>, Error> {
        self.call(|app| {
            let (app, id) = (app.clone(), execution.id.clone());
            async move { app.handle::<T>(&id).await?.journal().await }
        })
    }

    /// Its journal, drawn.
    ///
    /// # Errors
    /// As [`Handle::journal`].
    pub fn timeline<T>(&mut self, execution: &Execution<T>) -> Result<String, Error> {
        Ok(timeline::draw(&self.journal(execution)?, timeline::Style::Plain))
    }

    /// The open matters of all executions.
    ///
    /// # Errors
    /// As [`Client::attention`](crate::Client::attention).
    pub fn attention(&mut self) -> Result<Vec<Attention>, Error> {
        self.call(|app| {
            let app = app.clone();
            async move { app.attention(1_000).await }
        })
    }

    /// The steps whose undos succeeded, in the order in which they did.
    ///
    /// # Errors
    /// As [`Handle::journal`].
    pub fn undone<T>(&mut self, execution: &Execution<T>) -> Result<Vec<String>, Error> {
        let run = self.status(execution)?.run;
        let rows = self.journal(execution)?;
        let events = rows.iter().flat_map(|row| &row.events);
        let undone = events.filter_map(|event| match event {
            backstitch_core::event::Event::UndoSucceeded(undone) => run.step(undone.ord),
            _ => None,
        });
        Ok(undone.map(|step| step.key.to_string()).collect())
    }

    /// Goes on until the execution is closed or stuck, and answers as [`Handle::result`] does.
    ///
    /// # Errors
    /// What [`Handle::result`] says of an execution that did not succeed. `Testing`, when it gets
    /// there by itself no more, with what it waits for.
    pub fn result<T: DeserializeOwned>(&mut self, execution: &Execution<T>) -> Result<T, Error> {
        self.go_on(execution, "the end of the execution", |status| {
            let over = status.status.is_closed() || status.status == Status::Stuck;
            if over { Look::There(()) } else { Look::NotYet }
        })?;
        self.land_late()?;
        self.call(|app| {
            let (app, id) = (app.clone(), execution.id.clone());
            async move { app.handle::<T>(&id).await?.result().await }
        })
    }

    /// Goes on until the execution has this status.
    ///
    /// # Errors
    /// `Testing`, when it gets there no more.
    pub fn wait_for<T>(
        &mut self,
        execution: &Execution<T>,
        wanted: Status,
    ) -> Result<ExecutionStatus, Error> {
        let what = format!("the status {wanted}");
        self.go_on(execution, &what, |status| match status.status {
            found if found == wanted => Look::There(status.clone()),
            found if found.is_closed() => Look::Never(format!("it is {found}")),
            _ => Look::NotYet,
        })
    }

    /// Goes on until a step has got so far; at once if it has been there.
    ///
    /// # Errors
    /// `Testing`, when it gets there no more, with the names of the steps that there are.
    pub fn wait_until<T>(
        &mut self,
        execution: &Execution<T>,
        step: &str,
        wanted: Reached,
    ) -> Result<(), Error> {
        let what = format!("step {step:?} {wanted}");
        self.go_on(execution, &what, |status| match wanted.look(&status.run, step) {
            Ok(true) => Look::There(()),
            Ok(false) if status.status.is_closed() => {
                Look::Never(format!("it is {}", status.status))
            }
            Ok(false) => Look::NotYet,
            Err(never) if status.status.is_closed() => Look::Never(never),
            Err(_) => Look::NotYet,
        })
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

    pub(super) fn script(&self) -> &Script {
        &self.script
    }

    /// Lets land what a worker sent off that nobody believes any more.
    pub(super) fn land_late(&mut self) -> Result<(), Error> {
        let late = self.script.take_late();
        let live = self.live()?;
        for effect in late {
            live.process.block_on(effect);
        }
        Ok(())
    }

    /// Goes on until the execution looks as `look` says, and lets time pass if it may.
    fn go_on<T, R>(
        &mut self,
        execution: &Execution<T>,
        what: &str,
        mut look: impl FnMut(&ExecutionStatus) -> Look<R>,
    ) -> Result<R, Error> {
        let began = Instant::now();
        let mut moves = 0;
        loop {
            self.settle()?;
            let status = self.status(execution)?;
            let why = match look(&status) {
                Look::There(there) => return Ok(there),
                Look::Never(why) => why,
                Look::NotYet if self.script.is_at_work() => {
                    if began.elapsed() < HANG {
                        continue;
                    }
                    format!(
                        "code of a step has been running for {HANG:?}; if it is to hang, mock it"
                    )
                }
                Look::NotYet => match (self.clock.next_us(), self.time) {
                    (Some(next_us), Time::Skips) if moves < MOVES_MAX => {
                        moves += 1;
                        self.clock.set(next_us.max(self.clock.now_us()));
                        continue;
                    }
                    (Some(_), Time::Skips) => {
                        format!("it still goes on after {moves} moves of the clock")
                    }
                    (Some(next_us), Time::Stands) => {
                        let next = jiff::Timestamp::from_microsecond(next_us);
                        let next = next.unwrap_or(jiff::Timestamp::MAX);
                        format!(
                            "nothing happens before {next}, and the clock stands at {}: call \
                             advance(), or make the kit with skip_time()",
                            self.now()
                        )
                    }
                    (None, _) => "nothing happens any more by itself".to_owned(),
                },
            };
            return Err(self.unreachable(execution, what, &why, &status));
        }
    }

    fn unreachable<T>(
        &self,
        execution: &Execution<T>,
        what: &str,
        why: &str,
        status: &ExecutionStatus,
    ) -> Error {
        let mut message = format!("execution {:?} does not reach {what}: {why}", execution.id);
        message += &format!("; its status is {}", status.status);
        for (_, step, failure) in &status.blocks {
            let step = step.as_ref().map(|step| format!(" by step {step}")).unwrap_or_default();
            message += &format!(", blocked{step}: {failure}");
        }
        if !status.waits_for.is_empty() && !status.status.is_closed() {
            message += &format!(", it waits for {:?}", status.waits_for);
        }
        match self.script.seen(Target::Step).as_slice() {
            [] => message += "; no step was attempted",
            seen => message += &format!("; steps that were attempted: {}", seen.join(", ")),
        }
        Error::new(ErrorKind::Testing, message)
    }

    /// Calls the process that lives, and if it dies meanwhile the next one.
    fn call<R, F>(&mut self, call: impl Fn(&App) -> F) -> Result<R, Error>
    where
        F: Future<Output = Result<R, Error>>,
    {
        loop {
            let live = self.live()?;
            let answer = live.process.block_on(async {
                tokio::select! {
                    biased;
                    answer = call(&live.app) => Some(answer),
                    () = live.plan.died() => None,
                }
            });
            match answer {
                Some(answer) => return answer,
                None => self.bury(),
            }
        }
    }

    /// Lets everything happen that happens by itself at this instant, and by whichever process.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        let script = self.script.clone();
        loop {
            let live = self.live()?;
            let lives = live.process.block_on(async {
                loop {
                    tokio::select! {
                        biased;
                        () = live.plan.died() => return false,
                        () = live.process.quiet() => {}
                    }
                    if live.plan.is_dead() {
                        continue;
                    }
                    if !script.is_at_work() {
                        return true;
                    }
                    // Something real is awaited: a timer of the machine, another thread.
                    if tokio::time::timeout(PATIENCE, script.ended()).await.is_err() {
                        return true;
                    }
                }
            });
            if lives {
                return Ok(());
            }
            self.bury();
        }
    }

    /// The process that lives; a new one, if there is none.
    fn live(&mut self) -> Result<&Live, Error> {
        if self.live.is_none() {
            let process = Process::new()?;
            self.disk = self.disk.reopen();
            self.processes += 1;
            let plan = FaultPlan::new();
            for crash in self.crashes.iter().filter(|crash| !crash.fired) {
                crash.put_into(&plan, self.writes_before);
            }
            self.script.obey(plan.clone());
            let store = FaultStore::new(Arc::new(self.disk.clone()), plan.clone());
            let builder = Backstitch::on(Arc::new(store)).clock(Arc::new(self.clock.clone()));
            let intercept: Arc<dyn Intercept> = Arc::new(self.script.clone());
            let builder = builder.under_test(self.processes, intercept);
            let builder = self.setups.iter().fold(builder, |builder, setup| setup(builder));
            let app = process.block_on(async { builder.run().await })?;
            self.live = Some(Live { app, plan, process });
        }
        Ok(self.live.as_ref().expect("made above"))
    }

    /// Ends what is dead.
    fn bury(&mut self) {
        let Some(live) = self.live.take() else { return };
        let count = live.plan.count();
        self.writes_before += count;
        if live.plan.is_dead() {
            for crash in &mut self.crashes {
                crash.fired |= crash.write == self.writes_before;
            }
        }
        drop(live);
    }
}

impl Crash {
    fn put_into(&self, plan: &FaultPlan, before: u64) {
        let Some(n @ 1..) = self.write.checked_sub(before) else { return };
        match self.side {
            CrashSide::Before => plan.die_before(n),
            CrashSide::After => plan.die_after(n),
        }
    }
}

impl CrashSide {
    fn name(self) -> &'static str {
        match self {
            CrashSide::Before => "before",
            CrashSide::After => "after",
        }
    }
}

/// A mock that never took effect tests nothing.
impl Drop for TestKit {
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Err(error) = self.verify()
        {
            panic!("{error}");
        }
    }
}
