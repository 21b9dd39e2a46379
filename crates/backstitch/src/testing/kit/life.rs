//! The processes of a kit: one lives, and when it dies the next one goes on.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use backstitch_engine::program::Intercept;
use backstitch_store::fault::{FaultPlan, FaultStore};

use super::TestKit;
use crate::app::App;
use crate::error::{Error, ErrorKind};
use crate::open::Backstitch;
use crate::testing::process::Process;

/// How long code of the user may be seen to wait for something real before it is taken to hang.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long a process may go on and on at one instant: longer than any body of a test works at a
/// stretch.
const RESTLESS: Duration = Duration::from_secs(10);

/// The process that lives.
pub(super) struct Live {
    pub app: App,
    pub plan: FaultPlan,
    /// Last: what runs in it is dropped when nothing above is needed any more.
    pub process: Process,
}

/// How it went on at one instant.
enum Came {
    Rest,
    Death,
    NoRest,
}

/// What a panic says.
pub(in crate::testing) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "it panicked".to_owned())
}

/// A death at a write, counted over all processes.
pub(super) struct Crash {
    pub write: u64,
    pub side: CrashSide,
    pub fired: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CrashSide {
    Before,
    After,
}

impl TestKit {
    /// Lets land what a worker sent off that nobody believes any more.
    ///
    /// # Errors
    /// `Testing`, when it does not come to its end.
    pub(in crate::testing) fn land_late(&mut self) -> Result<(), Error> {
        for (key, mut effect) in self.script.take_late() {
            let script = self.script.clone();
            let live = self.live()?;
            let began = Instant::now();
            let landed = AssertUnwindSafe(|| {
                live.process.block_on(async {
                    while began.elapsed() < RESTLESS && script.spins().is_none() {
                        if tokio::time::timeout(PATIENCE, &mut effect).await.is_ok() {
                            return Ok(());
                        }
                    }
                    Err(script.spins().unwrap_or(format!("{RESTLESS:?} were not enough")))
                })
            });
            match catch_unwind(landed) {
                Ok(Ok(())) => {}
                Ok(Err(why)) => {
                    let what = format!("what step {key:?} sent off does not end");
                    let error = Error::new(ErrorKind::Testing, format!("{what}: {why}"));
                    return Err(self.noted(error));
                }
                // Nobody hears of it in the engine.
                Err(panic) => {
                    let text = panic_text(&*panic);
                    self.late_panics.push(format!("what {key} sent off landed late: {text}"));
                }
            }
        }
        Ok(())
    }

    /// Whatever never took effect is no matter.
    pub(in crate::testing) fn forgive(&mut self) {
        self.script.forget();
        self.first_error = None;
        self.crashes.clear();
    }

    /// Calls the process that lives, and if it dies meanwhile the next one.
    pub(super) fn call<R, F>(&mut self, call: impl Fn(&App) -> F) -> Result<R, Error>
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
    ///
    /// # Errors
    /// `Testing`, when it never comes to rest.
    pub(in crate::testing) fn settle(&mut self) -> Result<(), Error> {
        let script = self.script.clone();
        loop {
            let live = self.live()?;
            let came = live.process.block_on(async {
                loop {
                    tokio::select! {
                        biased;
                        () = live.plan.died() => return Came::Death,
                        () = live.process.quiet() => {}
                        () = tokio::time::sleep(RESTLESS) => return Came::NoRest,
                    }
                    if live.plan.is_dead() {
                        continue;
                    }
                    script.rests();
                    if script.spins().is_some() {
                        return Came::NoRest;
                    }
                    if !script.is_at_work() {
                        return Came::Rest;
                    }
                    // Something real is awaited: a timer of the machine, another thread.
                    if tokio::time::timeout(PATIENCE, script.ended()).await.is_err() {
                        return Came::Rest;
                    }
                }
            });
            match came {
                Came::Rest => return Ok(()),
                Came::Death => self.bury(),
                Came::NoRest => {
                    let why = self.script.spins().unwrap_or_else(|| {
                        format!(
                            "for {RESTLESS:?} there was always something to do, and the clock \
                             stands: a task that a body spawned spins, for example"
                        )
                    });
                    return Err(self.noted(Error::new(ErrorKind::Testing, why)));
                }
            }
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
            let builder = builder.under_test(self.processes, intercept).keep_forever();
            let builder = self.setups.iter().fold(builder, |builder, setup| setup(builder));
            let app = process.block_on(async { builder.run().await })?;
            self.live = Some(Live { app, plan, process });
        }
        Ok(self.live.as_ref().expect("made above"))
    }

    /// Ends what is dead.
    pub(super) fn bury(&mut self) {
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
    pub fn put_into(&self, plan: &FaultPlan, before: u64) {
        let Some(n @ 1..) = self.write.checked_sub(before) else { return };
        match self.side {
            CrashSide::Before => plan.die_before(n),
            CrashSide::After => plan.die_after(n),
        }
    }
}

impl CrashSide {
    pub fn name(self) -> &'static str {
        match self {
            CrashSide::Before => "before",
            CrashSide::After => "after",
        }
    }
}
